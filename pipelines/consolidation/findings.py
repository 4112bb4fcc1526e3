"""What a night found out, as one value: what its report shows and its summary says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.consolidation.gate import Verdict
from pipelines.consolidation.merge import Candidate
from pipelines.consolidation.recalibrate import Recalibration
from pipelines.consolidation.weights import Move, Weights, moves, weights_of
from pipelines.domain.documents import Domain
from pipelines.learning.beliefs import Beliefs
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.observe.observations import RELEVANCE

HOURS_PER_YEAR = 24.0 * 365.0
_OLDEST_YEARS = 10.0
_AGES = np.concatenate([[0.0], np.geomspace(1.0, _OLDEST_YEARS * HOURS_PER_YEAR, 200)])

Metrics = Mapping[str, float]
"""Measures by name, such as ndcg_at_10."""


@dataclass(frozen=True, slots=True)
class Curve:
    """How a domain is believed to age.

    Attributes:
        age_hours: Ascending, the first is 0.
        freshness: Posterior mean of e^(−λ·age), from 1 downwards.
        half_life_hours: The age at which it is one half; infinity where no age shown reaches it.
    """

    age_hours: Sequence[float]
    freshness: Sequence[float]
    half_life_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything a night's report rests on.

    Attributes:
        before, after: What the live version and the candidate make be believed, read at the same time.
        retrieval: Measured before and after, where something measures it.
        counters: What the updaters did with their records, by partition.
    """

    candidate: Candidate
    before: Beliefs
    after: Beliefs
    recalibration: Recalibration
    verdict: Verdict
    retrieval: tuple[Metrics, Metrics] | None
    counters: Mapping[str, Mapping[str, int]]

    @property
    def weights_before(self) -> Weights:
        """The weights of the live version."""
        return weights_of(self.before)

    @property
    def weights_after(self) -> Weights:
        """The weights of the candidate."""
        return weights_of(self.after)

    @property
    def moves(self) -> list[Move]:
        """Every weight's change, the largest first."""
        return moves(self.weights_before, self.weights_after)

    @property
    def ageing(self) -> Mapping[Domain, Curve]:
        """How each domain is believed to age."""
        return {domain: _curve(self.after, domain) for domain in Domain}


def observations(evidence: Evidence) -> float:
    """Outcomes of shown results in the evidence, each counted with its weight."""
    return sum(micro for key, micro in evidence.counts.items() if key.parameter == RELEVANCE) / MICRO


def _curve(beliefs: Beliefs, domain: Domain) -> Curve:
    freshness = beliefs.freshness_many(domain, _AGES)
    half = float(np.interp(-0.5, -freshness, _AGES)) if freshness[-1] <= 0.5 else float("inf")
    return Curve(_AGES.tolist(), freshness.tolist(), half)
