"""What one outcome says about the signals that spoke for a result, about its score, and about its content (LRN-4)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np

from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import ANY, Scope, Signal
from pipelines.domain.sizing import MadeBy
from pipelines.learning.evidence import MICRO, Evidence, EvidenceKey, UsageKey
from pipelines.learning.looks import Looks
from pipelines.learning.size_observations import CELLS, observe_sizes

RELEVANCE = "relevance"
"""The parameter that calibration is fitted on: mass per bin of the score, by outcome."""

FOR, AGAINST = "for", "against"
POSITIVE, NEGATIVE = "positive", "negative"
PRODUCT = "product."
"""What comes before the parameter of how two signals occur together: mass per pair, by domain alone (LRN-4)."""
SURPLUS = "surplus."
"""What comes before the parameter of evidence beyond its principal's allowance: kept, and read by nobody (LRN-3)."""
RETRIEVAL, INCLUSION, REFERENCE = "retrieval", "inclusion", "reference"


_SIGNALS = tuple(Signal)
_PLACES: Mapping[str, int] = {signal.value: 2 * index for index, signal in enumerate(_SIGNALS)}
"""Where a leaf's masses keep a signal: for here, against next to it; the bins of relevance follow all signals."""
_FIRST_BIN = 2 * len(_PLACES)
_ALONE = len(_SIGNALS)
"""The place of "no other signal" in a pair: what every signal is itself on average, beside the products."""
PAIRS = tuple((i, j) for i in range(len(_SIGNALS)) for j in (*range(i, len(_SIGNALS)), _ALONE))
"""Every pair of signals once, each with itself, and each alone."""
_PAIR_PLACES: Mapping[tuple[int, int], int] = {pair: 2 * place for place, pair in enumerate(PAIRS)}


class Leaf(NamedTuple):
    """What outcomes of one kind at one scope on one day add to."""

    day: int
    domain: str
    model: str
    agent: str
    intent: str
    good: bool
    bins: int
    surplus: bool = False


class Tally:
    """Evidence under way: outcomes are noted one by one, and summed column by column when frozen.

    Noting costs little more than keeping a tuple; all arithmetic is over arrays, in the very operations that
    `observe_outcome` states, so that the sums are the same integers.
    """

    __slots__ = ("_content", "_outcomes", "_reported", "_sizes", "looks")

    def __init__(self) -> None:
        self._outcomes: list[tuple[Leaf, Mapping[str, float], float, float]] = []
        self._content: dict[tuple[int, str, str, str], int] = {}
        self._reported: dict[EvidenceKey, int] = {}
        self._sizes: dict[tuple[tuple[int, str, str, str, str], bool], list[int]] = {}
        self.looks = Looks()

    def note(
        self,
        leaf: Leaf,
        signals: Mapping[str, float],
        *,
        score: float | None,
        weight: float,
        content_hash: str,
        made: MadeBy | None,
        principal: str = "",
    ) -> None:
        """Note one outcome whose values are known to be in their ranges; see `observe_outcome`."""
        self._outcomes.append((leaf, signals, math.nan if score is None else score, weight))
        content = (leaf.day, content_hash, POSITIVE if leaf.good else NEGATIVE, principal)
        self._content[content] = self._content.get(content, 0) + round(weight * MICRO)
        if made is not None:
            sizes = self._sizes.setdefault((leaf[:5], leaf.surplus), [0] * len(CELLS))
            observe_sizes(sizes, made, good=leaf.good, weight=weight)

    def note_use(self, day: int, content_hash: str, bin_: str, weight: float, principal: str = "") -> None:
        """Note that a content was used in some way, `weight` >= 0 times."""
        content = (day, content_hash, bin_, principal)
        self._content[content] = self._content.get(content, 0) + round(weight * MICRO)

    def note_report(self, evidence: Evidence, *, surplus: bool = False) -> None:
        """Note what was reported outright."""
        for reported, micro in evidence.counts.items():
            key = reported._replace(parameter=SURPLUS + reported.parameter) if surplus else reported
            self._reported[key] = self._reported.get(key, 0) + micro

    def freeze(self) -> Evidence:
        """What was noted so far, as a value."""
        counts = dict(self._reported)
        counts |= self._products()
        for leaf, masses in self._masses():
            for place in np.flatnonzero(masses).tolist():
                key = _key(leaf, place)
                counts[key] = counts.get(key, 0) + int(masses[place])
        counts |= self.looks.counts()
        for (scope, surplus), sizes in self._sizes.items():
            for (parameter, bin_), mass in zip(CELLS, sizes, strict=True):
                if mass:
                    counts[EvidenceKey(*scope, SURPLUS * surplus + parameter, bin_)] = mass
        return Evidence(counts, {UsageKey(*content): mass for content, mass in self._content.items()})

    def _masses(self) -> Iterator[tuple[Leaf, np.ndarray]]:
        """Masses of every leaf: for and against by signal, then relevance by bin; int64."""
        if not self._outcomes:
            return
        leaves: dict[Leaf, int] = {}
        rows = np.array([leaves.setdefault(leaf, len(leaves)) for leaf, *_ in self._outcomes])
        weights = np.array([weight for *_, weight in self._outcomes])
        bins = np.array([leaf.bins for leaf in leaves])[rows]
        scores = np.array([score for _, _, score, _ in self._outcomes])
        mass = np.rint(weights * MICRO).astype(np.int64)
        masses = np.zeros((len(leaves), _FIRST_BIN + int(bins.max())), dtype=np.int64)
        told = np.flatnonzero(~np.isnan(scores))
        places = np.minimum((scores[told] * bins[told]).astype(np.int64), bins[told] - 1)
        np.add.at(masses, (rows[told], _FIRST_BIN + places), mass[told])
        good = np.array([leaf.good for leaf in leaves])[rows]
        for places, some, values in self._by_shape():
            agreed = weights[some, None] * np.where(good[some, None], values, 1.0 - values) * MICRO
            speaks_for = np.rint(agreed).astype(np.int64)
            np.add.at(masses, (rows[some, None], places), speaks_for)
            np.add.at(masses, (rows[some, None], places + 1), mass[some, None] - speaks_for)
        yield from zip(leaves, masses, strict=True)

    def _products(self) -> dict[EvidenceKey, int]:
        """Masses of every pair of signals by domain, for s·t and against it: the moments that covariances need.

        How signals vary together is the corpus's doing, whoever asks: models, agents and intents share it.
        """
        leaves: dict[Leaf, int] = {}
        rows = np.array([leaves.setdefault(_of_domain(leaf), len(leaves)) for leaf, *_ in self._outcomes], np.int64)
        weights = np.array([weight for *_, weight in self._outcomes], np.float64)
        masses = np.zeros((len(leaves), 2 * len(PAIRS)), dtype=np.int64)
        for places, some, values in self._by_shape():
            first, second, at = _pairs_of(places // 2)
            padded = np.hstack([values, np.ones((len(values), 1))])
            for row in np.unique(rows[some]):
                here = np.flatnonzero(rows[some] == row)
                weight = weights[some[here], None] * MICRO
                speaks_for = np.rint(weight * (padded[here][:, first] * padded[here][:, second])).astype(np.int64)
                total = int(np.rint(weight).astype(np.int64).sum())
                masses[row, at] += speaks_for.sum(axis=0)
                masses[row, at + 1] += total - speaks_for.sum(axis=0)
        counts: dict[EvidenceKey, int] = {}
        for leaf, row in leaves.items():
            for place in np.flatnonzero(masses[row]).tolist():
                parameter = SURPLUS * leaf.surplus + product_parameter(*PAIRS[place // 2], good=leaf.good)
                counts[EvidenceKey(*leaf[:5], parameter, AGAINST if place % 2 else FOR)] = int(masses[row, place])
        return counts

    def _by_shape(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Outcomes with the same signals together: places of the signals, outcomes, values (n_outcomes, n_signals)."""
        shapes: dict[tuple[str, ...], list[int]] = {}
        for index, (_, signals, _, _) in enumerate(self._outcomes):
            shapes.setdefault(tuple(signals), []).append(index)
        for names, some in shapes.items():
            flat = chain.from_iterable(self._outcomes[index][1].values() for index in some)
            values = np.fromiter(flat, np.float64, len(some) * len(names)).reshape(len(some), len(names))
            known = [column for column, name in enumerate(names) if name in _PLACES]
            yield np.array([_PLACES[names[column]] for column in known], np.int64), np.array(some), values[:, known]


def observe_outcome(
    tally: Tally,
    *,
    day: int,
    scope: Scope,
    intent: str,
    signals: Mapping[str, float],
    score: float | None,
    content_hash: ContentHash,
    good: bool,
    weight: float,
    bins: int,
    made: MadeBy | None = None,
) -> None:
    """Add one outcome of one shown result to `tally`.

    A signal of value s agreed with a good outcome by s and with a bad one by 1 − s; the agreement is mass for, the
    rest mass against, in the Beta of that kind of outcome. Masses are rounded to micro-units here, per observation,
    so that any order of observations sums to the same.

    Args:
        day: Bucket of the event's own time.
        signals: Value in [0, 1] of each signal as it was shown; names that are no `Signal` are passed over.
        score: The ranking score in [0, 1] it was shown with; None where it is not known, and no bin gets the mass.
        weight: |satisfaction| times the confidence of attribution, >= 0.
        bins: How many bins of equal width the score falls in.
        made: The size of the chunk and what made it so, where that is known: evidence about sizes (LRN-9).

    Raises:
        ValueError: A value is out of its range or not a number; nothing was added.
    """
    _check(signals, score, weight)
    leaf = Leaf(day, scope.domain.value, scope.model, scope.agent, intent, good, bins)
    tally.note(leaf, signals, score=score, weight=weight, content_hash=content_hash, made=made)


def outcome_evidence(
    *,
    day: int,
    scope: Scope,
    intent: str,
    signals: Mapping[str, float],
    score: float | None,
    content_hash: ContentHash,
    good: bool,
    weight: float,
    bins: int,
    made: MadeBy | None = None,
) -> Evidence:
    """The evidence of one outcome of one shown result, as a value; see `observe_outcome`.

    Examples:
        >>> from pipelines.domain.documents import Domain
        >>> seen = outcome_evidence(day=0, scope=Scope(Domain.CODE), intent="*", signals={"vector": 0.8}, score=0.37,
        ...     content_hash="ab" * 32, good=True, weight=0.5, bins=20)
        >>> [(key.parameter, key.bin, mass) for key, mass in sorted(seen.counts.items())]  # .8 · .8 of .5
        [('product.vector.good', 'against', 100000), ('product.vector.good', 'for', 400000),
         ('product.vector.vector.good', 'against', 180000), ('product.vector.vector.good', 'for', 320000),
         ('relevance', '07/20.good', 500000),
         ('signal.vector.good', 'against', 100000), ('signal.vector.good', 'for', 400000)]
    """
    tally = Tally()
    observe_outcome(
        tally,
        day=day,
        scope=scope,
        intent=intent,
        signals=signals,
        score=score,
        content_hash=content_hash,
        good=good,
        weight=weight,
        bins=bins,
        made=made,
    )
    return tally.freeze()


def signal_parameter(signal: Signal, *, good: bool) -> str:
    """The parameter that a signal's agreement with outcomes of one kind is kept under."""
    return f"signal.{signal.value}.{'good' if good else 'bad'}"


def product_parameter(first: int, second: int, *, good: bool) -> str:
    """The parameter that the product of two signals, named by their places, is kept under.

    Examples:
        >>> product_parameter(0, 1, good=True), product_parameter(0, len(Signal), good=False)
        ('product.vector.lexical.good', 'product.vector.bad')
    """
    names = [_SIGNALS[place].value for place in (first, second) if place != _ALONE]
    return f"{PRODUCT}{'.'.join(names)}.{'good' if good else 'bad'}"


def relevance_bin(index: int, bins: int, *, good: bool) -> str:
    """The bin for scores in [index / bins, (index + 1) / bins); it names `bins`, so a later change leaves it readable.

    Examples:
        >>> relevance_bin(7, 20, good=False)
        '07/20.bad'
    """
    return f"{index:02d}/{bins}.{'good' if good else 'bad'}"


def _of_domain(leaf: Leaf) -> Leaf:
    return leaf._replace(model=ANY, agent=ANY, intent=ANY, bins=0)


def _pairs_of(signals: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of both sides of each pair among told signals, and the pair's place among masses, int64 each.

    Args:
        signals: Place of the signal that each column tells; the column after the last one is 1.
    """
    columns = {int(place): column for column, place in enumerate(signals)} | {_ALONE: len(signals)}
    pairs = [(columns[i], columns[j], at) for (i, j), at in _PAIR_PLACES.items() if i in columns and j in columns]
    first, second, at = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
    return first, second, at


def _key(leaf: Leaf, place: int) -> EvidenceKey:
    """What the mass at a place of a leaf's masses is kept under."""
    beside = SURPLUS * leaf.surplus
    if place >= _FIRST_BIN:
        return EvidenceKey(*leaf[:5], beside + RELEVANCE, relevance_bin(place - _FIRST_BIN, leaf.bins, good=leaf.good))
    parameter = beside + signal_parameter(_SIGNALS[place // 2], good=leaf.good)
    return EvidenceKey(*leaf[:5], parameter, AGAINST if place % 2 else FOR)


def _check(signals: Mapping[str, float], score: float | None, weight: float) -> None:
    if (score is not None and not 0.0 <= score <= 1.0) or not 0.0 <= weight < math.inf:
        raise ValueError(f"expected a score in [0, 1] and a finite weight >= 0, got {score}, {weight}")
    for name, value in signals.items():
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"expected signal {name!r} in [0, 1], got {value}")
