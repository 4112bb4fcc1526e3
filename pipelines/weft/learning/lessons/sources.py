"""How good lessons of each source are expected to be, learned from what came of all lessons (LES-2).

    shift        δ of all sources together: the mode of a normal with mean 0, after H good observations where the
                 sources' n_s were expected to be σ(logit m₀ + δ)
    of a source  (K·σ(logit m₀ + δ) + h) / (K + n), with h of its n observations good

One lesson tells of its source as n·t/(t + n) observations, and nothing of what was to be expected of itself; a source
of all sources as n·K/(K + n).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from weft.domain.arrays import Floats, Ints
from weft.learning.lesson_priors import LessonPrior
from weft.learning.lessons.counts import SOURCES

_STEPS = 30  # of Newton's method: log-odds of ten are beyond all stated ones


@dataclass(frozen=True, slots=True)
class SourceRates:
    """What lessons tell of their sources.

    Attributes:
        stated: Log-odds as stated, float64 (sources,), in the order of `SOURCES`.
        goods, totals: Good observations and all, (sources,).
        share: Of those, what is of all sources together, (sources,).
        shift: Of all sources, in log-odds.
    """

    prior: LessonPrior
    stated: Floats
    goods: Floats
    totals: Floats
    share: Floats
    shift: float

    @classmethod
    def of(cls, prior: LessonPrior, source: Ints, good: Floats, total: Floats) -> SourceRates:
        """The rates by what each lesson tells.

        Args:
            source: Number in `SOURCES` of each lesson's source, int64 (n,).
            good, total: Good observations that it is worth, and all, float64 (n,).
        """
        stated = logit(np.array([prior.sources[each] for each in SOURCES]))
        goods, totals = (
            np.bincount(source, weights=each, minlength=len(SOURCES)).astype(np.float64) for each in (good, total)
        )
        # What one source has of its own is not all that it says of others.
        share = prior.source_strength / (prior.source_strength + totals)
        shift = _common_shift(float(goods @ share), totals * share, stated, prior.root_spread)
        return cls(prior, stated, goods, totals, share, shift)

    def means(self, source: Ints, good: Floats, total: Floats) -> Floats:
        """The mean of some sources, (k,), from what lessons tell of them but for some observations of each."""
        rates = expit(self.stated + self.shift)
        curve = (self.totals * self.share) @ (rates * (1.0 - rates)) + 1.0 / self.prior.root_spread**2
        rate, of = rates[source], self.share[source]
        # From the mode of all, one step of Newton's method leads to that without a few.
        without = self.shift + of * (total * rate - good) / (curve - of * total * rate * (1.0 - rate))
        strength = self.prior.source_strength
        left_good, left = np.maximum(0.0, self.goods[source] - good), np.maximum(0.0, self.totals[source] - total)
        return np.asarray((strength * expit(self.stated[source] + without) + left_good) / (strength + left))


def _common_shift(hits: float, n: Floats, expected: Floats, spread: float) -> float:
    """By how much all sources are better than stated, in log-odds: normal around 0, and logistic."""
    shift, precision = 0.0, 1.0 / spread**2
    for _ in range(_STEPS):
        rates = expit(expected + shift)
        slope = hits - float(n @ rates) - precision * shift
        # A step is bounded: of a concave function this leads to the mode all the same.
        shift += float(np.clip(slope / (float(n @ (rates * (1.0 - rates))) + precision), -1.0, 1.0))
    return shift
