"""Contents that say opposite things of one matter, found by the night (CON-4).

Candidates are what the search for near-duplicates refuses. What a text says beyond doubt to be the opposite becomes an
edge of the learned version, which searches name; the rest is proposed to whoever reads the report. With what people
declared, all of them form clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix, csgraph

from weft.consolidation.settings import ContradictionSettings
from weft.consolidation.tending.duplicates import Duplicates, NearPair, support_of
from weft.domain.ids import ContentHash
from weft.domain.links import LinkKind, RelationSource
from weft.learning.edges import NO_EDGES, LearnedEdge, LearnedEdges
from weft.learning.evidence import Evidence
from weft.wording.statements import Opposition, Statements

_EXAMPLES = 10  # that a report shows


@dataclass(frozen=True, slots=True)
class DeclaredContradictions:
    """What people declared, between contents of what is live."""

    contradictions: Sequence[NearPair] = ()  # both contents of each, with their texts; the cosine is not known, and 0
    # whether a relation was declared between documents of two contents that says how they stand: one contradicts
    # or supersedes the other
    settled: Callable[[ContentHash, ContentHash], bool] = lambda _content, _other: False


FindContradictions = Callable[[Duplicates, LearnedEdges, Evidence], "Contradictions"]
"""Contradictions of what is live, given what was refused as near-duplicates, what supersedes what and what became of
contents."""


@dataclass(frozen=True, slots=True)
class ContradictionExample:
    """Both sides of a contradiction, as a report shows them."""

    cluster: int  # number of the cluster that it is part of, the largest first
    source: str  # who says so
    acts: bool  # whether searches name it, once the night goes live
    polarity: str  # in what they are opposed; empty where it was declared
    content: ContentHash
    other: ContentHash
    cosine: float
    statement: str  # The sentences that are opposed
    other_statement: str
    text: str
    other_text: str


@dataclass(frozen=True, slots=True)
class Contradictions:
    """What a night found."""

    edges: LearnedEdges = NO_EDGES  # what acts by itself
    detected: int = 0  # pairs that the texts oppose, whether they act or are only proposed
    declared: int = 0  # pairs that people declared
    clusters: int = 0  # groups that hang together by any of these
    # of what matters most: contents that served most, then what acts, then the nearest
    examples: Sequence[ContradictionExample] = ()

    def counts(self) -> dict[str, float]:
        """What a report counts; `waiting` are those that only a person can decide."""
        return {
            "detected": self.detected,
            "acting": len(self.edges),
            "waiting": self.detected - len(self.edges),
            "declared": self.declared,
            "clusters": self.clusters,
        }


def find_contradictions(
    duplicates: Duplicates,  # of the same contents
    declared: DeclaredContradictions,
    evidence: Evidence,
    settings: ContradictionSettings,
    *,
    least: float,  # overlap of two texts' words, at least
) -> Contradictions:
    """The contradictions among near contents, the same for the same ones, in whatever order they come."""
    stands_for = duplicates.aliases.of
    opposed: list[tuple[NearPair, Opposition | None]] = [
        (pair, detected)
        for pair in sorted(duplicates.refused)
        if stands_for(pair.content) != stands_for(pair.other)
        and not declared.settled(pair.content, pair.other)
        and (detected := Statements(pair.text).opposes(Statements(pair.other_text), least)) is not None
    ]
    acting = [pair for pair, detected in opposed if detected is not None and _acts(detected, settings)]
    edges = [LearnedEdge(pair.content, LinkKind.CONTRADICTS, pair.other, RelationSource.AUTO) for pair in acting]
    every = [*((pair, None) for pair in declared.contradictions), *opposed]
    numbers = _clusters((stands_for(pair.content), stands_for(pair.other)) for pair, _ in every)
    support = support_of(evidence)

    def importance(each: tuple[NearPair, Opposition | None]) -> tuple[object, ...]:
        pair, detected = each
        served = support.get(pair.content, 0) + support.get(pair.other, 0)
        return (-served, detected is not None and not _acts(detected, settings), -pair.cosine, pair.content, pair.other)

    examples: dict[frozenset[ContentHash], ContradictionExample] = {}
    for pair, detected in sorted(every, key=importance):
        both = frozenset((stands_for(pair.content), stands_for(pair.other)))
        if len(examples) < _EXAMPLES and both not in examples:
            examples[both] = _example(pair, detected, numbers[stands_for(pair.content)], settings)
    return Contradictions(
        edges=LearnedEdges.of(edges),
        detected=len(opposed),
        declared=len(declared.contradictions),
        clusters=len(set(numbers.values())),
        examples=tuple(examples.values()),
    )


def _acts(detected: Opposition, settings: ContradictionSettings) -> bool:
    return detected.exact and detected.polarity in settings.acting


def _example(
    pair: NearPair, detected: Opposition | None, cluster: int, settings: ContradictionSettings
) -> ContradictionExample:
    return ContradictionExample(
        cluster=cluster,
        source=(RelationSource.DECLARED if detected is None else RelationSource.AUTO).value,
        acts=detected is None or _acts(detected, settings),
        polarity="" if detected is None else detected.polarity.value,
        content=pair.content,
        other=pair.other,
        cosine=pair.cosine,
        statement="" if detected is None else detected.one,
        other_statement="" if detected is None else detected.other,
        text=pair.text,
        other_text=pair.other_text,
    )


def _clusters(pairs: Iterable[tuple[ContentHash, ContentHash]]) -> dict[ContentHash, int]:
    """The cluster of each content, from 1 on: the largest first, ties by content."""
    both = sorted(set(pairs))
    names = sorted({name for pair in both for name in pair})
    if not names:
        return {}
    row = {name: at for at, name in enumerate(names)}
    ends = np.array([[row[one], row[other]] for one, other in both]).T
    graph = coo_matrix((np.ones(len(both)), (ends[0], ends[1])), shape=(len(names), len(names)))
    labels = csgraph.connected_components(graph, directed=False)[1]
    sizes = np.bincount(labels)
    first = np.array([int(np.argmax(labels == label)) for label in range(len(sizes))])
    place = {int(label): at + 1 for at, label in enumerate(np.lexsort((first, -sizes)))}
    return {name: place[int(labels[at])] for name, at in row.items()}
