"""Signals: one pure function each, a number in [0, 1] about a candidate that may speak for it (RET-13)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence


def vector(cosines: Sequence[float | None]) -> list[float]:
    """Similarity among the candidates of a query: (c − min) / (max − min) over those the channel found.

    A candidate that the channel did not find (None) has 0. Where all found ones are alike, they have 1: the channel
    chose them from everything it knows.

    Examples:
        >>> vector([0.75, 0.25, None, 0.5])
        [1.0, 0.0, 0.0, 0.5]
        >>> vector([0.3])
        [1.0]
    """
    found = [cosine for cosine in cosines if cosine is not None]
    if not found:
        return [0.0] * len(cosines)
    low, span = min(found), max(found) - min(found)
    if span <= 0.0:
        return [0.0 if cosine is None else 1.0 for cosine in cosines]
    return [0.0 if cosine is None else _share((cosine - low) / span) for cosine in cosines]


def lexical(scores: Sequence[float | None]) -> list[float]:
    """Share of the best lexical score: BM25's floor is 0, so the last hit does not count as a miss (RET-9).

    Examples:
        >>> lexical([4.0, 1.0, None])
        [1.0, 0.25, 0.0]
    """
    best = max((score for score in scores if score is not None), default=0.0)
    if best <= 0.0:
        return [0.0] * len(scores)
    return [0.0 if score is None else _share(score / best) for score in scores]


vector_2 = vector
vector_3 = vector
"""Further encoders' similarity is measured like the first one's."""


def graph(energies: Sequence[float | None]) -> list[float]:
    """Share of the most energy that reached any candidate; what no energy reached has 0.

    Examples:
        >>> graph([0.5, None, 0.25])
        [1.0, 0.0, 0.5]
    """
    return lexical(energies)


def degree(scores: Sequence[float | None]) -> list[float]:
    """How well connected each candidate is, in [0, cap]: the channel's score as it is, whatever the others have."""
    return [0.0 if score is None else _share(score) for score in scores]


def trigger(shares: Sequence[float | None]) -> list[float]:
    """How much of the query its trigger phrase makes up: the channel's score as it is."""
    return [0.0 if share is None else _share(share) for share in shares]


def late_interaction(matches: Sequence[float], span: float) -> list[float]:
    """How near each match of the query's tokens comes to the best one: 1 − (best − match) / span, at least 0.

    Small differences stay small: among candidates that match alike, none is the worst.

    Args:
        matches: Of the candidates looked at again, mean cosines.
        span: Difference to the best match that leaves nothing.

    Examples:
        >>> late_interaction([0.75, 0.25, 0.5], span=0.5)
        [1.0, 0.0, 0.5]
    """
    best = max(matches, default=0.0)
    return [_share(1.0 - (best - match) / span) for match in matches]


def cross_encoder(score: float) -> float:
    """How well a text answers the query, as a model says that reads both together."""
    return _share(score)


def freshness(believed: float) -> float:
    """How far the content still holds: the belief at its age, as `Beliefs.freshness` reads it."""
    return _share(believed)


def usage(believed: float) -> float:
    """How good its outcomes were: the belief for its content hash, as `Beliefs.usage` reads it."""
    return _share(believed)


def dampened(usage: float, kept: float) -> float:
    """A usage of which only a share of what sets it apart from neutral, 0.5, still counts.

    Examples:
        >>> dampened(0.75, 0.5), dampened(0.75, 1.0)
        (0.625, 0.75)
    """
    return usage if kept == 1.0 else _NEUTRAL + kept * (usage - _NEUTRAL)


_NEUTRAL = 0.5  # between good and bad


def trust(level: int, multiplier: float) -> float:
    """Trust in the source: level / 100 · multiplier, at most 1.

    Examples:
        >>> trust(80, 1.0), trust(80, 1.5)
        (0.8, 1.0)
    """
    return _share(level / 100.0 * multiplier)


def authority(share: float) -> float:
    """How much others rely on it: its citations on a logarithmic scale, the most cited of the generation having 1."""
    return _share(share)


def structure(whole: float) -> float:
    """How whole it is: the share that was read without syntax errors times the share of its unit that it holds."""
    return _share(whole)


def propagated(descendants: Iterable[tuple[float, int]], factor: float) -> float:
    """What its parts say for the whole: the best of a descendant's score · factor per level between them, 0 without.

    Examples:
        >>> propagated([(0.8, 1), (1.0, 2)], 0.5)
        0.4
    """
    return _share(max((score * factor**levels for score, levels in descendants), default=0.0))


def novelty(age_hours: float, *, boost: float, half_life_hours: float) -> float:
    """How new it is: boost · 2^(−age / half-life).

    Examples:
        >>> novelty(12.0, boost=0.15, half_life_hours=12.0)
        0.075
    """
    return _share(boost * 2.0 ** (-max(0.0, age_hours) / half_life_hours))


def tier(declared: str | None, values: Mapping[str, float]) -> float | None:
    """How important it was said to be; None for nothing and for a word that is not known."""
    return _named(declared, values)


def validation(declared: str | None, values: Mapping[str, float]) -> float | None:
    """How far it was said to have been checked; None for nothing and for a word that is not known."""
    return _named(declared, values)


def congruence(stored_for: str, asked_for: str) -> float:
    """1 where it was stored for what is asked for.

    Examples:
        >>> congruence("Decision", "decision"), congruence("decision", "debug")
        (1.0, 0.0)
    """
    return float(stored_for.casefold() == asked_for.casefold())


def session(cosine: float) -> float:
    """How near it lies to what its session asked before."""
    return _share(cosine)


def cross_validation(channels: int) -> float:
    """1 where channels of different kinds, words and meaning, found the candidate; 0 where one did.

    Examples:
        >>> cross_validation(2), cross_validation(1)
        (1.0, 0.0)
    """
    return 1.0 if channels > 1 else 0.0


def _named(declared: str | None, values: Mapping[str, float]) -> float | None:
    value = None if declared is None else values.get(declared.casefold())
    return None if value is None else _share(value)


def _share(value: float) -> float:
    if math.isnan(value):
        raise ValueError("expected a signal in [0, 1], got NaN")
    return min(max(value, 0.0), 1.0)
