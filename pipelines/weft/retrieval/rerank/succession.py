"""What supersedes a result stands before it (CON-4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_matrix, csgraph

from weft.domain.arrays import Flags, Floats
from weft.retrieval.ranking.batch import RankingBatch, best_first
from weft.retrieval.snapshot.relations import Counterparts

SUPERSEDED = "superseded"
"""Name of the contribution by which a result falls to just below what supersedes it."""

Pairs = Sequence[tuple[int, int]]
"""Lines of what is superseded, and of what supersedes it."""


def after_successors(shown: RankingBatch, among: RankingBatch, newer: Counterparts) -> RankingBatch:
    """Results of which those that are superseded stand after what supersedes them, where both are shown.

    Such a result loses just what sets it above the other: a contribution, so that scores still fall from each to the
    next and are the sum of what is told (ARC-7).
    """
    if not newer.rows and not newer.documents:
        return shown
    places = {number: at for at, number in enumerate(shown.number.tolist())}
    every = [among.take(lines) for _, lines in among.queries]
    pairs = [
        (places[own[older]], places[own[other]])
        for own, some in ((each.number.tolist(), each) for each in every)
        for older, other in successions(some, newer)
        if own[older] in places and own[other] in places
    ]
    if not pairs:
        return shown
    total = shown.total
    taken = total - lowered(total[:, None], np.ones((len(shown), 1), dtype=bool), pairs)[:, 0]
    older, other = np.array(pairs).T
    while True:  # a sum is rounded once more: until each is below the other to the last bit
        ordered = shown.add_term(SUPERSEDED, np.where(taken > 0.0, taken, np.nan), -1.0)
        wrong = np.unique(older[ordered.total[older] >= ordered.total[other]])
        if not len(wrong):
            return best_first(ordered)
        taken[wrong] += np.spacing(np.maximum(np.abs(total[wrong]), taken[wrong]))


def successions(candidates: RankingBatch, newer: Counterparts) -> Pairs:
    """Lines of one query's candidates that one supersedes the other of.

    None of a circle, in which each supersedes the next; and none where somebody's signs put the older one first.
    """
    uris = [candidates.uris(number)[0] for number in candidates.number.tolist()]
    pairs = newer.pairs(candidates.rows.tolist(), uris)
    if not pairs:
        return pairs
    older, other = np.array(pairs).T
    graph = coo_matrix((np.ones(len(pairs)), (older, other)), shape=(len(uris), len(uris)))
    circle = csgraph.connected_components(graph, directed=True, connection="strong")[1]
    lift = np.broadcast_to(candidates.elevation, len(uris))
    stands = (circle[older] != circle[other]) & (lift[older] <= lift[other])
    return [pair for pair, holds in zip(pairs, stands.tolist(), strict=True) if holds]


def lowered(scores: Floats, shown: Flags, pairs: Pairs) -> Floats:
    """Scores in which what is superseded has less than what supersedes it, under many draws at once."""
    less, moved = scores.copy(), True
    while moved:
        moved = False
        for older, other in pairs:
            bound = np.nextafter(less[other], -np.inf)
            falls = shown[older] & shown[other] & (less[older] > bound)
            if falls.any():
                less[older], moved = np.where(falls, bound, less[older]), True
    return less
