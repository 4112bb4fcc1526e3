"""Candidates as results, with all that explains their scores (RET-18)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from weft.domain.arrays import Floats
from weft.domain.chunks import made_by
from weft.domain.ids import ContentHash
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import Channel, ChannelHit, Contribution, PastVerdicts, RankedResult, Signal, WeightBelief
from weft.indexes.chunk_store import Content, Occurrence
from weft.learning.beliefs import Beliefs
from weft.quality.groups import exact_sums
from weft.retrieval.ranking.batch import CHANNELS, SIGNALS, RankingBatch, ScoreTerm
from weft.retrieval.ranking.context import SignalWeight
from weft.retrieval.ranking.effects import CONTENT, OWN, QUESTION


class Candidate(msgspec.Struct, frozen=True):
    """One candidate with all that is known of it."""

    content: Content
    occurrence: Occurrence  # the place it is shown at
    channels: Mapping[Channel, ChannelHit]  # where each channel that ranked it put it
    # the channels' scores of it, also of channels that did not rank it but could score it nevertheless
    scores: Mapping[Channel, float]
    signals: Mapping[Signal, float]  # values in [0, 1]
    contributions: tuple[Contribution, ...]  # what its score is made of
    uris: tuple[str, ...]  # the documents it speaks for, the best one first
    duplicates: tuple[str, ...]  # documents of near-duplicates that it stands for
    relevance: float  # Σ expected weight · signal, in [0, 1]
    past: PastVerdicts | None = None  # what people called it before; None where nobody said anything

    @property
    def content_hash(self) -> ContentHash:
        """Its identity."""
        return self.content.content_hash

    @property
    def text(self) -> str:
        """What was indexed."""
        return self.content.text

    @property
    def score(self) -> float:
        """Sum of the contributions."""
        return math.fsum(contribution.amount for contribution in self.contributions)


def explain_candidates(candidates: RankingBatch) -> list[Candidate]:
    """Each candidate with all that is known of it, in their order."""
    merged, numbers, sums = candidates.merged, candidates.number, candidates.scores
    believed = [candidates.contexts[query].weights(domain) for query, domain in merged.scopes]
    beliefs = [[_belief(part, of_scope) for part in sums.parts] for of_scope in believed]
    values, shares = sums.values[numbers], sums.weights[numbers]
    lines = zip(
        numbers.tolist(),
        candidates.contents,
        candidates.place.tolist(),
        merged.scope[numbers].tolist(),
        merged.ranks[numbers].tolist(),
        merged.scores[numbers].tolist(),
        candidates.signals[numbers].tolist(),
        zip(values.tolist(), shares.tolist(), (values * shares).tolist(), strict=True),
        _relevances(candidates, believed).tolist(),
        strict=True,
    )
    return [
        Candidate(
            content,
            _occurrence(content, place),
            {
                channel: ChannelHit(rank, score)
                for channel, rank, score in zip(CHANNELS, ranks, scores, strict=True)
                if rank
            },
            {channel: score for channel, score in zip(CHANNELS, scores, strict=True) if not math.isnan(score)},
            {signal: value for signal, value in zip(SIGNALS, signals, strict=True) if not math.isnan(value)},
            tuple(
                Contribution(
                    part.name, value, weight, amount, belief or candidates.effects.get(number, {}).get(part.name)
                )
                for part, value, weight, amount, belief in zip(sums.parts, *addends, beliefs[scope], strict=True)
                if not math.isnan(amount)  # what adds nothing is left out
            ),
            candidates.uris(number),
            candidates.duplicates.get(number, ()),
            relevance,
            candidates.past.get(number),
        )
        for number, content, place, scope, ranks, scores, signals, addends, relevance in lines
    ]


def _occurrence(content: Content, place: int) -> Occurrence:
    for occurrence in content.occurrences:
        if occurrence.place == place:
            return occurrence
    raise LookupError(
        f"expected the content of row {content.row} at place {place} of the generation, found it elsewhere"
    )


def _belief(part: ScoreTerm, weights: Mapping[Signal, SignalWeight]) -> WeightBelief | None:
    """What is believed of an addend's weight; None also where its signal does not count."""
    weight = None if part.signal is None else weights.get(part.signal)
    return None if weight is None else weight.belief


def _relevances(candidates: RankingBatch, believed: Sequence[Mapping[Signal, SignalWeight]]) -> Floats:
    """Σ expected weight · signal of each, in [0, 1]: the same measure under every fusion mode, explored or not."""
    expected = np.array(
        [[each[signal].belief.mean if signal in each else np.nan for signal in SIGNALS] for each in believed]
    ).reshape(len(believed), len(SIGNALS))
    lines = candidates.number
    return np.clip(exact_sums(candidates.signals[lines] * expected[candidates.merged.scope[lines]]), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How good a result is beside its score; the fields are those of `RankedResult`."""

    match: MatchFeatures | None = None
    probability: float | None = None
    doubtful: bool = False
    above_next: float | None = None
    propensity: float = 1.0


def is_praised(past: PastVerdicts | None) -> bool:
    """Whether more people called a result right than wrong for a question and near ones: they know more than a match.

    Examples:
        >>> [is_praised(past) for past in (None, PastVerdicts(right=1), PastVerdicts(right=2, wrong=1, own=False))]
        [False, True, False]
    """
    if past is None:
        return False
    return past.own if past.own is not None else past.right + past.near_right > past.wrong + past.near_wrong


def results(candidates: Sequence[Candidate], beliefs: Beliefs, verdicts: Sequence[Verdict]) -> tuple[RankedResult, ...]:
    """RankingBatch of one query, in their order, as ranked results."""
    return tuple(
        _result(rank, candidate, beliefs, verdict)
        for rank, (candidate, verdict) in enumerate(zip(candidates, verdicts, strict=True), start=1)
    )


def precedent_of(candidate: Candidate) -> float | None:
    """How good it was by what came of it before, in (0, 1): 1 / (1 + e^−u) of all effects; None without any."""
    effects = [each.value for each in candidate.contributions if each.name in {CONTENT, QUESTION, OWN}]
    return 1.0 / (1.0 + math.exp(-math.fsum(effects))) if effects else None


def _result(rank: int, candidate: Candidate, beliefs: Beliefs, verdict: Verdict) -> RankedResult:
    occurrence = candidate.occurrence
    chunk = occurrence.label
    return RankedResult(
        rank=rank,
        content_hash=candidate.content_hash,
        chunk_id=chunk.chunk_id,
        uris=candidate.uris,
        text=candidate.text,
        kind=chunk.kind,
        title=occurrence.title,
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
        precedent=precedent_of(candidate),
        past=candidate.past,
        doubtful=verdict.doubtful and not is_praised(candidate.past),
        alike=candidate.duplicates,
    )
