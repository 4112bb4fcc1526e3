"""Recency on read (LRN-2): old masses count less, and still sum exactly in any order."""

from __future__ import annotations

import numpy as np

from weft.domain.arrays import Floats, Ints


def recency(age_days: int, half_life_days: float) -> float:
    """What one unit of mass of that age counts: 2^(−age / half-life), in (0, 1]; the future counts as today."""
    return float(2.0 ** (-max(age_days, 0) / half_life_days))


class Discount:
    """Masses of daily buckets as they count on the day `today`.

    A discounted mass is rounded back to whole micro-units, so that sums of them are exact: a float sum would depend
    on the order in which evidence was gathered.
    """

    __slots__ = ("_factors", "_half_life_days", "_today")

    def __init__(self, today: int, half_life_days: float) -> None:
        self._today = today
        self._half_life_days = half_life_days
        self._factors: dict[int, float] = {}

    def __call__(self, micro: int, day: int) -> int:
        """What `micro` of bucket `day` counts today, in micro-units."""
        return round(micro * self._factor(day))

    def of_days(self, micro: Floats, days: Ints) -> Floats:
        """What each of `micro` (n,) of buckets `days` (n,) counts today, in whole micro-units."""
        distinct, places = np.unique(days, return_inverse=True)
        # One scalar power per day: vectorised ones may differ in the last bit with the place in the array.
        factors = np.array([self._factor(int(day)) for day in distinct], dtype=np.float64)
        counted: Floats = np.rint(micro * factors[places])
        return counted

    def _factor(self, day: int) -> float:
        factor = self._factors.get(day)
        if factor is None:
            factor = self._factors[day] = recency(self._today - day, self._half_life_days)
        return factor


def capped_share(observations: Floats, cap: float) -> Floats:
    """By what evidence is multiplied so that no more than `cap` observations stand against the prior."""
    return np.minimum(1.0, np.divide(cap, observations, out=np.ones_like(observations), where=observations > 0.0))
