"""How sure the order of results is: the posterior of the weights, carried through to the scores (RET-18).

A score is Σ learned weight · value + what is added without a learned weight. A draw of all weights makes a draw of all
scores. So "belongs above the next" is asked of the same draws for both, and what they have in common cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.documents import Domain
from pipelines.retrieval.ranking.table import SIGNALS, Candidates, Ints
from pipelines.retrieval.ranking.weights import WeightDraws
from pipelines.retrieval.snapshot.documents import DOMAINS

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What scores of some results are made of.

    Attributes:
        values: Of each of `SIGNALS` that adds to a score with its learned weight, 0 of others, (n, signals).
        fixed: What is added without a learned weight, (n,).
        learned: Whether any learned weight adds anything, (n,).
        domains: Whose weights rank each.
    """

    values: Floats
    fixed: Floats
    learned: NDArray[np.bool_]
    domains: Sequence[Domain]

    def of(self, lines: slice) -> Scored:
        """Some of the results."""
        return Scored(self.values[lines], self.fixed[lines], self.learned[lines], self.domains[lines])


def scored(candidates: Candidates) -> Scored:
    """The scores of candidates, a line each."""
    numbers = candidates.number
    told = candidates.values[numbers]
    amounts = told * candidates.weights[numbers]
    adds = ~np.isnan(amounts)
    weighed = [(at, SIGNALS.index(part.signal)) for at, part in enumerate(candidates.parts) if part.signal is not None]
    places, signals = [at for at, _ in weighed], [signal for _, signal in weighed]
    values, fixed = np.zeros((len(candidates), len(SIGNALS))), np.zeros(len(candidates))
    values[:, signals] = np.where(adds[:, places], told[:, places], 0.0)
    for at, part in enumerate(candidates.parts):
        if part.signal is None:
            fixed += np.where(adds[:, at], amounts[:, at], 0.0)
    learned = np.logical_or.reduce(adds[:, places], axis=1)
    return Scored(values, fixed, learned, [DOMAINS[domain] for domain in candidates.domain.tolist()])


def rank_confidence(results: Scored, draws: WeightDraws) -> list[float | None]:
    """For each result, in their order, the probability that it belongs above the next.

    P(score_i > score_{i+1}), ties counted half, over draws from the posterior. Where the beliefs are right, of all
    neighbours told with probability p a share of p stands in the order that the true weights would give. The last
    result, and results whose scores rest on no learned weight, have none.
    """
    count = len(results.fixed)
    if count < 2 or not results.learned.all():
        return [None] * count
    above = (results.fixed[:-1] - results.fixed[1:])[:, None] + _apart(results, draws)
    # Draws above less draws below, and all of them, are twice those above with half of the ties.
    balance = np.add.reduce(np.sign(above), axis=1)
    sure: list[float | None] = ((balance + above.shape[1]) / (2 * above.shape[1])).tolist()
    return [*sure, None]


def _apart(results: Scored, draws: WeightDraws) -> Floats:
    """By how much learned weights set each result above the next under each draw, (n − 1, draws)."""
    upper, lower, domains = results.values[:-1], results.values[1:], results.domains
    if len(set(domains)) == 1:
        # What two results have alike is gone before anything is rounded: those alike in everything tie in every draw.
        return np.asarray((upper - lower) @ draws(domains[0]))
    pairs = zip(upper, domains, lower, domains[1:], strict=False)
    return np.array(
        [
            (one - other) @ draws(its) if its is others else one @ draws(its) - other @ draws(others)
            for one, its, other, others in pairs
        ]
    )


def propensities(
    contenders: Scored, shown: Ints, draws: WeightDraws, would_show: Callable[[Floats], Ints]
) -> list[float]:
    """For each result of an exploring search the probability that it shows it at the rank that it has.

    The share of draws of the weights that give it the rank, the draw that was made among them: never 0, so that
    feedback can be weighed by its inverse (Horvitz and Thompson, JASA 1952). Where no learned weight ranks, nothing
    is explored and the probability is 1.

    Args:
        contenders: All that might have been shown.
        shown: Which of them are the results, in their order, (results,).
        would_show: From scores under each draw, (contenders, draws), to who stands at each rank, (k, draws).
    """
    if not contenders.learned.all():
        return [1.0] * len(shown)
    # One signal after the other, so that equal results have equal scores: BLAS sums rows in different orders.
    scores = contenders.fixed[:, None]
    drawn = np.array([draws(domain) for domain in contenders.domains])  # (contenders, signals, draws)
    for at in range(len(SIGNALS)):
        scores = scores + contenders.values[:, at, None] * drawn[:, at]
    hits = (would_show(scores)[: len(shown)] == shown[:, None]).sum(axis=1)
    shares: list[float] = ((hits + 1.0) / (scores.shape[1] + 1.0)).tolist()
    return shares
