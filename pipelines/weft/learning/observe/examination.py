"""How often each rank is looked at: a position-based click model, learned from clicks (FBK-10).

A result is clicked where it is looked at and looks right: P(click | rank k) = θ_k · r (Richardson, Dominowska and
Ragno, Predicting clicks, WWW 2007; Craswell et al., WSDM 2008). Clicks by rank alone cannot tell θ from r, since better
results stand higher. Similar results stand at different ranks of different answers: this separates them, as in
regression EM (Wang et al., Position bias estimation for unbiased learning to rank in personal search, WSDM 2018). Here
ln r = f(score) + h(lead), both continuous and piecewise linear. The lead is how far a result's score stands above the
best of the others on its page. Of two at equal scores chance says which stands first; without the lead, that the first
is right more often than its score alone says, since it beat all others, would be taken for looks. Only ratios are
identified: θ is relative to the first rank, θ_1 = 1. Evidence is integer counts by rank and bins of score and lead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.special import ndtri

from weft.domain.arrays import Floats, Ints
from weft.domain.documents import Domain
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.impressions import CLICKED, EXAMINATION, KINDS
from weft.learning.priors import RANKS, ExaminationPrior
from weft.learning.recency import Discount

KNOTS = 6  # scores between which attractiveness is interpolated: fewer than bins, whose means differ by rank
LEAD_KNOTS = 7  # leads between which it is interpolated: −1, −.44, −.11, 0 and so on
_SCORES = slice(RANKS - 1, RANKS - 1 + KNOTS)  # of all coefficients, behind the deeper ranks
_STEPS = 100  # of Newton's method, which needs about ten
_SETTLED = 1e-10  # change of any logarithm per step, below which the fit has converged
_LONGEST = 2.0  # change of a logarithm per step, at most: Poisson likelihoods are steep far from their top


@dataclass(frozen=True, eq=False)
class Examination:
    """A belief about how often each rank of a domain is looked at, relative to the first."""

    prior: ExaminationPrior
    rank: Ints  # int64 (cells,), place from 0 of the rank of each cell
    score: Floats  # float64 (cells,), mean score in [0, 1]
    lead: Floats  # float64 (cells,), mean lead in [−1, 1]
    shown: Floats  # both float64 (cells,), observations
    clicked: Floats

    def probability(self, rank: int) -> float:
        """Expected θ of a rank from 1, in (0, 1]; of ranks beyond those told apart, that of the last."""
        return min(1.0, math.exp(self._fit.mean[self._place(rank)]))

    def interval(self, rank: int, level: float) -> tuple[float, float]:
        """Equal-tailed credible interval of θ: that of a log-normal, cut at 1."""
        return self._quantile(rank, (1.0 - level) / 2.0), self._quantile(rank, (1.0 + level) / 2.0)

    def sample(self, rank: int, rng: np.random.Generator) -> float:
        """One draw of θ, by inverse CDF."""
        return self._quantile(rank, float(rng.random()))

    def observations(self, rank: int) -> float:
        """Results shown at that rank, beyond the prior."""
        return float(self.shown[self.rank == self._place(rank)].sum())

    def _place(self, rank: int) -> int:
        return min(max(rank, 1), RANKS) - 1

    def _quantile(self, rank: int, probability: float) -> float:
        place = self._place(rank)
        reach = float(ndtri(probability)) * math.sqrt(float(self._fit.variance[place]))
        return min(1.0, math.exp(float(self._fit.mean[place]) + reach))

    @cached_property
    def _fit(self) -> _Fit:
        return _fitted(self)


class _Fit(NamedTuple):
    """Mean and variance of ln θ, float64 (ranks,) each; 0 for the first rank, which others are compared with."""

    mean: Floats
    variance: Floats


def _fitted(data: Examination) -> _Fit:
    """Maximum a posteriori of the log-linear model, and its variance.

    Clicks are fitted as Poisson counts of mean shown · θ_k · r, which is concave and asks for no bound on θ · r; the
    variance is that of binomial counts under this fit (White's sandwich; Gourieroux, Monfort and Trognon, Econometrica
    1984). A priori ln θ_k = −η · ln k + δ_k, with η ~ N(exponent, exponent_spread²) the same for all ranks and
    δ_k ~ N(0, deviation²) of each: were every rank believed by itself, nine of them would outvote what the data say of
    all of them beside the first. Of f and h, neighbouring knots have a weak N(0, 1) on their difference.
    """
    design = _design(data)
    precision, centre = _prior_of(data.prior)
    rate = (data.clicked.sum() + 0.5) / (data.shown.sum() + 1.0)
    beta = centre.copy()
    beta[_SCORES] = math.log(rate)
    for _ in range(_STEPS):
        expected = data.shown * np.exp(design @ beta)
        gradient = design.T @ (data.clicked - expected) - precision @ (beta - centre)
        step = np.linalg.solve((design.T * expected) @ design + precision, gradient)
        beta = beta + np.clip(step, -_LONGEST, _LONGEST)
        if np.abs(step).max() < _SETTLED:
            break
    rates = np.minimum(np.exp(design @ beta), 1.0)
    bread = np.linalg.inv((design.T * (data.shown * rates)) @ design + precision)
    covariance = bread @ ((design.T * (data.shown * rates * (1.0 - rates))) @ design + precision) @ bread
    return _Fit(*(np.concatenate([[0.0], part[: RANKS - 1]]) for part in (beta, np.diag(covariance))))


def _design(data: Examination) -> Floats:
    """What each cell's ln p is made of, float64 (cells, ranks − 1 + knots + lead knots): its rank, and knots around."""
    below = (data.rank[:, None] == np.arange(1, RANKS)).astype(np.float64)
    scores = _interpolated(data.score, np.linspace(0.0, 1.0, KNOTS))
    return np.hstack([below, scores, _interpolated(data.lead, _lead_knots(LEAD_KNOTS))])


def _lead_knots(count: int) -> Floats:
    """Leads from −1 to 1, densest at 0: square roots are evenly apart."""
    roots = np.linspace(-1.0, 1.0, count)
    return np.sign(roots) * roots**2


def _interpolated(values: Floats, knots: Floats) -> Floats:
    """How much of each value lies at each knot, (values, knots): what a piecewise linear function of it is made of."""
    values = np.clip(values, knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    right = (values - knots[left]) / (knots[left + 1] - knots[left])
    weights, rows = np.zeros((len(values), len(knots))), np.arange(len(values))
    weights[rows, left], weights[rows, left + 1] = 1.0 - right, right
    return weights


def _prior_of(prior: ExaminationPrior) -> tuple[Floats, Floats]:
    """Precision matrix and centre of all coefficients."""
    stated = np.array([prior.mean(rank) for rank in range(2, RANKS + 1)])
    depth = np.log(np.arange(2, RANKS + 1))
    spread = prior.exponent_spread**2 * np.outer(depth, depth) + prior.deviation**2 * np.eye(len(depth))
    # A level of ln r is known to within a few orders of magnitude, so that the matrix can be solved without clicks.
    smooth = [_differences(knots) + prior.level_precision * np.eye(knots) for knots in (KNOTS, LEAD_KNOTS)]
    precision = block_diag(np.linalg.inv(spread), *smooth)
    return precision, np.concatenate([np.log(stated), np.zeros(KNOTS + LEAD_KNOTS)])


def _differences(knots: int) -> Floats:
    """Precision matrix of neighbours that differ by N(0, 1)."""
    between = np.diff(np.eye(knots), axis=0)
    return between.T @ between


def read_examination(prior: ExaminationPrior, evidence: Evidence, discount: Discount) -> dict[Domain, Examination]:
    """The belief of every domain. Models and agents that never clicked are left out: they may not be able to."""
    masses: dict[str, dict[tuple[str, str], dict[str, int]]] = {domain.value: {} for domain in Domain}
    for key, micro in evidence.counts.items():
        if key.parameter == EXAMINATION and key.domain in masses:
            of_source = masses[key.domain].setdefault((key.model, key.agent), {})
            of_source[key.bin] = of_source.get(key.bin, 0) + discount(micro, key.day)
    return {Domain(name): _examination(prior, sources.values()) for name, sources in masses.items()}


def _examination(prior: ExaminationPrior, sources: Iterable[Mapping[str, int]]) -> Examination:
    cells: dict[tuple[int, str], dict[str, int]] = {}
    for masses in sources:
        if any(place.endswith(CLICKED) and micro > 0 for place, micro in masses.items()):
            for place, micro in masses.items():
                where, _, kind = place.partition(".")
                rank, *bins = where.split("/")
                cell = cells.setdefault((min(int(rank), RANKS) - 1, "/".join(bins)), {})
                cell[kind] = cell.get(kind, 0) + micro
    seen = sorted((place, cell) for (place, cell) in _rows(cells) if cell[0] > 0)
    table = np.array([row for _, row in seen], dtype=np.float64).reshape(-1, len(KINDS)) / MICRO
    shown, score, lead, clicked = table.T
    places = np.array([place for (place, _), _ in seen], dtype=np.int64)
    results = np.maximum(shown, 1.0 / MICRO)
    return Examination(prior, places, score / results, 2.0 * lead / results - 1.0, shown, np.minimum(clicked, shown))


def _rows(cells: Mapping[tuple[int, str], Mapping[str, int]]) -> Iterator[tuple[tuple[int, str], tuple[int, ...]]]:
    """Each cell's masses in the order of `KINDS`; a negative balance counts as none."""
    for place, masses in cells.items():
        yield place, tuple(max(masses.get(kind, 0), 0) for kind in KINDS)
