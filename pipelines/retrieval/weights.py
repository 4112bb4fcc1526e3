"""Whose weights rank a candidate: the configured ones of its channels, or the believed ones of its signals (RET-14)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from pipelines.domain.documents import Domain
from pipelines.domain.ids import QueryId
from pipelines.domain.ranking import Channel, Query, Scope, Signal, WeightBelief
from pipelines.retrieval.candidates import DOMAINS, SIGNALS, Candidates, Part
from pipelines.retrieval.order import WeightDraws
from pipelines.retrieval.ports import ReadableBeliefs

ChannelWeights = Mapping[Channel, float]


@dataclass(frozen=True, slots=True)
class SignalWeight:
    """What a signal is multiplied with.

    Attributes:
        value: The weight applied: the posterior mean, or this query's draw where it explores.
        belief: What is believed about it.
    """

    value: float
    belief: WeightBelief


SignalWeights = Callable[[Domain], Mapping[Signal, SignalWeight]]
"""Weights of the active signals for a candidate of this domain; they sum to 1."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """All weights one query may be ranked by; the fusion mode says which are used."""

    channels: ChannelWeights
    signals: SignalWeights


def believed_weights(query: Query, beliefs: ReadableBeliefs, active: Collection[Signal]) -> SignalWeights:
    """Learned weights for the query's domain, or for each candidate's own where the query names none.

    An exploring query draws them once per domain, from a generator seeded by the query id and the domain: the same
    query gets the same draw, whatever else it finds (ARC-9).
    """

    @cache
    def of_domain(domain: Domain) -> Mapping[Signal, SignalWeight]:
        scope = Scope(domain, query.model, query.agent, query.intent)
        believed = beliefs.weights(scope, active)
        if not query.explore:
            return {signal: SignalWeight(belief.mean, belief) for signal, belief in believed.items()}
        drawn = beliefs.sampled_weights(scope, active, _generator(query.query_id, domain))
        return {signal: SignalWeight(drawn[signal], belief) for signal, belief in believed.items()}

    return lambda domain: of_domain(query.domain or domain)


def believed_draws(query: Query, beliefs: ReadableBeliefs, active: Collection[Signal], n: int) -> WeightDraws:
    """Draws of the learned weights for the query's domain, or for each candidate's own where the query names none."""

    @cache
    def of_domain(domain: Domain) -> Mapping[Signal, np.ndarray]:
        return beliefs.weight_draws(Scope(domain, query.model, query.agent, query.intent), active, n)

    return lambda domain: of_domain(query.domain or domain)


def weighed(candidates: Candidates, weights: SignalWeights, *, of: Collection[Signal]) -> Candidates:
    """Candidates with what those of the weighed signals add that are told of each, in the order of `Signal`.

    Args:
        weights: By the candidate's domain.
        of: Signals that count now.
    """
    believed = {at: weights(DOMAINS[at]) for at in np.unique(candidates.domain).tolist()}
    counted = [signal for signal in SIGNALS if signal in of and any(signal in each for each in believed.values())]
    by_domain = np.full((len(DOMAINS), len(counted)), np.nan)
    for at, of_domain in believed.items():
        by_domain[at] = [of_domain[signal].value if signal in of_domain else np.nan for signal in counted]
    parts = [Part(signal.value, signal) for signal in counted]
    values = candidates.signals[:, [SIGNALS.index(signal) for signal in counted]]
    return candidates.plus(parts, values, by_domain[candidates.domain])


def _generator(query_id: QueryId, domain: Domain) -> np.random.Generator:
    digest = hashlib.sha256(f"{domain.value}:{query_id}".encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))
