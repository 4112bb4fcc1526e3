"""Whether a session has changed its topic, and how much of what it learned then counts (RET-6)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

from pipelines.domain.sessions import SessionMemory
from pipelines.domain.understanding import Shift
from pipelines.retrieval.query_settings import ShiftSettings


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


def distance(vector: np.ndarray, recent: Sequence[Sequence[float]]) -> float:
    """1 − cosine of a unit vector and the centroid of others, in [0, 2]; 0 where there are none."""
    middle = centroid(recent)
    return 0.0 if middle is None else float(np.clip(1.0 - vector @ middle, 0.0, 2.0))


def centroid(vectors: Sequence[Sequence[float]]) -> np.ndarray | None:
    """The direction of the mean of unit vectors, float32 (dimension,); None where they have none in common."""
    if not vectors:
        return None
    mean = np.asarray(vectors, dtype=np.float64).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return None if length == 0.0 else np.asarray(mean / length, dtype=np.float32)


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
