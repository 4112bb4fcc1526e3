"""Counting what was shown and clicked at which rank, one batch at a time (FBK-10)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from pipelines.domain.documents import Domain
from pipelines.domain.events import ShownResult
from pipelines.learning.evidence import MICRO, EvidenceKey
from pipelines.learning.examination import CLICKED, SCORE, SHOWN, Cell, cell_key

_DOMAINS = tuple(Domain)
_PLACES = {domain: place for place, domain in enumerate(_DOMAINS)}


class Page(NamedTuple):
    """What impressions are counted under, and how finely.

    Attributes:
        ranks: Deeper results are not counted.
        bins: Of equal width over the score.
    """

    day: int
    model: str
    agent: str
    ranks: int
    bins: int


class Looks:
    """Shown and clicked results under way: impressions are kept whole, and counted column by column at the end.

    Several tallies are counted in one go: `of` is the number of the one that something goes to.
    """

    __slots__ = ("_clicked", "_shown")

    def __init__(self) -> None:
        self._shown: list[tuple[int, Page, Sequence[ShownResult]]] = []
        self._clicked: dict[tuple[int, Cell], int] = {}

    def show(self, of: int, page: Page, results: Sequence[ShownResult]) -> None:
        """Note that results were shown."""
        self._shown.append((of, page, results))

    def click(self, of: int, page: Page, result: ShownResult) -> None:
        """Note that a result which was shown was clicked; one without a score has no place."""
        if result.score is not None and result.rank <= page.ranks:
            place = min(int(result.score * page.bins), page.bins - 1)
            cell = Cell(page.day, result.domain.value, page.model, page.agent, result.rank, place, page.bins)
            self._clicked[of, cell] = self._clicked.get((of, cell), 0) + MICRO

    def counts(self) -> Iterator[tuple[int, EvidenceKey, int]]:
        """All masses that are not zero, each key of a tally once."""
        for (of, cell), mass in self._clicked.items():
            yield of, cell_key(cell, CLICKED), mass
        for of, cell, shown, score in self._cells():
            yield of, cell_key(cell, SHOWN), shown
            if score:
                yield of, cell_key(cell, SCORE), score

    def _cells(self) -> Iterator[tuple[int, Cell, int, int]]:
        """Each tally's cells with the masses of shown results and of their scores."""
        results = list(chain.from_iterable(shown for _, _, shown in self._shown))
        if not results:
            return
        pages: dict[tuple[int, Page], int] = {}
        numbers = [pages.setdefault((of, page), len(pages)) for of, page, _ in self._shown]
        page = np.repeat(numbers, [len(shown) for _, _, shown in self._shown])
        limits = np.array([(each.ranks, each.bins) for _, each in pages], dtype=np.int64)[page]
        ranks = np.array([result.rank for result in results], dtype=np.int64)
        scores = np.array([math.nan if result.score is None else result.score for result in results])
        domains = np.array([_PLACES[result.domain] for result in results], dtype=np.int64)
        told = np.flatnonzero((ranks <= limits[:, 0]) & ~np.isnan(scores))
        place = np.minimum((scores[told] * limits[told, 1]).astype(np.int64), limits[told, 1] - 1)
        # One number per cell: sorting those is many times faster than sorting rows.
        sizes = (len(pages), len(_DOMAINS), int(limits[:, 0].max()) + 1, int(limits[:, 1].max()))
        codes = np.ravel_multi_index((page[told], domains[told], ranks[told], place), sizes)
        cells, where = np.unique(codes, return_inverse=True)
        shown = MICRO * np.bincount(where, minlength=len(cells))
        score = np.zeros(len(cells), dtype=np.int64)
        np.add.at(score, where, np.rint(scores[told] * MICRO).astype(np.int64))
        known = list(pages)
        places = zip(*(each.tolist() for each in np.unravel_index(cells, sizes)), strict=True)
        for (number, domain, rank, bin_), seen, total in zip(places, shown.tolist(), score.tolist(), strict=True):
            of, under = known[number]
            cell = Cell(under.day, _DOMAINS[domain].value, under.model, under.agent, rank, bin_, under.bins)
            yield of, cell, seen, total
