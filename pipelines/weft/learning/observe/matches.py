"""Under which keys verdicts are kept by how well their results matched the query (RET-15)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.documents import Domain
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import ANY
from weft.learning.evidence import EvidenceKey
from weft.learning.parameters import RELEVANCE_BINS

MATCH = "match"
"""The parameter that verdicts are kept under by how well their results matched."""

ASKED = "match.asked"
"""The same for verdicts that were asked for, about a result drawn at random."""

MEASURED = ("dense", "lexical", "late_interaction")
"""What verdicts are counted by, in the order of the columns of a match."""

MEASURES = len(MEASURED)

_UNKNOWN = "-"

_PER_HALVING = 4  # classes of chances between one and its half: weights are within a tenth of what they should be

_PER_DOUBLING = 2  # classes of ranks between one and its double: the first four apart, deeper ones within a fifth


def match_key_at(
    day: int, domain: Domain, places: Sequence[int | None], *, depth: int, good: bool, draw: int | None = None
) -> EvidenceKey:
    """Where a verdict about one result is kept, whoever gave it."""
    # Nearness, the last, is not written where it is not known.
    measured = places[:-1] if places[-1] is None else places
    texts = (_UNKNOWN if place is None else f"{place:02d}" for place in measured)
    bin_ = f"{'.'.join(texts)}/{RELEVANCE_BINS}.{'good' if good else 'bad'}.{depth:02d}"
    if draw is None:
        return EvidenceKey(day, domain.value, ANY, ANY, ANY, MATCH, bin_)
    return EvidenceKey(day, domain.value, ANY, ANY, ANY, ASKED, f"{bin_}/{draw:02d}")


def draw_places(chances: Floats) -> Ints:
    """The class of each chance in (0, 1] to be asked about: verdicts stand for 1 / chance results."""
    return np.asarray(np.rint(-_PER_HALVING * np.log2(chances)), dtype=np.int64)


def rank_places(ranks: Ints) -> Ints:
    """The class that each rank from 1 on is counted under."""
    return np.asarray(np.rint(_PER_DOUBLING * np.log2(ranks)), dtype=np.int64)


def match_cell(bin_: str, rarest: float) -> tuple[tuple[float, ...], bool]:
    """Middle of all bins, −1 where not known; rank; what a verdict stands for; and whether it was bad."""
    places, rest, *draw = bin_.split("/")
    bins, outcome, depth = rest.split(".")
    middles = [-1.0 if place == _UNKNOWN else (int(place) + 0.5) / int(bins) for place in places.split(".")]
    middles += [-1.0] * (MEASURES - len(middles))
    stands_for = 2.0 ** (min(int(draw[0]), rarest) / _PER_HALVING) if draw else 0.0
    return (*middles, 2.0 ** (int(depth) / _PER_DOUBLING), stands_for), outcome == "bad"


def values_of(match: MatchFeatures) -> tuple[float | None, ...]:
    """Meaning, words and nearness, each None where not known."""
    return tuple(getattr(match, name) for name in MEASURED)


def rarest_class(stands_for: float) -> float:
    """The class of the chance of which a verdict stands for so many results."""
    return _PER_HALVING * math.log2(stands_for)
