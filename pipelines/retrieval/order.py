"""How sure the order of results is: the posterior of the weights, carried through to the scores (RET-18).

A score is Σ learned weight · value + what is added without a learned weight. A draw of all weights makes a draw of all
scores. So "belongs above the next" is asked of the same draws for both, and what they have in common cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import Contribution, RankedResult, Signal

Floats = NDArray[np.float64]

WeightDraws = Callable[[Domain], Mapping[Signal, Floats]]
"""Draws of the active signals' weights for results of this domain, float64 (draws,) each."""


class Scored(Protocol):
    """What has a score made of contributions."""

    @property
    def domain(self) -> Domain:
        """Whose weights rank it."""

    @property
    def contributions(self) -> tuple[Contribution, ...]:
        """What its score is made of."""


_SIGNALS = {signal.value: signal for signal in Signal}


def with_certainty(results: Sequence[RankedResult], draws: WeightDraws) -> tuple[RankedResult, ...]:
    """Results with the probability that each belongs above the next, under what is believed of the weights.

    P(score_i > score_{i+1}), ties counted half, over draws from the posterior. Where the beliefs are right, of all
    neighbours told with probability p a share of p stands in the order that the true weights would give. The last
    result, and results whose scores rest on no learned weight, have none.
    """
    told = list(results)
    if len(told) < 2 or any(not _learned(result.contributions) for result in told):
        return tuple(told)
    scores = _drawn_scores(told, draws)
    sure = np.mean((scores[:-1] > scores[1:]) + 0.5 * (scores[:-1] == scores[1:]), axis=1)
    head = [replace(result, above_next=float(share)) for result, share in zip(told, sure, strict=False)]
    return (*head, told[-1])


def with_propensity(
    results: Sequence[RankedResult], contenders: Sequence[Scored], draws: WeightDraws
) -> tuple[RankedResult, ...]:
    """Results of an exploring search with the probability that it shows each at the rank that it has.

    The share of draws of the weights that give it the rank, the draw that was made among them: never 0, so that
    feedback can be weighed by its inverse (Horvitz and Thompson, JASA 1952). Where no learned weight ranks, nothing
    is explored and the probability stays 1.

    Args:
        contenders: The candidates of the results, in their order, and after them all that might have been shown.
    """
    if not results or any(not _learned(scored.contributions) for scored in contenders):
        return tuple(results)
    scores = _drawn_scores(contenders, draws)
    order = np.argsort(-scores, axis=0, kind="stable")  # of contenders, best first, under each draw
    hits = (order == np.arange(len(contenders))[:, None]).sum(axis=1)
    shares = (hits + 1.0) / (scores.shape[1] + 1.0)
    return tuple(replace(result, propensity=float(share)) for result, share in zip(results, shares, strict=False))


def _drawn_scores(scored: Sequence[Scored], draws: WeightDraws) -> Floats:
    """Scores under each draw, float64 (scored, draws)."""
    places: dict[Domain, list[int]] = {}
    for place, one in enumerate(scored):
        places.setdefault(one.domain, []).append(place)
    parts = {domain: _drawn([scored[place] for place in some], draws(domain)) for domain, some in places.items()}
    scores = np.empty((len(scored), max(part.shape[1] for part in parts.values())))
    for domain, some in places.items():
        scores[some] = parts[domain]
    return scores


def _drawn(scored: Sequence[Scored], weights: Mapping[Signal, Floats]) -> Floats:
    fixed = np.zeros(len(scored))
    values = {signal: np.zeros(len(scored)) for signal in weights}
    for place, one in enumerate(scored):
        for part in one.contributions:
            if part.belief is None:
                fixed[place] += part.amount
            else:
                values[_SIGNALS[part.name]][place] = part.value
    # One signal after the other, so that equal results have equal scores: BLAS sums rows in different orders.
    total = fixed[:, None]
    for signal, drawn in weights.items():
        total = total + values[signal][:, None] * drawn
    return np.asarray(total)


def _learned(contributions: Sequence[Contribution]) -> bool:
    return any(part.belief is not None for part in contributions)
