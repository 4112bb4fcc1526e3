"""P(answered) of a query before anybody has judged: from its best match and from what is said of its words (RET-15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from scipy.special import expit

from pipelines.domain.matching import Coverage

_Floats = NDArray[np.float64]

_BOUNDS = ((None, None), (0.0, None), (0.0, None), (None, 0.0))  # none of the three speaks for the other side
_FEWEST = 10  # of each side


class AskedMatch(NamedTuple):
    """What is known of an answer to a query: its best match, and how much of the query its results say."""

    match: float
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class AnsweredCurve:
    """logit P(answered) = intercept + match · m + covered · c + unknown · u, where both are as likely beforehand.

    Attributes:
        match, covered: >= 0.
        unknown: <= 0.
        least: P(answered) that a query has to exceed: few that have an answer fall short of it.
    """

    intercept: float
    match: float
    covered: float
    unknown: float
    least: float = 0.0

    def probability(self, asked: AskedMatch) -> float:
        """P(answered) of a query, in [0, 1].

        Examples:
            >>> curve = AnsweredCurve(-4.0, 8.0, 2.0, -3.0)
            >>> said, unsaid = Coverage(1.0, 0.0), Coverage(0.25, 0.75)
            >>> [round(curve.probability(AskedMatch(0.5, each)), 2) for each in (said, unsaid)]
            [0.88, 0.15]
        """
        return float(expit(np.array([self.intercept, self.match, self.covered, self.unknown]) @ _values([asked])[0]))


def answered_curve(
    own: Sequence[AskedMatch], others: Sequence[AskedMatch], *, marked: float, spread: float
) -> AnsweredCurve | None:
    """The curve that tells questions with an answer from queries without one: a logistic regression.

    Both sides weigh the same, however many there are. Slopes are normal around 0 beforehand, in deviations of what
    they weigh.

    Args:
        own: Questions that have an answer; at most the share `marked` of them is not above `least`.
        others: Queries that have none.
        marked: In (0, 1).
        spread: Standard deviation of the slopes, > 0.

    Returns:
        None where either side has fewer than ten, or `own` fewer than 1 / `marked`.

    Examples:
        >>> said, unsaid = Coverage(0.8, 0.0), Coverage(0.1, 0.9)
        >>> own = [AskedMatch(0.5 + at / 50, said) for at in range(20)]
        >>> others = [AskedMatch(0.4 + at / 100, unsaid) for at in range(20)]
        >>> curve = answered_curve(own, others, marked=0.05, spread=1.0)
        >>> sum(curve.probability(each) <= curve.least for each in own)
        1
        >>> all(curve.probability(each) <= curve.least for each in others)
        True
    """
    most = int(marked * len(own))
    if min(len(own), len(others)) < _FEWEST or most < 1:
        return None
    good = np.concatenate([np.ones(len(own)), np.zeros(len(others))])
    weight = np.where(good == 1.0, 0.5 / len(own), 0.5 / len(others)) * len(good)
    values = _values([*own, *others])
    mean, deviation = values[:, 1:].mean(axis=0), np.maximum(values[:, 1:].std(axis=0), 1e-6)
    scaled = np.column_stack([values[:, 0], (values[:, 1:] - mean) / deviation])

    def loss(slopes: _Floats) -> tuple[float, _Floats]:
        """Negative log posterior, and its gradient."""
        log_odds = scaled @ slopes
        shrunk = np.append(0.0, slopes[1:]) / spread**2
        value = np.sum(weight * (np.logaddexp(0.0, log_odds) - good * log_odds)) + 0.5 * shrunk @ slopes
        return float(value), scaled.T @ (weight * (expit(log_odds) - good)) + shrunk

    slopes = scipy.optimize.minimize(loss, np.zeros(4), jac=True, bounds=_BOUNDS, method="L-BFGS-B").x
    raw = slopes[1:] / deviation
    match, covered, unknown = raw.tolist()
    curve = AnsweredCurve(float(slopes[0] - raw @ mean), match, covered, unknown)
    ordered = sorted(curve.probability(each) for each in own)
    return AnsweredCurve(curve.intercept, match, covered, unknown, ordered[most - 1])


def _values(asked: Sequence[AskedMatch]) -> _Floats:
    return np.array([(1.0, each.match, each.coverage.covered, each.coverage.unknown) for each in asked])
