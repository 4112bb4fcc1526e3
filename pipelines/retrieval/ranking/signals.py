"""What speaks for a candidate: similarity to the query, and to what was ranked first (pseudo-relevance).

What is relevant lies close together (van Rijsbergen's cluster hypothesis), so that the first results of a search speak
for what is like them (Rocchio 1971, with vectors for terms). Nobody's feedback is needed for that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from pipelines.domain.ranking import Channel, Signal
from pipelines.quality import signals
from pipelines.quality.groups import Groups
from pipelines.retrieval.channels.run import DENSE, Ranked, VectorsOf, scores_of
from pipelines.retrieval.ranking.table import CHANNEL_AT, CHANNELS, Candidates, Floats, Ints
from pipelines.retrieval.settings import PseudoRelevanceSettings

_DENSE_AT = [CHANNEL_AT[channel] for channel in sorted(DENSE)]

SIMILARITY: Mapping[Channel, Signal] = MappingProxyType(
    {
        Channel.DENSE: Signal.VECTOR,
        Channel.DENSE_2: Signal.VECTOR_2,
        Channel.DENSE_3: Signal.VECTOR_3,
        Channel.LEXICAL: Signal.LEXICAL,
        Channel.GRAPH: Signal.GRAPH,
        Channel.DEGREE: Signal.DEGREE,
        Channel.TRIGGERS: Signal.TRIGGER,
    }
)
"""The signal that a channel's score becomes."""

_SCALES: Mapping[Channel, Callable[[Floats, Groups], Floats]] = MappingProxyType(
    {channel: getattr(signals, signal.value) for channel, signal in SIMILARITY.items()}
)

SOMETIMES = frozenset(
    {
        Signal.LATE_INTERACTION,
        Signal.CROSS_ENCODER,
        Signal.PSEUDO_RELEVANCE,
        Signal.ISOLATION,
        Signal.AUTHORITY,
        Signal.STRUCTURE,
        Signal.PROPAGATED,
        Signal.NOVELTY,
        Signal.TIER,
        Signal.VALIDATION,
        Signal.CONGRUENCE,
        Signal.SESSION,
        Signal.PRECEDENT,
    }
)
"""Signals that only some generations, queries and rerankers can tell."""
_ALL = frozenset(Signal)


def answering(found: Mapping[Channel, Ranked]) -> frozenset[Channel]:
    """Channels that have something to say about one query: words and meaning where they answered at all.

    That neither found anything says something; that a query names no entity does not.
    """
    return frozenset(
        channel
        for channel, ranked in found.items()
        if len(ranked.ranking) or channel is Channel.LEXICAL or channel in DENSE
    )


def active_signals(
    channels: Collection[Channel], without: Collection[Signal] = (), *, telling: Collection[Signal] = ()
) -> frozenset[Signal]:
    """Signals that are weighed when these channels answered: without a channel its similarity has no weight.

    Args:
        without: Signals that are switched off: told, and not weighed.
        telling: Signals that only some generations, queries and rerankers can tell, and these do.
    """
    silent = {signal for channel, signal in SIMILARITY.items() if channel not in channels}
    if Channel.LEXICAL not in channels or DENSE.isdisjoint(channels):
        silent.add(Signal.CROSS_VALIDATION)
    if DENSE.isdisjoint(channels):  # what it makes up for is a fault of finding by meaning
        silent.add(Signal.ISOLATION)
    silent |= SOMETIMES.difference(telling)
    return _ALL - silent.union(without)


def with_similarity(candidates: Candidates, answered: Sequence[Collection[Channel]]) -> Candidates:
    """Candidates with their similarity to their query, measured among its own, and whether channels agree.

    Args:
        answered: The channels that answered each query.
    """
    told = {Signal.CROSS_VALIDATION: signals.cross_validation(_ways(candidates))}
    for channel in CHANNELS:
        says = [channel in channels for channels in answered]
        if any(says):
            values = _SCALES[channel](candidates.scores_of(channel), candidates.queries)
            told[SIMILARITY[channel]] = (
                values if all(says) else np.where(np.array(says)[candidates.query], values, np.nan)
            )
    return candidates.with_signals(told)


def _ways(candidates: Candidates) -> Ints:
    """In how many ways, by words and by meaning, each candidate was found."""
    found = candidates.merged.ranks[candidates.number] > 0
    meaning = np.logical_or.reduce(found[:, _DENSE_AT], axis=1)
    return np.asarray(found[:, CHANNEL_AT[Channel.LEXICAL]].astype(np.int64) + meaning)


def own_scores(candidates: Candidates, channel: Channel, found: Mapping[Channel, Ranked]) -> list[float]:
    """A channel's scores of the candidates of one query by the query's own words; 0 where it knows none.

    What they match is the query: other words help to find it, and say nothing about how well it is answered (RET-3).
    """
    alone = found[channel].alone if channel in found else None
    if alone is None:
        scores: list[float] = np.nan_to_num(candidates.scores_of(channel), nan=0.0).tolist()
        return scores
    own, rows = dict(alone.ranking), candidates.rows
    return [own.get(row, score) for row, score in zip(rows.tolist(), scores_of(alone)(rows).tolist(), strict=True)]


def pseudo_relevance_signals(vectors: VectorsOf | None, settings: PseudoRelevanceSettings) -> frozenset[Signal]:
    """The signal, where it is on and the vectors of a query's candidates can be had."""
    return frozenset({Signal.PSEUDO_RELEVANCE} if settings.first and vectors is not None else ())


def with_pseudo_relevance(
    candidates: Candidates, vectors: Sequence[VectorsOf | None], settings: PseudoRelevanceSettings
) -> Candidates:
    """Candidates told how like the first ones of their query they are, scaled among its own.

    First are those that words and meaning together put there, each as `vector` and `lexical` tell it and both alike:
    the signal knows nothing of weights, so that it is the same whatever was learned.

    Args:
        candidates: With their similarity to the query.
        vectors: Of each query; None where there are none: then nothing is told.
    """
    able = [of_query is not None for of_query in vectors]
    if not settings.first or not any(able):
        return candidates
    agreed = _agreed(candidates)
    likeness = np.full(len(candidates), np.nan)
    for query, lines in candidates.queries:
        of_query = vectors[query]
        if of_query is not None:
            likeness[lines] = likeness_to_first(of_query(candidates.rows[lines]), agreed[lines], settings)
    values = signals.pseudo_relevance(likeness, candidates.queries)
    return candidates.with_signals(
        {Signal.PSEUDO_RELEVANCE: np.where(np.array(able)[candidates.query], values, np.nan)}
    )


def likeness_to_first(vectors: np.ndarray, scores: Floats, settings: PseudoRelevanceSettings) -> Floats:
    """Mean of each vector's cosine to the power of `sharpness` to the `first` ones by score, itself left out.

    The first ones weigh exp((score − best) / temperature). What is nobody's like, and what has no company, is NaN or 0.

    Args:
        vectors: Unit rows, (n, dimension).
        scores: In [0, 1], (n,); of equals the first.

    Returns:
        In [0, 1], (n,); NaN where there are no others.
    """
    first = np.argsort(-scores, kind="stable")[: settings.first]
    chances = np.exp((scores[first] - scores[first[0]]) / settings.temperature)
    cosines = np.maximum(vectors @ vectors[first].T, 0.0).astype(np.float64)
    shares = np.tile(chances, (len(scores), 1))
    shares[first, np.arange(len(first))] = 0.0
    total = shares.sum(axis=1)
    met = (cosines**settings.sharpness * shares).sum(axis=1)
    return np.where(total > 0.0, met / np.where(total > 0.0, total, 1.0), np.nan)


def _agreed(candidates: Candidates) -> Floats:
    """Mean of what words and meaning say of each candidate; what one of them says where the other is silent."""
    meaning, words = candidates.signal(Signal.VECTOR), candidates.signal(Signal.LEXICAL)
    return np.where(np.isnan(words), meaning, (meaning + words) / 2.0)
