"""Contents that say opposite things of one matter, found by the night (CON-4).

Candidates are what the search for near-duplicates refuses. What a text says beyond doubt to be the opposite becomes an
edge of the learned version, which searches name; the rest is proposed to whoever reads the report. With what people
declared, all of them form clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from scipy.sparse import coo_matrix, csgraph

from weft.catalog.catalog import Catalog
from weft.consolidation.night import NightContext, NightSettings, StepResult, When
from weft.consolidation.settings import ContradictionSettings
from weft.consolidation.steps.duplicates import Duplicates, NearPair, support_of
from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash
from weft.domain.links import LinkKind, Relation, RelationSource
from weft.indexes.generation import Generation
from weft.indexes.graph.graph import EdgeKind
from weft.learning.edges import NO_EDGES, LearnedEdge, LearnedEdges
from weft.learning.evidence import Evidence
from weft.retrieval.snapshot.relations import resolve_relations
from weft.wording.statements import OpposedSentences, Statements

_EXAMPLES = 10  # that a report shows


@dataclass(frozen=True, slots=True)
class DeclaredContradictions:
    """What people declared, between contents of what is live."""

    contradictions: Sequence[NearPair] = ()  # both contents of each, with their texts; the cosine is not known, and 0
    # whether a relation was declared between documents of two contents that says how they stand: one contradicts
    # or supersedes the other
    settled: Callable[[ContentHash, ContentHash], bool] = lambda _content, _other: False


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


class FindContradictions:
    """Finds contradictions in the live generation, beside those that are declared."""

    name: ClassVar[str] = "contradictions"
    says: ClassVar[str] = "looking for contents that say opposite things"
    when: ClassVar[When] = When.FRESH

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`; candidates are what the search for near-duplicates refused."""
        if (duplicates := context.outcome(Duplicates)) is None:
            return StepResult()
        former = context.learned.part(LearnedEdges) or NO_EDGES
        newer = former.of_kinds((LinkKind.SUPERSEDES,))
        against = contradictions_in(context.catalog, duplicates, newer, context.learned.evidence, context.settings)
        opposed = against.edges.changes(context.candidate.live.part(LearnedEdges))
        note = (
            f"{against.detected:,} found, of which {len(against.edges):,} are named in answers, and "
            f"{against.declared:,} declared, in {against.clusters:,} clusters"
        )
        return StepResult(
            part=former.instead((LinkKind.CONTRADICTS,), against.edges),
            counts={"proposed": len(opposed.added), **against.counts()},
            examples=[asdict(each) for each in against.examples],
            note=note if against.clusters else "",
        )


def contradictions_in(
    catalog: Catalog, duplicates: Duplicates, newer: LearnedEdges, evidence: Evidence, settings: NightSettings
) -> Contradictions:
    """Contradictions of the live generation, given what was refused as near-duplicates and what supersedes what."""
    rules = settings.consolidation
    with closing(catalog.open_live()) as generation:
        declared, least = declared_in(generation, catalog.relations(), newer), rules.duplicates.least_overlap
        return find_contradictions(duplicates, declared, evidence, rules.contradictions, least=least)


def declared_in(
    generation: Generation, relations: Sequence[Relation], newer: LearnedEdges = NO_EDGES
) -> DeclaredContradictions:
    """What people declared of what a generation holds, in documents and in the store."""
    strengths = dict.fromkeys(RelationSource, 1.0)
    try:
        edges = resolve_relations(generation, relations, newer).extend_edges(generation.graph.arrays(), strengths)
    except StoreError:  # built without a graph
        return DeclaredContradictions()
    numbers = [list(EdgeKind).index(kind) for kind in (EdgeKind.CONTRADICTS, EdgeKind.SUPERSEDES)]
    ends = np.stack([edges.source, edges.target], axis=1)
    pairs = [sorted(pair) for pair in np.unique(ends[edges.kind == numbers[0]], axis=0).tolist()]
    rows = sorted({row for pair in pairs for row in pair})
    content_at = dict(zip(rows, generation.chunks.contents(rows), strict=True))
    both = [[content_at[row] for row in pair] for pair in sorted(set(map(tuple, pairs)))]
    named = [NearPair(one.content_hash, other.content_hash, 0.0, one.text, other.text) for one, other in both]
    settled = {
        frozenset((one, other))
        for pair in ends[np.isin(edges.kind, numbers)].tolist()
        for one, other in product(*(_documents(generation, row) for row in pair))
    }

    def is_settled(content: ContentHash, other: ContentHash) -> bool:
        here, there = (_documents(generation, row) for row in generation.chunks.rows_of([content, other]).tolist())
        return any(frozenset(pair) in settled for pair in product(here, there))

    return DeclaredContradictions(named, is_settled) if settled else DeclaredContradictions()


def _documents(generation: Generation, row: int) -> list[int]:
    """The numbers of the documents that a content stands in."""
    numbers: list[int] = generation.chunks.occurrence_arrays([row])[2].tolist()
    return numbers


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
    opposed: list[tuple[NearPair, OpposedSentences | None]] = [
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

    def importance(each: tuple[NearPair, OpposedSentences | None]) -> tuple[object, ...]:
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


def _acts(detected: OpposedSentences, settings: ContradictionSettings) -> bool:
    return detected.exact and detected.polarity in settings.acting


def _example(
    pair: NearPair, detected: OpposedSentences | None, cluster: int, settings: ContradictionSettings
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
