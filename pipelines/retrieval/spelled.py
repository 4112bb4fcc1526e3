"""Lines of the table of candidates as objects, with all that explains their scores (RET-18)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from pipelines.domain.documents import Domain
from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Channel, ChannelHit, Contribution, Signal, WeightBelief
from pipelines.retrieval.candidates import CHANNELS, SIGNALS, Candidates, Floats, Part
from pipelines.retrieval.ports import Standing, StoredContent
from pipelines.retrieval.sums import exact_sums
from pipelines.retrieval.weights import SignalWeight, SignalWeights


class Candidate(msgspec.Struct, frozen=True):
    """One candidate with all that is known of it.

    Attributes:
        row: Its row in every index of the generation.
        standing: The place it is shown at.
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
    standing: Standing
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


def spelled_out(candidates: Candidates, weights: Sequence[SignalWeights]) -> list[Candidate]:
    """Each candidate with all that is known of it, in their order.

    Args:
        weights: For each query, by the candidate's domain: what is believed of the weights behind its contributions.
    """
    merged, numbers = candidates.merged, candidates.number
    believed = [weights[query](domain) for query, domain in merged.scopes]
    named = [[_named(part, of_scope) for part in candidates.parts] for of_scope in believed]
    values, shares = candidates.values[numbers], candidates.weights[numbers]
    columns = zip(
        numbers.tolist(),
        candidates.contents,
        merged.scope[numbers].tolist(),
        candidates.place.tolist(),
        merged.ranks[numbers].tolist(),
        merged.scores[numbers].tolist(),
        candidates.signals[numbers].tolist(),
        values.tolist(),
        shares.tolist(),
        (values * shares).tolist(),
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
            contributions=_contributions(named[scope], values, shares, amounts),
            uris=candidates.uris(number),
            alike=candidates.alike.get(number, ()),
            relevance=relevance,
        )
        for number, content, scope, place, ranks, scores, signals, values, shares, amounts, relevance in columns
    ]


Name = TypeVar("Name", Channel, Signal)


def _told(names: Sequence[Name], values: Sequence[float]) -> dict[Name, float]:
    """What is known, by name: NaN is not."""
    return {name: value for name, value in zip(names, values, strict=True) if value == value}  # noqa: PLR0124


def _standing(content: StoredContent, place: int) -> Standing:
    return next(standing for standing in content.occurrences if standing.place == place)


def _named(part: Part, weights: Mapping[Signal, SignalWeight]) -> tuple[str, WeightBelief | None]:
    """An addend's name, and what is believed of its weight; None also where the signal does not count."""
    weight = None if part.signal is None else weights.get(part.signal)
    return part.name, None if weight is None else weight.belief


def _contributions(
    named: Sequence[tuple[str, WeightBelief | None]],
    values: Sequence[float],
    shares: Sequence[float],
    amounts: Sequence[float],
) -> tuple[Contribution, ...]:
    """What a score is made of; what adds nothing, whose amount is NaN, is left out."""
    addends = zip(named, values, shares, amounts, strict=True)
    return tuple(
        [
            Contribution(name, value, share, amount, belief)
            for (name, belief), value, share, amount in addends
            if amount == amount  # noqa: PLR0124
        ]
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
