"""Whose weights rank a candidate: the configured ones of its channels, or the believed ones of its signals (RET-14)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import Channel, Query, Scope, Signal, WeightBelief
from pipelines.retrieval.ranking.table import SIGNAL_AT, SIGNALS, Candidates, Floats, ScoreTerm
from pipelines.retrieval.snapshot.ports import ReadableBeliefs

ChannelWeights = Mapping[Channel, float]
Known = TypeVar("Known")


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


WeightDraws = Callable[[Domain], Floats]
"""Draws of all signals' weights for results of this domain, float64 (signals, draws); 0 of those that do not count."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """All weights that queries may be ranked by; the fusion mode says which are used.

    Attributes:
        signals: Of each query.
    """

    channels: ChannelWeights
    signals: Sequence[SignalWeights]


def believed_weights(query: Query, beliefs: ReadableBeliefs, active: Collection[Signal]) -> SignalWeights:
    """Learned weights for the query's domain, or for each candidate's own where the query names none.

    An exploring query draws them once per domain, from a generator seeded by the query id and the domain: the same
    query gets the same draw, whatever else it finds (ARC-9).
    """

    def of_domain(domain: Domain) -> Mapping[Signal, SignalWeight]:
        scope = Scope(domain, query.model, query.agent, query.intent)
        believed = beliefs.weights(scope, active)
        if not query.explore:
            return {signal: SignalWeight(belief.mean, belief) for signal, belief in believed.items()}
        drawn = beliefs.sampled_weights(scope, active, _generator(query.query_id, domain))
        return {signal: SignalWeight(drawn[signal], belief) for signal, belief in believed.items()}

    return _each_once(query, of_domain)


def believed_draws(query: Query, beliefs: ReadableBeliefs, active: Collection[Signal], n: int) -> WeightDraws:
    """Draws of the learned weights for the query's domain, or for each candidate's own where the query names none."""

    def of_domain(domain: Domain) -> np.ndarray:
        drawn = beliefs.weight_draws(Scope(domain, query.model, query.agent, query.intent), active, n)
        weights = np.zeros((len(SIGNALS), n))
        for signal, of_signal in drawn.items():
            weights[SIGNAL_AT[signal]] = of_signal
        return weights

    return _each_once(query, of_domain)


def _each_once(query: Query, read: Callable[[Domain], Known]) -> Callable[[Domain], Known]:
    """What is believed for the query's domain, or for each candidate's own, read once of each."""
    by_domain: dict[Domain, Known] = {}

    def of(domain: Domain) -> Known:
        asked = query.domain or domain
        if asked not in by_domain:
            by_domain[asked] = read(asked)
        return by_domain[asked]

    return of


Shared = dict[Hashable, tuple[SignalWeights, WeightDraws]]
"""Weights of queries that are asked together, by what they depend on."""


def believed_in_common(
    query: Query, beliefs: ReadableBeliefs, active: frozenset[Signal], n: int, shared: Shared
) -> tuple[SignalWeights, WeightDraws]:
    """Weights and draws of them, the same ones for all queries of a batch that no belief tells apart."""
    scope = (query.domain, query.model, query.agent, query.intent)
    key = (id(beliefs), scope, active, query.query_id if query.explore else None)
    found = shared.get(key)
    if found is None:
        found = shared[key] = (
            believed_weights(query, beliefs, active),
            believed_draws(query, beliefs, active, n),
        )
    return found


def weighed(candidates: Candidates, weights: Sequence[SignalWeights], *, of: Collection[Signal]) -> Candidates:
    """Candidates with what those of the weighed signals add that are told of each, in the order of `Signal`.

    Args:
        weights: For each query, by the candidate's domain.
        of: Signals that count now.
    """
    believed = [weights[query](domain) for query, domain in candidates.merged.scopes]
    weighing = frozenset().union(*believed).intersection(of)
    counted = [at for at, signal in enumerate(SIGNALS) if signal in weighing]
    shares = np.full((len(believed), len(counted)), np.nan)
    for line, each in enumerate(believed):
        shares[line] = [each[SIGNALS[at]].value if SIGNALS[at] in each else np.nan for at in counted]
    values = candidates.signals[candidates.number[:, None], np.array(counted, dtype=np.int64)]
    parts = [_PARTS[at] for at in counted]
    return candidates.add_terms(parts, values, shares[candidates.merged.scope[candidates.number]])


_PARTS = tuple(ScoreTerm(signal.value, signal) for signal in SIGNALS)


def _generator(query_id: str, domain: Domain) -> np.random.Generator:
    digest = hashlib.sha256(f"{domain.value}:{query_id}".encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))
