"""How well a content matches a query by itself, whatever else was found and however it was ranked (RET-15)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

Share = Annotated[float, Meta(ge=0.0, le=1.0)]


_WIRE_NAMES = {"dense": "meaning", "lexical": "words", "late_interaction": "near"}  # of events, which keep theirs


class MatchFeatures(Struct, kw_only=True, frozen=True, omit_defaults=True, rename=_WIRE_NAMES):
    """Similarity of one content to one query, on scales that no other candidate moves.

    Attributes:
        dense: `meaning` in events and JSON. Cosine of their vectors, at least 0; None where the dense channel did not
            answer.
        lexical: `words` there. s / (s + n) with s the content's BM25 score and n the number of terms of the query;
            0 where the lexical channel did not rank it, None where that channel did not answer.
        late_interaction: `near` there. Mean of the cosine and of how well the query's tokens are met, the mean of their
            best cosines to a token of the content, at least 0; None where tokens are not compared.
    """

    dense: Share | None = None
    lexical: Share | None = None
    late_interaction: Share | None = None


NO_MATCH = MatchFeatures(dense=0.0, lexical=0.0, late_interaction=0.0)
"""The match of an answer without results."""


@dataclass(frozen=True, slots=True)
class EvidenceGap:
    """Nothing found is likely to answer the query: what is shown is the best of it, not an answer."""

    # Of the best result: how near it is; its cosine where tokens are not compared, or its share of words where the
    # dense channel is silent. Of one that reviews tell of, the confidence in it.
    match: float
    threshold: float  # what that would have had to exceed
    # How often at most a query passes that is like the probes, which have no answer. Of queries about what the store is
    # about, and yet not in it, more do (docs/measurements.md). None of what reviews tell.
    bound: float | None
    missing: tuple[str, ...] = ()  # words of the query that no content says


def best_match(matches: Iterable[MatchFeatures | None]) -> MatchFeatures:
    """The best of several on each scale; unknown where one is unknown, or there is none."""
    features = [MatchFeatures() if match is None else match for match in matches]
    return MatchFeatures(
        dense=_best([each.dense for each in features]),
        lexical=_best([each.lexical for each in features]),
        late_interaction=_best([each.late_interaction for each in features]),
    )


def _best(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return max(present) if present and len(present) == len(values) else None
