"""The best candidates, scored again: each reranker gives a signal, whose learned weight is its blend (RET-10)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.errors import ModelUnavailableError
from weft.domain.ranking import Channel, Signal
from weft.embedding.ports import PairScorer
from weft.quality import signals
from weft.retrieval.channels.run import Ranked, ScoreRows, matcher
from weft.retrieval.ranking.batch import RankingBatch, best_first
from weft.retrieval.ranking.context import Rerankers
from weft.retrieval.ranking.fusion import weighed
from weft.retrieval.settings import FusionMode, RetrievalSettings

log = logging.getLogger(__name__)

TextLookup = Callable[[Ints], Sequence[str]]
"""Texts of contents, by row."""


def rerankers(
    text: str,  # the query
    by_channel: Mapping[Channel, Ranked],
    pairs: PairScorer | None,  # the cross-encoder, where there is one
    settings: RetrievalSettings,
    *,
    wanted: Collection[Channel],
    texts_of: TextLookup,
) -> Rerankers:
    """What is switched on and can score this query's candidates."""
    used: dict[Signal, ScoreRows] = {}
    left_out: dict[str, str] = {}
    if settings.rerank.late_interaction:
        match = matcher(by_channel)
        if match is not None:
            used[Signal.LATE_INTERACTION] = partial(_late_interaction, match, settings.rerank.span)
        elif Channel.DENSE in wanted:
            left_out[Signal.LATE_INTERACTION.value] = (
                "the generation keeps no token embeddings of this encoder: set embedding.tokens.enabled and reindex"
                if Channel.DENSE in by_channel
                else "there are no tokens of the query, since the dense channel was left out"
            )
    if pairs is not None:
        used[Signal.CROSS_ENCODER] = partial(_cross_encoder, pairs, text, texts_of)
    elif settings.rerank.cross_encoder.model:
        left_out[Signal.CROSS_ENCODER.value] = "no cross-encoder was loaded here"
    return Rerankers(used, left_out)


def _late_interaction(match: ScoreRows, span: float, rows: Ints) -> Floats:
    return signals.late_interaction(match(rows), span)


def _cross_encoder(pairs: PairScorer, query: str, texts_of: TextLookup, rows: Ints) -> Floats:
    return signals.cross_encoder(pairs.score(query, texts_of(rows)))


def reranked(candidates: RankingBatch, settings: RetrievalSettings) -> RankingBatch:
    """The best candidates of each query scored by each reranker, among the others as they were, in new order.

    All score the same ones: the best by fused score, and what was called right before. Others lack the signals, which
    adds nothing to their score.
    """
    # What was called right before is scored like the best, wherever it stands (LRN-23).
    first, answered = candidates.first(settings.rerank.depth), candidates.is_ranked_by(Channel.ANSWERED).nonzero()[0]
    by_query, lines = [each.reranking for each in candidates.contexts], np.union1d(first, answered)
    left_out, best = [dict(each.left_out) for each in by_query], candidates.take(lines)
    for signal in dict.fromkeys(signal for each in by_query for signal in each.used):
        values = np.full(len(candidates), np.nan)
        for query, own in best.queries:
            values[lines[own]] = _values(best.rows[own], signal, by_query[query], left_out[query])
        candidates = candidates.with_signals({signal: values})
        # The other modes rank by fusion alone: there the signal is for explanation and feedback.
        if settings.fusion is FusionMode.LEARNED:
            candidates = weighed(candidates, [signal])
    failed = [{**before, **now} for before, now in zip(candidates.failed, left_out, strict=True)]
    return best_first(replace(candidates, failed=failed))


def _values(rows: Ints, signal: Signal, by_signal: Rerankers, failed: dict[str, str]) -> Floats | float:
    """The signal of contents; NaN where no reranker gives it, and then `failed` says why if one should have."""
    if signal not in by_signal.used:
        return math.nan
    try:
        return by_signal.used[signal](rows)
    except ModelUnavailableError as error:
        log.warning("%s left out: %s", signal.value, error)
        failed[signal.value] = str(error)
        return math.nan
