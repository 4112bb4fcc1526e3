"""What speaks for a candidate: similarity to the query, and the quality of what was found (RET-13)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pipelines.domain.ranking import Channel, Signal
from pipelines.retrieval.candidates import Candidate
from pipelines.retrieval.fusion import FLOORS, channel_scores, relative
from pipelines.retrieval.ports import ReadableBeliefs, Standing

SIMILARITY: Mapping[Channel, Signal] = MappingProxyType({Channel.DENSE: Signal.VECTOR, Channel.LEXICAL: Signal.LEXICAL})
"""The signal that a channel's score becomes."""

_SECONDS_PER_HOUR = 3600.0
_FULL_TRUST = 100.0


def active_signals(channels: Collection[Channel]) -> frozenset[Signal]:
    """Signals that can be told when these channels answered: without a channel its similarity has no weight."""
    silent = {signal for channel, signal in SIMILARITY.items() if channel not in channels}
    if silent:
        silent.add(Signal.CROSS_VALIDATION)
    return frozenset(Signal) - silent


def with_similarity(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates with their similarity signals: 0 for a channel that did not find them."""
    shares = {channel: relative(scores, FLOORS[channel]) for channel, scores in channel_scores(candidates).items()}

    def signals(candidate: Candidate) -> dict[Signal, float]:
        values = {
            SIMILARITY[channel]: share(candidate.channels[channel]) if channel in candidate.channels else 0.0
            for channel, share in shares.items()
        }
        return {**values, Signal.CROSS_VALIDATION: float(len(candidate.channels) > 1)}

    return [replace(candidate, signals=signals(candidate)) for candidate in candidates]


def with_quality(candidates: Sequence[Candidate], beliefs: ReadableBeliefs, *, now: float) -> list[Candidate]:
    """Candidates with freshness, usage and trust of the best document that each speaks for.

    Args:
        now: Seconds since the epoch, what ages are measured to.
    """
    usage = beliefs.usage([candidate.content_hash for candidate in candidates])
    return [
        replace(candidate, signals={**candidate.signals, **_quality(candidate, float(used), beliefs, now)})
        for candidate, used in zip(candidates, usage, strict=True)
    ]


def _quality(candidate: Candidate, usage: float, beliefs: ReadableBeliefs, now: float) -> dict[Signal, float]:
    standing = candidate.standing
    return {
        Signal.FRESHNESS: beliefs.freshness(standing.domain, _age_hours(standing, now)),
        Signal.USAGE: usage,
        Signal.TRUST: min(1.0, standing.trust_level / _FULL_TRUST),
    }


def _age_hours(standing: Standing, now: float) -> float | None:
    if standing.modified_at is None:
        return None
    return max(0.0, now - standing.modified_at) / _SECONDS_PER_HOUR
