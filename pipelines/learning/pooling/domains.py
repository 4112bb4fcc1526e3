"""What domains have in common where each is believed by a curve of its own: decay rates and thresholds (LRN-6, LRN-7).

Domains depart from what is stated of them together and each for itself, a priori as much the one as the other. So a
domain that is fully known moves all others half of the way, and one with evidence of its own soon stands on that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, polygamma, xlog1py, xlogy

from pipelines.learning.families.survival import Survival
from pipelines.learning.families.threshold import Threshold
from pipelines.learning.priors import ThresholdPrior

Floats = NDArray[np.float64]

_REACH = 4.0  # standard deviations to either side
_POINTS = 101  # of the grid: a sum over it is exact to rounding (Trefethen and Weideman, SIAM Review 2014)


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
