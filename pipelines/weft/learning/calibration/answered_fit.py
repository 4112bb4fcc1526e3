"""How P(answered) is fitted, see `answered`; apart, so that who only reads it loads no optimiser."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize
from scipy.special import expit

from weft.domain.arrays import Floats
from weft.learning.calibration.answered import AnsweredCurve, AskedMatch, values_of

_BOUNDS = ((None, None), (0.0, None), (0.0, None), (None, 0.0))  # none of the three speaks for the other side
_FEWEST = 10  # of each side


def answered_curve(
    own: Sequence[AskedMatch], others: Sequence[AskedMatch], *, marked: float, spread: float
) -> AnsweredCurve | None:
    """The curve that tells questions with an answer from queries without one: a logistic regression.

    Both sides weigh the same, however many there are. Slopes are normal around 0 beforehand, in deviations of what
    they weigh.

    Returns:
        None where either side has fewer than ten, or `own` fewer than 1 / `marked`.

    Examples:
        >>> from weft.domain.matching import Coverage
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
    values = values_of([*own, *others])
    mean, deviation = values[:, 1:].mean(axis=0), np.maximum(values[:, 1:].std(axis=0), 1e-6)
    scaled = np.column_stack([values[:, 0], (values[:, 1:] - mean) / deviation])

    def loss(slopes: Floats) -> tuple[float, Floats]:
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
