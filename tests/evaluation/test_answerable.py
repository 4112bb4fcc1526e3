"""RET-15: queries of one collection asked of another's index; run by `make eval`.

Six indexes, a hundred queries of each; WEFT__STORAGE__ROOT names a store that has them, else each is indexed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from jobs import evaluate, study
from pipelines.domain.matching import Match, best_match
from pipelines.domain.ranking import Answer
from pipelines.evaluation.beir import Dataset, read_dataset
from pipelines.learning.matching import Answering, answering_from
from pipelines.runtime.cluster import connect
from pipelines.settings import load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(7200)]

SPLITS = {"scifact": "test", "nfcorpus": "dev", "locomo": "dev", "cosqa": "test", "cacm": "test", "vaswani": "test"}
ASKED = 100
# Of those that pass, most have an answer there; how many was judged by hand: docs/evaluation.md.
OF_ONE_FIELD = {("scifact", "nfcorpus"), ("nfcorpus", "scifact"), ("cacm", "vaswani"), ("vaswani", "cacm")}


class Answered:
    """How much of what is asked of each index passes for answered, by whose queries they are."""

    def __init__(self, root: Path) -> None:
        self._sets = {
            name: read_dataset(root / name, split) for name, split in SPLITS.items() if (root / name).is_dir()
        }
        self.by_nearness: dict[tuple[str, str], float] = {}
        self.by_cosine: dict[tuple[str, str], float] = {}
        for index in self._sets:
            self._ask(index)

    def _ask(self, index: str) -> None:
        settings, own = evaluate.measuring(load_settings()), self._sets[index]
        stored = evaluate.indexed(own, settings, before=lambda: connect(settings.cluster))
        bench = study._Bench(stored, own)
        near = answering_from(bench.probed(), bound=settings.consolidation.calibration.answering_bound)
        assert near is not None
        for name, asked in self._sets.items():
            best = [_best(answer) for answer in bench.answers(_some(asked, own=name == index))]
            self.by_nearness[index, name] = _passing(near, best)
            self.by_cosine[index, name] = _passing(replace(near, near=None), best)
        Console(width=150).print({pair: share for pair, share in self.by_nearness.items() if pair[0] == index})


def _some(asked: Dataset, *, own: bool) -> list[study.JudgedQuery]:
    step = max(1, len(asked.queries) // ASKED)
    return [query if own else replace(query, metadata={}) for query in asked.queries[::step][:ASKED]]


def _best(answer: Answer) -> Match:
    return best_match(result.match for result in answer.results)


def _passing(answering: Answering, best: list[Match]) -> float:
    compared = [answering.compared(match) for match in best]
    return sum(each is not None and each[0] > each[1] for each in compared) / len(best)


@pytest.fixture(scope="module")
def answered(data_root: Path) -> Answered:
    return Answered(data_root)


def strangers(shares: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    return {pair: share for pair, share in shares.items() if pair[0] != pair[1] and pair not in OF_ONE_FIELD}


def test_what_has_no_answer_is_answered_no_more_often_than_stated(answered: Answered) -> None:
    """RET-15: every pair of collections of different fields, within twice the standard error of a hundred queries."""
    shares = strangers(answered.by_nearness)
    assert shares
    assert {pair: share for pair, share in shares.items() if share > 0.05 + 2.0 * (0.05 * 0.95 / ASKED) ** 0.5} == {}
    assert sum(shares.values()) / len(shares) <= 0.05


def test_what_has_an_answer_is_doubted_less_by_nearness_than_by_the_cosine(answered: Answered) -> None:
    """RET-15: at the same bound, by a tenth and more of what was doubted."""
    own = [name for name in SPLITS if (name, name) in answered.by_nearness]
    near, cosine = (
        sum(shares[name, name] for name in own) / len(own) for shares in (answered.by_nearness, answered.by_cosine)
    )
    assert 1.0 - near <= 0.9 * (1.0 - cosine)
