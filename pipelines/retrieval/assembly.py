"""Stage 4: quality speaks, and candidates become results (RET-14)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pipelines.domain.ranking import RankedResult, Signal
from pipelines.domain.sizing import made_by
from pipelines.retrieval.across_domains import with_domains_weighed
from pipelines.retrieval.candidates import Candidate, best_first
from pipelines.retrieval.ports import ReadableBeliefs
from pipelines.retrieval.quality import Moment, with_quality
from pipelines.retrieval.repeats import without_repeats
from pipelines.retrieval.settings import FusionMode, RetrievalSettings
from pipelines.retrieval.weights import SignalWeight, SignalWeights, weighted


def score_and_cut(
    candidates: Sequence[Candidate],
    k: int,
    beliefs: ReadableBeliefs,
    weights: SignalWeights,
    *,
    moment: Moment,
    settings: RetrievalSettings,
) -> list[Candidate]:
    """The best k by final score, with all their signals.

    Learned ranking adds weight · signal of the quality signals; the other modes rank by fusion alone, and their
    signals are told for the sake of the explanation and of feedback.
    """
    query, penalty = moment.query, settings.session.repeat_penalty
    if settings.fusion is not FusionMode.LEARNED:
        kept = without_repeats(best_first(candidates), query, penalty=penalty)[:k]
        return with_quality(kept, beliefs, moment, settings.quality)
    scored = best_first(
        candidate.plus(weighted(_uncounted(candidate), weights(candidate.domain)))
        for candidate in with_quality(candidates, beliefs, moment, settings.quality)
    )
    weighed = with_domains_weighed(scored, query, weight=settings.understanding.scope.agreement_weight)
    return without_repeats(weighed, query, penalty=penalty)[:k]


def results(
    candidates: Sequence[Candidate], weights: SignalWeights, beliefs: ReadableBeliefs
) -> tuple[RankedResult, ...]:
    """Candidates, in their order, as ranked results."""
    return tuple(
        _result(rank, candidate, weights(candidate.domain), beliefs)
        for rank, candidate in enumerate(candidates, start=1)
    )


def _uncounted(candidate: Candidate) -> dict[Signal, float]:
    counted = {contribution.name for contribution in candidate.contributions}
    return {signal: value for signal, value in candidate.signals.items() if signal.value not in counted}


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
    chunk = standing.chunk
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
