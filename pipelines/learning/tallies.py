"""Evidence under way: outcomes are noted one by one, and summed column by column, for many tallies in one go.

Noting costs little more than keeping a tuple. All arithmetic is over arrays, in the very operations that
`observations.observe_outcome` states for one outcome, so that the sums are the same integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.documents import Domain
from pipelines.domain.events import ShownResult
from pipelines.domain.ranking import ANY
from pipelines.domain.sizing import MadeBy
from pipelines.learning.evidence import MICRO, Evidence, EvidenceKey, UsageKey
from pipelines.learning.looks import Looks, Page
from pipelines.learning.parameters import (
    AGAINST,
    ALONE,
    FOR,
    NEGATIVE,
    PAIRS,
    POSITIVE,
    RELEVANCE,
    SIGNALS,
    SURPLUS,
    product_parameter,
    relevance_bin,
    signal_parameter,
)
from pipelines.learning.size_observations import CELLS, observe_sizes

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]

_PLACES: Mapping[str, int] = {signal.value: 2 * index for index, signal in enumerate(SIGNALS)}
"""Where a leaf's masses keep a signal: for here, against next to it; the bins of relevance follow all signals."""
_FIRST_BIN = 2 * len(_PLACES)
_PAIR_PLACES: Mapping[tuple[int, int], int] = {pair: 2 * place for place, pair in enumerate(PAIRS)}
"""The same for the products of signals."""
_DOMAINS = tuple(Domain)
_NUMBERS = {domain: number for number, domain in enumerate(_DOMAINS)}
_GOOD, _SURPLUS = 1, 2
_KINDS = 4  # of an outcome: good or bad, within its principal's allowance or surplus


class Under(NamedTuple):
    """What outcomes are kept under, beside their day and their result's own domain.

    Attributes:
        principal: Fingerprint under which uses of contents are kept.
        bins: How many bins of equal width a score falls in.
    """

    model: str
    agent: str
    intent: str
    principal: str
    bins: int


class Observed(Protocol):
    """A result that an outcome is about; whatever is noted has its values in their ranges."""

    @property
    def domain(self) -> Domain:
        """Its own, not its query's."""

    @property
    def content_hash(self) -> str:
        """What its use is kept under."""

    @property
    def score(self) -> float | None:
        """In [0, 1]; None where it is not known."""

    @property
    def signals(self) -> Mapping[str, float]:
        """Values in [0, 1] by name."""

    @property
    def made(self) -> MadeBy | None:
        """Its size, and what made it so."""


_Row = tuple[int, int, Under, bool, bool, float, Observed]


class Tallies:
    """Tallies that are frozen together.

    Examples:
        >>> tallies = Tallies()
        >>> one, other = tallies.open(), tallies.open()
        >>> other.note_use(3, "ab" * 32, "inclusion", 0.5)
        >>> [len(evidence.usage) for evidence in tallies.freeze()]
        [0, 1]
    """

    __slots__ = ("_reported", "_used", "looks", "opened", "rows")

    def __init__(self) -> None:
        self.opened = 0
        self.rows: list[_Row] = []
        self.looks = Looks()
        self._used: dict[tuple[int, UsageKey], int] = {}
        self._reported: dict[tuple[int, EvidenceKey], int] = {}

    def open(self) -> Tally:
        """One more tally."""
        self.opened += 1
        return Tally(self, self.opened - 1)

    def use(self, of: int, key: UsageKey, micro: int) -> None:
        """Add to what is known of a content's use."""
        self._used[of, key] = self._used.get((of, key), 0) + micro

    def report(self, of: int, key: EvidenceKey, micro: int) -> None:
        """Add to what was reported outright."""
        self._reported[of, key] = self._reported.get((of, key), 0) + micro

    def freeze(self) -> list[Evidence]:
        """What was noted so far, as values, by number."""
        counts: list[dict[EvidenceKey, int]] = [{} for _ in range(self.opened)]
        usage: list[dict[UsageKey, int]] = [{} for _ in range(self.opened)]
        for (of, reported), mass in self._reported.items():
            counts[of][reported] = mass
        for of, key, mass in self.looks.counts():
            counts[of][key] = mass
        for (of, used), mass in self._used.items():
            usage[of][used] = mass
        if self.rows:
            columns = _Columns(self.rows)
            for of, key, mass in columns.parameters():
                counts[of][key] = counts[of].get(key, 0) + mass
            for of, key, mass in columns.products():
                counts[of][key] = mass
            for of, used, mass in columns.contents():
                usage[of][used] = usage[of].get(used, 0) + mass
            for of, key, mass in columns.sizes():
                counts[of][key] = mass
        return [Evidence(*masses) for masses in zip(counts, usage, strict=True)]


class Tally:
    """One tally of several, or one by itself.

    Attributes:
        number: Among those that are frozen together.
        rows: Where outcomes of all of them are noted; see `note`.
    """

    __slots__ = ("_all", "number", "rows")

    def __init__(self, tallies: Tallies | None = None, number: int = 0) -> None:
        self.number = number
        if tallies is None:
            tallies = Tallies()
            tallies.opened = 1
        self._all = tallies
        self.rows = tallies.rows

    def note(
        self, result: Observed, under: Under, *, day: int, good: bool, weight: float, surplus: bool = False
    ) -> None:
        """Note one outcome whose values are known to be in their ranges.

        Args:
            result: What the outcome is about.
            under: What it is kept under.
            day: It happened on.
            good: Which of the two it was.
            weight: In observations, >= 0.
            surplus: Whether its principal's allowance was used up, so that no parameter moves.
        """
        self.rows.append((self.number, day, under, surplus, good, weight, result))

    def note_use(self, day: int, content_hash: str, bin_: str, weight: float, principal: str = "") -> None:
        """Note that a content was used in some way, `weight` >= 0 times."""
        self._all.use(self.number, UsageKey(day, content_hash, bin_, principal), round(weight * MICRO))

    def note_report(self, evidence: Evidence, *, surplus: bool = False) -> None:
        """Note what was reported outright."""
        for reported, micro in evidence.counts.items():
            self.note_mass(reported, micro, surplus=surplus)

    def note_mass(self, key: EvidenceKey, micro: int, *, surplus: bool = False) -> None:
        """Note one mass in micro-units."""
        kept = key._replace(parameter=SURPLUS + key.parameter) if surplus else key
        self._all.report(self.number, kept, micro)

    def show(self, page: Page, results: Sequence[ShownResult]) -> None:
        """Note that results were shown."""
        self._all.looks.show(self.number, page, results)

    def click(self, page: Page, result: ShownResult) -> None:
        """Note that a result which was shown was clicked."""
        self._all.looks.click(self.number, page, result)

    def freeze(self) -> Evidence:
        """What was noted so far, as a value; several tallies are frozen more cheaply together."""
        return self._all.freeze()[self.number]


class _Columns:
    """Outcomes as arrays, one element each, and the results that they are about, each once."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        of, day, under, surplus, good, weight, result = zip(*rows, strict=True)
        self.of = np.array(of, dtype=np.int64)
        self.day = np.array(day, dtype=np.int64)
        self.good = np.array(good, dtype=bool)
        self.surplus = np.array(surplus, dtype=bool)
        self.weight = np.array(weight, dtype=np.float64)
        self.mass = np.rint(self.weight * MICRO).astype(np.int64)
        unders: dict[Under, int] = {}
        same = {id(each): unders.setdefault(each, len(unders)) for each in {id(one): one for one in under}.values()}
        self.under = np.array([same[id(each)] for each in under], dtype=np.int64)
        self.unders = list(unders)
        self.bins = np.array([each.bins for each in self.unders], dtype=np.int64)[self.under]
        results = {id(each): each for each in result}
        numbers = {identity: number for number, identity in enumerate(results)}
        self.result = np.array([numbers[id(each)] for each in result], dtype=np.int64)
        self.results: list[Observed] = list(results.values())
        self.domain = np.array([_NUMBERS[each.domain] for each in self.results], dtype=np.int64)[self.result]
        self.kind = _GOOD * self.good + _SURPLUS * self.surplus

    def parameters(self) -> Iterator[tuple[int, EvidenceKey, int]]:
        """Masses of signals and of relevance that are not zero, by tally."""
        first, (place, places_of) = int(self.day.min()), self._without_principals()
        sizes = (*self._spans(), len(places_of), len(_DOMAINS), _KINDS)
        codes = np.ravel_multi_index((self.of, self.day - first, place, self.domain, self.kind), sizes)
        leaves, row = np.unique(codes, return_inverse=True)
        masses = self._masses(row, len(leaves))
        filled, places = np.nonzero(masses)
        leaf = [each.tolist() for each in np.unravel_index(leaves[filled], sizes)]
        for of, day, under, where, what, at, mass in zip(
            *leaf, places.tolist(), masses[filled, places].tolist(), strict=True
        ):
            model, agent, intent, _, bins = places_of[under]
            parameter, bin_ = _name(at, bins, what)
            yield of, EvidenceKey(first + day, _DOMAINS[where].value, model, agent, intent, parameter, bin_), mass

    def products(self) -> Iterator[tuple[int, EvidenceKey, int]]:
        """Masses of every pair of signals by tally and domain, for s·t and against it: what covariances need.

        How signals vary together is the corpus's doing, whoever asks: models, agents and intents share it.
        """
        first, sizes = int(self.day.min()), (*self._spans(), len(_DOMAINS), _KINDS)
        codes = np.ravel_multi_index((self.of, self.day - first, self.domain, self.kind), sizes)
        leaves, row = np.unique(codes, return_inverse=True)
        masses = np.zeros((len(leaves), 2 * len(PAIRS)), dtype=np.int64)
        for columns, some, values in self._by_shape():
            left, right, at = _pairs_of(columns // 2)
            padded = np.hstack([values, np.ones((len(values), 1))])
            speaks_for = np.rint(self.weight[some, None] * MICRO * (padded[:, left] * padded[:, right]))
            _add_rows(masses, row[some], at, speaks_for.astype(np.int64), self.mass[some])
        filled, places = np.nonzero(masses)
        leaf = [each.tolist() for each in np.unravel_index(leaves[filled], sizes)]
        for of, day, where, what, at, mass in zip(*leaf, places.tolist(), masses[filled, places].tolist(), strict=True):
            parameter, bin_ = _product_name(at, what)
            yield of, EvidenceKey(first + day, _DOMAINS[where].value, ANY, ANY, ANY, parameter, bin_), mass

    def contents(self) -> Iterator[tuple[int, UsageKey, int]]:
        """Masses of outcomes by tally and content."""
        hashes: dict[str, int] = {}
        content = [hashes.setdefault(each.content_hash, len(hashes)) for each in self.results]
        first = int(self.day.min())
        sizes = (*self._spans(), len(self.unders), len(hashes), 2)
        where = np.array(content, dtype=np.int64)[self.result]
        codes = np.ravel_multi_index((self.of, self.day - first, self.under, where, self.good.astype(np.int64)), sizes)
        cells, row = np.unique(codes, return_inverse=True)
        masses = np.zeros(len(cells), dtype=np.int64)
        np.add.at(masses, row, self.mass)
        names, cell = list(hashes), [each.tolist() for each in np.unravel_index(cells, sizes)]
        for of, day, under, number, good, mass in zip(*cell, masses.tolist(), strict=True):
            bin_ = POSITIVE if good else NEGATIVE
            yield of, UsageKey(first + day, names[number], bin_, self.unders[under].principal), mass

    def sizes(self) -> Iterator[tuple[int, EvidenceKey, int]]:
        """Masses of what outcomes say about the sizes that made their results."""
        made = [each.made for each in self.results]
        told = np.flatnonzero(np.array([each is not None for each in made], dtype=bool)[self.result])
        cells: dict[tuple[int, int, str, str, str, str, bool], list[int]] = {}
        for place in told.tolist():
            result, under = self.results[self.result[place]], self.unders[self.under[place]]
            scope = (result.domain.value, under.model, under.agent, under.intent)
            leaf = (int(self.of[place]), int(self.day[place]), *scope, bool(self.surplus[place]))
            masses = cells.setdefault(leaf, [0] * len(CELLS))
            if result.made is not None:
                observe_sizes(masses, result.made, good=bool(self.good[place]), weight=float(self.weight[place]))
        for (of, day, domain, model, agent, intent, surplus), masses in cells.items():
            for (parameter, bin_), mass in zip(CELLS, masses, strict=True):
                if mass:
                    yield of, EvidenceKey(day, domain, model, agent, intent, SURPLUS * surplus + parameter, bin_), mass

    def _spans(self) -> tuple[int, int]:
        """How many tallies and days there are."""
        return int(self.of.max()) + 1, int(self.day.max() - self.day.min()) + 1

    def _without_principals(self) -> tuple[_Ints, list[Under]]:
        """What parameters are kept under, of every outcome and by number."""
        places: dict[Under, int] = {}
        numbers = [places.setdefault(each._replace(principal=""), len(places)) for each in self.unders]
        return np.array(numbers, dtype=np.int64)[self.under], list(places)

    def _masses(self, row: _Ints, leaves: int) -> _Ints:
        """Masses of every leaf (leaves, places): for and against by signal, then relevance by bin."""
        bins = self.bins
        scores = np.array([math.nan if each.score is None else each.score for each in self.results])[self.result]
        masses = np.zeros((leaves, _FIRST_BIN + int(bins.max())), dtype=np.int64)
        told = np.flatnonzero(~np.isnan(scores))
        places = np.minimum((scores[told] * bins[told]).astype(np.int64), bins[told] - 1)
        np.add.at(masses, (row[told], _FIRST_BIN + places), self.mass[told])
        for columns, some, values in self._by_shape():
            agreed = self.weight[some, None] * np.where(self.good[some, None], values, 1.0 - values) * MICRO
            _add_rows(masses, row[some], columns, np.rint(agreed).astype(np.int64), self.mass[some])
        return masses

    def _by_shape(self) -> Iterator[tuple[_Ints, _Ints, _Floats]]:
        """Outcomes with the same signals together: places of the signals, outcomes, values (n_outcomes, n_signals)."""
        shapes: dict[tuple[str, ...], list[int]] = {}
        for number, each in enumerate(self.results):
            shapes.setdefault(tuple(each.signals), []).append(number)
        within = np.empty(len(self.results), dtype=np.int64)
        shape = np.empty(len(self.results), dtype=np.int64)
        for place, some in enumerate(shapes.values()):
            within[some], shape[some] = np.arange(len(some)), place
        for place, (names, some) in enumerate(shapes.items()):
            known = [column for column, name in enumerate(names) if name in _PLACES]
            values = np.array([list(self.results[number].signals.values()) for number in some], dtype=np.float64)
            values = values.reshape(len(some), len(names))[:, known]
            outcomes = np.flatnonzero(shape[self.result] == place)
            columns = np.array([_PLACES[names[column]] for column in known], dtype=np.int64)
            yield columns, outcomes, values[within[self.result[outcomes]]]


def _add_rows(masses: _Ints, row: _Ints, columns: _Ints, speaks_for: _Ints, mass: _Ints) -> None:
    """Add what each outcome speaks for at some columns of its row, and the rest of its mass in those next to them."""
    order = np.argsort(row, kind="stable")
    rows, begin = np.unique(row[order], return_index=True)
    sums = np.add.reduceat(speaks_for[order], begin, axis=0)
    total = np.add.reduceat(mass[order], begin)
    masses[rows[:, None], columns] += sums
    masses[rows[:, None], columns + 1] += total[:, None] - sums


def _pairs_of(signals: _Ints) -> tuple[_Ints, _Ints, _Ints]:
    """Columns of both sides of each pair among told signals, and the pair's place among masses.

    Args:
        signals: Place of the signal that each column tells; the column after the last one is 1.
    """
    columns = {int(place): column for column, place in enumerate(signals)} | {ALONE: len(signals)}
    pairs = [(columns[i], columns[j], at) for (i, j), at in _PAIR_PLACES.items() if i in columns and j in columns]
    left, right, at = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
    return left, right, at


@lru_cache(maxsize=4096)
def _product_name(place: int, kind: int) -> tuple[str, str]:
    """Parameter and bin that the mass of a product is kept under."""
    parameter = product_parameter(*PAIRS[place // 2], good=bool(kind & _GOOD))
    return (SURPLUS if kind & _SURPLUS else "") + parameter, AGAINST if place % 2 else FOR


@lru_cache(maxsize=4096)
def _name(place: int, bins: int, kind: int) -> tuple[str, str]:
    """Parameter and bin that the mass at a place of a leaf is kept under."""
    good, beside = bool(kind & _GOOD), SURPLUS if kind & _SURPLUS else ""
    if place >= _FIRST_BIN:
        return beside + RELEVANCE, relevance_bin(place - _FIRST_BIN, bins, good=good)
    return beside + signal_parameter(SIGNALS[place // 2], good=good), AGAINST if place % 2 else FOR
