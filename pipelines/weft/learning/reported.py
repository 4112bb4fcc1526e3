"""Beliefs from what is reported outright: decay, thresholds, model quality, trust (LRN-6 to LRN-10).

Domains depart from what is stated of them together and each for itself, a priori as much the one as the other. So a
domain that is fully known moves all others half of the way, and one with evidence of its own soon stands on that.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import logsumexp, polygamma, xlog1py, xlogy

from weft.domain.arrays import Floats
from weft.domain.documents import Domain
from weft.domain.ranking import ANY, Scope
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.families.beta import Beta
from weft.learning.families.gaussian_process import Quality
from weft.learning.families.survival import Survival
from weft.learning.families.threshold import Threshold
from weft.learning.parameters import (
    ACCURATE,
    BAD,
    DECAY,
    GOOD,
    INACCURATE,
    QUALITY,
    REFUTED,
    THRESHOLD,
    TRUST,
    VERIFIED,
    Masses,
)
from weft.learning.pooling.daily import DailyMasses, trusted_shares
from weft.learning.pooling.hierarchy import Level, Pooled, pool
from weft.learning.pooling.shrinkage import membership
from weft.learning.priors import Priors, RobustnessPrior, ThresholdPrior
from weft.learning.recency import Discount

Place = tuple[str, ...]
"""What a report is about, such as (domain, agent) or (source, model)."""


@dataclass(frozen=True, slots=True)
class ReportFamily:
    """One family of reports."""

    place: Callable[[EvidenceKey], Place]  # what a report is about
    # by the last word of a bin, how often its mass counts for and against; of quality, Σq is for, and n − Σq
    # against
    sides: Mapping[str, tuple[int, int]]

    def observations(self, masses: Masses) -> float:
        """How many reports masses hold."""
        each = (micro * sum(self.sides.get(_kind(bin_), (0, 0))) for bin_, micro in masses.items())
        return max(0, sum(each)) / MICRO

    def capped(self, masses: Masses, cap: float) -> Masses:
        """The same masses, so many observations at most: the surplus blends back to the prior (LRN-3)."""
        n = self.observations(masses)
        return masses if n <= cap else {bin_: round(micro * cap / n) for bin_, micro in masses.items()}


FAMILIES: Mapping[str, ReportFamily] = {
    DECAY: ReportFamily(lambda key: (key.domain,), {ACCURATE: (1, 0), INACCURATE: (0, 1)}),
    THRESHOLD: ReportFamily(lambda key: (key.domain, key.agent), {GOOD: (1, 0), BAD: (0, 1)}),
    QUALITY: ReportFamily(lambda key: (key.model, key.agent), {"n": (0, 1), "sum": (1, -1)}),
    TRUST: ReportFamily(
        lambda key: (key.parameter.removeprefix(f"{TRUST}."), key.model), {VERIFIED: (1, 0), REFUTED: (0, 1)}
    ),
}


def read_reports(
    evidence: Evidence, discount: Discount, robustness: RobustnessPrior
) -> dict[str, dict[Place, dict[str, int]]]:
    """Masses by bin as they count today, by family and place.

    Of one place at most `reported_daily_cap` observations count of a day, and a day that is out of character counts
    less (`trusted_shares`). Counts stay whole micro-units, so that sums are the same in any order.
    """
    reports: dict[str, dict[Place, dict[str, int]]] = {family: {} for family in FAMILIES}
    days = _days(evidence)
    for (family, place, day), share in zip(days, _shares(days, robustness), strict=True):
        masses = reports[family].setdefault(place, {})
        for bin_, micro in days[family, place, day].items():
            masses[bin_] = masses.get(bin_, 0) + round(discount(micro, day) * share)
    return reports


_Days = dict[tuple[str, Place, int], Counter[str]]


def _days(evidence: Evidence) -> _Days:
    """Masses by bin of each family, place and day, in order."""
    days: defaultdict[tuple[str, Place, int], Counter[str]] = defaultdict(Counter)
    for key, micro in evidence.counts.items():
        family = key.parameter.partition(".")[0]
        if family in FAMILIES:
            days[family, FAMILIES[family].place(key), key.day][key.bin] += micro
    return dict(sorted(days.items()))


def _shares(days: _Days, robustness: RobustnessPrior) -> Sequence[float]:
    """Which share of each family, place and day counts."""
    rows = [
        (*place, day, micro * times, against)
        for (family, about, day), masses in days.items()
        for bin_, micro in masses.items()
        for against, times in enumerate(FAMILIES[family].sides.get(_kind(bin_), (0, 0)))
        for place in [(family, about, bin_.rpartition(".")[0])]
        if times
    ]
    places = {place: at for at, place in enumerate(sorted({row[:3] for row in rows}))}
    groups = _numbered(place[:2] for place in places)
    table = np.array([(places[row[:3]], *row[3:]) for row in rows], dtype=np.int64).reshape(-1, 4)
    daily = DailyMasses.of(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(np.bool_))
    group = np.array([groups[place[:2]] for place in places], dtype=np.int64)[daily.place]
    shares = trusted_shares(daily, robustness, daily_cap=robustness.reported_daily_cap, group=group)
    share = {(int(at), int(day)): float(one) for at, day, one in zip(group, daily.day, shares, strict=True)}
    return [share.get((groups.get((family, place), -1), day), 1.0) for family, place, day in days]


def _numbered(places: Iterable[tuple[str, Place]]) -> dict[tuple[str, Place], int]:
    return {place: at for at, place in enumerate(dict.fromkeys(places))}


def _kind(bin_: str) -> str:
    return bin_.rpartition(".")[2]


AgreementTable = Mapping[Place, Masses]
"""Discounted masses by bin, by what they were gathered under."""

_REACH = 4.0  # standard deviations to either side
_POINTS = 101  # of the grid: a sum over it is exact to rounding (Trefethen and Weideman, SIAM Review 2014)


class Reported:
    """All of these beliefs, each computed when it is first asked for."""

    def __init__(self, priors: Priors, evidence: Evidence, today: int) -> None:
        self._priors = priors
        discount = Discount(today, priors.recency.project_half_life_days)
        self._reports = read_reports(evidence, discount, priors.robustness)
        self._thresholds: dict[tuple[Domain, str], Threshold] = {}

    def decay(self, domain: Domain) -> Survival:
        """The decay rate of a domain; one without evidence listens to the others."""
        return self._survival[domain]

    @cached_property
    def _survival(self) -> Mapping[Domain, Survival]:
        stated = {
            domain: Survival(prior.shape, prior.rate_hours).given(self._counted(DECAY, [(domain.value,)]))
            for domain, prior in self._priors.decay.domains.items()
        }
        factor = common_decay(list(stated.values()))
        return {domain: replace(each, rate_hours=each.rate_hours / factor) for domain, each in stated.items()}

    def threshold(self, domain: Domain, agent: str = ANY) -> Threshold:
        """The threshold of a domain from all of its decisions, or of one agent from its own alone.

        A domain without decisions listens to the others, and so does an agent.
        """
        belief = self._thresholds.get((domain, agent))
        if belief is None:
            belief = self._thresholds[domain, agent] = Threshold(self._threshold_prior).given(
                self._decisions_of(domain, agent)
            )
        return belief

    @cached_property
    def _threshold_prior(self) -> ThresholdPrior:
        stated = Threshold(self._priors.thresholds)
        return common_threshold(stated.prior, [stated.given(self._decisions_of(domain)) for domain in Domain])

    def _decisions_of(self, domain: Domain, agent: str = ANY) -> Masses:
        """Decisions of an agent in a domain; of all of them where none is named."""
        places = self._reports[THRESHOLD]
        wanted = [(domain.value, agent)] if agent != ANY else [place for place in places if place[0] == domain.value]
        return self._counted(THRESHOLD, wanted)

    @property
    def reviewed(self) -> bool:
        """Whether any decision was reviewed, in whatever domain."""
        return bool(self._reports[THRESHOLD])

    def acting_threshold(self, scope: Scope) -> float:
        """The confidence from which on an agent should act: its domain's, and part of its own offset."""
        domain = self.threshold(scope.domain)
        return domain.of_agent(domain if scope.agent == ANY else self.threshold(scope.domain, scope.agent))

    def quality(self, model: str, agent: str = ANY) -> Quality:
        """Quality of a model by turn, as all its agents showed it; shifted for one of them."""
        of_model = [place for place in self._reports[QUALITY] if place[0] == model]
        belief = Quality(self._priors.quality).given(self._counted(QUALITY, of_model))
        return belief if agent == ANY else belief.with_offset(self._counted(QUALITY, [(model, agent)]))

    def agents_of(self, domain: Domain) -> list[str]:
        """Agents whose decisions in that domain were reviewed."""
        return sorted({agent for of, agent in self._reports[THRESHOLD] if of == domain.value and agent != ANY})

    def judged_models(self) -> list[tuple[str, str]]:
        """Models whose quality was judged, with each agent that it was judged with; `ANY` for all of them together."""
        return sorted(
            {(model, ANY) for model, _ in self._reports[QUALITY]}
            | {(model, agent) for model, agent in self._reports[QUALITY]}
        )

    def verified_sources(self) -> list[tuple[str, str]]:
        """Types of source that were verified, with each model that used them; `ANY` for all of them together."""
        return sorted(
            {(source, ANY) for source, _ in self._reports[TRUST]}
            | {(source, model) for source, model in self._reports[TRUST]}
        )

    def trust(self, source: str, model: str = ANY) -> Beta:
        """The share of verifications that a type of source passes, where one model uses it, or wherever."""
        return self._pooled_trust.belief(source, model)

    @cached_property
    def _pooled_trust(self) -> _PooledTrust:
        return _pooled_trust(self._priors, self._reports[TRUST])

    def _counted(self, family: str, places: Iterable[Place]) -> Masses:
        """What was reported of some places together, as far as it stands against a prior (LRN-3)."""
        reports, total = self._reports[family], Counter[str]()
        for place in places:
            total.update(reports.get(place, {}))
        return FAMILIES[family].capped(total, self._priors.robustness.effective_cap)

    def trust_multiplier(self, source: str, model: str = ANY) -> float:
        """Factor on the trust level of such a source: as far above the stated one as its share above the prior's."""
        prior = self._priors.trust
        if not self._reports[TRUST]:
            return prior.multiplier
        stated = prior.verified / (prior.verified + prior.refuted)
        return min(prior.multiplier * self.trust(source, model).mean / stated, prior.multiplier * prior.highest)


@dataclass(frozen=True, slots=True)
class _PooledTrust:
    """Pooled beliefs: of all sources, by source, and by source and model (LRN-5)."""

    levels: Sequence[Pooled]
    sources: Mapping[str, int]
    models: Mapping[tuple[str, ...], int]

    def belief(self, source: str, model: str) -> Beta:
        """The deepest belief there is; of a source never verified, what all sources make of its prior."""
        if (place := self.models.get((source, model))) is not None:
            return _beta(self.levels[2], place)
        if (place := self.sources.get(source)) is not None:
            return _beta(self.levels[1], place)
        return _beta(self.levels[0], 0)


def _beta(level: Pooled, place: int) -> Beta:
    a, b = level.moment_matched
    return Beta(float(a[place, 0]), float(b[place, 0]), float(level.n[place, 0]))


def _pooled_trust(priors: Priors, gathered: AgreementTable) -> _PooledTrust:
    sources = {name: place for place, name in enumerate(sorted({source for source, _ in gathered}))}
    leaves = sorted(gathered)
    named = [leaf for leaf in leaves if leaf[1] != ANY]
    direct = [_column(gathered, [(source, ANY) for source in sources]), _column(gathered, named)]
    parents = [np.zeros(len(sources), dtype=np.int64), np.array([sources[leaf[0]] for leaf in named], dtype=np.int64)]
    levels = [Level(parent, hits, misses) for parent, (hits, misses) in zip(parents, direct, strict=True)]
    of_source = membership(parents[1], len(sources))
    by_source = [at_source + of_source @ at_model for at_source, at_model in zip(*direct, strict=True)]
    root = _root(priors, *by_source)
    pooled = pool(root, levels, priors.pooling, effective_cap=priors.robustness.effective_cap)
    return _PooledTrust(pooled, sources, {leaf: place for place, leaf in enumerate(named)})


def _root(priors: Priors, held: Floats, refuted: Floats) -> Pooled:
    """The belief of all sources together, from verifications of each, float64 (sources, 1).

    Of n observations of one source at most κ count here, n·κ/(κ + n): a thousand tell of that source, and of all others
    no more than that one source is so.
    """
    prior, kappa = priors.trust, priors.pooling.initial
    strength = prior.verified + prior.refuted
    share = kappa / (kappa + held + refuted)
    sides = ((share * side).sum(axis=0, keepdims=True) for side in (held, refuted))
    return Pooled(np.array([[prior.verified / strength]]), np.array([[strength]]), *sides)


def _column(gathered: AgreementTable, leaves: list[tuple[str, ...]]) -> tuple[Floats, Floats]:
    """Observations for and against at each leaf, float64 (n, 1) each."""
    masses = [gathered.get(leaf, {}) for leaf in leaves]
    sides = [(_balance(each, VERIFIED), _balance(each, REFUTED)) for each in masses]
    pairs = np.array(sides, dtype=np.float64).reshape(-1, 2) / MICRO
    return pairs[:, :1], pairs[:, 1:]


def _balance(masses: Masses, *bins: str) -> int:
    """What some bins hold together; a negative balance of one counts as none."""
    return sum(max(masses.get(bin_, 0), 0) for bin_ in bins)


def common_decay(domains: Sequence[Survival]) -> float:
    """By which factor decay rates of all domains exceed what is stated of each; 1 without evidence.

    ln g ~ N(0, ψ₁(shape)), which is the variance of ln λ of one domain; the likelihood of g is that of the evidence of
    all domains under Gamma(shape, rate / g). The factor is the exponential of the posterior mean of ln g.
    """
    observed = [each for each in domains if each.observations > 0.0]
    if not observed:
        return 1.0
    variance = float(np.mean([polygamma(1, each.shape) for each in domains]))
    logs: Floats = np.asarray(np.linspace(-_REACH, _REACH, _POINTS) * math.sqrt(variance), dtype=np.float64)
    likelihoods = [each.log_evidence(np.exp(logs)) for each in observed]
    stated = np.asarray(-logs * logs / (2.0 * variance), dtype=np.float64)
    return math.exp(_mean(logs, stated, likelihoods))


def common_threshold(prior: ThresholdPrior, domains: Sequence[Threshold]) -> ThresholdPrior:
    """The prior of thresholds as all domains together move it: of the strength stated, with another mean.

    The mean m is Beta(a, b), as one domain's threshold is; the likelihood of m is that of the decisions of all domains
    under Beta((a + b)·m, (a + b)·(1 − m)).
    """
    observed = [each for each in domains if each.observations > 0.0]
    if not observed:
        return prior
    means: Floats = np.linspace(0.0, 1.0, 2 * _POINTS + 1)[1::2]
    stated = np.asarray(xlogy(prior.a - 1.0, means) + xlog1py(prior.b - 1.0, -means))
    mean = _mean(means, stated, [each.log_evidence(means) for each in observed])
    strength = prior.a + prior.b
    return prior.model_copy(update={"a": strength * mean, "b": strength * (1.0 - mean)})


def _mean(points: Floats, log_prior: Floats, log_likelihoods: Sequence[Floats]) -> float:
    log = log_prior + np.sum(log_likelihoods, axis=0)
    return float(points @ np.exp(log - logsumexp(log)))
