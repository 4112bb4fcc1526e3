"""RET-15: queries of one collection asked of another's index; run by `make eval`.

Six indexes, asked once each: a hundred queries of every collection, and the probes. Where WEFT__STORAGE__ROOT names a
store that has them that takes a minute and a half, else each is indexed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from lab.study.run import Bench
from weft.cli.reports import evaluate
from weft.domain.matching import best_match
from weft.evaluation.measures.beir import Dataset, JudgedQuery, read_dataset
from weft.learning.calibration.matching import Answering, answering_from
from weft.settings import load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(7200)]

SPLITS = {"scifact": "test", "nfcorpus": "dev", "locomo": "dev", "cosqa": "test", "cacm": "test", "vaswani": "test"}
ASKED = 100
BOUND = 0.05
Pair = tuple[str, str]

# Queries of one collection that another, of the same field, answers, in part at least: something there is about just
# that. Of those that passed the results were read; what is not named here is taken to have no answer.
ANSWERED_THERE: Mapping[Pair, frozenset[str]] = {
    ("scifact", "nfcorpus"): frozenset(
        f"PLAIN-{number}"
        for number in (
            570,
            730,
            791,
            1017,
            1118,
            1245,
            1352,
            1418,
            1451,
            1610,
            1644,
            1876,
            2039,
            2166,
            2290,
            2385,
            2459,
        )
    )
    | {"PLAIN-2849", "PLAIN-3114"},
    ("nfcorpus", "scifact"): frozenset({"268", "793", "960", "1100", "1344", "1370"}),
    ("cacm", "vaswani"): frozenset({"4", "5", "6", "42", "43", "44", "46", "59"}),
}
BEYOND = pytest.mark.xfail(reason="claims about what the store is about: the bound is for other matters", strict=True)


@dataclass(frozen=True)
class Asked:
    """What became of queries asked of one index: which passed for answered, by nearness and by the cosine alone."""

    queries: tuple[str, ...]
    by_nearness: frozenset[str]
    by_cosine: frozenset[str]


@pytest.fixture(scope="module")
def answered(data_root: Path) -> Mapping[Pair, Asked]:
    """By index, and by whose queries they are."""
    sets = {
        name: read_dataset(data_root / name, split) for name, split in SPLITS.items() if (data_root / name).is_dir()
    }
    found = {(index, name): asked for index in sets for name, asked in asked_of(sets[index], sets).items()}
    Console(width=150).print(shares(found))
    return found


def asked_of(own: Dataset, sets: Mapping[str, Dataset]) -> dict[str, Asked]:
    settings = evaluate.measuring(load_settings())
    bench = Bench(evaluate.indexed(own, settings), own)
    rules = settings.consolidation.calibration
    near = answering_from(bench.probed(), bound=rules.answering_bound, confidence=rules.answering_confidence)
    assert near is not None
    return {name: ask(bench, near, some(each, own=each is own)) for name, each in sets.items()}


def some(asked: Dataset, *, own: bool) -> list[JudgedQuery]:
    step = max(1, len(asked.queries) // ASKED)
    return [query if own else replace(query, metadata={}) for query in asked.queries[::step][:ASKED]]


def ask(bench: Bench, near: Answering, queries: list[JudgedQuery]) -> Asked:
    best = {str(each.query.query_id): best_match(r.match for r in each.results) for each in bench.answers(queries)}
    passed = [
        frozenset(query for query, match in best.items() if (told := by.compared(match)) and told[0] > told[1])
        for by in (near, replace(near, near=None))
    ]
    return Asked(tuple(best), *passed)


def shares(found: Mapping[Pair, Asked]) -> Table:
    names = list(dict.fromkeys(index for index, _ in found))
    table = Table("queries of →", *names, title="pass for answered", title_justify="left", box=None)
    for index in names:
        of = [found[index, name] for name in names]
        table.add_row(f"on {index}", *(f"{len(each.by_nearness) / len(each.queries):.2f}" for each in of))
    return table


def without_answer(pair: Pair, found: Asked) -> tuple[int, int]:
    """How many have no answer there, and how many of them pass."""
    known = ANSWERED_THERE.get(pair, frozenset())
    return len(set(found.queries) - known), len(found.by_nearness - known)


PAIRS = [
    pytest.param(pair, marks=BEYOND if pair == ("nfcorpus", "scifact") else (), id="-".join(pair))
    for pair in permutations(SPLITS, 2)
]


@pytest.mark.parametrize("pair", PAIRS)
def test_what_has_no_answer_is_answered_no_more_often_than_stated(answered: Mapping[Pair, Asked], pair: Pair) -> None:
    """RET-15: index and queries of different collections, within twice the standard error of so many queries."""
    if pair not in answered:
        pytest.skip(f"no collections {pair}")
    count, passed = without_answer(pair, answered[pair])
    assert passed / count <= BOUND + 2.0 * (BOUND * (1.0 - BOUND) / count) ** 0.5


@pytest.mark.parametrize("index", SPLITS)
def test_a_store_answers_what_has_no_answer_no_more_often_than_stated(
    answered: Mapping[Pair, Asked], index: str
) -> None:
    """RET-15: of all queries of other collections, without any slack."""
    counts = [without_answer(pair, found) for pair, found in answered.items() if pair[0] == index != pair[1]]
    if not counts:
        pytest.skip(f"no collection {index}, or none beside it")
    assert sum(passed for _, passed in counts) <= BOUND * sum(count for count, _ in counts)


def test_all_that_has_no_answer_is_answered_no_more_often_than_stated(answered: Mapping[Pair, Asked]) -> None:
    """RET-15: over all pairs together, those of one field among them."""
    counts = [without_answer(pair, found) for pair, found in answered.items() if pair[0] != pair[1]]
    assert sum(passed for _, passed in counts) <= BOUND * sum(count for count, _ in counts)


def test_what_has_an_answer_is_doubted_less_by_nearness_than_by_the_cosine(answered: Mapping[Pair, Asked]) -> None:
    """RET-15: at the same bound, by a tenth and more of what was doubted."""
    own = [found for (index, name), found in answered.items() if index == name]
    near, cosine = (
        sum(1.0 - len(passed) / len(found.queries) for found, passed in each) / len(own)
        for each in ([(one, one.by_nearness) for one in own], [(one, one.by_cosine) for one in own])
    )
    assert near <= 0.9 * cosine
