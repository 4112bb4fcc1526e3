"""How much others rely on a document, here and elsewhere (CIT-1 to CIT-3)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec


class Measure(StrEnum):
    """What is counted of a document elsewhere; each is a number >= 0 (CIT-1)."""

    CITATIONS = "citations"
    CITATIONS_A_YEAR = "citations_a_year"
    H_INDEX = "h_index"  # the highest among its authors
    PEER_REVIEWED = "peer_reviewed"  # 1 or 0
    DOWNLOADS = "downloads"  # of its package in a month
    STARS = "stars"  # of its repository


MEASURES = tuple(Measure)

Measures = Mapping[Measure, float]
"""What is known of one document; what is not known is left out."""

NOTHING_FETCHED: Mapping[str, Measures] = MappingProxyType({})
"""What providers say by URI of documents, where none was asked."""


class Quadrant(StrEnum):
    """Where a document is relied on: each axis is high from its bound on (CIT-3)."""

    BOTH = "both"
    INTERNAL = "internal"
    EXTERNAL = "external"
    NEITHER = "neither"


class Authority(msgspec.Struct, frozen=True):
    """How much others rely on a result.

    Attributes:
        value: The signal `authority`, in [0, 1].
        confidence: How far that is to be believed, in [0, 1], by the quadrant.
        external, internal: How much it is relied on elsewhere and here, in [0, 1].
    """

    quadrant: Quadrant
    value: float
    confidence: float
    external: float
    internal: float
