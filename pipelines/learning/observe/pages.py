"""What was shown together: what signals are measured against, and how far its order was left open (LRN-4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.learning.evidence import MICRO
from pipelines.learning.parameters import SIGNALS

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]

_PLACES: Mapping[str, int] = {signal.value: place for place, signal in enumerate(SIGNALS)}


class PageResult(Protocol):
    """A result on a page."""

    @property
    def signals(self) -> Mapping[str, float]:
        """Values in [0, 1] by name."""

    @property
    def precedent(self) -> float | None:
        """How good it was by what came of it before, in [0, 1]; None where nothing had."""


class Pages:
    """Pages by number; one that holds a single result, or none, has nothing to measure against.

    Attributes:
        several: bool (pages,), which of them hold more than one result.
    """

    def __init__(self, pages: Sequence[Sequence[PageResult]]) -> None:
        self._pages = pages
        self.several = np.array([len(page) > 1 for page in pages], dtype=bool)

    def relative(self, values: _Floats, page: _Ints, signals: _Ints) -> _Floats:
        """Values of results (n, signals) by how far they are from their page's mean: ½ + s − mean, cut to [0, 1].

        What all results of a page share ranks none of them above another, and says nothing about weights: that a
        question's results all match its words well is no reason why users like them. Where nothing was shown beside a
        result there is nothing to measure it against, and its values stay as they are.
        """
        compared = np.clip(0.5 + values - self._means[page[:, None], signals], 0.0, 1.0)
        return np.where(self.several[page][:, None], compared, values)

    @cached_property
    def left_open(self) -> _Floats:
        """How far precedent left the order of each open, (pages,): the least 2·min(p, 1 − p) of its results, at most 1.

        It is 1 where nothing had come of the question before, or nothing was shown beside a result.
        """
        left = np.ones(len(self._pages))
        for number in np.flatnonzero(self.several).tolist():
            for each in self._pages[number]:
                if each.precedent is not None:
                    left[number] = min(left[number], 2.0 * min(each.precedent, 1.0 - each.precedent))
        return left

    @cached_property
    def _means(self) -> _Floats:
        """Of every page and signal, over the results that tell it, (pages, signals).

        Sums are of whole micro-units, the same in any order.
        """
        sums, counts = np.zeros((2, len(self._pages), len(SIGNALS)), dtype=np.int64)
        for names, of, values in self._by_shape:
            columns = [column for column, name in enumerate(names) if name in _PLACES]
            pages, begin, results = np.unique(of, return_index=True, return_counts=True)
            where = pages[:, None], np.array([_PLACES[names[column]] for column in columns], dtype=np.int64)
            sums[where] += np.add.reduceat(np.rint(values[:, columns] * MICRO).astype(np.int64), begin, axis=0)
            counts[where] += results[:, None]
        means: _Floats = sums / np.maximum(counts, 1) / MICRO
        return means

    @cached_property
    def _by_shape(self) -> list[tuple[tuple[str, ...], _Ints, _Floats]]:
        """Results that tell the same signals together: names, numbers of their pages, values (results, names)."""
        shapes: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}
        for number in np.flatnonzero(self.several).tolist():
            for each in self._pages[number]:
                signals = each.signals
                of, values = shapes.setdefault(tuple(signals), ([], []))
                of.append(number)
                values.extend(signals.values())
        return [
            (names, np.array(of, dtype=np.int64), np.array(values, dtype=np.float64).reshape(len(of), len(names)))
            for names, (of, values) in shapes.items()
        ]
