"""Stage 4: quality speaks, and candidates become results (RET-14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.domain.matching import Match
from pipelines.domain.ranking import RankedResult
from pipelines.domain.sizing import made_by
from pipelines.retrieval.answer.explain import Candidate
from pipelines.retrieval.ranking.adjustments import with_domains_weighed, without_repeats
from pipelines.retrieval.ranking.quality import Moment, with_quality
from pipelines.retrieval.ranking.table import SIGNALS, Candidates, Ints, best_first
from pipelines.retrieval.ranking.weights import SignalWeights, weighed
from pipelines.retrieval.settings import FusionMode, RetrievalSettings
from pipelines.retrieval.snapshot.ports import ReadableBeliefs


def score_and_cut(
    candidates: Candidates,
    depths: Ints,
    beliefs: Sequence[ReadableBeliefs],
    weights: Sequence[SignalWeights],
    *,
    moments: Sequence[Moment],
    settings: RetrievalSettings,
) -> Candidates:
    """The best of each query by final score, with all their signals.

    Learned ranking adds weight · signal of the quality signals; the other modes rank by fusion alone, and their
    signals are told for the sake of the explanation and of feedback.

    Args:
        depths: How many are wanted for each query, (queries,).
        beliefs, weights, moments: Of each query.
    """
    queries, penalty = [moment.query for moment in moments], settings.session.repeat_penalty
    if settings.fusion is not FusionMode.LEARNED:
        kept = without_repeats(best_first(candidates), queries, penalty=penalty).head(depths)
        return with_quality(kept, beliefs, moments, settings.quality)
    told = with_quality(candidates, beliefs, moments, settings.quality)
    counted = {part.signal for part in told.parts}
    scored = best_first(weighed(told, weights, of=[signal for signal in SIGNALS if signal not in counted]))
    across = with_domains_weighed(scored, queries, weight=settings.understanding.scope.agreement_weight)
    return without_repeats(across, queries, penalty=penalty).head(depths)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is told of a result beside its score.

    Attributes:
        match: How well it matches the query's own words.
        probability, doubtful, above_next, propensity: As `RankedResult` has them.
    """

    match: Match | None = None
    probability: float | None = None
    doubtful: bool = False
    above_next: float | None = None
    propensity: float = 1.0


UNJUDGED = Verdict()


def results(
    candidates: Sequence[Candidate],
    beliefs: ReadableBeliefs,
    verdicts: Sequence[Verdict] | None = None,
) -> tuple[RankedResult, ...]:
    """Candidates of one query, in their order, as ranked results.

    Args:
        verdicts: On each of them; None where none is told.
    """
    told = verdicts or [UNJUDGED] * len(candidates)
    return tuple(
        _result(rank, candidate, beliefs, verdict)
        for rank, (candidate, verdict) in enumerate(zip(candidates, told, strict=True), start=1)
    )


def _result(
    rank: int,
    candidate: Candidate,
    beliefs: ReadableBeliefs,
    verdict: Verdict,
) -> RankedResult:
    occurrence = candidate.occurrence
    chunk = occurrence.label
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
        domain=occurrence.domain,
        channels=candidate.channels,
        signals=candidate.signals,
        contributions=candidate.contributions,
        relevance=candidate.relevance,
        probability=verdict.probability,
        above_next=verdict.above_next,
        propensity=verdict.propensity,
        examination=beliefs.examined(occurrence.domain, rank),
        made=made_by(chunk),
        match=verdict.match,
        doubtful=verdict.doubtful,
        alike=candidate.alike,
    )
