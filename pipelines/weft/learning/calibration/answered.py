"""P(answered) of a query before anybody has judged: from its best match and from what is said of its words (RET-15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from weft.domain.arrays import Floats
from weft.domain.matching import Coverage


class AskedMatch(NamedTuple):
    """What is known of an answer to a query: its best match, and how much of the query its results say."""

    match: float
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class AnsweredCurve:
    """logit P(answered) = intercept + match · m + covered · c + unknown · u, where both are as likely beforehand."""

    intercept: float
    match: float  # >= 0
    covered: float
    unknown: float  # <= 0
    least: float = 0.0  # P(answered) that a query has to exceed: few that have an answer fall short of it

    def probability(self, asked: AskedMatch) -> float:
        """P(answered) of a query, in [0, 1]."""
        return float(expit(np.array([self.intercept, self.match, self.covered, self.unknown]) @ values_of([asked])[0]))


def values_of(asked: Sequence[AskedMatch]) -> Floats:
    """What the log-odds of queries are made of, (n, 4): 1, match, covered and unknown."""
    return np.array([(1.0, each.match, each.coverage.covered, each.coverage.unknown) for each in asked])
