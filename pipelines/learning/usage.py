"""Whether a content's outcomes were good: a Beta belief per content hash, quick to forget (FBK-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.ids import ContentHash
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.observations import NEGATIVE, POSITIVE
from pipelines.learning.priors import UsagePrior
from pipelines.learning.recency import Discount


class Usage:
    """Posterior means by content hash; a content without outcomes has the prior's."""

    __slots__ = ("_means", "_prior_mean")

    def __init__(self, prior_mean: float, means: Mapping[str, float]) -> None:
        self._prior_mean = prior_mean
        self._means = means

    def means(self, hashes: Sequence[ContentHash]) -> NDArray[np.float64]:
        """float64 (n,) in (0, 1)."""
        return np.array([self._means.get(each, self._prior_mean) for each in hashes], dtype=np.float64)


def read_usage(prior: UsagePrior, evidence: Evidence, today: int) -> Usage:
    """Beta(positive + decayed good mass, negative + decayed bad mass) of every content with outcomes."""
    discount = Discount(today, prior.half_life_days)
    good: dict[str, int] = {}
    bad: dict[str, int] = {}
    sides = {POSITIVE: good, NEGATIVE: bad}
    for (day, content_hash, bin_), micro in evidence.usage.items():
        if (masses := sides.get(bin_)) is not None:
            masses[content_hash] = masses.get(content_hash, 0) + discount(micro, day)
    means = {}
    for content_hash in good.keys() | bad.keys():
        a = prior.positive + max(good.get(content_hash, 0), 0) / MICRO
        b = prior.negative + max(bad.get(content_hash, 0), 0) / MICRO
        means[content_hash] = a / (a + b)
    return Usage(prior.positive / (prior.positive + prior.negative), means)
