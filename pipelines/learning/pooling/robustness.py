"""How much of what one day brought counts: caps on floods, and less weight for what is out of character (LRN-3).

Everything here happens on read: the evidence keeps every mass, and shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.learning.evidence import MICRO
from pipelines.learning.priors import RobustnessPrior
from pipelines.learning.recency import capped_share

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DailyMasses:
    """What each day brought for and against each parameter of each node, arrays (n,), one entry per day, in order.

    Attributes:
        place: Node and parameter as one number.
        hits, misses: int64, micro-units.
    """

    place: Ints
    day: Ints
    hits: Ints
    misses: Ints

    @classmethod
    def of(cls, place: Ints, day: Ints, micro: Ints, against: NDArray[np.bool_]) -> DailyMasses:
        """From single masses in any order: sums of integers, so that no order makes a difference."""
        if not len(place):
            empty = np.empty(0, dtype=np.int64)
            return cls(empty, empty, empty, empty)
        order = np.lexsort((day, place))
        starts = np.flatnonzero(np.concatenate([[True], (np.diff(place[order]) != 0) | (np.diff(day[order]) != 0)]))
        sides = (np.add.reduceat(np.where(side, micro, 0)[order], starts) for side in (~against, against))
        return cls(place[order][starts], day[order][starts], *sides)


def trusted_shares(masses: DailyMasses, prior: RobustnessPrior) -> Floats:
    """The share of each day's mass that counts, float64 (n,) in (0, 1].

    Two bounds, of which the smaller holds: at most `daily_cap` observations a day; and a day whose rate lies more than
    `outlier_z` standard deviations from what all other days say, where those are at least `outlier_evidence`
    observations, counts that many deviations over its own (Huber, Annals of Mathematical Statistics 1964).
    """
    hits, misses = (np.maximum(side, 0) / MICRO for side in (masses.hits, masses.misses))
    n = hits + misses
    cap = capped_share(n, prior.daily_cap)
    others_hits, others_misses = (_of_other_days(masses.place, side) for side in (hits, misses))
    others = others_hits + others_misses
    settled = (others >= prior.outlier_evidence) & (n > 0.0)
    # Laplace's rule keeps rates off 0 and 1; the day varies by chance, and the belief is not certain either.
    believed = (others_hits + 1.0) / (others + 2.0)
    safe = np.where(settled, n, 1.0)
    deviation = np.sqrt(believed * (1.0 - believed) * (1.0 / safe + 1.0 / (others + 2.0)))
    z = np.where(settled, np.abs(hits / safe - believed) / deviation, 0.0)
    return np.asarray(np.minimum(cap, prior.outlier_z / np.maximum(z, prior.outlier_z)))


def _of_other_days(place: Ints, values: Floats) -> Floats:
    """For each day, the sum of all others of its place; `place` is in order."""
    if not len(place):
        return values
    starts = np.flatnonzero(np.concatenate([[True], np.diff(place) != 0]))
    totals = np.add.reduceat(values, starts)
    counts = np.diff(np.concatenate([starts, [len(place)]]))
    return np.asarray(np.repeat(totals, counts) - values)
