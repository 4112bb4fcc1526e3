"""How signals vary together among outcomes of one kind: what keeps a weight from counting the same thing twice (LRN-4).

A signal is shown because the signals together are high: among what is shown, one that is low was outweighed by the
others, so that signals look opposed which are not, and each alone looks worse or better than it is. Signals that say
the same thing, such as two encoders, look good twice. Their covariance within outcomes of one kind undoes both (Fisher,
Annals of Eugenics 1936).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.documents import Domain
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.gathering import SIGNALS
from pipelines.learning.observations import FOR, PAIRS, product_parameter
from pipelines.learning.priors import SpreadPrior
from pipelines.learning.recency import Discount
from pipelines.learning.robustness import DailyMasses, capped_share

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_DOMAINS: tuple[Domain, ...] = tuple(Domain)
_COLUMNS = {
    product_parameter(*pair, good=good): (not good) * len(PAIRS) + place
    for place, pair in enumerate(PAIRS)
    for good in (True, False)
}


@dataclass(frozen=True, slots=True)
class Spread:
    """How signals vary within outcomes of one kind.

    Attributes:
        covariance: float64 (signals, signals), positive definite.
        caution: What chance is taken to find, per signal and outcome.
    """

    covariance: Floats
    caution: float


def read_spread(
    prior: SpreadPrior, evidence: Evidence, discount: Discount, *, daily_cap: float
) -> Mapping[Domain, Spread]:
    """The spread of the signals in each domain.

    Σ = (ν·v·I + Σ over kinds of n·C) / (ν + Σ n) with C the covariance among outcomes of that kind and n how many there
    were; before any evidence all signals vary alike, by v, and independently. Off its diagonal it is shrunk by
    n/(n + μ).

    Args:
        daily_cap: Outcomes of one kind in one domain that count of one day (LRN-3).
    """
    masses = _masses(evidence, discount, daily_cap)
    return {domain: Spread(_pooled(prior, masses[place]), prior.caution) for place, domain in enumerate(_DOMAINS)}


def _masses(evidence: Evidence, discount: Discount, daily_cap: float) -> Ints:
    """Micro-units as they count today, int64 (domains, kinds of outcome, pairs, for and against)."""
    rows = [
        (_DOMAINS.index(Domain(key.domain)) * len(_COLUMNS) + column, key.day, micro, key.bin != FOR)
        for key, micro in evidence.counts.items()
        if (column := _COLUMNS.get(key.parameter)) is not None and key.domain in _DOMAINS
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    daily = DailyMasses.of(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(np.bool_))
    share = capped_share(np.maximum(daily.hits + daily.misses, 0) / MICRO, daily_cap)
    counted = np.zeros((len(_DOMAINS) * len(_COLUMNS), 2), dtype=np.int64)
    for side, micro in enumerate((daily.hits, daily.misses)):
        told = np.rint(discount.of_days(micro.astype(np.float64), daily.day) * share)
        np.add.at(counted[:, side], daily.place, told.astype(np.int64))
    return counted.reshape(len(_DOMAINS), 2, len(PAIRS), 2)


def _pooled(prior: SpreadPrior, masses: Ints) -> Floats:
    scatter = prior.strength * prior.variance * np.eye(len(SIGNALS))
    strength = np.full((len(SIGNALS), len(SIGNALS)), prior.strength)
    for kind in masses:
        covariance, seen = _covariance(np.maximum(kind, 0) / MICRO)
        scatter += seen * covariance
        strength += seen
    seen = strength - prior.strength
    shared = np.where(np.eye(len(SIGNALS), dtype=bool), 1.0, seen / (seen + prior.apart))
    return _positive(shared * scatter / strength, prior)


def _covariance(kind: Floats) -> tuple[Floats, Floats]:
    """Of one kind of outcome, and how many told both signals; 0 where none did. float64 (signals, signals) each."""
    total = kind.sum(axis=1)
    mean = np.divide(kind[:, 0], total, out=np.zeros_like(total), where=total > 0.0)
    size = len(SIGNALS)
    product, seen, alone = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    for place, (first, second) in enumerate(PAIRS):
        if second == size:
            alone[first] = mean[place]
        else:
            product[first, second] = product[second, first] = mean[place]
            seen[first, second] = seen[second, first] = total[place]
    return np.where(seen > 0.0, product - np.outer(alone, alone), 0.0), seen


def _positive(covariance: Floats, prior: SpreadPrior) -> Floats:
    """The same, with no direction in which signals vary less than by `prior.least`.

    Moments of signals that were not always told together need not be those of any distribution.
    """
    values, vectors = np.linalg.eigh(covariance)
    kept: Floats = (vectors * np.maximum(values, prior.least)) @ vectors.T
    return kept
