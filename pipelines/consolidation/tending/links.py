"""Edges between contents that lie near each other or were used together, found by the night (CON-3).

Near ones are of different documents and not linked otherwise (source `auto`); what was used together follows from the
evidence alone (source `learned`). Both are part of the learned version: a roll-back takes them away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.consolidation.settings import LinkSettings
from pipelines.consolidation.tending.co_use import co_uses, strength
from pipelines.consolidation.tending.duplicates import ContentReader
from pipelines.domain.ids import ContentHash
from pipelines.domain.links import LinkKind, RelationSource
from pipelines.indexes.dense.close_pairs import Rows, close_pairs
from pipelines.learning.aliases import NO_ALIASES, ContentAliases
from pipelines.learning.edges import NO_EDGES, LearnedEdge, LearnedEdges
from pipelines.learning.evidence import MICRO, Evidence

_EXAMPLES = 5  # of each kind that a report shows
_NEIGHBOURS = 5  # nearest contents of each that are compared

LINKS = (LinkKind.SIMILAR, LinkKind.CO_USED)
"""Kinds of edges that this step finds."""

FindLinks = Callable[[ContentAliases, LearnedEdges, Evidence], "Links"]
"""Links of what is live, given tonight's aliases, its contradictions, and what became of contents."""


@dataclass(frozen=True, slots=True)
class ExistingEdges:
    """What joins contents already, and is not joined anew.

    Attributes:
        rows: Between which the generation or a person has an edge, int64 (pairs, 2), in ascending order within a pair.
        contradictions: That tonight found.
    """

    rows: NDArray[np.int64]
    aliases: ContentAliases = NO_ALIASES
    contradictions: LearnedEdges = NO_EDGES

    def has(self, contents: Sequence[ContentHash], pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which pairs of rows, int64 (pairs, 2), it joins; and those of aliases, which nobody is shown."""
        size = max(1, len(contents))
        linked: NDArray[np.bool_] = np.isin(pairs[:, 0] * size + pairs[:, 1], self.rows[:, 0] * size + self.rows[:, 1])
        opposed = {(each.content, each.target) for each in self.contradictions.edges}
        hidden = self.aliases.representatives.keys()
        named = ((contents[one], contents[other]) for one, other in pairs.tolist())
        hides = np.array([both in opposed or not hidden.isdisjoint(both) for both in named], dtype=bool)
        either: NDArray[np.bool_] = linked | hides
        return either


@dataclass(frozen=True, slots=True)
class LinkExample:
    """Both ends of a link, as a report shows them.

    Attributes:
        strength: In (0, 1]: the cosine of similar ones, of others how much they were used together.
    """

    kind: str
    source: str
    content: ContentHash
    other: ContentHash
    strength: float
    text: str
    other_text: str


@dataclass(frozen=True, slots=True)
class Links:
    """What a night found.

    Attributes:
        examples: The strongest of each kind.
    """

    edges: LearnedEdges = NO_EDGES
    examples: Sequence[LinkExample] = ()

    def counts(self) -> dict[str, float]:
        """Edges by kind."""
        return {kind.value: sum(each.kind is kind for each in self.edges.edges) for kind in LINKS}


def find_links(
    memory: ContentReader,
    vectors: Callable[[], Rows],
    joined: ExistingEdges,
    evidence: Evidence,
    settings: LinkSettings,
    *,
    today: int,
) -> Links:
    """The links of all contents, the same for the same contents and evidence, in whatever order they come.

    Time is that of `close_pairs`, nearly linear in contents, and linear in evidence.

    Args:
        vectors: Unit rows of the contents, float32 (n, dimension); asked for where similar ones are wanted.
        today: Days since the epoch.
    """
    edges = LearnedEdges.of(
        [
            *_similar(memory, vectors, joined, settings),
            *_used_together(memory.contents, joined.aliases, evidence, settings, today=today),
        ]
    )
    return Links(edges, _examples(memory, edges))


def _similar(
    memory: ContentReader, vectors: Callable[[], Rows], joined: ExistingEdges, settings: LinkSettings
) -> list[LearnedEdge]:
    if settings.least_cosine > 1.0:
        return []
    pairs, cosines = close_pairs(vectors(), least=settings.least_cosine, neighbours=_NEIGHBOURS)
    contents = memory.contents
    fresh = ~joined.has(contents, pairs)
    fresh[fresh] = memory.in_distinct_documents(pairs[fresh])
    return [
        LearnedEdge(contents[one], LinkKind.SIMILAR, contents[other], RelationSource.AUTO, round(cosine * MICRO))
        for (one, other), cosine in zip(pairs[fresh].tolist(), cosines[fresh].tolist(), strict=True)
    ]


def _used_together(
    contents: Sequence[ContentHash], aliases: ContentAliases, evidence: Evidence, settings: LinkSettings, *, today: int
) -> list[LearnedEdge]:
    live = set(contents)

    def named(content: ContentHash) -> ContentHash | None:
        return leader if (leader := aliases.of(content)) in live else None

    uses = co_uses(
        evidence, named=named, half_life_days=settings.half_life_days, together=settings.together, today=today
    )
    least = settings.least_uses * MICRO
    return [
        LearnedEdge(one, LinkKind.CO_USED, other, RelationSource.LEARNED, by_use)
        for (one, other), micro in uses.items()
        if micro >= least and (by_use := strength(micro, half_uses=settings.half_uses))
    ]


def _examples(memory: ContentReader, edges: LearnedEdges) -> list[LinkExample]:
    shown = [
        each
        for kind in reversed(LINKS)
        for each in sorted(
            (one for one in edges.edges if one.kind is kind), key=lambda one: (-one.micro, one.content, one.target)
        )[:_EXAMPLES]
    ]
    if not shown:
        return []
    ends = {end for each in shown for end in (each.content, each.target)}
    rows = [row for row, content in enumerate(memory.contents) if content in ends]
    texts = dict(zip((memory.contents[row] for row in rows), memory.texts(rows), strict=True))
    return [
        LinkExample(
            each.kind.value,
            each.source.value,
            each.content,
            each.target,
            each.micro / MICRO,
            texts[each.content],
            texts[each.target],
        )
        for each in shown
    ]
