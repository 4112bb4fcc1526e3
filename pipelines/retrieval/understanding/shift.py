"""Whether a session has changed its topic, and how much of what it learned then counts (RET-6)."""

from __future__ import annotations

import math
import statistics

import numpy as np

from pipelines.domain.sessions import SessionMemory
from pipelines.domain.understanding import Shift
from pipelines.retrieval.understanding.settings import ShiftSettings


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


def usage_kept(shift: Shift | None, settings: ShiftSettings) -> float:
    """Share of recent usage feedback that counts: all of it while the topic is the same."""
    return settings.usage_kept if shift is not None and shift.happened else 1.0


def _threshold(distances: tuple[float, ...], settings: ShiftSettings) -> float:
    if len(distances) < settings.least:
        return settings.distance
    spread = statistics.pstdev(distances)
    learned = statistics.fmean(distances) + settings.deviations * spread
    return max(settings.distance, learned) if math.isfinite(learned) else settings.distance
