"""What one outcome says about the signals that spoke for a result, about its score, and about its content (LRN-4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Scope, Signal
from pipelines.domain.sizing import MadeBy
from pipelines.learning.evidence import MICRO, Evidence, EvidenceKey, UsageKey
from pipelines.learning.size_observations import CELLS, observe_sizes

RELEVANCE = "relevance"
"""The parameter that calibration is fitted on: mass per bin of the score, by outcome."""

FOR, AGAINST = "for", "against"
POSITIVE, NEGATIVE = "positive", "negative"


_SIGNALS = tuple(Signal)
_PLACES: Mapping[str, int] = {signal.value: 2 * index for index, signal in enumerate(_SIGNALS)}
"""Where a leaf's masses keep a signal: for here, against next to it; the bins of relevance follow all signals."""
_FIRST_BIN = 2 * len(_PLACES)


class _Leaf(NamedTuple):
    """What outcomes of one kind at one scope on one day add to."""

    day: int
    domain: str
    model: str
    agent: str
    intent: str
    good: bool
    bins: int


class _SizeLeaf(NamedTuple):
    """What outcomes of chunks at one scope on one day add to."""

    day: int
    domain: str
    model: str
    agent: str
    intent: str


class Tally:
    """Evidence under way: masses are added in place, and frozen at commit.

    A leaf's masses lie in one list, so that an observation costs two additions per signal and no key is hashed or
    made before the tally is frozen.
    """

    __slots__ = ("_masses", "_sizes", "_usage")

    def __init__(self) -> None:
        self._masses: dict[_Leaf, list[int]] = {}
        self._sizes: dict[_SizeLeaf, list[int]] = {}
        self._usage: dict[UsageKey, int] = {}

    def masses(self, leaf: _Leaf) -> list[int]:
        """The masses of a leaf, to be added to."""
        found = self._masses.get(leaf)
        if found is None:
            found = self._masses[leaf] = [0] * (_FIRST_BIN + leaf.bins)
        return found

    def sizes(self, leaf: _SizeLeaf) -> list[int]:
        """The masses about sizes of a leaf, to be added to."""
        found = self._sizes.get(leaf)
        if found is None:
            found = self._sizes[leaf] = [0] * len(CELLS)
        return found

    def use(self, key: UsageKey, mass: int) -> None:
        """Add to the use of a content."""
        self._usage[key] = self._usage.get(key, 0) + mass

    def freeze(self) -> Evidence:
        """What was tallied so far, as a value."""
        counts: dict[EvidenceKey, int] = {}
        for leaf, masses in self._masses.items():
            for place, mass in enumerate(masses):
                if mass:
                    key = _key(leaf, place)
                    counts[key] = counts.get(key, 0) + mass
        for scope, sizes in self._sizes.items():
            for (parameter, bin_), mass in zip(CELLS, sizes, strict=True):
                if mass:
                    counts[EvidenceKey(*scope, parameter, bin_)] = mass
        return Evidence(counts, self._usage)


def observe_outcome(
    tally: Tally,
    *,
    day: int,
    scope: Scope,
    intent: str,
    signals: Mapping[str, float],
    score: float,
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
        score: The ranking score in [0, 1] it was shown with.
        weight: |satisfaction| times the confidence of attribution, >= 0.
        bins: How many bins of equal width the score falls in.
        made: The size of the chunk and what made it so, where that is known: evidence about sizes (LRN-9).

    Raises:
        ValueError: A value is out of its range or not a number; nothing was added.
    """
    _check(signals, score, weight)
    masses = tally.masses(_Leaf(day, scope.domain.value, scope.model, scope.agent, intent, good, bins))
    mass = round(weight * MICRO)
    for name, value in signals.items():
        place = _PLACES.get(name)
        if place is not None:
            agreed = round(weight * (value if good else 1.0 - value) * MICRO)
            masses[place] += agreed
            masses[place + 1] += mass - agreed
    masses[_FIRST_BIN + min(int(score * bins), bins - 1)] += mass
    tally.use(UsageKey(day, content_hash, POSITIVE if good else NEGATIVE), mass)
    if made is not None:
        leaf = _SizeLeaf(day, scope.domain.value, scope.model, scope.agent, intent)
        observe_sizes(tally.sizes(leaf), made, good=good, weight=weight)


def outcome_evidence(
    *,
    day: int,
    scope: Scope,
    intent: str,
    signals: Mapping[str, float],
    score: float,
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
        >>> [(key.parameter, key.bin, mass) for key, mass in sorted(seen.counts.items())]
        [('relevance', '07/20.good', 500000),
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


def relevance_bin(index: int, bins: int, *, good: bool) -> str:
    """The bin for scores in [index / bins, (index + 1) / bins); it names `bins`, so a later change leaves it readable.

    Examples:
        >>> relevance_bin(7, 20, good=False)
        '07/20.bad'
    """
    return f"{index:02d}/{bins}.{'good' if good else 'bad'}"


def _key(leaf: _Leaf, place: int) -> EvidenceKey:
    """What the mass at a place of a leaf's masses is kept under."""
    if place >= _FIRST_BIN:
        return EvidenceKey(*leaf[:5], RELEVANCE, relevance_bin(place - _FIRST_BIN, leaf.bins, good=leaf.good))
    parameter = signal_parameter(_SIGNALS[place // 2], good=leaf.good)
    return EvidenceKey(*leaf[:5], parameter, AGAINST if place % 2 else FOR)


def _check(signals: Mapping[str, float], score: float, weight: float) -> None:
    if not 0.0 <= score <= 1.0 or not 0.0 <= weight < math.inf:
        raise ValueError(f"expected a score in [0, 1] and a finite weight >= 0, got {score}, {weight}")
    for name, value in signals.items():
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"expected signal {name!r} in [0, 1], got {value}")
