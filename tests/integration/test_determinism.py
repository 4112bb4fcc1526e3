"""ARC-9: the same generation, learned version, configuration and query id give the same bytes, in any process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.outcomes import outcome_evidence
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.cli.commands import reindex
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope, Signal
from weft.learning.calibration.matching import Answering, MatchCalibration, MatchCurve
from weft.learning.calibration.scores import Isotonic, ScoreCalibration
from weft.learning.evidence import Evidence
from weft.learning.parts import parts_of
from weft.runtime.stages import HERE
from weft.settings import load_settings

ROOT = Path(__file__).parents[2]
TEXTS = {
    "checkpoints.md": "# Checkpoints\n\nA checkpoint is written after every commit, and read when a store is damaged.",
    "locks.md": "# Locks\n\nA lock is released when the transaction ends. Commits wait for locks.",
    "fruit.md": "# Fruit\n\nBananas are yellow. Plums are not, and neither are most apples.",
    "store.py": 'def commit(store):\n    """Write a checkpoint and release every lock."""\n    store.checkpoint()\n',
}
QUESTIONS = ["when is a checkpoint written", "who releases a lock", "which fruit is yellow", "commit"]
CURVE = MatchCurve(6.0, 3.0, -4.0)
# Far longer than the test takes: no hour may end in the middle of it.
APART = ["--set", "retrieval.time_step_s=1e9", "--set", "retrieval.budget_ms.searching=60000", "--set"]
APART += ["retrieval.budget_ms.following=60000"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of different ages, indexed, and a learned version with some outcomes."""
    folder, root = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("store")
    for place, (name, text) in enumerate(TEXTS.items()):
        (folder / name).write_text(text)
        os.utime(folder / name, (1.7e9 + 1e6 * place,) * 2)
    settings = load_settings([], [f"storage.root={root}", "extraction.enabled=false"], environment={})
    reindex.run(reindex.plan_of(settings, [folder]), executor=HERE)
    outcomes = (
        outcome_evidence(
            day=20_400,
            scope=Scope(domain),
            intent="*",
            signals={signal.value: (3 * number + place) % 7 / 7.0 for place, signal in enumerate(Signal)},
            score=0.5,
            content_hash=ContentHash(f"{number:064x}"),
            good=number % 3 == 0,
            weight=1.0,
        )
        for number in range(60)
        for domain in Domain
    )
    match = MatchCalibration(CURVE, CURVE, CURVE, Answering(0.2, 0.2, 0.05, 100))
    state = LearnedState(
        parent=None,
        evidence=Evidence.sum(outcomes),
        cut=Evidence(),
        parts=parts_of(ScoreCalibration(Isotonic((0.0, 1.0), (0.0, 1.0)), match)),
        priors=settings.priors.fingerprint,
        provenance={},
        mlflow_run_id=None,
        created_at=1.7e9,
    )
    catalog = Catalog(root)
    catalog.make_live(catalog.learned.publish(state, expected_newest=None))
    return root


def asked(store: Path, folder: Path, *, explore: bool, seed: int) -> list[dict[str, Any]]:
    """The answers of a process of its own, without what the clock says about it."""
    queries = folder / "queries.jsonl"
    queries.write_text("\n".join(json.dumps({"_id": f"q{n}", "text": text}) for n, text in enumerate(QUESTIONS)))
    command = [sys.executable, "-m", "jobs.search", "--queries", str(queries), "--store", str(store), "--json", *APART]
    threads = {"PYTHONHASHSEED": str(seed), "OMP_NUM_THREADS": str(1 + seed % 2)}
    done = subprocess.run(
        [*command, *(["--explore"] if explore else [])],
        cwd=ROOT,
        env={**os.environ, **threads},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])["answers"]
    return [{name: value for name, value in answer.items() if name != "timings_ms"} for answer in answers]


@pytest.mark.parametrize(
    "explore", [pytest.param(False, marks=pytest.mark.slow), True], ids=["expected weights", "drawn weights"]
)
def test_two_processes_give_the_same_bytes(store: Path, tmp_path: Path, explore: bool) -> None:
    """ARC-9, LRN-11: whatever seeds hashes, and however many threads there are; a draw is the query's own."""
    first, second = (asked(store, tmp_path, explore=explore, seed=seed) for seed in (1, 2))
    assert json.dumps(first) == json.dumps(second)
    assert all(answer["results"] for answer in first)
    assert all(result["probability"] is not None for answer in first for result in answer["results"])
    assert {answer["explored"] for answer in first} == {explore}
