"""The best candidates, looked at again: each reranker tells a signal, whose learned share is its blend (RET-10)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.domain.errors import ModelUnavailableError
from pipelines.domain.ranking import Channel, Signal
from pipelines.quality import signals
from pipelines.retrieval.channels.run import Ranked, ScoreRows
from pipelines.retrieval.ranking.fusion import SignalWeights, weighed
from pipelines.retrieval.ranking.table import Candidates, Floats, Ints, best_first
from pipelines.retrieval.settings import FusionMode, RetrievalSettings
from pipelines.retrieval.snapshot.ports import PairScorer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reranker:
    """One way to look again.

    Attributes:
        values: The signal of each of some contents, by row, in [0, 1].
    """

    signal: Signal
    values: Callable[[Ints], Floats]


@dataclass(frozen=True, slots=True)
class Rerankers:
    """What looks again at the candidates of one query, and why others that are wanted do not."""

    used: tuple[Reranker, ...]
    left_out: Mapping[str, str]

    @property
    def signals(self) -> frozenset[Signal]:
        """What they tell."""
        return frozenset(each.signal for each in self.used)


TextsOf = Callable[[Ints], Sequence[str]]
"""Texts of contents, by row."""


def rerankers(
    text: str,
    found: Mapping[Channel, Ranked],
    pairs: PairScorer | None,
    settings: RetrievalSettings,
    *,
    wanted: Collection[Channel],
    texts_of: TextsOf,
) -> Rerankers:
    """What is switched on and can look at this query's candidates.

    Args:
        text: The query.
        pairs: The cross-encoder, where there is one.
        wanted: Channels that the query asks: without the dense one there are no tokens of it, and nothing is missed.
    """
    used: list[Reranker] = []
    left_out: dict[str, str] = {}
    if settings.rerank.late_interaction:
        match = matcher(found)
        if match is not None:
            values = values_of(match, settings.rerank.span)
            used.append(Reranker(Signal.LATE_INTERACTION, values))
        elif Channel.DENSE in wanted:
            left_out[Signal.LATE_INTERACTION.value] = why_not(found)
    if pairs is not None:
        used.append(Reranker(Signal.CROSS_ENCODER, _values_of(pairs, text, texts_of)))
    elif settings.rerank.cross_encoder.model:
        left_out[Signal.CROSS_ENCODER.value] = "no cross-encoder was loaded here"
    return Rerankers(tuple(used), left_out)


def reranked(
    candidates: Candidates,
    looks: Sequence[Rerankers],
    weights: Sequence[SignalWeights],
    settings: RetrievalSettings,
) -> tuple[Candidates, list[dict[str, str]]]:
    """The best candidates of each query told and scored by each reranker, among the others as they were, in new order.

    All look at the same ones: the best by fused score. Others lack the signals, which adds nothing to their score.

    Args:
        candidates: Best first by fused score.
        looks, weights: Of each query.

    Returns:
        Best first; and for each query why wanted rerankers told nothing, by name.
    """
    lines, failed = candidates.first(settings.rerank.depth), [dict(each.left_out) for each in looks]
    best = candidates.take(lines)
    for signal in dict.fromkeys(look.signal for each in looks for look in each.used):
        values = np.full(len(candidates), np.nan)
        for query, own in best.queries:
            values[lines[own]] = _looked_at(best.rows[own], signal, looks[query], failed[query])
        candidates = candidates.with_signals({signal: values})
        # The other modes rank by fusion alone: there the signal is told for the sake of explanation and feedback.
        if settings.fusion is FusionMode.LEARNED:
            candidates = weighed(candidates, weights, of=[signal])
    return best_first(candidates), failed


def _looked_at(rows: Ints, signal: Signal, looks: Rerankers, failed: dict[str, str]) -> Floats | float:
    """The signal of contents; NaN where nothing tells it, and then `failed` says why if something should have."""
    look = next((each for each in looks.used if each.signal is signal), None)
    if look is None:
        return math.nan
    try:
        return look.values(rows)
    except ModelUnavailableError as error:
        log.warning("%s left out: %s", signal.value, error)
        failed[signal.value] = str(error)
        return math.nan


def _values_of(pairs: PairScorer, query: str, texts_of: TextsOf) -> Callable[[Ints], Floats]:
    return lambda rows: signals.cross_encoder(pairs.score(query, texts_of(rows)))


def matcher(found: Mapping[Channel, Ranked]) -> ScoreRows | None:
    """What compares any contents with the query token by token; None where no channel can."""
    return next((ranked.match_rows for ranked in found.values() if ranked.match_rows is not None), None)


def values_of(match: ScoreRows, span: float) -> Callable[[Ints], Floats]:
    """The signal of contents, each in [0, 1]: how near its match comes to the best of theirs."""
    return lambda rows: signals.late_interaction(match(rows), span)


def why_not(found: Mapping[Channel, Ranked]) -> str:
    """Why no channel can compare tokens."""
    if Channel.DENSE not in found:
        return "there are no tokens of the query, since the dense channel was left out"
    return "the generation keeps no token embeddings of this encoder: set embedding.tokens.enabled and reindex"
