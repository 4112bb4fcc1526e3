"""How large chunks should be cut, believed per domain (ING-11, LRN-9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from pipelines.domain.documents import Domain
from pipelines.domain.sizing import Overflow
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.families.beta import confidence
from pipelines.learning.families.dirichlet import Dirichlet, DirichletEvidence
from pipelines.learning.families.gamma import Gamma, GammaEvidence
from pipelines.learning.observe.sizes import (
    AFTER,
    BEFORE,
    CELLS,
    MINIMUM,
    OVERFLOW,
    SHORTFALL,
    STATISTICS,
    TARGET,
    size_parameter,
)
from pipelines.learning.priors import Priors, SizingPrior
from pipelines.learning.recency import Discount

SIZES = (TARGET, MINIMUM, BEFORE, AFTER)
_PARAMETERS = frozenset(parameter for parameter, _ in CELLS)
_DOMAINS = frozenset(domain.value for domain in Domain)

Masses = Mapping[tuple[str, str], int]
"""Micro-units by parameter and bin."""


@dataclass(frozen=True, slots=True)
class SizeChoice:
    """One set of sizes, in tokens, not rounded: the expected ones, or one draw of them."""

    target: float
    minimum: float
    before: float
    after: float
    overflow: Overflow


@dataclass(frozen=True, slots=True)
class DomainSizing:
    """What is believed of one domain's sizes.

    Attributes:
        sizes: Gamma by "target", "minimum", "before" and "after": of the target, the length of useful chunks.
        shortfall: How many times longer a target is than the chunks it makes: to be this long, chunks need a target
            so much longer.
        n_effective: Observations behind each of them, by the same names and "overflow".
    """

    sizes: Mapping[str, Gamma]
    shortfall: float
    overflow: Dirichlet
    n_effective: Mapping[str, float]

    @property
    def expected(self) -> SizeChoice:
        """The means, and the strategy of the greatest expected share."""
        return self._choice({name: self.sizes[name].mean for name in SIZES}, self.overflow.likeliest)

    def sampled(self, rng: np.random.Generator) -> SizeChoice:
        """One draw of everything (Thompson): the strategy is the one that a draw of the shares puts first."""
        drawn = {name: self.sizes[name].sample(rng) for name in SIZES}
        shares = self.overflow.sample(rng)
        return self._choice(drawn, shares.index(max(shares)))

    def _choice(self, sizes: Mapping[str, float], strategy: int) -> SizeChoice:
        target = sizes[TARGET] * self.shortfall
        return SizeChoice(**{**sizes, TARGET: target}, overflow=tuple(Overflow)[strategy])


SizingBeliefs = Mapping[Domain, DomainSizing]


def last_day(evidence: Evidence) -> int | None:
    """The newest day that anything is known about sizes of; None where nothing is."""
    return max((key.day for key in evidence.counts if key.parameter in _PARAMETERS), default=None)


def read_sizing(priors: Priors, evidence: Evidence, today: int) -> SizingBeliefs:
    """Beliefs about sizes from the evidence as it counts on the day `today`, per domain.

    A domain starts at its own prior, moved as all domains together moved from theirs; the less it is moved, the more
    confident the domain is in its own evidence. Without any evidence every mean is the prior's.
    """
    masses = _masses(evidence, Discount(today, priors.recency.project_half_life_days))
    everywhere = _masses(evidence, Discount(today, priors.recency.global_half_life_days))
    sizing, halfway = priors.sizing, priors.confidence.halfway
    common = _Common(
        {size: _common_ratio(sizing, everywhere, size) for size in SIZES},
        _shortfall(sizing.global_strength, 1.0, everywhere.values()),
        _common_shares(sizing, everywhere),
    )
    return {domain: _believed(sizing, domain, masses[domain], common, halfway) for domain in Domain}


@dataclass(frozen=True, slots=True)
class _Common:
    """By what factors all domains together stand above their priors: sizes by name, strategies in their order."""

    sizes: Mapping[str, float]
    shortfall: float
    shares: tuple[float, ...]


def _masses(evidence: Evidence, discount: Discount) -> dict[Domain, Masses]:
    masses: dict[Domain, dict[tuple[str, str], int]] = {domain: {} for domain in Domain}
    for key, micro in evidence.counts.items():
        if key.parameter in _PARAMETERS and key.domain in _DOMAINS:
            of_domain = masses[Domain(key.domain)]
            cell = (key.parameter, key.bin)
            of_domain[cell] = of_domain.get(cell, 0) + discount(micro, key.day)
    return dict(masses)


def _believed(sizing: SizingPrior, domain: Domain, masses: Masses, common: _Common, halfway: float) -> DomainSizing:
    seen = {size: _seen(sizing, masses, size) for size in SIZES}
    strategies = _strategies(sizing, masses)
    n_effective = {size: each.observations for size, each in seen.items()}
    n_effective[OVERFLOW] = sum(strategies.masses) / MICRO
    follows = {size: 1.0 - confidence(n, halfway=halfway) for size, n in n_effective.items()}
    # The shapes stay: priors are worth as many observations, at other sizes.
    priors = {
        size: Gamma(sizing.strength(domain, size), sizing.rate / common.sizes[size] ** follows[size]) for size in SIZES
    }
    overflow = _blended(_overflow_prior(sizing, domain), common.shares, follows[OVERFLOW])
    return DomainSizing(
        sizes={size: priors[size].given(seen[size]) for size in SIZES},
        shortfall=_shortfall(sizing.strength(domain, TARGET), common.shortfall ** follows[TARGET], [masses]),
        overflow=overflow.given(strategies),
        n_effective=n_effective,
    )


def _seen(sizing: SizingPrior, masses: Masses, size: str) -> GammaEvidence:
    """What one kind of size was seen at: useful chunks count whole, unused ones by the share stated for them."""
    good, bad = (_statistics(masses, size, good=good) for good in (True, False))
    if size == MINIMUM:
        bad = bad.enlarged(sizing.raise_minimum)
    return good + bad.times(sizing.unused_weight)


def _statistics(masses: Masses, size: str, *, good: bool) -> GammaEvidence:
    parameter = size_parameter(size, good=good)
    return GammaEvidence(*(masses.get((parameter, bin_), 0) for bin_ in STATISTICS))


def _shortfall(strength: float, prior: float, judged: Iterable[Masses]) -> float:
    """Mean of target over length of all judged chunks, useful or not, from `strength` observations of `prior`.

    Where usefulness has nothing to do with length, this takes back exactly what lengths take off the target.
    """
    both = [(masses, good) for masses in judged for good in (True, False)]
    count = sum(_statistics(masses, TARGET, good=good).observations for masses, good in both)
    longer = sum(max(masses.get((size_parameter(TARGET, good=good), SHORTFALL), 0), 0) for masses, good in both)
    return (strength * prior + longer / MICRO) / (strength + count)


def _strategies(sizing: SizingPrior, masses: Masses) -> DirichletEvidence:
    """Useful chunks speak for the strategy that made them, unused ones, by their share, for the others alike."""
    good, bad = (
        [max(masses.get((size_parameter(OVERFLOW, good=good), strategy.value), 0), 0) for strategy in Overflow]
        for good in (True, False)
    )
    others = len(good) - 1
    return DirichletEvidence(
        tuple(g + round(sizing.unused_weight * (sum(bad) - b) / others) for g, b in zip(good, bad, strict=True))
    )


def _common_ratio(sizing: SizingPrior, masses: Mapping[Domain, Masses], size: str) -> float:
    """The mean of a Gamma of prior mean 1 over sizes in units of their prior means."""
    seen = {domain: _seen(sizing, masses[domain], size) for domain in Domain}
    weight = sum(each.observations for each in seen.values())
    relative = sum(sizing.mean(domain, size) * each.inverses for domain, each in seen.items())
    return (sizing.global_strength + weight) / (sizing.global_strength + relative)


def _common_shares(sizing: SizingPrior, masses: Mapping[Domain, Masses]) -> tuple[float, ...]:
    """Shares of strategies over all domains, in units of what the domains' priors make of the same mixture."""
    seen = [_strategies(sizing, masses[domain]) for domain in Domain]
    weights = [sum(each.masses) for each in seen]
    total = sum(weights)
    if total == 0:
        return (1.0,) * len(Overflow)
    priors = [_overflow_prior(sizing, domain).mean for domain in Domain]
    mix = tuple(
        sum(w * prior[place] for w, prior in zip(weights, priors, strict=True)) / total
        for place in range(len(Overflow))
    )
    start = Dirichlet(tuple(sizing.global_strength * share for share in mix))
    pooled = start.given(DirichletEvidence(tuple(sum(each.masses[p] for each in seen) for p in range(len(Overflow)))))
    return tuple(mean / share for mean, share in zip(pooled.mean, mix, strict=True))


def _blended(prior: Dirichlet, factors: tuple[float, ...], share: float) -> Dirichlet:
    """The prior with its shares multiplied by factors to the power of `share` in [0, 1], worth as much as before."""
    moved = [a * factor**share for a, factor in zip(prior.alpha, factors, strict=True)]
    scale = sum(prior.alpha) / sum(moved)
    return Dirichlet(tuple(each * scale for each in moved))


def _overflow_prior(sizing: SizingPrior, domain: Domain) -> Dirichlet:
    """The prior over strategies, in the order of `Overflow`."""
    stated = sizing.domains[domain].overflow
    return Dirichlet(tuple(stated[strategy] for strategy in Overflow))
