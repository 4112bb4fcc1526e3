"""Whether a session has changed its topic, and how much of what it learned then counts (RET-6)."""

from __future__ import annotations

import math
import statistics

import numpy as np

from pipelines.domain.sessions import SessionMemory
from pipelines.domain.understanding import Shift
from pipelines.retrieval.understanding.settings import ShiftSettings

_NEUTRAL = 0.5  # of a usage that says nothing: between good and bad


def shift_of(vector: np.ndarray, memory: SessionMemory, settings: ShiftSettings) -> Shift | None:
    """How far a query lies from the centroid of its session's recent ones; None before there are enough of them.

    The threshold is learned from the session: its mean distance so far and some deviations more, at least the
    configured one. Who jumps about anyway has not changed topic by jumping.

    Args:
        vector: float32 (dimension,), a unit vector.
    """
    recent = [query for query in memory.queries[-settings.window :] if len(query) == len(vector)]
    if not settings.enabled or len(recent) < settings.least:
        return None
    return Shift(distance(vector, recent), _threshold(memory.shift[-settings.window :], settings))


def distance(vector: np.ndarray, recent: list[tuple[float, ...]]) -> float:
    """1 − cosine of a unit vector and the centroid of others, in [0, 2]; 0 where there are none."""
    centroid = np.mean(np.asarray(recent, dtype=np.float64).reshape(len(recent), -1), axis=0) if recent else None
    length = 0.0 if centroid is None else float(np.linalg.norm(centroid))
    if centroid is None or length == 0.0:
        return 0.0
    return float(np.clip(1.0 - vector.astype(np.float64) @ centroid / length, 0.0, 2.0))


def remembered(vector: np.ndarray | None, memory: SessionMemory, settings: ShiftSettings) -> SessionMemory:
    """The memory after one more query; the same where the query had no vector."""
    if vector is None:
        return memory
    recent = [query for query in memory.queries[-settings.window :] if len(query) == len(vector)]
    return memory.asked(tuple(vector.tolist()), shift=distance(vector, recent), window=settings.window)


def dampened(usage: float, shift: Shift | None, settings: ShiftSettings) -> float:
    """Usage as it counts: after a change of topic only a share of what sets it apart.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> tuned = load_settings(environment={}).retrieval.understanding.shift.model_copy(update={"usage_kept": 0.5})
        >>> dampened(0.9, Shift(0.8, 0.5), tuned), dampened(0.9, Shift(0.2, 0.5), tuned)
        (0.7, 0.9)
    """
    if shift is None or not shift.happened:
        return usage
    return _NEUTRAL + settings.usage_kept * (usage - _NEUTRAL)


def _threshold(distances: tuple[float, ...], settings: ShiftSettings) -> float:
    if len(distances) < settings.least:
        return settings.distance
    spread = statistics.pstdev(distances)
    learned = statistics.fmean(distances) + settings.deviations * spread
    return max(settings.distance, learned) if math.isfinite(learned) else settings.distance
