"""Stage 4: quality speaks, and candidates become results (RET-14)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pipelines.domain.ranking import ChannelHit, Contribution, RankedResult, Signal
from pipelines.domain.sizing import made_by
from pipelines.retrieval.across_domains import with_domains_weighed
from pipelines.retrieval.candidates import CHANNELS, DOMAINS, SIGNALS, Candidate, Candidates, best_first
from pipelines.retrieval.ports import ReadableBeliefs, StoredContent
from pipelines.retrieval.quality import Moment, with_quality
from pipelines.retrieval.repeats import without_repeats
from pipelines.retrieval.settings import FusionMode, RetrievalSettings
from pipelines.retrieval.weights import SignalWeight, SignalWeights, weighed


def score_and_cut(
    candidates: Candidates,
    k: int,
    beliefs: ReadableBeliefs,
    weights: SignalWeights,
    *,
    moment: Moment,
    settings: RetrievalSettings,
) -> Candidates:
    """The best k by final score, with all their signals.

    Learned ranking adds weight · signal of the quality signals; the other modes rank by fusion alone, and their
    signals are told for the sake of the explanation and of feedback.
    """
    query, penalty = moment.query, settings.session.repeat_penalty
    if settings.fusion is not FusionMode.LEARNED:
        kept = without_repeats(best_first(candidates), query, penalty=penalty).take(slice(k))
        return with_quality(kept, beliefs, moment, settings.quality)
    told = with_quality(candidates, beliefs, moment, settings.quality)
    counted = {part.signal for part in told.parts}
    scored = best_first(weighed(told, weights, of=[signal for signal in SIGNALS if signal not in counted]))
    across = with_domains_weighed(scored, query, weight=settings.understanding.scope.agreement_weight)
    return without_repeats(across, query, penalty=penalty).take(slice(k))


def spelled_out(candidates: Candidates, weights: SignalWeights) -> list[Candidate]:
    """Each candidate with all that is known of it, in their order.

    Args:
        weights: By the candidate's domain: what is believed of the weights behind its contributions.
    """
    return [_spelled_out(candidates, at, content, weights) for at, content in enumerate(candidates.contents)]


def _spelled_out(candidates: Candidates, at: int, content: StoredContent, weights: SignalWeights) -> Candidate:
    ranks, scores = candidates.ranks[at].tolist(), candidates.scores[at].tolist()
    place, domain = int(candidates.place[at]), DOMAINS[candidates.domain[at]]
    return Candidate(
        row=int(candidates.rows[at]),
        content=content,
        standing=next(standing for standing in content.occurrences if standing.place == place),
        domain=domain,
        channels={
            channel: ChannelHit(rank, score)
            for channel, rank, score in zip(CHANNELS, ranks, scores, strict=True)
            if rank
        },
        scores={channel: score for channel, score in zip(CHANNELS, scores, strict=True) if not math.isnan(score)},
        signals={
            signal: value
            for signal, value in zip(SIGNALS, candidates.signals[at].tolist(), strict=True)
            if not math.isnan(value)
        },
        contributions=_contributions(candidates, at, weights(domain)),
        uris=candidates.uris(at),
        alike=candidates.alike.get(int(candidates.number[at]), ()),
    )


def _contributions(candidates: Candidates, at: int, weights: Mapping[Signal, SignalWeight]) -> tuple[Contribution, ...]:
    columns = zip(candidates.parts, candidates.values[at].tolist(), candidates.weights[at].tolist(), strict=True)
    return tuple(
        Contribution(
            part.name, value, weight, value * weight, None if part.signal is None else weights[part.signal].belief
        )
        for part, value, weight in columns
        if not math.isnan(value * weight)
    )


def results(
    candidates: Sequence[Candidate], weights: SignalWeights, beliefs: ReadableBeliefs
) -> tuple[RankedResult, ...]:
    """Candidates, in their order, as ranked results."""
    return tuple(
        _result(rank, candidate, weights(candidate.domain), beliefs)
        for rank, candidate in enumerate(candidates, start=1)
    )


def relevance(signals: Mapping[Signal, float], weights: Mapping[Signal, SignalWeight]) -> float:
    """Σ expected weight · signal, in [0, 1]: the same measure under every fusion mode, explored or not."""
    total = math.fsum(weight.belief.mean * signals.get(signal, 0.0) for signal, weight in weights.items())
    return min(1.0, max(0.0, total))


def _result(
    rank: int,
    candidate: Candidate,
    weights: Mapping[Signal, SignalWeight],
    beliefs: ReadableBeliefs,
) -> RankedResult:
    standing = candidate.standing
    chunk = standing.label
    return RankedResult(
        rank=rank,
        content_hash=candidate.content_hash,
        chunk_id=chunk.chunk_id,
        uris=candidate.uris,
        text=candidate.text,
        kind=chunk.kind,
        symbol=chunk.symbol,
        heading_path=chunk.heading_path,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        domain=standing.domain,
        channels=candidate.channels,
        signals=candidate.signals,
        contributions=candidate.contributions,
        relevance=relevance(candidate.signals, weights),
        examination=beliefs.examined(standing.domain, rank),
        made=made_by(chunk),
        alike=candidate.alike,
    )
