"""What was shown together: what a choice is compared with, and how far its order was left open (LRN-4, LRN-22).

What is shown was put there by weights, and its order, too. So a choice says how far what was chosen stands from the
rest of its own page, in each signal; what all of the page has in common, because weights chose it for that, drops out.
Where what alone is first by score was chosen, it went as the weights expected. That counts as such a choice looks on
average where its odds grow as e^(slope · score): to first order mean + slope · cov(signal, score), and by score no
higher than the first is. So pages on which weights were right speak for these weights, and leave them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.events import ShownResult
from weft.learning.evidence import MICRO
from weft.learning.parameters import ALONE, PAIRS, SIGNALS

_PLACES: Mapping[str, int] = {signal.value: place for place, signal in enumerate(SIGNALS)}


class Pages:
    """Pages by number; one that holds a single result, or none, has nothing to measure against.

    Attributes:
        several: bool (pages,), which of them hold more than one result.
    """

    def __init__(self, pages: Sequence[Sequence[ShownResult]]) -> None:
        self._pages = pages
        self.several = np.array([len(page) > 1 for page in pages], dtype=bool)

    def compared(self, values: Floats, page: Ints, signals: Ints, first: Flags, slope: Floats) -> tuple[Floats, Floats]:
        """How high what was chosen is on its page about ½, and how high what was shown beside it, (n, signals) each.

        ½ + s − mean, and ½ − (s − mean) / (results that tell the signal − 1), cut to [0, 1]. Of the first one by score
        not its own s counts but the expected one.
        """
        where = page[:, None], signals
        expected = np.minimum(slope, self._steepest[page])[:, None] * self._with_score[where]
        away = np.where((first & (slope > 0.0))[:, None], expected, values - self._means[where])
        others = np.maximum(self._counts[where] - 1, 1)
        return np.clip(0.5 + away, 0.0, 1.0), np.clip(0.5 - away / others, 0.0, 1.0)

    def products(self, page: Ints, pairs: Ints) -> Floats:
        """Means over pages of products of signals, each measured against its page: (½ + s − mean)·(½ + t − mean).

        Returns:
            (n, pairs)
        """
        sums, counts = (each[page[:, None], pairs] for each in self._products)
        return np.asarray(sums / np.maximum(counts, 1) / MICRO)

    @cached_property
    def first(self) -> list[str | None]:
        """The content that is first by score on each page; None where scores are not known."""
        first: list[str | None] = []
        for page in self._pages:
            scores = [math.nan if each.score is None else each.score for each in page]
            best = max(scores, default=math.nan)
            first.append(page[scores.index(best)].content_hash if scores.count(best) == 1 < len(scores) else None)
        return first

    @cached_property
    def _steepest(self) -> Floats:
        """The slope at which an expected choice scores as high as the first: (best − mean) / variance, (pages,)."""
        steepest = np.zeros(len(self._pages))
        for number, first in enumerate(self.first):
            if first is not None:
                scores = [round((each.score or 0.0) * MICRO) for each in self._pages[number]]
                n, total = len(scores), sum(scores)
                spread = n * sum(each * each for each in scores) - total * total
                steepest[number] = (n * max(scores) - total) * n * MICRO / spread if spread else 0.0
        return steepest

    @cached_property
    def order_uncertainty(self) -> Floats:
        """How far precedent left the order of each open, (pages,): the least 2·min(p, 1 − p) of its results, at most 1.

        It is 1 where nothing had come of the question before, or nothing was shown beside a result.
        """
        left = np.ones(len(self._pages))
        for number in np.flatnonzero(self.several).tolist():
            for each in self._pages[number]:
                if each.precedent is not None:
                    left[number] = min(left[number], 2.0 * min(each.precedent, 1.0 - each.precedent))
        return left

    @property
    def _means(self) -> Floats:
        """Of every page and signal, over the results that tell it, (pages, signals)."""
        return self._sums[0]

    @property
    def _counts(self) -> Ints:
        """How many results tell each signal, (pages, signals)."""
        return self._sums[1]

    @cached_property
    def _sums(self) -> tuple[Floats, Ints]:
        """Sums are of whole micro-units, the same in any order."""
        sums, counts = np.zeros((2, len(self._pages), len(SIGNALS)), dtype=np.int64)
        for signals, of, values, _ in self._by_shape:
            pages, begin, results = np.unique(of, return_index=True, return_counts=True)
            where = pages[:, None], signals
            sums[where] += np.add.reduceat(_micro(values), begin, axis=0)
            counts[where] += results[:, None]
        return sums / np.maximum(counts, 1) / MICRO, counts

    @cached_property
    def _with_score(self) -> Floats:
        """Covariance of every signal, as it is compared, with the score on each page, (pages, signals)."""
        high, scores_, both = np.zeros((3, len(self._pages), len(SIGNALS)), dtype=np.int64)
        for signals, of, values, scores in self._by_shape:
            pages, begin = np.unique(of, return_index=True)
            where = pages[:, None], signals
            cut = self._against_page(values, of, signals)
            for sums, each in ((high, cut), (scores_, scores[:, None]), (both, cut * scores[:, None])):
                sums[where] += np.add.reduceat(_micro(each), begin, axis=0)
        at_least_one = np.maximum(self._counts, 1)
        mean, score, product = (sums / at_least_one / MICRO for sums in (high, scores_, both))
        return np.asarray(product - mean * score)

    def _against_page(self, values: Floats, page: Ints, signals: Ints) -> Floats:
        """Values by how far they are from their page's mean: ½ + s − mean, cut to [0, 1], (n, signals)."""
        return np.clip(0.5 + values - self._means[page[:, None], signals], 0.0, 1.0)

    @cached_property
    def _products(self) -> tuple[Ints, Ints]:
        """Sums of products over each page in micro-units, and how many results tell both signals, (pages, pairs)."""
        sums, counts = np.zeros((2, len(self._pages), len(PAIRS)), dtype=np.int64)
        for signals, of, values, _ in self._by_shape:
            pages, begin, results = np.unique(of, return_index=True, return_counts=True)
            left, right, pairs = pairs_of(signals)
            where = pages[:, None], pairs
            values_of_pairs = products_of(
                np.clip(0.5 + values - self._means[of[:, None], signals], 0.0, 1.0), left, right
            )
            sums[where] += np.add.reduceat(_micro(values_of_pairs), begin, axis=0)
            counts[where] += results[:, None]
        return sums, counts

    @cached_property
    def _by_shape(self) -> list[tuple[Ints, Ints, Floats, Floats]]:
        """Results that tell the same signals together: these, numbers of pages, values (results, signals), scores."""
        shapes: dict[tuple[str, ...], tuple[list[int], list[float], list[float]]] = {}
        for number in np.flatnonzero(self.several).tolist():
            for each in self._pages[number]:
                signals = each.signals
                of, values, scores = shapes.setdefault(tuple(signals), ([], [], []))
                of.append(number)
                values.extend(signals.values())
                scores.append(each.score or 0.0)
        by_shape = []
        for names, (of, values, scores) in shapes.items():
            columns = [column for column, name in enumerate(names) if name in _PLACES]
            of_signals = np.array(values, dtype=np.float64).reshape(len(of), len(names))[:, columns]
            signals_ = np.array([_PLACES[names[column]] for column in columns], dtype=np.int64)
            by_shape.append((signals_, np.array(of, dtype=np.int64), of_signals, np.array(scores, dtype=np.float64)))
        return by_shape


def pairs_of(signals: Ints) -> tuple[Ints, Ints, Ints]:
    """Columns of both sides of each pair among told signals, and the pair's place in `PAIRS`."""
    columns = {int(place): column for column, place in enumerate(signals)} | {ALONE: len(signals)}
    pairs = [(columns[i], columns[j], at) for at, (i, j) in enumerate(PAIRS) if i in columns and j in columns]
    left, right, at = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
    return left, right, at


def products_of(values: Floats, left: Ints, right: Ints) -> Floats:
    """Products of columns of values (n, signals) and of one more that is 1, (n, pairs)."""
    padded = np.hstack([values, np.ones((len(values), 1))])
    return np.asarray(padded[:, left] * padded[:, right])


def _micro(values: Floats) -> Ints:
    return np.rint(values * MICRO).astype(np.int64)
