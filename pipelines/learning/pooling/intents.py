"""How an intent changes the agreement of signals: a factor on its odds, learned per domain (LRN-5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, ndtri, polygamma, psi

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import ANY, Signal
from pipelines.learning.pooling.gathering import COLUMNS, SIGNALS, Gathered, Path, numbered, places_of
from pipelines.learning.pooling.hierarchy import Level, Pooled, pool
from pipelines.learning.priors import Priors
from pipelines.learning.recency import Discount

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_EDGE = float(np.finfo(np.float64).epsneg)  # a draw may round to 0 or 1, whose log-odds are infinite


@dataclass(frozen=True, slots=True)
class IntentFactor:
    """By what an intent multiplies the odds that a signal agrees with outcomes: a belief about a number > 0.

    It is the geometric mean of the factors after good and after bad outcomes. The logarithm of a Beta's odds has mean
    ψ(a) − ψ(b) and variance ψ₁(a) + ψ₁(b), and is nearly normal (Aitchison and Shen, Biometrika 1980).

    Attributes:
        a, b: float64 (2,), the Betas of agreement under the intent, after good and after bad outcomes.
        expected: float64 (2,), log-odds of agreement in its domain.
        observations: Behind it, beyond the priors.
    """

    a: Floats
    b: Floats
    expected: Floats
    observations: float = 0.0

    @property
    def mean(self) -> float:
        """The factor at the means of agreement: 1 changes nothing."""
        return float(np.exp(np.mean(logit(self.a / (self.a + self.b)) - self.expected)))

    def interval(self, level: float) -> tuple[float, float]:
        """Equal-tailed credible interval that holds the factor with probability `level` in (0, 1)."""
        centre = float(np.mean(psi(self.a) - psi(self.b) - self.expected))
        deviation = math.sqrt(float(np.sum(polygamma(1, self.a) + polygamma(1, self.b)))) / len(self.a)
        reach = float(ndtri((1.0 + level) / 2.0)) * deviation
        return math.exp(centre - reach), math.exp(centre + reach)

    def sample(self, rng: np.random.Generator) -> float:
        """One draw of the factor (Thompson sampling)."""
        return float(np.exp(np.mean(logit(np.clip(rng.beta(self.a, self.b), _EDGE, 1.0 - _EDGE)) - self.expected)))


@dataclass(frozen=True, slots=True)
class Intents:
    """By how much the log-odds of agreement under an intent stand above those of its domain.

    Attributes:
        columns: int64, which of `COLUMNS` anything was observed of.
        belief: What is believed under each intent, arrays (intents, columns).
        expected: float64 (intents, columns), log-odds of agreement in its domain.
    """

    places: Mapping[Path, int]
    columns: Ints
    belief: Pooled
    expected: Floats

    def knows(self, domain: Domain, intent: str) -> bool:
        """Whether anything was observed under that intent in that domain."""
        return (domain.value, intent) in self.places

    def shift(self, domain: Domain, intent: str) -> Floats:
        """Natural logarithms of the factors, float64 (all columns,); 0 for what was never observed."""
        shifts = np.zeros(len(COLUMNS))
        place = self.places.get((domain.value, intent))
        if place is not None:
            shifts[self.columns] = logit(self.belief.mean[place]) - self.expected[place]
        return shifts

    def factor(self, domain: Domain, intent: str, signal: Signal) -> IntentFactor | None:
        """The belief about the factor on one signal's odds; None where the intent told nothing of that signal."""
        place = self.places.get((domain.value, intent))
        kinds = 2 * SIGNALS.index(signal) + np.arange(2)
        at = np.flatnonzero(np.isin(self.columns, kinds))
        if place is None or not self.belief.n[place, at].any():
            return None
        a, b = (side[place, at] for side in self.belief.honest)
        return IntentFactor(a, b, self.expected[place, at], float(self.belief.n[place, at].sum()))


def read_intents(priors: Priors, gathered: Gathered, today: int, root: Pooled, domain: Level) -> Intents:
    """Pool intents under their domains, in the way that models are: a rare one hardly departs from its domain.

    Args:
        root: The belief of all domains together.
        domain: The level of domains as the hierarchy has it; what it observed is taken from `gathered` instead.
    """
    domains: dict[Path, int] = {(each.value, ANY): place for place, each in enumerate(Domain)}
    places = numbered(path for path in gathered.paths if path[1] != ANY)
    parent = np.array([domains[path[0], ANY] for path in places], dtype=np.int64)
    discount = Discount(today, priors.recency.project_half_life_days)
    direct, below = (
        gathered.observed(places_of(gathered.paths, level), len(level), discount) for level in (domains, places)
    )
    offset = None if domain.offset is None else domain.offset[:, gathered.columns]
    levels = [Level(domain.parent, *direct, offset, domain.strength_factor), Level(parent, *below)]
    cap = priors.robustness.effective_cap
    _, of_domain, of_intent = pool(root.of(gathered.columns), levels, priors.pooling, effective_cap=cap)
    return Intents(places, gathered.columns, of_intent, logit(of_domain.mean[parent]))
