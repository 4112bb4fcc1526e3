"""Stage 4: quality speaks, and candidates become results (RET-14)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pipelines.domain.matching import Match
from pipelines.domain.ranking import Channel, ChannelHit, Contribution, RankedResult, Signal
from pipelines.domain.sizing import made_by
from pipelines.retrieval.across_domains import with_domains_weighed
from pipelines.retrieval.candidates import CHANNELS, SIGNALS, Candidate, Candidates, Floats, Ints, Part, best_first
from pipelines.retrieval.ports import ReadableBeliefs, Standing, StoredContent
from pipelines.retrieval.quality import Moment, with_quality
from pipelines.retrieval.repeats import without_repeats
from pipelines.retrieval.settings import FusionMode, RetrievalSettings
from pipelines.retrieval.sums import exact_sums
from pipelines.retrieval.weights import SignalWeight, SignalWeights, weighed


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


def spelled_out(candidates: Candidates, weights: Sequence[SignalWeights]) -> list[Candidate]:
    """Each candidate with all that is known of it, in their order.

    Args:
        weights: For each query, by the candidate's domain: what is believed of the weights behind its contributions.
    """
    merged, numbers = candidates.merged, candidates.number
    believed = [weights[query](domain) for query, domain in merged.scopes]
    columns = zip(
        numbers.tolist(),
        candidates.contents,
        merged.scope[numbers].tolist(),
        candidates.place.tolist(),
        merged.ranks[numbers].tolist(),
        merged.scores[numbers].tolist(),
        candidates.signals[numbers].tolist(),
        candidates.values[numbers].tolist(),
        candidates.weights[numbers].tolist(),
        _relevances(candidates, believed).tolist(),
        strict=True,
    )
    return [
        Candidate(
            row=content.row,
            content=content,
            standing=_standing(content, place),
            domain=merged.scopes[scope][1],
            channels={
                channel: ChannelHit(rank, score)
                for channel, rank, score in zip(CHANNELS, ranks, scores, strict=True)
                if rank
            },
            scores=_told(CHANNELS, scores),
            signals=_told(SIGNALS, signals),
            contributions=_contributions(candidates.parts, values, shares, believed[scope]),
            uris=candidates.uris(number),
            alike=candidates.alike.get(number, ()),
            relevance=relevance,
        )
        for number, content, scope, place, ranks, scores, signals, values, shares, relevance in columns
    ]


Name = TypeVar("Name", Channel, Signal)


def _told(names: Sequence[Name], values: Sequence[float]) -> dict[Name, float]:
    """What is known, by name: NaN is not."""
    return {name: value for name, value in zip(names, values, strict=True) if value == value}  # noqa: PLR0124


def _standing(content: StoredContent, place: int) -> Standing:
    return next(standing for standing in content.occurrences if standing.place == place)


def _contributions(
    parts: Sequence[Part], values: Sequence[float], shares: Sequence[float], weights: Mapping[Signal, SignalWeight]
) -> tuple[Contribution, ...]:
    return tuple(
        Contribution(
            part.name, value, share, value * share, None if part.signal is None else weights[part.signal].belief
        )
        for part, value, share in zip(parts, values, shares, strict=True)
        if not math.isnan(value * share)
    )


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


def _relevances(candidates: Candidates, believed: Sequence[Mapping[Signal, SignalWeight]]) -> Floats:
    """Σ expected weight · signal of each, in [0, 1]: the same measure under every fusion mode, explored or not.

    Args:
        believed: Weights by `scopes` of what was merged.
    """
    expected = np.array(
        [[each[signal].belief.mean if signal in each else np.nan for signal in SIGNALS] for each in believed]
    ).reshape(len(believed), len(SIGNALS))
    lines = candidates.number
    return np.clip(exact_sums(candidates.signals[lines] * expected[candidates.merged.scope[lines]]), 0.0, 1.0)


def _result(
    rank: int,
    candidate: Candidate,
    beliefs: ReadableBeliefs,
    verdict: Verdict,
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
        relevance=candidate.relevance,
        probability=verdict.probability,
        above_next=verdict.above_next,
        propensity=verdict.propensity,
        examination=beliefs.examined(standing.domain, rank),
        made=made_by(chunk),
        match=verdict.match,
        doubtful=verdict.doubtful,
        alike=candidate.alike,
    )
