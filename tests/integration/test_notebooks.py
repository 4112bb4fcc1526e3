"""Notebooks run from top to bottom, define nothing, and keep no outputs."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from tests.support.feedback_events import lesson_added, lesson_outcome
from tests.support.lesson_words import evidence_of
from tests.support.nights import a_day, stream
from tests.support.outcomes import outcome_evidence
from weft.app.night import night_of
from weft.consolidation.pipeline import consolidate
from weft.domain.documents import Domain
from weft.domain.ids import content_hash
from weft.domain.lesson import Lesson, LessonResult, LessonSource
from weft.domain.ranking import Scope
from weft.learning.evidence import MICRO, Evidence
from weft.learning.families.gaussian_process import quality_masses
from weft.learning.families.survival import survival_masses
from weft.learning.families.threshold import threshold_masses
from weft.learning.lessons.rows import outcome_bin
from weft.learning.parameters import reported_evidence
from weft.learning.uses import UsageKey
from weft.settings import load_settings

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
DAY = 20_000


def cells(notebook: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]


def run_all(stem: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a notebook has defined when it has run on a store."""
    monkeypatch.setenv("WEFT__STORAGE__ROOT", str(root))
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = next(path for path in NOTEBOOKS if path.stem == stem)
    seen: dict[str, Any] = {}
    for cell in cells(notebook):
        exec(compile("".join(cell["source"]), str(notebook), "exec"), seen)
    return seen


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store after its first night."""
    root = tmp_path_factory.mktemp("store")
    stream(root, 0, a_day(DAY))
    settings = load_settings(assignments=[f"storage.root={root}"], environment={})
    consolidate(night_of(settings, clock=lambda: (DAY + 0.5) * 86_400))
    return root


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_keeps_no_outputs_and_defines_nothing(notebook: Path) -> None:
    """OPS-8: notebooks import, never define; their outputs are stripped."""
    for cell in cells(notebook):
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
        assert not [node for node in ast.walk(ast.parse("".join(cell["source"]))) if isinstance(node, definitions)]


def test_the_calibration_review_runs_on_a_store(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-8, CON-10: the review shows the newest version's calibration and weights."""
    seen = run_all("01_calibration_review", store, monkeypatch)
    assert seen["version"] == "v000001"
    assert isinstance(seen["reliability"], Figure)
    assert isinstance(seen["weights"], Figure)
    assert seen["recalibration"].refitted


def test_the_posterior_explorer_shows_every_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LRN-4 to LRN-10, OPS-8: each with mean, interval, draws, confidence and a picture."""
    code = Scope(Domain.CODE, "m", "a")
    reported = (
        reported_evidence(DAY, code, "decay", survival_masses(48.0, accurate=False)),
        reported_evidence(DAY, code, "threshold", threshold_masses(0.7, good=True)),
        reported_evidence(DAY, code, "quality", quality_masses(3, 0.9)),
        reported_evidence(DAY, code, "trust.paper", {"verified": MICRO}),
        Evidence(usage={UsageKey(DAY, "use-the-lock", outcome_bin(LessonResult.SUCCESS, "report"), "a"): MICRO}),
    )
    asked = outcome_evidence(
        day=DAY,
        scope=code,
        intent="debug",
        signals={"vector": 0.9},
        score=0.5,
        content_hash=content_hash("a"),
        good=True,
        weight=3.0,
    )
    stream(tmp_path, 0, Evidence.sum([a_day(DAY), *reported, asked]))
    seen = run_all("02_posterior_explorer", tmp_path, monkeypatch)
    families = {"weight", "decay", "threshold", "quality", "trust", "lesson", "size", "examination", "intent"}
    assert set(seen["families"]) == families
    pictures = ("weights", "decay", "thresholds", "quality", "trust", "sizes", "strategies", "odds", "examination")
    assert all(isinstance(seen[name], Figure) for name in pictures)


def test_what_the_lessons_learned_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LES-11, OPS-8: measures, beliefs with intervals, sources, what went and why, and what is to be decided."""
    always, never, bad = (
        Lesson(section="git", content=content, source=LessonSource.USER_CORRECTION)
        for content in ("Always squash commits before merging", "Never squash commits before merging", "Rebase by hand")
    )
    events = [lesson_added(each) for each in (always, never, bad)]
    stream(tmp_path, 0, evidence_of([*events, lesson_outcome(bad.id, "contradiction", origin="person")]))
    seen = run_all("04_lessons", tmp_path, monkeypatch)
    assert seen["gone"] == {"Rebase by hand": "a person's word: contradiction"}
    assert [says for _, says, _, _ in seen["undecided"]] == ["contradicts"]
    assert seen["measures"]["lessons"] == 3
    assert isinstance(seen["sure"], Figure)
    assert isinstance(seen["trusted"], Figure)


def test_the_error_analysis_says_who_gained_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-8, EVA-1: two configurations on one data set, paired by query, each change with its reason."""
    words = ("lock", "batch", "query", "chunk", "shard", "token")
    records = [{"_id": f"d{n}", "title": word, "text": f"Every {word} holds a {word}."} for n, word in enumerate(words)]
    queries = [{"_id": f"q{n}", "text": f"what does a {word} hold"} for n, word in enumerate(words)]
    folder = tmp_path / "words"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, records)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    # The last is judged wrongly on purpose, so that there is an error to analyse.
    right = [*range(len(words) - 1), 0]
    (folder / "qrels" / "test.tsv").write_text("".join(f"q{n}\td{right[n]}\t1\n" for n in range(len(words))))
    monkeypatch.setenv("WEFT_DATASET", str(folder))
    seen = run_all("03_retrieval_errors", tmp_path / "store", monkeypatch)
    assert isinstance(seen["changes"], Figure)
    assert isinstance(seen["causes"], Figure)
    assert seen["comparison"].strength == "anecdotal"
    wrong = seen["found"]["B: as configured"]["q5"]
    assert wrong.rank is None or wrong.rank > 1
    assert wrong.reason != "right"


def test_the_posterior_explorer_runs_where_little_was_learned(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-8: nothing was reported of models, sources and lessons yet."""
    seen = run_all("02_posterior_explorer", store, monkeypatch)
    assert (seen["quality"], seen["trust"], seen["odds"]) == (None, None, None)
