"""What speaks for a candidate: similarity to the query, and the quality of what was found (RET-13)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from msgspec.structs import replace

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import Channel, Signal
from pipelines.quality import signals
from pipelines.retrieval.candidates import Candidate
from pipelines.retrieval.channels.run import Ranked
from pipelines.retrieval.ports import ReadableBeliefs, Standing

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

SOURCE_TYPE = "source_type"
"""The name under which a document declares what kind of source it is."""

_SECONDS_PER_HOUR = 3600.0


def answering(found: Mapping[Channel, Ranked]) -> frozenset[Channel]:
    """Channels that have something to say about one query: words and meaning where they answered at all.

    That neither found anything says something; that a query names no entity does not.
    """
    return frozenset(
        channel for channel, ranked in found.items() if ranked.ranking or channel is Channel.LEXICAL or channel in DENSE
    )


def active_signals(
    channels: Collection[Channel], without: Collection[Signal] = (), *, matched: bool = False
) -> frozenset[Signal]:
    """Signals that are weighed when these channels answered: without a channel its similarity has no weight.

    Args:
        without: Signals that are switched off: told, and not weighed.
        matched: The best candidates are compared with the query token by token.
    """
    silent = {signal for channel, signal in SIMILARITY.items() if channel not in channels}
    if Channel.LEXICAL not in channels or DENSE.isdisjoint(channels):
        silent.add(Signal.CROSS_VALIDATION)
    if not matched:
        silent.add(Signal.LATE_INTERACTION)
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


@dataclass(frozen=True, slots=True)
class Moment:
    """Who asks and when: what quality depends on beside the content itself.

    Attributes:
        model: Who is going to use the results: sources are trusted as far as they held for it (LRN-10).
        now: Seconds since the epoch, what ages are measured to.
        usage_kept: Share of what sets a content's usage apart that counts, in [0, 1]: less after a change of topic.
    """

    model: str
    now: float
    usage_kept: float = 1.0


def with_quality(candidates: Sequence[Candidate], beliefs: ReadableBeliefs, moment: Moment) -> list[Candidate]:
    """Candidates with freshness, usage and trust of the best document that each speaks for."""
    usage = beliefs.usage([candidate.content_hash for candidate in candidates]).tolist()
    # Beliefs are the same for all contents of one age, or of one kind of source.
    fresh = cache(beliefs.freshness)
    trusted = cache(beliefs.trust_multiplier)
    return [
        replace(candidate, signals={**candidate.signals, **_quality(candidate.standing, used, fresh, trusted, moment)})
        for candidate, used in zip(candidates, usage, strict=True)
    ]


def _scores(candidates: Sequence[Candidate], channel: Channel) -> list[float | None]:
    return [candidate.scores.get(channel) for candidate in candidates]


def _rows(columns: Mapping[Signal, Sequence[float]], count: int) -> list[dict[Signal, float]]:
    return [{signal: column[row] for signal, column in columns.items()} for row in range(count)]


def _quality(
    standing: Standing,
    used: float,
    fresh: Callable[[Domain, float | None], float],
    trusted: Callable[[str, str], float],
    moment: Moment,
) -> dict[Signal, float]:
    multiplier = trusted(source_type(standing), moment.model)
    return {
        Signal.FRESHNESS: signals.freshness(fresh(standing.domain, _age_hours(standing, moment.now))),
        Signal.USAGE: signals.usage(signals.dampened(used, moment.usage_kept)),
        Signal.TRUST: signals.trust(standing.trust_level, multiplier),
    }


def source_type(standing: Standing) -> str:
    """What kind of source a document is, as trust in it is learned: declared as `source_type`, or its content type."""
    return standing.metadata.get(SOURCE_TYPE, standing.content_type.value)


def _age_hours(standing: Standing, now: float) -> float | None:
    if standing.modified_at is None:
        return None
    return max(0.0, now - standing.modified_at) / _SECONDS_PER_HOUR
