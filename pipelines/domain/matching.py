"""How well a content matches a query by itself, whatever else was found and however it was ranked (RET-15)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        near: Mean of the cosine and of how well the query's tokens are met, the mean of their best cosines to a token
            of the content, at least 0; None where tokens are not compared.
    """

    meaning: Share | None = None
    words: Share | None = None
    near: Share | None = None


@dataclass(frozen=True, slots=True)
class EvidenceGap:
    """Nothing found is likely to answer the query: what is shown is the best of it, not an answer.

    Attributes:
        match: Of the best result: how near it is; its cosine where tokens are not compared, or its share of words where
            the dense channel is silent.
        threshold: What that would have had to exceed.
        bound: How often at most a query passes that is like the probes, which have no answer. Of queries about what the
            store is about, and yet not in it, more do (docs/measurements.md).
    """

    match: float
    threshold: float
    bound: float


def best_match(matches: Iterable[Match | None]) -> Match:
    """The best of several on each scale; unknown where one is unknown, or there is none.

    Examples:
        >>> best_match([Match(meaning=0.2, words=0.5), Match(meaning=0.3, words=0.1)])
        Match(meaning=0.3, words=0.5, near=None)
        >>> best_match([Match(meaning=0.2, words=0.5, near=0.4), Match(meaning=0.3, near=0.3)])
        Match(meaning=0.3, words=None, near=0.4)
    """
    present = [Match() if match is None else match for match in matches]
    return Match(
        meaning=_best([match.meaning for match in present]),
        words=_best([match.words for match in present]),
        near=_best([match.near for match in present]),
    )


def _best(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return max(present) if present and len(present) == len(values) else None
