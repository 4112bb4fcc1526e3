"""The demonstration's own rules; the whole of it is `make run`."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lab import demo
from lab.demo import prepare, remove_previous, split, teach
from lab.ground_truth import SyntheticQuestion
from lab.simulation.users import refreshes
from lab.study.run import scaled_to_days
from tests.support.feedback_events import NOON
from tests.support.feedback_publisher import MemoryPublisher
from tests.support.learner import learned
from tests.support.retrieval_fakes import MemoryGeneration, a_searcher
from weft.cli.console.options import run_job
from weft.domain.errors import StoreError
from weft.domain.ids import ChunkId, content_hash
from weft.evaluation.queries.writer import QueryLog
from weft.feedback.events.producer import FeedbackProducer
from weft.learning.evidence import MICRO
from weft.learning.parameters import SURPLUS
from weft.settings import load_settings

pytestmark = pytest.mark.integration

SETTINGS = load_settings(environment={})
FRUIT = MemoryGeneration({"a": ["red apple"], "b": ["red pear"], "c": ["green apple pie"], "d": ["plum"]})


def a_question(text: str) -> SyntheticQuestion:
    return SyntheticQuestion(
        text=text, uri="a.py", chunk_id=ChunkId("c"), content_hash=content_hash(text), kind="docstring", place=0
    )


def test_held_out_questions_are_never_learned_from() -> None:
    """EVA-6: the two halves share no question, and the same ones are drawn whatever order they are found in."""
    questions = [a_question(f"What does number {number} of the functions do?") for number in range(50)]
    lessons, held_out = split(questions, 40)
    assert (len(lessons), len(held_out)) == (20, 20)
    assert not {one.text for one in lessons} & {one.text for one in held_out}
    assert split(questions[::-1], 40) == (lessons, held_out)


@pytest.mark.parametrize("arguments", [("--questions", "1"), ("--modules", "0")])
def test_a_demonstration_of_nothing_is_wrong_usage(
    tmp_path: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Job contract: half of one question is none."""
    assert run_job(demo.demo, ["--store", str(tmp_path), *arguments]) == 2
    assert f"Invalid value for '{arguments[0]}'" in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_a_store_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """ARC-2: the demonstration starts afresh, so it must never be pointed at a store that is in use."""
    (tmp_path / "generations").mkdir()
    with pytest.raises(StoreError, match="generations"):
        remove_previous(tmp_path)
    assert (tmp_path / "generations").is_dir()


def test_a_folder_that_only_has_a_demo_is_left_alone(tmp_path: Path) -> None:
    """ARC-2: nor is anything removed that no demonstration wrote, such as the project of somebody who gave `.`."""
    for name in ("demo", "src", "cache"):
        (tmp_path / name).mkdir()
    (tmp_path / "notes.md").write_text("mine")
    with pytest.raises(StoreError, match=r"found \['notes.md', 'src'\]; give another folder"):
        remove_previous(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"cache", "demo", "notes.md", "src"}


def test_its_own_store_is_emptied_but_for_the_caches(tmp_path: Path) -> None:
    """OPS-1: `make run` may be run again, and is quicker then."""
    for name in ("cache", "demo", "generations", "learned", "lessons", "logs", "mlflow", "sessions", "updaters"):
        (tmp_path / name).mkdir()
    left = (".staging-k1ll3d.lock", ".current.json.k1ll3d")
    for name in (".catalog.lock", ".gitignore", "current.json", "learned.html", "settings.json", "store.json", *left):
        (tmp_path / name).touch()
    remove_previous(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_emptying_it_can_be_killed_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ARC-2: what is half empty is still known as a demonstration's."""
    for name in ("demo", "generations", "updaters"):
        (tmp_path / name).mkdir()
    with monkeypatch.context() as killed:
        killed.setattr(shutil, "rmtree", lambda path: path.rmdir() if path.name != "updaters" else _interrupt())
        with pytest.raises(KeyboardInterrupt):
            remove_previous(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"demo", "updaters"}
    remove_previous(tmp_path)
    assert not list(tmp_path.iterdir())


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_nothing_that_is_asked_stands_in_what_is_indexed(tmp_path: Path) -> None:
    """EVA-4: the queried text itself is masked."""
    corpus = prepare(tmp_path / "demo", load_settings(environment={}), modules=3)
    texts = [path.read_text(encoding="utf-8") for source in corpus.sources for path in source.rglob("*.py")]
    assert corpus.questions
    assert not [question.text for question in corpus.questions if any(question.text in text for text in texts)]


def test_the_corpus_is_code_prose_and_configuration_and_the_same_again(tmp_path: Path) -> None:
    """OPS-1: what is installed, so that figures of two commits can be compared."""
    first, again = (prepare(tmp_path / name / "demo", SETTINGS, modules=3) for name in ("first", "again"))
    assert first.questions == again.questions
    written = [
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*.*")
            if path.is_file()
        }
        for name in ("first", "again")
    ]
    assert written[0] == written[1]
    assert {path.suffix for path in written[0]} == {".py", ".rst", ".yaml", ".ini"}


def test_all_that_users_say_moves_parameters(tmp_path: Path) -> None:
    """EVA-6, LRN-3: each question is asked by a user of its own, with a history of its own: no allowance is used up."""
    lessons = [
        replace(a_question(f"red apple {number}"), content_hash=content_hash("red apple")) for number in range(60)
    ]
    published, counts_at_refresh = MemoryPublisher(), []
    with QueryLog(tmp_path, SETTINGS.query_log) as log:
        producer = FeedbackProducer(published, clock=lambda: NOON / 1000)
        teach(
            a_searcher(FRUIT),
            producer,
            log,
            lessons,
            caught_up=lambda: counts_at_refresh.append(len(published.values)),
        )
    assert len(counts_at_refresh) == len(refreshes([len(lessons)])) > 1
    assert counts_at_refresh[-1] == len(published.values)
    rules = scaled_to_days(SETTINGS, len(lessons)).feedback
    counts = learned(tmp_path / "store", published.values, rules).counts
    mass_of_feedback = sum(mass for key, mass in counts.items() if key.parameter == "relevance")
    assert mass_of_feedback > SETTINGS.feedback.limits.principal_daily * MICRO
    assert not [key for key in counts if key.parameter.startswith(SURPLUS)]
