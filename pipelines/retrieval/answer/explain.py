"""Lines of the table of candidates as results, with all that explains their scores (RET-18)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np

from pipelines.domain.documents import Domain
from pipelines.domain.ids import ContentHash
from pipelines.domain.matching import Match
from pipelines.domain.ranking import Channel, ChannelHit, Contribution, RankedResult, Signal, WeightBelief
from pipelines.domain.sizing import made_by
from pipelines.quality.groups import exact_sums
from pipelines.retrieval.ranking.fusion import SignalWeight, SignalWeights
from pipelines.retrieval.ranking.table import CHANNELS, SIGNALS, Candidates, Flags, Floats, Ints, ScoreTerm
from pipelines.retrieval.snapshot.ports import ReadableBeliefs, StoredContent, StoredOccurrence


class Candidate(msgspec.Struct, frozen=True):
    """One candidate with all that is known of it.

    Attributes:
        row: Its row in every index of the generation.
        occurrence: The place it is shown at.
        domain: The domain of the content's representative: whose weights rank it.
        channels: Where each channel that found it put it.
        scores: The channels' scores of it, also of channels that did not find it but could score it nevertheless.
        signals: Values in [0, 1].
        contributions: What its score is made of.
        uris: The documents it speaks for, the best one first.
        alike: Documents of near-duplicates that it stands for.
        relevance: Σ expected weight · signal, in [0, 1].
    """

    row: int
    content: StoredContent
    occurrence: StoredOccurrence
    domain: Domain
    channels: Mapping[Channel, ChannelHit]
    scores: Mapping[Channel, float]
    signals: Mapping[Signal, float]
    contributions: tuple[Contribution, ...]
    uris: tuple[str, ...]
    alike: tuple[str, ...]
    relevance: float

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


def explain_candidates(candidates: Candidates, weights: Sequence[SignalWeights]) -> list[Candidate]:
    """Each candidate with all that is known of it, in their order.

    Args:
        weights: For each query, by the candidate's domain: what is believed of the weights behind its contributions.
    """
    merged, numbers = candidates.merged, candidates.number
    believed = [weights[query](domain) for query, domain in merged.scopes]
    scopes, ranks, scores = merged.scope[numbers], merged.ranks[numbers], merged.scores[numbers]
    signals = candidates.signals[numbers]
    columns = zip(
        numbers.tolist(),
        candidates.contents,
        scopes.tolist(),
        candidates.place.tolist(),
        _named(CHANNELS, ranks > 0, lambda present: map(ChannelHit, ranks[present].tolist(), scores[present].tolist())),
        _named(CHANNELS, ~np.isnan(scores), lambda mask: scores[mask].tolist()),
        _named(SIGNALS, ~np.isnan(signals), lambda mask: signals[mask].tolist()),
        _contributions(candidates, scopes, believed),
        _relevances(candidates, believed).tolist(),
        strict=True,
    )
    return [
        Candidate(
            content.row,
            content,
            _occurrence(content, place),
            merged.scopes[scope][1],
            channels,
            scores_of,
            signals_of,
            contributions,
            candidates.uris(number),
            candidates.alike.get(number, ()),
            relevance,
        )
        for (
            number,
            content,
            scope,
            place,
            channels,
            scores_of,
            signals_of,
            contributions,
            relevance,
        ) in columns
    ]


Name = TypeVar("Name", Channel, Signal)
Value = TypeVar("Value")


def _named(
    names: Sequence[Name], mask: Flags, values: Callable[[Flags], Iterable[Value]]
) -> Iterator[dict[Name, Value]]:
    """What is known of each line, by the name of its column.

    Args:
        mask: (lines, names).
        values: Of what is known, line by line.
    """
    of = list(zip(_picked(names, mask.nonzero()[1]), values(mask), strict=True))
    return (dict(of[start:end]) for start, end in _spans(mask))


def _spans(mask: Flags) -> Iterator[tuple[int, int]]:
    """Where each line's known values start and end, among those of all lines."""
    ends = np.add.reduce(mask, axis=1, dtype=np.int64).cumsum().tolist()
    return zip([0, *ends], ends, strict=False)


def _picked(items: Sequence[Value], places: Ints) -> list[Value]:
    return [items[place] for place in places.tolist()]


def _occurrence(content: StoredContent, place: int) -> StoredOccurrence:
    for occurrence in content.occurrences:
        if occurrence.place == place:
            return occurrence
    raise LookupError(
        f"expected the content of row {content.row} at place {place} of the generation, found it elsewhere"
    )


def _contributions(
    candidates: Candidates, scopes: Ints, believed: Sequence[Mapping[Signal, SignalWeight]]
) -> Iterator[tuple[Contribution, ...]]:
    """What the score of each line is made of; what adds nothing, whose amount is NaN, is left out."""
    parts, values, shares = (
        candidates.parts,
        candidates.values[candidates.number],
        candidates.weights[candidates.number],
    )
    amounts = values * shares
    adds = ~np.isnan(amounts)
    lines, places = adds.nonzero()
    beliefs = [_belief(part, of_scope) for of_scope in believed for part in parts]
    made = list(
        map(
            Contribution,
            _picked([part.name for part in parts], places),
            values[adds].tolist(),
            shares[adds].tolist(),
            amounts[adds].tolist(),
            _picked(beliefs, scopes[lines] * len(parts) + places),
        )
    )
    return (tuple(made[start:end]) for start, end in _spans(adds))


def _belief(part: ScoreTerm, weights: Mapping[Signal, SignalWeight]) -> WeightBelief | None:
    """What is believed of an addend's weight; None also where its signal does not count."""
    weight = None if part.signal is None else weights.get(part.signal)
    return None if weight is None else weight.belief


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
