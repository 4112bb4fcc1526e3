"""Pseudo-relevance: a candidate that is like the first ones of its query is likely what they are.

What is relevant lies close together (van Rijsbergen's cluster hypothesis), so that the first results of a search speak
for what is like them (Rocchio 1971, with vectors for terms). Nobody's feedback is needed for that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.domain.ranking import Signal
from pipelines.quality import signals
from pipelines.retrieval.channels.run import VectorsOf
from pipelines.retrieval.ranking.table import Candidates, Floats
from pipelines.retrieval.settings import PseudoRelevanceSettings


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
    known = _agreed(candidates)
    likeness = np.full(len(candidates), np.nan)
    for query, lines in candidates.queries:
        of_query = vectors[query]
        if of_query is not None:
            likeness[lines] = likeness_to_first(of_query(candidates.rows[lines]), known[lines], settings)
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
