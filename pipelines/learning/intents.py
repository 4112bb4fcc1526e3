"""How an intent changes the agreement of signals: a factor on its odds, learned per domain (LRN-5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import ANY
from pipelines.learning.gathering import COLUMNS, Gathered, Path, numbered, places_of
from pipelines.learning.hierarchy import Level, Pooled, pool
from pipelines.learning.priors import Priors
from pipelines.learning.recency import Discount

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Intents:
    """By how much the log-odds of agreement under an intent stand above those of its domain.

    Attributes:
        shifts: float64 (intents, columns), natural logarithms of the factors.
    """

    places: Mapping[Path, int]
    shifts: Floats

    def knows(self, domain: Domain, intent: str) -> bool:
        """Whether anything was observed under that intent in that domain."""
        return (domain.value, intent) in self.places

    def shift(self, domain: Domain, intent: str) -> Floats:
        """float64 (columns,); 0 for an intent that was never observed."""
        place = self.places.get((domain.value, intent))
        return np.zeros(len(COLUMNS)) if place is None else self.shifts[place]


def read_intents(priors: Priors, found: Gathered, today: int, root: Pooled, domain: Level) -> Intents:
    """Pool intents under their domains, in the way that models are: a rare one hardly departs from its domain.

    Args:
        root: The belief of all domains together.
        domain: The level of domains as the hierarchy has it; what it observed is taken from `found` instead.
    """
    domains: dict[Path, int] = {(each.value, ANY): place for place, each in enumerate(Domain)}
    places = numbered(path for path in found.paths if path[1] != ANY)
    parent = np.array([domains[path[0], ANY] for path in places], dtype=np.int64)
    discount = Discount(today, priors.recency.project_half_life_days)
    direct, below = (found.observed(places_of(found.paths, level), len(level), discount) for level in (domains, places))
    offset = None if domain.offset is None else domain.offset[:, found.columns]
    levels = [Level(domain.parent, *direct, offset, domain.strength_factor), Level(parent, *below)]
    cap = priors.robustness.effective_cap
    _, of_domain, of_intent = pool(root.of(found.columns), levels, priors.pooling, effective_cap=cap)
    shifts = np.zeros((len(places), len(COLUMNS)))
    shifts[:, found.columns] = logit(of_intent.mean) - logit(of_domain.mean[parent])
    return Intents(places, shifts)
