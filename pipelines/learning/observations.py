"""What one outcome says about the signals that spoke for a result, about its score, and about its content (LRN-4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Scope, Signal
from pipelines.learning.evidence import MICRO, Evidence, EvidenceKey, UsageKey

RELEVANCE = "relevance"
"""The parameter that calibration is fitted on: mass per bin of the score, by outcome."""

FOR, AGAINST = "for", "against"
POSITIVE, NEGATIVE = "positive", "negative"


class _Places(NamedTuple):
    """The keys that outcomes of one kind at one leaf on one day write to."""

    signals: Mapping[str, tuple[EvidenceKey, EvidenceKey]]
    relevance: tuple[EvidenceKey, ...]


class Tally:
    """Evidence under way: masses are added in place, and frozen at commit.

    One tally serves one batch of events: it remembers the keys of every leaf it met, so that a batch costs a few
    dictionary look-ups per signal.
    """

    __slots__ = ("_places", "counts", "usage")

    def __init__(self) -> None:
        self.counts: dict[EvidenceKey, int] = {}
        self.usage: dict[UsageKey, int] = {}
        self._places: dict[tuple[int, Scope, str, bool, int], _Places] = {}

    def freeze(self) -> Evidence:
        """What was tallied so far, as a value."""
        return Evidence(self.counts, self.usage)

    def places(self, day: int, scope: Scope, intent: str, good: bool, bins: int) -> _Places:
        """The keys for outcomes of that kind, made once per tally."""
        which = (day, scope, intent, good, bins)
        found = self._places.get(which)
        if found is None:
            found = self._places[which] = _places(day, scope, intent, good, bins)
        return found


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

    Raises:
        ValueError: A value is out of its range or not a number; nothing was added.
    """
    _check(signals, score, weight)
    places = tally.places(day, scope, intent, good, bins)
    counts, mass = tally.counts, round(weight * MICRO)
    for name, (key_for, key_against) in places.signals.items():
        value = signals.get(name)
        if value is None:
            continue
        agreed = round(weight * (value if good else 1.0 - value) * MICRO)
        counts[key_for] = counts.get(key_for, 0) + agreed
        counts[key_against] = counts.get(key_against, 0) + mass - agreed
    bucket = places.relevance[min(int(score * bins), bins - 1)]
    counts[bucket] = counts.get(bucket, 0) + mass
    used = UsageKey(day, content_hash, POSITIVE if good else NEGATIVE)
    tally.usage[used] = tally.usage.get(used, 0) + mass


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


def _places(day: int, scope: Scope, intent: str, good: bool, bins: int) -> _Places:
    leaf = (day, scope.domain.value, scope.model, scope.agent, intent)
    parameters = {signal.value: signal_parameter(signal, good=good) for signal in Signal}
    return _Places(
        {name: (EvidenceKey(*leaf, each, FOR), EvidenceKey(*leaf, each, AGAINST)) for name, each in parameters.items()},
        tuple(EvidenceKey(*leaf, RELEVANCE, relevance_bin(index, bins, good=good)) for index in range(bins)),
    )


def _check(signals: Mapping[str, float], score: float, weight: float) -> None:
    if not 0.0 <= score <= 1.0 or not 0.0 <= weight < math.inf:
        raise ValueError(f"expected a score in [0, 1] and a finite weight >= 0, got {score}, {weight}")
    for name, value in signals.items():
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"expected signal {name!r} in [0, 1], got {value}")
