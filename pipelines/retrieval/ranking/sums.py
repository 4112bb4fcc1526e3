"""Sums rounded once, many at a time: so that no order of addends, and no company, makes a difference (ARC-7, ARC-9)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_WIDE = np.longdouble
_ERROR = float(np.finfo(_WIDE).eps)


def exact_sums(amounts: Floats) -> Floats:
    """The sum of each line, (n, parts), as `math.fsum` gives it; NaN adds nothing.

    Lines are summed in the widest precision at hand. Where its rounding cannot have moved the result, that is the
    answer; else, which is rare, and everywhere on machines without a wider one, the line is summed by `math.fsum`.

    Examples:
        >>> exact_sums(np.array([[1e16, 1.0, -1e16], [0.1, 0.2, float("nan")]])).tolist()
        [1.0, 0.30000000000000004]
    """
    told = np.where(np.isnan(amounts), 0.0, amounts)
    wide = np.add.reduce(told, axis=1, dtype=_WIDE)
    slack = told.shape[1] * _ERROR * np.add.reduce(np.abs(told), axis=1)  # twice what all its roundings come to
    # Rounding keeps order: where both ends of what the sum may be become one number, so does the sum.
    rounded: Floats = (wide - slack).astype(np.float64)
    for line in (rounded != (wide + slack).astype(np.float64)).nonzero()[0].tolist():
        rounded[line] = math.fsum(told[line].tolist())
    return rounded
