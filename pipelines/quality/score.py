"""The score of a candidate: what each signal adds under its weight, and the sum of it (RET-14, RET-18)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pipelines.domain.ranking import Contribution, Signal, WeightBelief


def contributions(
    signals: Mapping[Signal, float],
    weights: Mapping[Signal, float],
    beliefs: Mapping[Signal, WeightBelief] | None = None,
) -> tuple[Contribution, ...]:
    """What each weighted signal adds to the score: weight · value, in the order of `Signal`.

    Args:
        signals: Value in [0, 1] of every signal that has a weight; others may be there and add nothing.
        weights: Share of each active signal; shares that sum to at most 1 make scores in [0, 1].
        beliefs: What is known about each weight, for the explanation.

    Raises:
        ValueError: A weighted signal has no value.

    Examples:
        >>> parts = contributions({Signal.VECTOR: 0.5, Signal.USAGE: 1.0}, {Signal.VECTOR: 0.75, Signal.USAGE: 0.25})
        >>> [part.amount for part in parts], score(parts)
        ([0.375, 0.25], 0.625)
    """
    if missing := weights.keys() - signals.keys():
        raise ValueError(f"expected a value for every weighted signal, none for {sorted(missing)}")
    known = beliefs or {}
    return tuple(
        Contribution(name, signals[signal], weights[signal], weights[signal] * signals[signal], known.get(signal))
        for signal, name in _NAMES
        if signal in weights
    )


_NAMES = tuple((signal, signal.value) for signal in Signal)


def score(parts: Iterable[Contribution]) -> float:
    """The sum of what the parts add, rounded once: the same in any order."""
    return math.fsum(part.amount for part in parts)
