"""Stage 2: the channels' verdicts become one score (RET-9), by configured or by learned weights (RET-14).

Every mode gives a hit a share and multiplies it with a weight; the modes differ in how a rank or score becomes a share.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.documents import Domain
from weft.domain.errors import ModelUnavailableError
from weft.domain.ranking import Channel, Query, Scope, Signal
from weft.embedding.ports import PairScorer
from weft.learning.beliefs import Beliefs
from weft.quality import signals
from weft.quality.groups import Groups
from weft.retrieval.channels.run import DENSE, Ranked, ScoreRows, matcher
from weft.retrieval.ranking.batch import CHANNELS, SIGNAL_AT, SIGNALS, RankingBatch, ScoreTerm, best_first
from weft.retrieval.ranking.context import Rerankers, SignalWeight, SignalWeights, WeightDraws
from weft.retrieval.settings import FusionMode, RetrievalSettings

# The best candidates, scored again: each reranker gives a signal, whose learned weight is its blend (RET-10).

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
            span = settings.rerank.span
            used[Signal.LATE_INTERACTION] = lambda rows: signals.late_interaction(match(rows), span)
        elif Channel.DENSE in wanted:
            left_out[Signal.LATE_INTERACTION.value] = (
                "the generation keeps no token embeddings of this encoder: set embedding.tokens.enabled and reindex"
                if Channel.DENSE in by_channel
                else "there are no tokens of the query, since the dense channel was left out"
            )
    if pairs is not None:
        used[Signal.CROSS_ENCODER] = lambda rows: signals.cross_encoder(pairs.score(text, texts_of(rows)))
    elif settings.rerank.cross_encoder.model:
        left_out[Signal.CROSS_ENCODER.value] = "no cross-encoder was loaded here"
    return Rerankers(used, left_out)


def reranked(candidates: RankingBatch, settings: RetrievalSettings) -> RankingBatch:
    """The best candidates of each query scored by each reranker, among the others as they were, in new order."""
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


ORDER_DRAWS = 400
"""Draws of the weights behind "belongs above the next": its standard error is at most .025."""


ChannelWeights = Mapping[Channel, float]

SharedWeights = dict[Hashable, tuple[SignalWeights, WeightDraws]]
"""Weights of queries that are asked together, by what they depend on."""


def believed_in_common(
    query: Query, beliefs: Beliefs, active: frozenset[Signal], shared: SharedWeights
) -> tuple[SignalWeights, WeightDraws]:
    """Weights and draws of them, the same ones for all queries of a batch that no belief tells apart."""
    scope = (query.domain, query.model, query.agent, query.intent)
    key = (id(beliefs), scope, active, query.query_id if query.explore else None)
    if key not in shared:
        shared[key] = believed_weights(query, beliefs, active), believed_draws(query, beliefs, active, ORDER_DRAWS)
    return shared[key]


def believed_weights(query: Query, beliefs: Beliefs, active: Collection[Signal]) -> SignalWeights:
    """Learned weights for the query's domain, or for each candidate's own where the query names none.

    An exploring query draws them by its id and the domain, so that the same query gets the same draw (ARC-9).
    """

    def of_domain(domain: Domain) -> Mapping[Signal, SignalWeight]:
        scope = Scope(domain, query.model, query.agent, query.intent)
        believed = beliefs.weights(scope, active)
        if not query.explore:
            return {signal: SignalWeight(belief.mean, belief) for signal, belief in believed.items()}
        seed = hashlib.sha256(f"{domain.value}:{query.query_id}".encode("utf-8", "surrogatepass")).digest()
        drawn = beliefs.sampled_weights(scope, active, np.random.default_rng(int.from_bytes(seed, "big")))
        return {signal: SignalWeight(drawn[signal], belief) for signal, belief in believed.items()}

    once = cache(of_domain)
    return lambda domain: once(query.domain or domain)


def believed_draws(query: Query, beliefs: Beliefs, active: Collection[Signal], n: int) -> WeightDraws:
    """Draws of the learned weights for the query's domain, or for each candidate's own where the query names none."""

    def of_domain(domain: Domain) -> Floats:
        drawn = beliefs.weight_draws(Scope(domain, query.model, query.agent, query.intent), active, n)
        weights = np.zeros((len(SIGNALS), n))
        for signal, of_signal in drawn.items():
            weights[SIGNAL_AT[signal]] = of_signal
        return weights

    once = cache(of_domain)
    return lambda domain: once(query.domain or domain)


def weighed(candidates: RankingBatch, of: Collection[Signal]) -> RankingBatch:
    """Candidates with what those of the weighed signals add that each has, in the order of `Signal`."""
    believed = [candidates.contexts[query].weights(domain) for query, domain in candidates.merged.scopes]
    weighing = frozenset().union(*believed).intersection(of)
    counted = [signal for signal in SIGNALS if signal in weighing]
    shares = np.full((len(believed), len(counted)), np.nan)
    for line, each in enumerate(believed):
        shares[line] = [each[signal].value if signal in each else np.nan for signal in counted]
    places = np.array([SIGNAL_AT[signal] for signal in counted], dtype=np.int64)
    values = candidates.signals[candidates.number[:, None], places]
    parts = [ScoreTerm(signal.value, signal) for signal in counted]
    return candidates.add_terms(parts, values, shares[candidates.merged.scope[candidates.number]])


Share = Callable[[Ints, Floats], Floats]
"""From a channel's ranks and scores of its hits for one query to their shares of a score, in [0, 1]."""

FLOORS: Mapping[Channel, float | None] = MappingProxyType(
    {channel: None if channel in DENSE else 0.0 for channel in Channel}
)
"""The least score a hit of the channel can have in theory; None where nothing near it is ever seen, as with cosines
of text: then the least score of the query stands in for it."""


def reciprocal_rank_fusion(candidates: RankingBatch, weights: ChannelWeights, *, k: float) -> RankingBatch:
    """Fuse by rank: score = Σ over channels of weight / (k + rank)."""
    return _fuse(candidates, weights, lambda _: lambda ranks, _scores: np.asarray(1.0 / (k + ranks)))


def relative_score_fusion(candidates: RankingBatch, weights: ChannelWeights) -> RankingBatch:
    """Fuse by score: Σ over channels of weight · (score − floor) / (best score − floor)."""
    return _fuse(candidates, weights, lambda channel: lambda _, scores: relative(scores, FLOORS[channel]))


def learned_fusion(candidates: RankingBatch) -> RankingBatch:
    """Fuse by belief: Σ over the similarity signals of learned weight · signal; stage 4 adds the quality signals."""
    filled = np.flatnonzero(~np.isnan(candidates.signals).all(axis=0)).tolist()
    return best_first(weighed(candidates, [SIGNALS[at] for at in filled]))


def fuse(candidates: RankingBatch, settings: RetrievalSettings) -> RankingBatch:
    """Candidates by one score, best first, by the configured mode."""
    if settings.fusion is FusionMode.LEARNED:
        return learned_fusion(candidates)
    if settings.fusion is FusionMode.RRF:
        return reciprocal_rank_fusion(candidates, settings.static_weights, k=settings.rrf_k)
    return relative_score_fusion(candidates, settings.static_weights)


def relative(scores: Floats, floor: float | None) -> Floats:
    """Share of each score between the floor (None: the least score) and the best score; 1 where these are one."""
    best = scores.max()
    base = scores.min() if floor is None else min(floor, best)
    span = best - base
    return (scores - base) / span if span > 0.0 else np.ones(len(scores))


def _fuse(candidates: RankingBatch, weights: ChannelWeights, share_of: Callable[[Channel], Share]) -> RankingBatch:
    channels = [channel for channel in CHANNELS if candidates.is_ranked_by(channel).any()]
    if unweighted := set(channels) - weights.keys():
        raise ValueError(f"expected a weight per channel, none for {sorted(unweighted)}")
    values = np.full((len(candidates), len(channels)), np.nan)
    for at, channel in enumerate(channels):
        hits = np.flatnonzero(candidates.is_ranked_by(channel))
        ranks, scores = candidates.ranks_of(channel)[hits], candidates.scores_of(channel)[hits]
        for _, lines in Groups.of(candidates.query[hits]):
            values[hits[lines], at] = share_of(channel)(ranks[lines], scores[lines])
    # A column of the same weights, and none where there is no value: so nothing is added there.
    columns = np.tile([weights[channel] for channel in channels], (len(candidates), 1))
    return best_first(candidates.add_terms([ScoreTerm(channel.value) for channel in channels], values, columns))
