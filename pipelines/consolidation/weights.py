"""The weights a night is judged and reported by: every domain's, for every signal, at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import Scope, Signal, WeightBelief
from pipelines.learning.beliefs import Beliefs

Weights = Mapping[Domain, Mapping[Signal, WeightBelief]]
"""What is believed about every signal's weight, by domain."""


@dataclass(frozen=True, slots=True)
class Move:
    """How one weight changed, as shares of the score in [0, 1]."""

    domain: Domain
    signal: Signal
    before: float
    after: float

    @property
    def change(self) -> float:
        """What it gained, negative where it lost."""
        return self.after - self.before


def weights_of(beliefs: Beliefs) -> Weights:
    """The weights of every domain as a searcher without a model or agent reads them, all signals active."""
    return {domain: beliefs.weights(Scope(domain), list(Signal)) for domain in Domain}


def moves(before: Weights, after: Weights) -> list[Move]:
    """Every weight's change, the largest first, ties in the order of domains and signals."""
    every = [
        Move(domain, signal, before[domain][signal].mean, after[domain][signal].mean)
        for domain in Domain
        for signal in Signal
    ]
    return sorted(every, key=lambda move: -abs(move.change))
