"""Counting what was shown and clicked at which rank, one batch at a time (FBK-10).

| parameter     | bin                    | one unit is                                                       |
| ------------- | ---------------------- | ----------------------------------------------------------------- |
| `examination` | `03/07/8/02/8.shown`   | a result shown at rank 3, score in bin 7 of 8, lead in bin 2 of 8 |
| `examination` | `03/07/8/02/8.score`   | the scores of those: where in the bin they lie                    |
| `examination` | `03/07/8/02/8.lead`    | their leads, as (1 + lead) / 2                                    |
| `examination` | `03/07/8/02/8.clicked` | one of those that was clicked                                     |
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.documents import Domain
from weft.domain.events import ShownResult
from weft.domain.ranking import ANY
from weft.learning.evidence import MICRO, EvidenceKey
from weft.learning.priors import RANKS

EXAMINATION = "examination"
KINDS = SHOWN, SCORE, LEAD, CLICKED = "shown", "score", "lead", "clicked"

_DOMAINS = tuple(Domain)
_PLACES = {domain: place for place, domain in enumerate(_DOMAINS)}


SCORE_BINS = 8
"""Of equal width; few, since every scope has ranks · bins · bins · 4 counts a day, and each knows its means."""
LEAD_BINS = 8
"""From −1 to 1, finest at 0; all but the first rank fill half of them."""


class Cell(NamedTuple):
    """Results that are counted together: of one scope and day, at one rank, scores and leads in one bin each."""

    day: int
    domain: str
    model: str
    agent: str
    rank: int
    score_bin: int
    lead_bin: int


def cell_key(cell: Cell, kind: str) -> EvidenceKey:
    """Where a cell's mass of one kind is kept."""
    place = _place(cell.rank, cell.score_bin, cell.lead_bin, kind)
    return EvidenceKey(cell.day, cell.domain, cell.model, cell.agent, ANY, EXAMINATION, place)


@lru_cache(maxsize=4096)
def _place(rank: int, score_bin: int, lead_bin: int, kind: str) -> str:
    return f"{rank:02d}/{score_bin:02d}/{SCORE_BINS}/{lead_bin:02d}/{LEAD_BINS}.{kind}"


class ImpressionBuckets(NamedTuple):
    """What impressions are counted under."""

    day: int
    model: str
    agent: str


class ImpressionCounts:
    """Shown and clicked results under way: answers are kept whole, and counted column by column at the end.

    Several tallies are counted in one go: `of` is the number of the one that something goes to.
    """

    __slots__ = ("_clicked", "_clicks", "_shown", "_times")

    def __init__(self) -> None:
        self._shown: list[tuple[int, ImpressionBuckets, Sequence[ShownResult]]] = []
        self._clicked: list[tuple[int, ImpressionBuckets, Sequence[ShownResult]]] = []
        self._clicks: list[int] = []
        self._times: list[int] = []

    def show(self, of: int, page: ImpressionBuckets, results: Sequence[ShownResult]) -> None:
        """Note that results were shown."""
        if results:
            self._shown.append((of, page, results))

    def click(
        self,
        of: int,
        page: ImpressionBuckets,
        result: ShownResult,
        results: Sequence[ShownResult],
        *,
        times: int = 1,  # −1 takes back what was noted before
    ) -> None:
        """Note that one of the results that were shown was clicked."""
        self._clicked.append((of, page, results))
        self._times.append(times)
        self._clicks.append(next(at for at, each in enumerate(results) if each is result))

    def counts(self) -> Iterator[tuple[int, EvidenceKey, int]]:
        """All masses that are not zero, each key of a tally once; results without a score or a rival have no place."""
        for of, cell, clicked, _, _ in _cells(self._clicked, self._clicks, self._times):
            if clicked:
                yield of, cell_key(cell, CLICKED), clicked
        for of, cell, *masses in _cells(self._shown):
            for kind, mass in zip((SHOWN, SCORE, LEAD), masses, strict=True):
                if mass:
                    yield of, cell_key(cell, kind), mass


def _cells(
    answers: Sequence[tuple[int, ImpressionBuckets, Sequence[ShownResult]]],
    only: Sequence[int] | None = None,  # the place of the one result of each that is counted; None for all
    times: Sequence[int] = (),  # how often that one is
) -> Iterator[tuple[int, Cell, int, int, int]]:
    """Each tally's cells with the masses of results, of their scores and of their leads."""
    results = list(chain.from_iterable(shown for _, _, shown in answers))
    if not results:
        return
    pages: dict[tuple[int, ImpressionBuckets], int] = {}
    numbers = [pages.setdefault((of, page), len(pages)) for of, page, _ in answers]
    sizes = np.array([len(shown) for _, _, shown in answers])
    page = np.repeat(numbers, sizes)
    ranks = np.array([result.rank for result in results], dtype=np.int64)
    scores = np.array([math.nan if result.score is None else result.score for result in results])
    domains = np.array([_PLACES[result.domain] for result in results], dtype=np.int64)
    leads = _leads(scores, sizes)
    counted = np.arange(len(results)) if only is None else np.cumsum(sizes) - sizes + np.array(only)
    placed = (ranks[counted] <= RANKS) & ~np.isnan(leads[counted])
    valid = counted[placed]
    often = np.ones(len(counted), dtype=np.int64) if only is None else np.array(times, dtype=np.int64)
    # One number per cell: sorting those is many times faster than sorting rows.
    shape = (len(pages), len(_DOMAINS), RANKS + 1, SCORE_BINS, LEAD_BINS)
    bins = _score_bins(scores[valid]), _lead_bins(leads[valid])
    codes = np.ravel_multi_index((page[valid], domains[valid], ranks[valid], *bins), shape)
    cells, where = np.unique(codes, return_inverse=True)
    masses = np.zeros((len(cells), 3), dtype=np.int64)
    each = np.column_stack([np.ones(len(valid)), scores[valid], (1.0 + leads[valid]) / 2.0])
    np.add.at(masses, where, np.rint(each * MICRO).astype(np.int64) * often[placed][:, None])
    buckets = list(pages)
    places = zip(*(part.tolist() for part in np.unravel_index(cells, shape)), strict=True)
    for (number, domain, *place), (seen, score, lead) in zip(places, masses.tolist(), strict=True):
        of, under = buckets[number]
        yield of, Cell(under.day, _DOMAINS[domain].value, under.model, under.agent, *place), seen, score, lead


def _leads(scores: Floats, sizes: Ints) -> Floats:
    """How far each score stands above the best other of its answer; NaN where it has none, or there are none."""
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


def _score_bins(scores: Floats) -> Ints:
    return np.minimum((scores * SCORE_BINS).astype(np.int64), SCORE_BINS - 1)


def _lead_bins(leads: Floats) -> Ints:
    """Which of the bins from −1 to 1 each lead lies in: they are as wide as its square root is, and end at 0."""
    roots = np.copysign(np.sqrt(np.abs(leads)), leads)
    return np.minimum(((1.0 + roots) * 0.5 * LEAD_BINS).astype(np.int64), LEAD_BINS - 1)
