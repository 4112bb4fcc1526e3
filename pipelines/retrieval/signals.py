"""What speaks for a candidate: similarity to the query, and the quality of what was found (RET-13)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from pipelines.domain.ranking import Channel, Signal
from pipelines.quality import signals
from pipelines.retrieval.candidates import Candidate
from pipelines.retrieval.channels.run import Ranked

DENSE = frozenset({Channel.DENSE, Channel.DENSE_2, Channel.DENSE_3})
"""Channels that find by meaning, one per encoder."""

SIMILARITY: Mapping[Channel, Signal] = MappingProxyType(
    {
        Channel.DENSE: Signal.VECTOR,
        Channel.DENSE_2: Signal.VECTOR_2,
        Channel.DENSE_3: Signal.VECTOR_3,
        Channel.LEXICAL: Signal.LEXICAL,
        Channel.GRAPH: Signal.GRAPH,
        Channel.DEGREE: Signal.DEGREE,
        Channel.TRIGGERS: Signal.TRIGGER,
    }
)
"""The signal that a channel's score becomes."""

_SCALES: Mapping[Channel, Callable[[Sequence[float | None]], list[float]]] = MappingProxyType(
    {channel: getattr(signals, signal.value) for channel, signal in SIMILARITY.items()}
)

SOMETIMES = frozenset(
    {
        Signal.LATE_INTERACTION,
        Signal.CROSS_ENCODER,
        Signal.AUTHORITY,
        Signal.STRUCTURE,
        Signal.PROPAGATED,
        Signal.NOVELTY,
        Signal.TIER,
        Signal.VALIDATION,
        Signal.CONGRUENCE,
        Signal.SESSION,
    }
)
"""Signals that only some generations, queries and rerankers can tell."""


def answering(found: Mapping[Channel, Ranked]) -> frozenset[Channel]:
    """Channels that have something to say about one query: words and meaning where they answered at all.

    That neither found anything says something; that a query names no entity does not.
    """
    return frozenset(
        channel for channel, ranked in found.items() if ranked.ranking or channel is Channel.LEXICAL or channel in DENSE
    )


def active_signals(
    channels: Collection[Channel], without: Collection[Signal] = (), *, telling: Collection[Signal] = ()
) -> frozenset[Signal]:
    """Signals that are weighed when these channels answered: without a channel its similarity has no weight.

    Args:
        without: Signals that are switched off: told, and not weighed.
        telling: Signals that only some generations, queries and rerankers can tell, and these do.
    """
    silent = {signal for channel, signal in SIMILARITY.items() if channel not in channels}
    if Channel.LEXICAL not in channels or DENSE.isdisjoint(channels):
        silent.add(Signal.CROSS_VALIDATION)
    silent |= SOMETIMES.difference(telling)
    return frozenset(Signal) - silent - frozenset(without)


def with_similarity(candidates: Sequence[Candidate], channels: Collection[Channel]) -> list[Candidate]:
    """Candidates with their similarity to the query, measured among one another, and whether channels agree.

    Args:
        channels: Those that answered.
    """
    similarity = {SIMILARITY[channel]: _SCALES[channel](_scores(candidates, channel)) for channel in sorted(channels)}
    return [
        replace(candidate, signals={**told, Signal.CROSS_VALIDATION: signals.cross_validation(_ways(candidate))})
        for candidate, told in zip(candidates, _rows(similarity, len(candidates)), strict=True)
    ]


def _ways(candidate: Candidate) -> int:
    """In how many ways, by words and by meaning, a candidate was found."""
    return (Channel.LEXICAL in candidate.channels) + (not DENSE.isdisjoint(candidate.channels))


def _scores(candidates: Sequence[Candidate], channel: Channel) -> list[float | None]:
    return [candidate.scores.get(channel) for candidate in candidates]


def _rows(columns: Mapping[Signal, Sequence[float]], count: int) -> list[dict[Signal, float]]:
    return [{signal: column[row] for signal, column in columns.items()} for row in range(count)]
