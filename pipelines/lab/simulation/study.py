"""What learning from simulated users is worth on queries that nobody showed it (EVA-6)."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.domain.ranking import Answer, RankedResult, Signal
from weft.evaluation.measures.beir import Dataset, Qrels
from weft.evaluation.measures.compare import HEADLINE, Difference, compare
from weft.evaluation.measures.metrics import Estimate, estimate, measure
from weft.evaluation.measures.runs import Run
from weft.evaluation.settings import EvaluationSettings

Values = Mapping[str, float]
"""The headline measure by held-out query."""


def hold_out_share(lessons: Dataset, held_out: Dataset, share: float, rng: random.Random) -> tuple[Dataset, Dataset]:
    """The queries to learn from without a share of them, drawn at random, which is measured, too.

    Where both are one split, the share alone is measured.

    Examples:
        >>> from pathlib import Path
        >>> from weft.evaluation.measures.beir import JudgedQuery
        >>> judged = {name: {"d": 1} for name in "abcd"}
        >>> some = Dataset("letters", "all", Path("."), tuple(JudgedQuery(each, each, {}) for each in judged), judged)
        >>> left, held = hold_out_share(some, some, 0.25, random.Random(1))
        >>> [query.query_id for query in left.queries], list(held.qrels)
        (['a', 'c', 'd'], ['b'])
    """
    drawn = {each.query_id for each in rng.sample(lessons.queries, round(share * len(lessons.queries)))}
    if not drawn:
        return lessons, held_out
    left, held = (only(lessons, {each for each in lessons.qrels if (each in drawn) == is_held}) for is_held in (0, 1))
    if held_out.split == lessons.split:
        return left, held
    both = replace(held_out, queries=held_out.queries + held.queries, qrels={**held_out.qrels, **held.qrels})
    return left, both


def only(dataset: Dataset, names: Collection[str]) -> Dataset:
    """The data set with some of its queries alone."""
    queries = tuple(each for each in dataset.queries if each.query_id in names)
    return replace(dataset, queries=queries, qrels={each.query_id: dataset.qrels[each.query_id] for each in queries})


@dataclass(frozen=True, slots=True)
class StudyRow:
    """One way to rank, on the held-out queries."""

    name: str  # such as "BM25" or "500 sessions"
    mean: Estimate  # of the headline measure, with its interval
    # against the row that it is compared with, paired by query; None for that one, and for those before it
    change: Difference | None = None
    weights: Mapping[str, float] | None = None  # share of the score by signal, where weights were believed
    deals: tuple[float, ...] = ()  # the mean after each deal of users, where there were several


def row(
    name: str,
    values: Values,  # means over deals of users where there are several, so that the interval is that of other queries
    settings: EvaluationSettings,
    *,
    against: Values | None = None,
    weights: Mapping[str, float] | None = None,
    deals: Sequence[Values] = (),  # the values after each of them
) -> StudyRow:
    """The row of one way to rank."""
    change = None if against is None else compare(against, values, settings)
    of_deals = tuple(_mean(list(each.values())) for each in deals) if len(deals) > 1 else ()
    return StudyRow(name, estimate([values[query] for query in sorted(values)], settings), change, weights, of_deals)


def averaged(deals: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each number over deals; 0 counts where one has none.

    Examples:
        >>> averaged([{"a": 1.0, "b": 0.5}, {"a": 0.0}])
        {'a': 0.5, 'b': 0.25}
    """
    names = dict.fromkeys(name for each in deals for name in each)
    return {name: _mean([each.get(name, 0.0) for each in deals]) for name in names}


def headline(run: Run, qrels: Qrels) -> Values:
    """The headline measure of a run by query."""
    return measure(run, {query: grades for query, grades in qrels.items() if query in run})[HEADLINE]


def convex(answers: Iterable[Answer], lexical: float) -> list[tuple[Answer, tuple[RankedResult, ...]]]:
    """Answers with results ranked by (1 − lexical) · vector + lexical · lexical instead; ties by content hash."""
    return [(answer, tuple(sorted(answer.results, key=lambda result: _key(result, lexical)))) for answer in answers]


def _key(result: RankedResult, lexical: float) -> tuple[float, str]:
    vector, words = result.signals.get(Signal.VECTOR, 0.0), result.signals.get(Signal.LEXICAL, 0.0)
    return -((1.0 - lexical) * vector + lexical * words), result.content_hash


def best_weight(measured: Mapping[float, Values]) -> float:
    """The weight whose mean over queries is highest, the least one of equals."""
    return max(sorted(measured), key=lambda weight: _mean(list(measured[weight].values())))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
