"""How large chunks should be cut: what outcomes of chunks say, and what is believed of it per domain (ING-11, LRN-9).

| parameter              | is evidence at                              | from |
| ---------------------- | ------------------------------------------- | ---- |
| `size.target.<o>`      | the chunk's own length                      | every chunk |
| `size.minimum.good`    | its own length                              | useful chunks below the minimum in force |
| `size.minimum.bad`     | the minimum in force                        | unused chunks below it |
| `size.before.good`     | the budget for leading context in force     | useful chunks that have such context |
| `size.after.good`      | the budget for trailing context in force    | useful chunks that have such context |
| `size.overflow.<o>`    | one per strategy                            | parts of units above the hard limit |

Chunks come out shorter than the target that they are filled up to, so that their lengths alone would pull every target
down. The bin "shortfall" of the target keeps Σw·(target in force / length) beside the statistics of the lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from weft.domain.chunks import MadeBy, Overflow
from weft.domain.documents import Domain
from weft.learning.evidence import MICRO, Evidence
from weft.learning.families.beta import Beta, confidence
from weft.learning.priors import Priors, SizingPrior
from weft.learning.recency import Discount

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Gamma:
    """Gamma(shape, rate) over a size > 0.

    A size x seen in use is taken as a draw of an inverse gamma distribution with the size that is looked for as its
    scale: p(x | θ) ∝ θ/x² · e^(−θ/x). So the posterior is Gamma(shape + Σw, rate + Σw/x), whose mean moves from the
    prior's to the harmonic mean of what was seen.
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        if not (0.0 < self.shape < math.inf and 0.0 < self.rate < math.inf):
            raise ValueError(f"expected shape > 0 and rate > 0, got {self.shape}, {self.rate}")

    @property
    def mean(self) -> float:
        """Expected size, shape / rate."""
        return self.shape / self.rate

    def interval(self, level: float) -> tuple[float, float]:
        """Equal-tailed credible interval that holds the size with probability `level` in (0, 1)."""
        tail = (1.0 - level) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

    def quantile(self, probability: float) -> float:
        """The size that is not exceeded with that probability in (0, 1)."""
        return float(gammaincinv(self.shape, probability)) / self.rate

    def sample(self, rng: np.random.Generator) -> float:
        """One draw of the size, by inverse CDF: beliefs that are close draw sizes that are close."""
        return self.quantile(float(rng.uniform(_TINY, 1.0)))

    def given(self, weight: float, inverse: float) -> Gamma:
        """The posterior after sizes of which Σw and Σw/x are known."""
        return Gamma(self.shape + weight, self.rate + inverse)


@dataclass(frozen=True, slots=True)
class Dirichlet:
    """Dirichlet(α) over the shares of categories."""

    alpha: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.alpha) < 2 or not all(0.0 < each < math.inf for each in self.alpha):
            raise ValueError(f"expected two or more α > 0, got {self.alpha}")

    @property
    def mean(self) -> tuple[float, ...]:
        """Expected shares, α / Σα."""
        total = math.fsum(self.alpha)
        return tuple(each / total for each in self.alpha)

    def interval(self, level: float) -> tuple[tuple[float, float], ...]:
        """Equal-tailed credible interval of each share, each of probability `level` in (0, 1)."""
        total = math.fsum(self.alpha)
        return tuple(Beta(each, total - each).interval(level) for each in self.alpha)

    def sample(self, rng: np.random.Generator) -> tuple[float, ...]:
        """One draw of the shares, by inverse CDFs of Gammas: beliefs that are close draw shares that are close."""
        draws = gammaincinv(np.array(self.alpha), rng.uniform(_TINY, 1.0, len(self.alpha))) + _TINY
        return tuple(float(each) for each in draws / draws.sum())

    def given(self, counts: Sequence[float]) -> Dirichlet:
        """The posterior after so many observations >= 0 of each category."""
        return Dirichlet(tuple(a + count for a, count in zip(self.alpha, counts, strict=True)))


SIZES = TARGET, MINIMUM, BEFORE, AFTER = "target", "minimum", "before", "after"
OVERFLOW, SHORTFALL = "overflow", "shortfall"
WEIGHT, INVERSE, LOG = "weight", "inverse", "log"  # bins of a Gamma: Σw, Σw·1000/x, Σw·ln x

_SCALE = 1_000.0  # inverses are kept per so many tokens: so they keep their digits in micro-units
_BOTH = ("good", "bad")

Masses = Mapping[tuple[str, str], int]
"""Micro-units by parameter and bin."""


@lru_cache(maxsize=1 << 16)  # the same few sizes and weights come again and again
def size_masses(made: MadeBy, *, good: bool, weight: float) -> Masses:
    """What one outcome of a chunk says about the sizes that made it."""
    outcome = "good" if good else "bad"
    sizes = {TARGET: made.tokens}
    if made.minimum is not None and made.tokens < made.minimum:
        sizes[MINIMUM] = made.tokens if good else made.minimum
    if good:
        sizes |= {name: size for name, size in ((BEFORE, made.before), (AFTER, made.after)) if size is not None}
    longer = (made.target or made.tokens) / made.tokens
    masses = {(f"size.{TARGET}.{outcome}", SHORTFALL): round(weight * longer * MICRO)}
    for name, size in sizes.items():
        statistics = {WEIGHT: weight, INVERSE: weight * _SCALE / size, LOG: weight * math.log(size)}
        masses |= {(f"size.{name}.{outcome}", bin_): round(value * MICRO) for bin_, value in statistics.items()}
    if made.overflow is not None:
        masses[f"size.{OVERFLOW}.{outcome}", made.overflow.value] = round(weight * MICRO)
    return masses


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
    """What is believed of one domain's sizes."""

    sizes: Mapping[str, Gamma]  # by the names in `SIZES`; of the target, the length of useful chunks
    shortfall: float  # how many times longer a target is than the chunks it makes
    overflow: Dirichlet
    n_effective: Mapping[str, float]  # observations behind each of them, by the same names and "overflow"

    @property
    def expected(self) -> SizeChoice:
        """The means, and the strategy of the greatest expected share."""
        return self._choice({name: self.sizes[name].mean for name in SIZES}, self.overflow.alpha)

    def sampled(self, rng: np.random.Generator) -> SizeChoice:
        """One draw of everything (Thompson): the strategy is the one that a draw of the shares puts first."""
        drawn = {name: self.sizes[name].sample(rng) for name in SIZES}
        return self._choice(drawn, self.overflow.sample(rng))

    def _choice(self, sizes: Mapping[str, float], shares: tuple[float, ...]) -> SizeChoice:
        strategy = tuple(Overflow)[shares.index(max(shares))]
        return SizeChoice(**{**sizes, TARGET: sizes[TARGET] * self.shortfall}, overflow=strategy)


SizingBeliefs = Mapping[Domain, DomainSizing]


def last_day(evidence: Evidence) -> int | None:
    """The newest day that anything is known about sizes of; None where nothing is."""
    return max((key.day for key in evidence.counts if key.parameter.startswith("size.")), default=None)


class _Common(NamedTuple):
    """By what factors all domains together stand above their priors: sizes, shortfall, shares of strategies."""

    sizes: Mapping[str, float]
    shortfall: float
    shares: tuple[float, ...]


def read_sizing(priors: Priors, evidence: Evidence, today: int) -> SizingBeliefs:
    """Beliefs about sizes from the evidence as it counts on the day `today`, per domain.

    A domain starts at its own prior, moved as all domains together moved from theirs; the less it is moved, the more
    confident the domain is in its own evidence. Without any evidence every mean is the prior's.
    """
    prior, halfway = priors.sizing, priors.confidence.halfway
    masses, everywhere = (
        _masses(evidence, Discount(today, days))
        for days in (priors.recency.project_half_life_days, priors.recency.global_half_life_days)
    )
    common = _Common(
        {size: _common_ratio(prior, everywhere, size) for size in SIZES},
        _shortfall(prior.global_strength, 1.0, everywhere.values()),
        _common_shares(prior, everywhere),
    )
    return {domain: _believed(prior, domain, masses[domain], common, halfway) for domain in Domain}


def _masses(evidence: Evidence, discount: Discount) -> dict[Domain, Masses]:
    masses: dict[str, dict[tuple[str, str], int]] = {domain: {} for domain in Domain}
    for key, micro in evidence.counts.items():
        if key.parameter.startswith("size.") and key.domain in masses:
            of_domain, cell = masses[key.domain], (key.parameter, key.bin)
            of_domain[cell] = of_domain.get(cell, 0) + discount(micro, key.day)
    return {domain: masses[domain] for domain in Domain}


def _believed(prior: SizingPrior, domain: Domain, masses: Masses, common: _Common, halfway: float) -> DomainSizing:
    seen = {size: _seen(prior, masses, size) for size in SIZES}
    strategies = _strategies(prior, masses)
    n_effective = {**{size: n for size, (n, _) in seen.items()}, OVERFLOW: sum(strategies) / MICRO}
    follows = {name: 1.0 - confidence(n, halfway=halfway) for name, n in n_effective.items()}
    # The shapes stay: priors are worth as many observations, at other sizes.
    priors = {
        size: Gamma(prior.strength(domain, size), prior.rate / common.sizes[size] ** follows[size]) for size in SIZES
    }
    overflow = _blended(_overflow_prior(prior, domain), common.shares, follows[OVERFLOW])
    return DomainSizing(
        sizes={size: priors[size].given(*seen[size]) for size in SIZES},
        shortfall=_shortfall(prior.strength(domain, TARGET), common.shortfall ** follows[TARGET], [masses]),
        overflow=overflow.given([mass / MICRO for mass in strategies]),
        n_effective=n_effective,
    )


def _seen(prior: SizingPrior, masses: Masses, size: str) -> tuple[float, float]:
    """Σw and Σw/x of one kind of size: useful chunks count whole, unused ones by the share stated for them."""
    sums = []
    for bin_ in (WEIGHT, INVERSE):
        good, bad = (masses.get((f"size.{size}.{outcome}", bin_), 0) for outcome in _BOTH)
        if (size, bin_) == (MINIMUM, INVERSE):
            bad = round(bad / prior.raise_minimum)
        sums.append(max(good + round(bad * prior.unused_weight), 0))
    return sums[0] / MICRO, sums[1] / (MICRO * _SCALE)


def _shortfall(strength: float, stated: float, judged: Iterable[Masses]) -> float:
    """Mean of target over length of all judged chunks, useful or not, from `strength` observations of `stated`.

    Where usefulness has nothing to do with length, this takes back exactly what lengths take off the target.
    """
    both = [(masses, f"size.{TARGET}.{outcome}") for masses in judged for outcome in _BOTH]
    count = sum(max(masses.get((parameter, WEIGHT), 0), 0) / MICRO for masses, parameter in both)
    longer = sum(max(masses.get((parameter, SHORTFALL), 0), 0) for masses, parameter in both)
    return (strength * stated + longer / MICRO) / (strength + count)


def _strategies(prior: SizingPrior, masses: Masses) -> list[int]:
    """Useful chunks speak for the strategy that made them, unused ones, by their share, for the others alike."""
    good, bad = (
        [max(masses.get((f"size.{OVERFLOW}.{outcome}", strategy.value), 0), 0) for strategy in Overflow]
        for outcome in _BOTH
    )
    others = len(good) - 1
    return [g + round(prior.unused_weight * (sum(bad) - b) / others) for g, b in zip(good, bad, strict=True)]


def _common_ratio(prior: SizingPrior, masses: Mapping[Domain, Masses], size: str) -> float:
    """The mean of a Gamma of prior mean 1 over sizes in units of their prior means."""
    seen = {domain: _seen(prior, masses[domain], size) for domain in Domain}
    weight = sum(n for n, _ in seen.values())
    relative = sum(prior.mean(domain, size) * inverse for domain, (_, inverse) in seen.items())
    return (prior.global_strength + weight) / (prior.global_strength + relative)


def _common_shares(prior: SizingPrior, masses: Mapping[Domain, Masses]) -> tuple[float, ...]:
    """Shares of strategies over all domains, in units of what the domains' priors make of the same mixture."""
    seen = [_strategies(prior, masses[domain]) for domain in Domain]
    weights = [sum(each) for each in seen]
    if sum(weights) == 0:
        return (1.0,) * len(Overflow)
    stated = zip(*(_overflow_prior(prior, domain).mean for domain in Domain), strict=True)
    mix = [sum(w * share for w, share in zip(weights, shares, strict=True)) / sum(weights) for shares in stated]
    start = Dirichlet(tuple(prior.global_strength * share for share in mix))
    pooled = start.given([sum(counts) / MICRO for counts in zip(*seen, strict=True)])
    return tuple(mean / share for mean, share in zip(pooled.mean, mix, strict=True))


def _blended(prior: Dirichlet, factors: tuple[float, ...], share: float) -> Dirichlet:
    """The prior with its shares multiplied by factors to the power of `share` in [0, 1], worth as much as before."""
    moved = [a * factor**share for a, factor in zip(prior.alpha, factors, strict=True)]
    scale = sum(prior.alpha) / sum(moved)
    return Dirichlet(tuple(each * scale for each in moved))


def _overflow_prior(prior: SizingPrior, domain: Domain) -> Dirichlet:
    return Dirichlet(tuple(prior.domains[domain].overflow[strategy] for strategy in Overflow))
