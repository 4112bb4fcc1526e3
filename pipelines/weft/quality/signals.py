"""Signals: one pure function each, a number in [0, 1] about a candidate that may speak for it (RET-13).

What is measured among the candidates of a query takes and gives a column of them, or of those of several queries, in
groups; NaN stands for what is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from weft.domain.arrays import Floats
from weft.quality.groups import Groups


def vector(cosines: ArrayLike, queries: Groups | None = None) -> Floats:
    """Similarity among the candidates of a query: (c − min) / (max − min) over those the channel found.

    A candidate that the channel did not find (NaN) has 0. Where all found ones are alike, they have 1: the channel
    chose them from everything it knows.
    """
    scores = np.asarray(cosines, dtype=np.float64)
    queries = queries or Groups.one(len(scores))
    low = queries.least(scores)
    span = queries.most(scores) - low
    apart = span > 0.0
    shares = np.clip((scores - low) / np.where(apart, span, 1.0), 0.0, 1.0)
    return np.where(np.isnan(scores), 0.0, np.where(apart, shares, 1.0))


def lexical(bm25: ArrayLike, queries: Groups | None = None) -> Floats:
    """Share of the best lexical score: BM25's floor is 0, so the last hit does not count as a miss (RET-9)."""
    scores = np.maximum(0.0, np.asarray(bm25, dtype=np.float64))  # the least is what shares are measured from
    best = (queries or Groups.one(len(scores))).most(scores)
    some = best > 0.0  # no comparison with NaN holds
    return np.where(some & ~np.isnan(scores), np.clip(scores / np.where(some, best, 1.0), 0.0, 1.0), 0.0)


vector_2 = vector
vector_3 = vector
"""Further encoders' similarity is measured like the first one's."""


def sparse(products: ArrayLike, queries: Groups | None = None) -> Floats:
    """Share of the best dot product of term weights, whose floor is 0 as BM25's is."""
    return lexical(products, queries)


def graph(energies: ArrayLike, queries: Groups | None = None) -> Floats:
    """Share of the most energy that reached any candidate; what no energy reached has 0."""
    return lexical(energies, queries)


def degree(scores: ArrayLike, cap: float) -> Floats:
    """How well connected each candidate is, as a share of `cap`: being it never outweighs being relevant.

    Shares keep the order of the scores: were they cut at the cap, most would be one.
    """
    return _as_it_is(scores) * cap


def trigger(shares: ArrayLike, _queries: Groups | None = None) -> Floats:
    """How much of the query its trigger phrase makes up: the channel's score as it is."""
    return _as_it_is(shares)


def named(grades: ArrayLike, _queries: Groups | None = None) -> Floats:
    """How much each is what the query names: the channel's score as it is."""
    return _as_it_is(grades)


def late_interaction(matches: ArrayLike, span: float) -> Floats:
    """How near each match of the query's tokens comes to the best one: 1 − (best − match) / span, at least 0.

    Small differences stay small: among candidates that match alike, none is the worst.
    """
    values = np.asarray(matches, dtype=np.float64)
    return _shares(1.0 - (values.max(initial=0.0) - values) / span)


def pseudo_relevance(likeness: ArrayLike, queries: Groups | None = None) -> Floats:
    """How like the first of its query each candidate is, scaled as `vector` is; 0 without company."""
    return vector(likeness, queries)


def cross_encoder(scores: ArrayLike) -> Floats:
    """How well each text answers the query, as a model says that reads both together."""
    return _shares(scores)


def freshness(believed: ArrayLike) -> Floats:
    """How far each content still holds: the belief at its age, or what overrides that."""
    return _shares(believed)


def cited_freshness(believed: Floats, citations: ArrayLike, half: float) -> Floats:
    """Freshness of what others still cite: of what age took, the share c / (c + half) is given back.

    Examples:
        >>> cited_freshness(np.array([0.5, 0.5]), [0, 100], half=100.0).tolist()
        [0.5, 0.75]
    """
    counts = np.asarray(citations, dtype=np.float64)
    return np.asarray(believed + (1.0 - believed) * counts / (counts + half))


def trust(levels: ArrayLike, multipliers: ArrayLike) -> Floats:
    """Trust in each source: level / 100 · multiplier, at most 1."""
    return _shares(np.asarray(levels, dtype=np.float64) / 100.0 * np.asarray(multipliers, dtype=np.float64))


def authority(fused: ArrayLike) -> Floats:
    """How much others rely on each, here and elsewhere, as `quality.authority` fuses it."""
    return _shares(fused)


def structure(whole: ArrayLike) -> Floats:
    """How whole each is: the share that was read without syntax errors times the share of its unit that it holds."""
    return _shares(whole)


def isolation(alone: ArrayLike) -> Floats:
    """How much alone each stands among the contents of its generation: 1 − the mean cosine to its nearest others."""
    return _shares(alone)


def momentum(changes: ArrayLike, *, half: float) -> Floats:
    """How much the degree of each grew over the last generations: (1 + c / (|c| + half)) / 2, NaN where not known.

    Examples:
        >>> momentum([0.0, 2.0, -2.0, 6.0], half=2.0).tolist()
        [0.5, 0.75, 0.25, 0.875]
    """
    change = np.asarray(changes, dtype=np.float64)
    return np.asarray((1.0 + change / (np.abs(change) + half)) / 2.0)


def propagated(best: ArrayLike) -> Floats:
    """What its parts say for each whole: the best of a descendant's score · factor per level; 0 without."""
    return _shares(best)


def novelty(ages_hours: ArrayLike, *, half_life_hours: float) -> Floats:
    """How new each is here: 2^(−age / half-life), its age counted from when it was first indexed.

    Examples:
        >>> novelty([0.0, 12.0], half_life_hours=12.0).tolist()
        [1.0, 0.5]
    """
    ages = np.asarray(ages_hours, dtype=np.float64)
    return np.asarray(np.exp2(-np.maximum(0.0, ages) / half_life_hours))


def tier(declared: str | None, values: Mapping[str, float]) -> float | None:
    """How important it was said to be; None for nothing and for a word that is not known."""
    return _named(declared, values)


def validation(declared: str | None, values: Mapping[str, float]) -> float | None:
    """How far it was said to have been checked; None for nothing and for a word that is not known."""
    return _named(declared, values)


def congruence(stored_for: str, asked_for: str) -> float:
    """1 where it was stored for what is asked for.

    Examples:
        >>> congruence("Decision", "decision"), congruence("decision", "debug")
        (1.0, 0.0)
    """
    return float(stored_for.casefold() == asked_for.casefold())


def session(cosines: ArrayLike) -> Floats:
    """How near each lies to what its session asked before."""
    return _shares(cosines)


def cross_validation(ways: ArrayLike) -> Floats:
    """1 for each candidate that was found in both ways, by words and by meaning; 0 where in one."""
    return (np.asarray(ways) > 1).astype(np.float64)


def _named(declared: str | None, values: Mapping[str, float]) -> float | None:
    value = None if declared is None else values.get(declared.casefold())
    return None if value is None else _share(value)


def _share(value: float) -> float:
    if math.isnan(value):
        raise ValueError("expected a signal in [0, 1], got NaN")
    return min(max(value, 0.0), 1.0)


def _shares(values: ArrayLike) -> Floats:
    column = np.asarray(values, dtype=np.float64)
    if np.isnan(column).any():
        raise ValueError("expected signals in [0, 1], got NaN")
    return np.clip(column, 0.0, 1.0)


def _as_it_is(values: ArrayLike) -> Floats:
    scores = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(scores), 0.0, np.clip(scores, 0.0, 1.0))
