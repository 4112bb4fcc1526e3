"""What each day brought, and how much of it counts: the bounds that hold for every family of evidence (LRN-3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.learning.evidence import MICRO
from weft.learning.priors import RobustnessPrior
from weft.learning.recency import capped_share


@dataclass(frozen=True, slots=True)
class DailyMasses:
    """What each day brought for and against each parameter of each node, arrays (n,), one entry per day, in order."""

    place: Ints  # node and parameter as one number
    day: Ints
    hits: Ints  # int64, micro-units
    misses: Ints

    @classmethod
    def of(cls, place: Ints, day: Ints, micro: Ints, against: Flags) -> DailyMasses:
        """From single masses in any order: sums of integers, so that no order makes a difference."""
        if not len(place):
            empty = np.empty(0, dtype=np.int64)
            return cls(empty, empty, empty, empty)
        order = np.lexsort((day, place))
        starts = np.flatnonzero(np.concatenate([[True], (np.diff(place[order]) != 0) | (np.diff(day[order]) != 0)]))
        sides = (np.add.reduceat(np.where(side, micro, 0)[order], starts) for side in (~against, against))
        return cls(place[order][starts], day[order][starts], *sides)


def trusted_shares(
    masses: DailyMasses, prior: RobustnessPrior, *, daily_cap: float, group: Ints | None = None
) -> Floats:
    """The share of each day's mass that counts, float64 (n,) in (0, 1].

    At most `daily_cap` observations of a day count. Of what is left, a day whose rate lies more than `outlier_z`
    standard deviations from what all other days say, where those are at least `outlier_evidence` observations, counts
    that many deviations over its own (Huber, Annals of Mathematical Statistics 1964). In this order a flood is neither
    heard beyond its cap nor does it make all other days look out of character.

    Args:
        group: int64 (n,), what each place is a bin of, numbered from 0: bins of one group are bounded together, each
            set against what was seen in it on other days. None where every place stands for itself.
    """
    hits, misses = (np.maximum(side, 0) / MICRO for side in (masses.hits, masses.misses))
    whole = np.arange(len(hits)) if group is None else _numbered(group, masses.day)
    share = capped_share(_together(hits + misses, whole), daily_cap)
    hits, misses = hits * share, misses * share
    n = hits + misses
    others_hits, others_misses = (_of_other_days(masses.place, side) for side in (hits, misses))
    others = others_hits + others_misses
    # Laplace's rule keeps rates off 0 and 1; the day varies by chance, and the belief is not certain either.
    believed = (others_hits + 1.0) / (others + 2.0)
    apart, variance = hits - n * believed, believed * (1.0 - believed) * (n + n * n / (others + 2.0))
    if group is not None:
        others = _together(n, group) - _together(n, whole)
        n, apart, variance = (_together(each, whole) for each in (n, apart, variance))
    settled = (others >= prior.outlier_evidence) & (n > 0.0)
    z = np.where(settled, np.abs(apart) / np.sqrt(np.where(settled, variance, 1.0)), 0.0)
    return np.asarray(share * np.minimum(1.0, prior.outlier_z / np.maximum(z, prior.outlier_z)))


def _numbered(group: Ints, day: Ints) -> Ints:
    """Groups and days as one number each, from 0."""
    return np.asarray(np.unique(np.stack([group, day]), axis=1, return_inverse=True)[1])


def _together(values: Floats, group: Ints) -> Floats:
    """For each, the sum of all of its group; groups are numbered from 0."""
    return np.asarray(np.bincount(group, values)[group], dtype=np.float64)


def _of_other_days(place: Ints, values: Floats) -> Floats:
    """For each day, the sum of all others of its place; `place` is in order."""
    if not len(place):
        return values
    starts = np.flatnonzero(np.concatenate([[True], np.diff(place) != 0]))
    totals = np.add.reduceat(values, starts)
    counts = np.diff(np.concatenate([starts, [len(place)]]))
    return np.asarray(np.repeat(totals, counts) - values)
