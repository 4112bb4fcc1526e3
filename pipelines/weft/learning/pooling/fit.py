"""Weights fitted to logged outcomes: a hierarchical logistic regression, beside the counting of agreement (CON-8).

Counting looks at one signal at a time; a regression sees what they have in common. What is shown was chosen by the
signals themselves, which leaves P(good | signals) as it is: no page that the weights arranged misleads it. With w the
stated weights of a domain,

    logit P(good) = a_d + Σ_s β_ds·x_s,    β_ds = c·w_ds + u_s + v_ds,    u_s, v_ds ~ N(0, τ²),

so that without evidence the direction is the stated one, and domains share what they have in common. τ is chosen by
the Laplace approximation of its marginal likelihood (empirical Bayes; Gelman et al., Bayesian Data Analysis, 2013).
Outcomes count by the inverse of the propensity that their results were shown with; those of one question are not
independent, and count as in `covariance.DesignEffect`; nobody's outnumber everybody else's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.documents import Domain
from weft.domain.ranking import Signal
from weft.learning.pooling.fitted import DomainFit, FittedWeights
from weft.learning.pooling.gathering import SIGNALS
from weft.learning.priors import AgreementPrior, FitPrior

_DOMAINS: tuple[Domain, ...] = tuple(Domain)
_FREE = 1e-4  # precision of what nothing is stated about: the scale of the stated weights, and the rates of domains
_STEPS = 60  # of Newton's method, which settles within a dozen
_SETTLED = 1e-9
_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the stated τ that are compared


@dataclass(frozen=True, slots=True)
class LoggedSignals:
    """Results that something became of, a row each."""

    domain: Ints  # Place in `Domain`, int64 (n,)
    question: Ints  # each Numbers that tell them apart, int64 (n,)
    principal: Ints
    content: Ints
    values: Floats  # float64 (n, signals), in the order of `SIGNALS`; NaN where a signal was not told
    good: Flags  # bool (n,)
    weight: Floats  # float64 (n,) >= 0, how loudly it was said, in observations
    propensity: Floats  # float64 (n,) in (0, 1], with which the result was shown at its rank

    def __len__(self) -> int:
        return len(self.good)

    def present(self) -> tuple[Signal, ...]:
        """The signals that any result has."""
        return tuple(SIGNALS[at] for at in np.flatnonzero(~np.isnan(self.values).all(axis=0)).tolist())

    def rows(self, which: Flags) -> LoggedSignals:
        """Some of them."""
        names = ("domain", "question", "principal", "content", "values", "good", "weight", "propensity")
        return LoggedSignals(**{name: getattr(self, name)[which] for name in names})


def fit_weights(
    logged: LoggedSignals,
    prior: AgreementPrior,
    counted_shares: Mapping[Domain, Mapping[Signal, float]],
    *,
    deviations: Sequence[float] | None = None,  # τ that are compared; multiples of the stated one by default
) -> FittedWeights:
    """The fit of every domain that enough came of, as shares with their covariance."""
    observations = counted(logged, prior.fit, correlation=prior.spread.question_correlation)
    masses = np.bincount(logged.domain, observations, minlength=len(_DOMAINS))
    enough = [at for at in range(len(_DOMAINS)) if masses[at] >= prior.fit.least]
    if not enough:
        return FittedWeights({}, prior.fit.deviation)
    some = np.isin(logged.domain, enough)
    model = _Model.of(logged.rows(some), observations[some], prior, enough)
    tried = deviations or [prior.fit.deviation * multiple for multiple in _MULTIPLES]
    best = max([model.fitted(each) for each in tried], key=lambda each: each.evidence)
    by_domain = {
        _DOMAINS[at]: _domain_fit(model, best, place, counted_shares[_DOMAINS[at]], float(masses[at]))
        for place, at in enumerate(enough)
    }
    return FittedWeights(by_domain, best.deviation)


def counted(logged: LoggedSignals, prior: FitPrior, *, correlation: float) -> Floats:
    """What each outcome counts, in independent observations, float64 (n,)."""
    if not len(logged):
        return np.zeros(0)
    triples = np.stack([logged.principal, logged.question, logged.content])
    _, same, times = np.unique(triples, axis=1, return_inverse=True, return_counts=True)
    # Inverse propensities, clipped, undo that what stood high was judged more often. They are scaled back to as many
    # observations as there are: they say whose outcomes count more, not that there were more of them.
    chance = 1.0 / np.maximum(logged.propensity, prior.propensity)
    weight = logged.weight / times[same.ravel()]
    weight = (
        weight * chance / (weight @ chance) * weight.sum()
    )  # as many observations as there are, told apart by chance
    of_one = np.bincount(logged.principal, weight)
    # Nobody has more than a share of the whole, p: of one, p / (1 − p) of what the others have together.
    most = max(prior.most, 1.0 / int(np.count_nonzero(of_one)))
    others = weight.sum() - of_one
    bound = most / (1.0 - most) * others if most < 1.0 else np.full_like(of_one, np.inf)
    weight *= np.minimum(1.0, bound / np.maximum(of_one, 1e-300))[logged.principal]
    asked = np.bincount(logged.question, weight)[logged.question]
    return np.asarray(weight / (1.0 + np.maximum(asked - 1.0, 0.0) * correlation))


class _Posterior(NamedTuple):
    """Where it is highest, its covariance there, and the logarithm of τ's marginal likelihood."""

    deviation: float

    mode: Floats
    covariance: Floats
    evidence: float


@dataclass(frozen=True, slots=True)
class _Model:
    """The regression as one linear model: c, then a rate per domain, u, and v by domain."""

    design: Floats  # float64 (n, parameters)
    slopes: Floats  # float64 (domains, signals, parameters), what makes β of a domain of the parameters
    good: Floats
    weight: Floats
    signals: Ints  # Columns of `SIGNALS` that were told and varied
    domains: int

    @classmethod
    def of(cls, logged: LoggedSignals, weight: Floats, prior: AgreementPrior, domains: list[int]) -> _Model:
        place = np.searchsorted(np.array(domains), logged.domain)
        signals, values = _centred(logged.values, place, len(domains))
        size, count = len(signals), len(domains)
        stated = np.array(
            [[prior.weights[_DOMAINS[at]].get(SIGNALS[column], 0.0) for column in signals] for at in domains]
        )
        # β of a domain = c · stated weights + u + v of the domain: c is free, and how far domains leave the stated
        # weights, together (u) and each by itself (v), is drawn towards 0.
        slopes = np.zeros((count, size, 1 + count + size + count * size))
        for at in range(count):
            slopes[at, :, 0] = stated[at]
            slopes[at, :, 1 + count : 1 + count + size] = np.eye(size)
            begin = 1 + count + size * (1 + at)
            slopes[at, :, begin : begin + size] = np.eye(size)
        design = np.einsum("ns,nsp->np", values, slopes[place])
        design[np.arange(len(place)), 1 + place] = 1.0
        return cls(design, slopes, logged.good.astype(np.float64), weight, signals, count)

    def fitted(self, deviation: float) -> _Posterior:
        """The posterior under one τ, by Newton's method."""
        precision = np.full(self.design.shape[1], deviation**-2)
        precision[: 1 + self.domains] = _FREE
        theta = np.zeros(len(precision))
        height = self._height(theta, precision)
        for _ in range(_STEPS):
            chance = expit(self.design @ theta)
            gradient = self.design.T @ (self.weight * (self.good - chance)) - precision * theta
            step = cho_solve(self._curvature(chance, precision), gradient)
            theta, height, gained = self._climbed(theta, step, height, precision)
            if gained <= _SETTLED * abs(height):
                break
        factor = self._curvature(expit(self.design @ theta), precision)
        # Laplace: the height of the mode, and how wide the posterior is around it compared with the prior.
        log_determinant = 2.0 * float(np.log(np.diag(factor[0])).sum())
        evidence = height + 0.5 * float(np.log(precision).sum()) - 0.5 * log_determinant
        return _Posterior(deviation, theta, cho_solve(factor, np.eye(len(theta))), evidence)

    def _climbed(self, theta: Floats, step: Floats, height: float, precision: Floats) -> tuple[Floats, float, float]:
        """One step, halved until it gains."""
        for halvings in range(30):
            reached = theta + step / 2.0**halvings
            above = self._height(reached, precision)
            if above > height:
                return reached, above, above - height
        return theta, height, 0.0

    def _height(self, theta: Floats, precision: Floats) -> float:
        odds = self.design @ theta
        likelihood = self.weight @ (self.good * odds - np.logaddexp(0.0, odds))
        return float(likelihood - 0.5 * precision @ theta**2)

    def _curvature(self, chance: Floats, precision: Floats) -> tuple[Floats, bool]:
        weighted = self.design * (self.weight * chance * (1.0 - chance))[:, None]
        factor: tuple[Floats, bool] = cho_factor(self.design.T @ weighted + np.diag(precision))
        return factor


def _centred(values: Floats, place: Ints, domains: int) -> tuple[Ints, Floats]:
    """The signals that varied, less their mean in each domain; one that was not told stands at the mean."""
    centred = np.zeros_like(values)
    for at in range(domains):
        own = place == at
        counts = np.maximum((~np.isnan(values[own])).sum(axis=0), 1)
        centred[own] = np.nan_to_num(values[own] - np.nansum(values[own], axis=0) / counts)
    signals = np.flatnonzero(np.abs(centred).max(axis=0, initial=0.0) > 0.0)
    return signals, centred[:, signals]


def _domain_fit(
    model: _Model, posterior: _Posterior, place: int, counted_shares: Mapping[Signal, float], outcomes: float
) -> DomainFit:
    slopes = model.slopes[place]
    beta, covariance = slopes @ posterior.mode, slopes @ posterior.covariance @ slopes.T
    positive = np.maximum(beta, 0.0)
    names = [SIGNALS[column] for column in model.signals.tolist()]
    beside = np.array([counted_shares.get(name, 0.0) for name in names])
    beside /= max(float(beside.sum()), 1e-300)
    total = float(positive.sum())
    if total <= 0.0:  # nothing tells good from bad here: what is counted stays
        return DomainFit(tuple(names), beside, np.zeros_like(covariance), beside, outcomes)
    shares = positive / total
    turn = (np.eye(len(names)) - shares[:, None]) * (beta > 0.0)[None, :] / total  # of shares by β
    return DomainFit(tuple(names), shares, turn @ covariance @ turn.T, beside, outcomes)


def concordance(logged: LoggedSignals, weights: Mapping[Domain, Mapping[Signal, float]]) -> dict[int, float]:
    """Of each question, the share of pairs of a good and a bad result that weights put in the right order.

    Each pair counts as much as what was said of both; of equal scores half are right. A question without pairs is out.
    """
    table = np.array([[weights.get(domain, {}).get(signal, 0.0) for signal in SIGNALS] for domain in _DOMAINS])
    scores = np.einsum("ns,ns->n", np.nan_to_num(logged.values), table[logged.domain])
    order = np.argsort(logged.question, kind="stable")
    cuts = np.flatnonzero(np.diff(logged.question[order])) + 1
    shares = {}
    for own in np.split(order, cuts) if len(order) else []:
        good, bad = own[logged.good[own]], own[~logged.good[own]]
        if len(good) and len(bad):
            ahead = np.sign(scores[good][:, None] - scores[bad][None, :]) / 2.0 + 0.5
            mass = np.outer(logged.weight[good], logged.weight[bad])
            shares[int(logged.question[own[0]])] = float((ahead * mass).sum() / mass.sum())
    return shares


def held_out(
    logged: LoggedSignals,
    prior: AgreementPrior,
    counted_shares: Mapping[Domain, Mapping[Signal, float]],
    *,
    deviation: float,  # τ that is taken
    folds: int,
) -> dict[Domain, Floats]:
    """By how much the fit orders questions better than counting that it had not seen: a change per question, by domain.

    Each question is ordered by a fit to the other folds; counting has seen them all, which is to its advantage.
    """
    changes: dict[Domain, list[float]] = {}
    for fold in range(folds):
        apart = logged.question % folds == fold
        fitted = fit_weights(logged.rows(~apart), prior, counted_shares, deviations=[deviation])
        rest = logged.rows(apart)
        for domain, fit in fitted.by_domain.items():
            own = rest.rows(rest.domain == _DOMAINS.index(domain))
            by_counting = concordance(own, counted_shares)
            by_fit = concordance(own, {domain: dict(zip(fit.signals, fit.shares.tolist(), strict=True))})
            changes.setdefault(domain, []).extend(by_fit[question] - by_counting[question] for question in by_fit)
    return {domain: np.array(values) for domain, values in changes.items()}


def better(changes: Mapping[Domain, Floats], *, z: float) -> dict[Domain, bool]:
    """Where the fit is shown to be better: where the mean change lies `z` standard errors above 0."""
    return {domain: _shown(values, z) for domain, values in changes.items()}


def _shown(values: Floats, z: float) -> bool:
    return len(values) > 2 and float(values.mean()) > z * float(values.std(ddof=1)) / len(values) ** 0.5


def only(fitted: FittedWeights, domains: Mapping[Domain, bool]) -> FittedWeights:
    """The fits of some domains."""
    return replace(fitted, by_domain={name: fit for name, fit in fitted.by_domain.items() if domains.get(name, False)})
