"""CON-3: what a night links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.consolidation.steps.links import ExistingEdges, Links, find_links
from weft.domain.ids import ContentHash, content_hash
from weft.domain.links import LinkKind, RelationSource
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.edges import NO_EDGES, LearnedEdge, LearnedEdges
from weft.learning.evidence import MICRO, Evidence
from weft.learning.uses import UsageKey
from weft.settings import load_settings

RULES = load_settings(environment={}).consolidation.links
NAMES = sorted(content_hash(letter) for letter in "abcde")
A, B, C, D, E = NAMES
# The first three lie near one another, the others alone.
VECTORS = np.array(
    [[1.0, 0.0, 0.0], [0.99, 0.141, 0.0], [0.99, 0.0, 0.141], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], np.float32
)


class FiveContents:
    """Contents a to e; c stands in the document of b."""

    contents: Sequence[ContentHash] = NAMES

    def texts(self, rows: Sequence[int]) -> Sequence[str]:
        return ["abcde"[row] for row in rows]

    def since(self) -> Sequence[float]:
        return [0.0] * len(NAMES)

    def in_distinct_documents(self, pairs: np.ndarray) -> np.ndarray:
        return np.array([tuple(pair) != (1, 2) for pair in pairs.tolist()], dtype=bool)


def linked_by(
    edges: Sequence[tuple[int, int]] = (),
    *,
    aliases: ContentAliases = NO_ALIASES,
    contradictions: LearnedEdges = NO_EDGES,
    evidence: Evidence | None = None,
) -> Links:
    linked = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return find_links(
        FiveContents(),
        lambda: VECTORS,
        ExistingEdges(linked, aliases, contradictions),
        evidence or Evidence(),
        RULES,
        today=200,
    )


def ends(found: Links) -> list[tuple[ContentHash, ContentHash]]:
    return [(each.content, each.target) for each in found.edges.edges]


def test_what_lies_near_in_another_document_is_similar() -> None:
    """CON-3: with its cosine; not what stands in one document, nor what is further away."""
    found = linked_by()
    assert ends(found) == [(A, B), (A, C)]
    assert {(each.kind, each.source) for each in found.edges.edges} == {(LinkKind.SIMILAR, RelationSource.AUTO)}
    assert all(abs(each.micro - 0.99 * MICRO) < 1000 for each in found.edges.edges)
    assert found.counts() == {"similar": 2, "co_used": 0}


def test_what_is_linked_already_is_left_as_it_is() -> None:
    """CON-3: by an edge, by an alias, or by a contradiction that was found."""
    assert ends(linked_by([(0, 1)])) == [(A, C)]
    assert ends(linked_by(aliases=ContentAliases({B: D}))) == [(A, C)]
    against = LearnedEdges.of([LearnedEdge(A, LinkKind.CONTRADICTS, C, RelationSource.AUTO)])
    assert ends(linked_by(contradictions=against)) == [(A, B)]


def test_what_was_used_together_is_linked_by_its_use() -> None:
    """CON-3: two people who found both good are two uses of strength 2 / (2 + 3), learned and never automatic."""
    uses = {
        UsageKey(100, name, "positive", principal, "why"): MICRO for name in (A, D, E) for principal in ("ada", "bob")
    }
    found = linked_by(evidence=Evidence(usage=uses), aliases=ContentAliases({E: D}))
    (edge,) = [each for each in found.edges.edges if each.kind is LinkKind.CO_USED]
    assert edge == LearnedEdge(A, LinkKind.CO_USED, D, RelationSource.LEARNED, round(MICRO * 2 / (2 + RULES.half_uses)))
    first = found.examples[0]
    assert (first.kind, first.source, first.text, first.other_text) == ("co_used", "learned", "a", "d")
    assert linked_by(evidence=Evidence(usage=uses)).edges == linked_by(evidence=Evidence(usage=uses)).edges


def test_a_pair_may_be_similar_and_used_together() -> None:
    """CON-3: kinds are never confused: each has its own edge, with its own source."""
    uses = {UsageKey(100, name, "positive", "ada", "why"): MICRO for name in (A, B)}
    found = linked_by(evidence=Evidence(usage=uses))
    assert {(each.kind, each.source) for each in found.edges.edges if (each.content, each.target) == (A, B)} == {
        (LinkKind.SIMILAR, RelationSource.AUTO),
        (LinkKind.CO_USED, RelationSource.LEARNED),
    }


def test_a_single_use_links_for_a_half_life() -> None:
    """CON-3: of what was used once, and other contents since then: the link is there for 90 days and then expires."""

    def after(days: int) -> Links:
        uses = {UsageKey(100, name, "positive", "ada", "why"): MICRO for name in (A, D)}
        return linked_by(evidence=Evidence(usage={**uses, UsageKey(100 + days, E, "positive", "ada", "why"): MICRO}))

    assert [after(days).counts()["co_used"] for days in (0, 90, 91)] == [3, 1, 0]
