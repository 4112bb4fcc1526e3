"""Counting what was shown and clicked at which rank, one batch at a time (FBK-10)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.documents import Domain
from pipelines.domain.events import ShownResult
from pipelines.learning.evidence import MICRO, EvidenceKey
from pipelines.learning.observe.examination import CLICKED, LEAD, SCORE, SHOWN, Cell, Grid, cell_key

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_DOMAINS = tuple(Domain)
_PLACES = {domain: place for place, domain in enumerate(_DOMAINS)}


class ImpressionBuckets(NamedTuple):
    """What impressions are counted under, and how finely.

    Attributes:
        ranks: Deeper results are not counted.
        grid: How finely scores and leads are told apart.
    """

    day: int
    model: str
    agent: str
    ranks: int
    grid: Grid


class ImpressionCounts:
    """Shown and clicked results under way: answers are kept whole, and counted column by column at the end.

    Several tallies are counted in one go: `of` is the number of the one that something goes to.
    """

    __slots__ = ("_clicked", "_clicks", "_shown")

    def __init__(self) -> None:
        self._shown: list[tuple[int, ImpressionBuckets, Sequence[ShownResult]]] = []
        self._clicked: list[tuple[int, ImpressionBuckets, Sequence[ShownResult]]] = []
        self._clicks: list[int] = []

    def show(self, of: int, page: ImpressionBuckets, results: Sequence[ShownResult]) -> None:
        """Note that results were shown."""
        if results:
            self._shown.append((of, page, results))

    def click(self, of: int, page: ImpressionBuckets, result: ShownResult, results: Sequence[ShownResult]) -> None:
        """Note that one of the results that were shown was clicked."""
        self._clicked.append((of, page, results))
        self._clicks.append(next(at for at, each in enumerate(results) if each is result))

    def counts(self) -> Iterator[tuple[int, EvidenceKey, int]]:
        """All masses that are not zero, each key of a tally once; results without a score or a rival have no place."""
        for of, cell, clicked, _, _ in _cells(self._clicked, self._clicks):
            yield of, cell_key(cell, CLICKED), clicked
        for of, cell, *masses in _cells(self._shown):
            for kind, mass in zip((SHOWN, SCORE, LEAD), masses, strict=True):
                if mass:
                    yield of, cell_key(cell, kind), mass


def _cells(
    answers: Sequence[tuple[int, ImpressionBuckets, Sequence[ShownResult]]], only: Sequence[int] | None = None
) -> Iterator[tuple[int, Cell, int, int, int]]:
    """Each tally's cells with the masses of results, of their scores and of their leads.

    Args:
        answers: With at least one result each.
        only: The place of the one result of each that counts; None counts all.
    """
    results = list(chain.from_iterable(shown for _, _, shown in answers))
    if not results:
        return
    pages: dict[tuple[int, ImpressionBuckets], int] = {}
    numbers = [pages.setdefault((of, page), len(pages)) for of, page, _ in answers]
    sizes = np.array([len(shown) for _, _, shown in answers])
    page = np.repeat(numbers, sizes)
    limits = np.array([(each.ranks, *each.grid) for _, each in pages], dtype=np.int64)[page]
    ranks = np.array([result.rank for result in results], dtype=np.int64)
    scores = np.array([math.nan if result.score is None else result.score for result in results])
    domains = np.array([_PLACES[result.domain] for result in results], dtype=np.int64)
    leads = _leads(scores, sizes)
    counted = np.arange(len(results)) if only is None else np.cumsum(sizes) - sizes + np.array(only)
    valid = counted[(ranks[counted] <= limits[counted, 0]) & ~np.isnan(leads[counted])]
    # One number per cell: sorting those is many times faster than sorting rows.
    shape = (len(pages), len(_DOMAINS), *(int(most) + 1 for most in limits.max(axis=0)))
    bins = _score_bins(scores[valid], limits[valid, 1]), _lead_bins(leads[valid], limits[valid, 2])
    codes = np.ravel_multi_index((page[valid], domains[valid], ranks[valid], *bins), shape)
    cells, where = np.unique(codes, return_inverse=True)
    masses = np.zeros((len(cells), 3), dtype=np.int64)
    each = np.column_stack([np.ones(len(valid)), scores[valid], (1.0 + leads[valid]) / 2.0])
    np.add.at(masses, where, np.rint(each * MICRO).astype(np.int64))
    buckets = list(pages)
    places = zip(*(part.tolist() for part in np.unravel_index(cells, shape)), strict=True)
    for (number, domain, rank, *place), (seen, score, lead) in zip(places, masses.tolist(), strict=True):
        of, under = buckets[number]
        cell = Cell(under.day, _DOMAINS[domain].value, under.model, under.agent, rank, place[0], place[1], under.grid)
        yield of, cell, seen, score, lead


def _leads(scores: Floats, sizes: Ints) -> Floats:
    """How far each score stands above the best of the others of its answer; NaN where it has none, or there are none.

    Args:
        scores: Of all answers, one after another; NaN where one has none.
        sizes: How many results each answer has.
    """
    filled = np.where(np.isnan(scores), -np.inf, scores)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    best = np.repeat(np.maximum.reduceat(filled, starts), sizes)
    answer = np.repeat(np.arange(len(sizes)), sizes)
    tops = np.flatnonzero(filled == best)
    top = tops[np.unique(answer[tops], return_index=True)[1]]  # of equals, the first: the others' best is their equal
    rest = filled.copy()
    rest[top] = -np.inf
    best[top] = np.maximum.reduceat(rest, starts)
    return np.where(np.isinf(best), np.nan, scores - best)


def _score_bins(scores: Floats, bins: Ints) -> Ints:
    return np.minimum((scores * bins).astype(np.int64), bins - 1)


def _lead_bins(leads: Floats, bins: Ints) -> Ints:
    """Which of the bins from −1 to 1 each lead lies in: they are as wide as its square root is, and end at 0."""
    return np.minimum(((1.0 + np.copysign(np.sqrt(np.abs(leads)), leads)) * 0.5 * bins).astype(np.int64), bins - 1)
