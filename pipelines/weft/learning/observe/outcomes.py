"""Outcomes of results, summed column by column: masses of parameters, products, contents, matches and sizes (LRN-4).

A signal of value s agrees with a good outcome by s and with a bad one by 1 − s: that is mass for, the rest mass
against, in the Beta of that kind of outcome. Masses are rounded to micro-units per outcome, so that any order of
outcomes sums to the same.

Where several results were shown together, what was chosen is compared with its page, and what was shown beside it is
a bad outcome of the same weight. What was merely found bad there says nothing about signals: who reads from the top
finds bad what the weights put there, and these would be held against themselves (LRN-22).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.documents import Domain
from weft.domain.events import ShownResult
from weft.domain.ranking import ANY
from weft.learning.evidence import MICRO, EvidenceKey
from weft.learning.observe.matches import MEASURED, MEASURES, draw_places, match_key_at, rank_places
from weft.learning.observe.sizes import size_masses
from weft.learning.parameters import (
    AGAINST,
    ALONE,
    FOR,
    NEGATIVE,
    PAIRS,
    POSITIVE,
    RELEVANCE,
    RELEVANCE_BINS,
    SIGNALS,
    SURPLUS,
    product_parameter,
    relevance_bin,
    signal_parameter,
)
from weft.learning.uses import UsageKey

# What was shown together: what a choice is compared with, and how far its order was left open (LRN-4, LRN-22).

_SIGNAL_PLACES: Mapping[str, int] = {signal.value: place for place, signal in enumerate(SIGNALS)}


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
            columns = [column for column, name in enumerate(names) if name in _SIGNAL_PLACES]
            of_signals = np.array(values, dtype=np.float64).reshape(len(of), len(names))[:, columns]
            signals_ = np.array([_SIGNAL_PLACES[names[column]] for column in columns], dtype=np.int64)
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


_T = TypeVar("_T")

_PLACES: Mapping[str, int] = {signal.value: 2 * index for index, signal in enumerate(SIGNALS)}
"""Where a leaf's masses keep a signal: for here, against next to it; the bins of relevance follow all signals."""
_FIRST_BIN = 2 * len(_PLACES)
_DOMAINS = tuple(Domain)
_NUMBERS = {domain: number for number, domain in enumerate(_DOMAINS)}
_GOOD, _SURPLUS = 1, 2
_KINDS = 4  # of an outcome: good or bad, within its principal's allowance or surplus


class OutcomeScope(NamedTuple):
    """What outcomes are kept under, beside their day and their result's own domain."""

    model: str
    agent: str
    intent: str
    principal: str  # fingerprint under which uses of contents are kept
    question: str = ""  # fingerprint of what was asked, under which outcomes of contents are kept
    # logarithm of the odds of a choice per unit of score, >= 0: what a choice of the first is compared with
    slope: float = 0.0


UNJUDGED, VOLUNTEERED, ASKED_FOR = range(3)
"""Whether somebody said outright of this very result that it is good or bad, and whether they were asked to."""

Row = tuple[int, int, OutcomeScope, bool, bool, int, float, ShownResult, Sequence[ShownResult], int]
"""The tally's number, day, what it is kept under, surplus, good, judged, weight, result, its page; how many are so.

Matches are told by verdicts alone (RET-15). The page is what was shown together, the result among them: it is compared
with it.
"""


class _SignalOutcomes(NamedTuple):
    """Outcomes that count for signals, and whose results tell the same ones."""

    outcomes: Ints  # int64 (n,)
    columns: Ints  # Places of the signals among masses, int64 (signals,)
    # Values of signals, float64 (n, signals): of the results, and, where they are compared, of what was shown beside
    # them, whose outcome is the opposite one
    sides: tuple[Floats, ...]
    pairs: Ints  # Places of products of signals in `PAIRS`, int64 (pairs,)
    products: Floats  # float64 (n, pairs), of both sides
    weight: Floats  # float64 (n,)


class OutcomeColumns:
    """Outcomes as arrays, one element for all that are alike, and the results that they are about, each once."""

    def __init__(self, rows: Sequence[Row]) -> None:
        of, day, under, surplus, good, judged, weight, result, page, times = zip(*rows, strict=True)
        self.of = np.array(of, dtype=np.int64)
        self.day = np.array(day, dtype=np.int64)
        self.good = np.array(good, dtype=bool)
        self.surplus = np.array(surplus, dtype=bool)
        self.weight = np.array(weight, dtype=np.float64)
        self.times = np.array(times, dtype=np.int64)
        self.mass = np.rint(self.weight * MICRO).astype(np.int64) * self.times
        self.judged = np.array(judged, dtype=np.int64)
        of_under, same = _distinct(under)
        unders: dict[OutcomeScope, int] = {}
        numbers = np.array([unders.setdefault(each, len(unders)) for each in of_under], dtype=np.int64)
        self.under = numbers[same]
        self.unders = list(unders)
        self.slope = np.array([each.slope for each in self.unders], dtype=np.float64)[self.under]
        self.results, self.result = _distinct(result)
        pages, of_page = _distinct(page)
        self._pages = Pages(pages)
        self._page = np.empty(len(self.results), dtype=np.int64)
        self._page[self.result] = of_page
        self.domain = np.array([_NUMBERS[each.domain] for each in self.results], dtype=np.int64)[self.result]
        self.kind = _GOOD * self.good + _SURPLUS * self.surplus

    def parameters(self) -> Iterator[tuple[int, EvidenceKey, int]]:
        """Masses of signals and of relevance that are not zero, by tally."""
        first, (place, places_of) = int(self.day.min()), self._without_principals()
        sizes = (*self._spans(), len(places_of), len(_DOMAINS), _KINDS)
        leaves, rows = self._leaves((self.of, self.day - first, place, self.domain), sizes)
        masses = self._masses(rows, len(leaves))
        filled, places = np.nonzero(masses)
        leaf = [each.tolist() for each in np.unravel_index(leaves[filled], sizes)]
        for of, day, under, where, what, at, mass in zip(
            *leaf, places.tolist(), masses[filled, places].tolist(), strict=True
        ):
            model, agent, intent, *_ = places_of[under]
            parameter, bin_ = _name(at, what)
            yield of, EvidenceKey(first + day, _DOMAINS[where].value, model, agent, intent, parameter, bin_), mass

    def products(self) -> Iterator[tuple[int, EvidenceKey, int]]:
        """Masses of every pair of signals by tally and domain, for s·t and against it: what covariances need.

        How signals vary together is the corpus's doing, whoever asks: models, agents and intents share it.
        """
        first, sizes = int(self.day.min()), (*self._spans(), len(_DOMAINS), _KINDS)
        leaves, rows = self._leaves((self.of, self.day - first, self.domain), sizes)
        masses = np.zeros((len(leaves), 2 * len(PAIRS)), dtype=np.int64)
        for some in self._of_signals:
            speaks_for = np.rint(some.weight[:, None] * MICRO * some.products).astype(np.int64)
            speaks_for *= self.times[some.outcomes, None]
            for row, _ in zip(rows, some.sides, strict=False):
                _add_rows(masses, row[some.outcomes], 2 * some.pairs, speaks_for, self._mass(some))
        filled, places = np.nonzero(masses)
        leaf = [each.tolist() for each in np.unravel_index(leaves[filled], sizes)]
        for of, day, where, what, at, mass in zip(*leaf, places.tolist(), masses[filled, places].tolist(), strict=True):
            parameter, bin_ = _product_name(at, what)
            yield of, EvidenceKey(first + day, _DOMAINS[where].value, ANY, ANY, ANY, parameter, bin_), mass

    def contents(self) -> Iterator[tuple[int, UsageKey, int]]:
        """Masses of outcomes by tally and content; verdicts on one result are noted by themselves (LRN-18)."""
        hashes: dict[str, int] = {}
        content = [hashes.setdefault(each.content_hash, len(hashes)) for each in self.results]
        first = int(self.day.min())
        sizes = (*self._spans(), len(self.unders), len(hashes), 2)
        where, some = np.array(content, dtype=np.int64)[self.result], self.judged == UNJUDGED
        columns = (self.of, self.day - first, self.under, where, self.good.astype(np.int64))
        cells, row = np.unique(np.ravel_multi_index([each[some] for each in columns], sizes), return_inverse=True)
        masses = np.zeros(len(cells), dtype=np.int64)
        np.add.at(masses, row, self.mass[some])
        names, cell = list(hashes), [each.tolist() for each in np.unravel_index(cells, sizes)]
        for of, day, under, number, good, mass in zip(*cell, masses.tolist(), strict=True):
            bin_ = POSITIVE if good else NEGATIVE
            scope = self.unders[under]
            yield of, UsageKey(first + day, names[number], bin_, scope.principal, scope.question), mass

    def matches(self) -> Iterator[tuple[int, EvidenceKey, int]]:
        """Masses of verdicts by tally, how well their results match and where they stood; none on known questions."""
        alone = np.array([_matched_alone(each) for each in self.results], dtype=bool)[self.result]
        counted = alone & (self.judged != UNJUDGED)
        if not counted.any():
            return
        some, first = np.flatnonzero(counted), int(self.day.min())
        measured = [self._match_places(some, name) + 1 for name in MEASURED]
        asked = self._asked_places(some) + 1
        depth = rank_places(np.array([each.rank for each in self.results], dtype=np.int64))[self.result[some]]
        classes = int(depth.max()) + 1, int(asked.max()) + 1
        sizes = (*self._spans(), len(_DOMAINS), _KINDS, *[RELEVANCE_BINS + 1] * MEASURES, *classes)
        columns = (self.of, self.day - first, self.domain, self.kind)
        codes = np.ravel_multi_index((*(column[some] for column in columns), *measured, depth, asked), sizes)
        cells, row = np.unique(codes, return_inverse=True)
        masses = np.zeros(len(cells), dtype=np.int64)
        np.add.at(masses, row, self.mass[some])
        cell = [each.tolist() for each in np.unravel_index(cells, sizes)]
        for of, day, where, what, *measure_bins, at, draw, mass in zip(*cell, masses.tolist(), strict=True):
            places = [place - 1 if place else None for place in measure_bins]
            drawn, good = draw - 1 if draw else None, bool(what & _GOOD)
            key = match_key_at(first + day, _DOMAINS[where], places, depth=at, good=good, draw=drawn)
            yield of, key._replace(parameter=SURPLUS + key.parameter) if what & _SURPLUS else key, mass

    def sizes(self) -> Iterator[tuple[int, EvidenceKey, int]]:
        """Masses of what outcomes say about the sizes that made their results."""
        has_size = np.array([each.made is not None for each in self.results], dtype=bool)[self.result]
        cells: dict[tuple[int, int, str, str, str, str, bool], dict[tuple[str, str], int]] = {}
        for row in np.flatnonzero(has_size).tolist():
            result, under = self.results[self.result[row]], self.unders[self.under[row]]
            scope = (result.domain.value, under.model, under.agent, under.intent)
            masses = cells.setdefault((int(self.of[row]), int(self.day[row]), *scope, bool(self.surplus[row])), {})
            if result.made is not None:
                one = size_masses(result.made, good=bool(self.good[row]), weight=float(self.weight[row]))
                for cell, mass in one.items():
                    masses[cell] = masses.get(cell, 0) + mass * int(self.times[row])
        for (of, day, domain, model, agent, intent, surplus), masses in cells.items():
            for (parameter, bin_), mass in masses.items():
                if mass:
                    yield of, EvidenceKey(day, domain, model, agent, intent, SURPLUS * surplus + parameter, bin_), mass

    def _spans(self) -> tuple[int, int]:
        """How many tallies and days there are."""
        return int(self.of.max()) + 1, int(self.day.max() - self.day.min()) + 1

    def _match_places(self, some: Ints, name: str) -> Ints:
        """In which bin one measure of the match lies, for some outcomes; -1 where it is not known."""
        measures = [getattr(each.match, name, None) for each in self.results]
        values = np.array([math.nan if value is None else value for value in measures], dtype=np.float64)[
            self.result[some]
        ]
        present = ~np.isnan(values)
        places = np.full(len(some), -1, dtype=np.int64)
        places[present] = _bins(values[present])
        return places

    def _asked_places(self, some: Ints) -> Ints:
        """How rarely results like it are asked about, for some outcomes that answer such a request; -1 for others."""
        chances = np.array([each.asked for each in self.results], dtype=np.float64)[self.result[some]]
        answers = (self.judged[some] == ASKED_FOR) & (chances > 0.0)
        places = np.full(len(some), -1, dtype=np.int64)
        places[answers] = draw_places(chances[answers])
        return places

    def _without_principals(self) -> tuple[Ints, list[OutcomeScope]]:
        """What parameters are kept under, of every outcome and by number."""
        places: dict[OutcomeScope, int] = {}
        numbers = [places.setdefault(each._replace(principal="", question=""), len(places)) for each in self.unders]
        return np.array(numbers, dtype=np.int64)[self.under], list(places)

    def _leaves(self, columns: tuple[Ints, ...], sizes: tuple[int, ...]) -> tuple[Ints, tuple[Ints, Ints]]:
        """Codes of all leaves, and the place of each outcome's among them, and of its opposite's."""
        kinds = self.kind, self.kind ^ _GOOD
        codes = np.concatenate([np.ravel_multi_index((*columns, kind), sizes) for kind in kinds])
        leaves, row = np.unique(codes, return_inverse=True)
        return leaves, (row[: len(self.kind)], row[len(self.kind) :])

    def _masses(self, rows: tuple[Ints, Ints], leaves: int) -> Ints:
        """Masses of every leaf (leaves, places): for and against by signal, then relevance by bin."""
        scores = np.array([math.nan if each.score is None else each.score for each in self.results])[self.result]
        masses = np.zeros((leaves, _FIRST_BIN + RELEVANCE_BINS), dtype=np.int64)
        scored = np.flatnonzero(~np.isnan(scores))
        np.add.at(masses, (rows[0][scored], _FIRST_BIN + _bins(scores[scored])), self.mass[scored])
        for some in self._of_signals:
            good = self.good[some.outcomes, None]
            for row, values, agrees in zip(rows, some.sides, (good, ~good), strict=False):
                agreed = some.weight[:, None] * np.where(agrees, values, 1.0 - values) * MICRO
                speaks_for = np.rint(agreed).astype(np.int64) * self.times[some.outcomes, None]
                _add_rows(masses, row[some.outcomes], some.columns, speaks_for, self._mass(some))
        return masses

    def _mass(self, some: _SignalOutcomes) -> Ints:
        """Micro-units of some outcomes, (n,)."""
        return np.rint(some.weight * MICRO).astype(np.int64) * self.times[some.outcomes]

    @cached_property
    def _of_signals(self) -> list[_SignalOutcomes]:
        """What counts for signals: what was shown alone, and what was chosen among several."""
        # Results with the same signals share a matrix; few shapes occur, so that all work below is on whole matrices.
        shapes: dict[tuple[str, ...], list[int]] = {}
        for number, each in enumerate(self.results):
            shapes.setdefault(tuple(each.signals), []).append(number)
        within = np.empty(len(self.results), dtype=np.int64)
        shape = np.empty(len(self.results), dtype=np.int64)
        for place, some in enumerate(shapes.values()):
            within[some], shape[some] = np.arange(len(some)), place
        of_page = self._page[self.result]
        among_several = self._pages.several[of_page]
        of_signals: list[_SignalOutcomes] = []
        for place, (names, some) in enumerate(shapes.items()):
            signal_columns = [column for column, name in enumerate(names) if name in _PLACES]
            values = np.array([list(self.results[number].signals.values()) for number in some], dtype=np.float64)
            values = values.reshape(len(some), len(names))[:, signal_columns]
            columns = np.array([_PLACES[names[column]] for column in signal_columns], dtype=np.int64)
            left, right, pairs = pairs_of(columns // 2)
            here = shape[self.result] == place
            alone, chosen = (np.flatnonzero(here & each) for each in (~among_several, among_several & self.good))
            own, page = (values[within[self.result[each]]] for each in (alone, chosen)), of_page[chosen]
            as_is, against_page = own
            sides = self._pages.compared(against_page, page, columns // 2, self._is_first(chosen), self.slope[chosen])
            products = products_of(as_is, left, right), self._pages.products(page, pairs)
            for outcomes, of_sides, of_both in zip((alone, chosen), ((as_is,), sides), products, strict=True):
                if len(outcomes):
                    of_signals.append(
                        _SignalOutcomes(outcomes, columns, of_sides, pairs, of_both, self._weighed(outcomes))
                    )
        return of_signals

    def _is_first(self, outcomes: Ints) -> Flags:
        """Which outcomes are about what is first by score on its page."""
        results, first = self.result[outcomes].tolist(), self._pages.first
        return np.array(
            [self.results[each].content_hash == first[self._page[each]] for each in results], dtype=np.bool_
        )

    def _weighed(self, outcomes: Ints) -> Floats:
        """Weights of outcomes: each counts as far as precedent left the order of its page open (LRN-4).

        A result that stands first because it was called right before was not shown for how it matches, and that it is
        good again says nothing new about who matches better. What stands below it was: both compared, signals would be
        learned to count less that put it there.
        """
        return np.asarray(self.weight[outcomes] * self._pages.order_uncertainty[self._page[self.result[outcomes]]])


def _matched_alone(result: ShownResult) -> bool:
    """Whether a result was shown for how well it matches, and not for what came of it before."""
    return result.match is not None and result.precedent is None


def _distinct(each: Sequence[_T]) -> tuple[list[_T], Ints]:
    """The different objects among many, which all live on, and the place of each one's among them."""
    _, first, where = np.unique(np.fromiter(map(id, each), np.int64, len(each)), return_index=True, return_inverse=True)
    return [each[place] for place in first.tolist()], where.astype(np.int64)


def _add_rows(masses: Ints, row: Ints, columns: Ints, speaks_for: Ints, mass: Ints) -> None:
    """Add what each outcome speaks for at some columns of its row, and the rest of its mass in those next to them."""
    order = np.argsort(row, kind="stable")
    rows, begin = np.unique(row[order], return_index=True)
    sums = np.add.reduceat(speaks_for[order], begin, axis=0)
    total = np.add.reduceat(mass[order], begin)
    masses[rows[:, None], columns] += sums
    masses[rows[:, None], columns + 1] += total[:, None] - sums


@lru_cache(maxsize=4096)
def _product_name(place: int, kind: int) -> tuple[str, str]:
    """Parameter and bin that the mass of a product is kept under."""
    parameter = product_parameter(*PAIRS[place // 2], good=bool(kind & _GOOD))
    return (SURPLUS if kind & _SURPLUS else "") + parameter, AGAINST if place % 2 else FOR


def _bins(values: Floats) -> Ints:
    """The bin of each value in [0, 1]."""
    return np.minimum((values * RELEVANCE_BINS).astype(np.int64), RELEVANCE_BINS - 1)


@lru_cache(maxsize=4096)
def _name(place: int, kind: int) -> tuple[str, str]:
    """Parameter and bin that the mass at a place of a leaf is kept under."""
    good, beside = bool(kind & _GOOD), SURPLUS if kind & _SURPLUS else ""
    if place >= _FIRST_BIN:
        return beside + RELEVANCE, relevance_bin(place - _FIRST_BIN, good=good)
    return beside + signal_parameter(SIGNALS[place // 2], good=good), AGAINST if place % 2 else FOR
