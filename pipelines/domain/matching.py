"""How well a content matches a query by itself, whatever else was found and however it was ranked (RET-15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

Share = Annotated[float, Meta(ge=0.0, le=1.0)]


class Match(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Similarity of one content to one query, on scales that no other candidate moves.

    Attributes:
        meaning: Cosine of their vectors, at least 0; None where the dense channel did not answer.
        words: s / (s + n) with s the content's BM25 score and n the number of terms of the query; 0 where the lexical
            channel did not find it, None where that channel did not answer.
    """

    meaning: Share | None = None
    words: Share | None = None


@dataclass(frozen=True, slots=True)
class EvidenceGap:
    """Nothing found is likely to answer the query: what is shown is the best of it, not an answer.

    Attributes:
        probability: P(good) of the likeliest result; 0 where nothing was found.
        threshold: What it would have had to exceed.
        bound: How often at most a query without an answer passes all the same.
    """

    probability: float
    threshold: float
    bound: float
