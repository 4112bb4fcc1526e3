"""Keys of verdicts by how well their results matched, from what a result was shown with."""

from __future__ import annotations

import numpy as np

from weft.domain.documents import Domain
from weft.domain.matching import MatchFeatures
from weft.learning.evidence import EvidenceKey
from weft.learning.observe.matches import draw_places, match_key_at, rank_places, values_of
from weft.learning.parameters import RELEVANCE_BINS


def match_key(
    day: int, domain: Domain, match: MatchFeatures, *, rank: int, good: bool, asked: float | None = None
) -> EvidenceKey:
    """Where a verdict about one result is kept, whoever gave it.

    Args:
        rank: Where the result stood, from 1.
        asked: Probability with which it was asked for; None where nobody asked.

    Examples:
        >>> key = match_key(3, Domain.CODE, MatchFeatures(dense=0.62), rank=1, good=True)
        >>> key.parameter, key.bin
        ('match', '12.-/20.good.00')
        >>> key = match_key(3, Domain.CODE, MatchFeatures(dense=0.62), rank=4, good=True, asked=0.125)
        >>> key.parameter, key.bin
        ('match.asked', '12.-/20.good.04/12')
        >>> match = MatchFeatures(dense=0.62, lexical=0.4, late_interaction=0.58)
        >>> match_key(3, Domain.CODE, match, rank=9, good=True).bin
        '12.08.11/20.good.06'
    """
    places = [
        None if value is None else min(int(value * RELEVANCE_BINS), RELEVANCE_BINS - 1) for value in values_of(match)
    ]
    depth = int(rank_places(np.array([rank]))[0])
    draw = None if asked is None else int(draw_places(np.array([asked]))[0])
    return match_key_at(day, domain, places, depth=depth, good=good, draw=draw)
