"""Which documents supersede or contradict which: as a generation holds it, and as declared and found since (GRA-1)."""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from weft.domain.chunks import Chunk
from weft.domain.errors import StoreError
from weft.domain.links import CAUSAL, LinkKind, RelatedDocument, Relation, RelationSource
from weft.indexes.chunk_store import ChunkStore
from weft.indexes.graph.graph import EdgeArrays, EdgeKind
from weft.learning.edges import NO_EDGES, LearnedEdge, LearnedEdges
from weft.learning.evidence import MICRO
from weft.retrieval.snapshot.places import ContentLocator, is_at_anchor, place_of
from weft.retrieval.snapshot.ports import OpenGeneration

log = logging.getLogger(__name__)

Name = TypeVar("Name", int, str)
_End = tuple[str, str]  # a document's URI or a chunk's id, and the document

_NAMED = 5  # relations that lead to no document which a warning names
_ORDER = {(LinkKind.SUPERSEDES, True): 0, (LinkKind.CONTRADICTS, True): 1, (LinkKind.CONTRADICTS, False): 1}
_KINDS = list(EdgeKind)
_OPPOSED = (EdgeKind.CONTRADICTS, EdgeKind.SUPERSEDES)


@dataclass(frozen=True, slots=True)
class _Edge:
    """An edge that was declared or found since, between contents."""

    source: int
    kind: EdgeKind
    target: int
    origin: RelationSource
    share: float = 1.0  # how strong it is of its origin, in (0, 1]


@dataclass(frozen=True, slots=True)
class Counterparts:
    """What stands against what, of contents by row and of documents by URI."""

    rows: Mapping[int, frozenset[int]] = field(default_factory=dict)  # The counterparts of each
    documents: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def pairs(self, rows: Sequence[int], uris: Sequence[str]) -> list[tuple[int, int]]:
        """Places of contents and of their counterparts among them, in ascending order."""
        if not self.rows and not self.documents:
            return []
        return [
            (at, other)
            for at, (row, uri) in enumerate(zip(rows, uris, strict=True))
            if (own := self.rows.get(row, _NOBODY)) | (theirs := self.documents.get(uri, _NOBODY))
            for other in range(len(rows))
            if other != at and (rows[other] in own or (uris[other] in theirs and uris[other] != uri))
        ]


_NOBODY: frozenset[Any] = frozenset()


@dataclass(frozen=True, slots=True)
class ResolvedRelations:
    """The causal relations of one generation."""

    # what stands in a relation with a document, by its URI, or with a part of it, by the id of the chunk
    by_end: Mapping[str, Sequence[RelatedDocument]] = field(default_factory=dict)
    further: Sequence[_Edge] = ()  # edges that the generation's own table does not hold
    opposed: Counterparts = field(default_factory=Counterparts)  # what contradicts or supersedes what, either way
    newer: Counterparts = field(default_factory=Counterparts)  # what supersedes what

    def relations_of(self, uris: Sequence[str], chunk_id: str) -> tuple[RelatedDocument, ...]:
        """What a result has to do with others: what supersedes it first, then what contradicts it, then by kind."""
        every = {each for end in (uris[0], chunk_id) for each in self.by_end.get(end, ()) if each.uri not in uris}
        return tuple(
            sorted(
                every,
                key=lambda one: (_ORDER.get((one.kind, one.inward), 2), not one.direct, one.kind, one.uri, one.inward),
            )
        )

    @property
    def energy_edges(self) -> ResolvedRelations:
        """Those that carry energy: not the contradictions that nights found.

        A hit gives the other side more than it gets back, so that the worse one of the two would come first.
        """
        silent = (EdgeKind.CONTRADICTS, RelationSource.AUTO)
        return replace(self, further=[each for each in self.further if (each.kind, each.origin) != silent])

    def extend_edges(self, edges: EdgeArrays, strengths: Mapping[RelationSource, float]) -> EdgeArrays:
        """The edges of the generation, and those that were declared or found since."""
        if not self.further:
            return edges
        return replace(
            edges,
            kind=np.append(edges.kind, [_KINDS.index(each.kind) for each in self.further]).astype(edges.kind.dtype),
            source=np.append(edges.source, [each.source for each in self.further]),
            target=np.append(edges.target, [each.target for each in self.further]),
            strength=np.append(edges.strength, [strengths[each.origin] * each.share for each in self.further]),
        )


NO_RELATIONS = ResolvedRelations()


def named_relation(chunks: ChunkStore, start: str, kind: str, end: str, *, at: float) -> Relation:
    """The relation that a person declares by names: of documents by path or URI, of parts by what follows "#"."""
    if kind not in set(CAUSAL):
        raise ValueError(f"expected a relation of {', '.join(CAUSAL)}, found {kind!r}")
    uris, places = chunks.uris(), ContentLocator(chunks)
    uri, target = place_of(start, uris, places), place_of(end, uris, places)
    if uri == target:
        raise ValueError(f"expected two documents or parts, found {uri} twice")
    return Relation(uri, LinkKind(kind), target, at=at)


def resolve_relations(
    generation: OpenGeneration, declared: Sequence[Relation], learned: LearnedEdges = NO_EDGES
) -> ResolvedRelations:
    """Find where relations lead in a generation; those to documents that it does not hold are named, and left out."""
    by_end: defaultdict[str, list[RelatedDocument]] = defaultdict(list)
    disputes: list[tuple[_End, _End]] = []
    for kind, both, relations in _stored(generation):
        for (end, _), related in zip(both, relations, strict=True):
            by_end[end].append(related)
        disputes += [both] if kind is LinkKind.CONTRADICTS else []
    edges: list[_Edge] = []
    for each, here, there in _met(generation, declared):
        ends = [
            [(str(chunk.chunk_id), chunk.uri) for chunk in own] if "#" in name else [(name, name)]
            for name, own in ((each.uri, here), (each.target, there))
        ]
        disputes += product(ends[0], ends[1]) if each.kind is LinkKind.CONTRADICTS else ()
        for own, other, inward in ((ends[0], there, False), (ends[1], here, True)):
            for end, _ in own:
                by_end[end].append(RelatedDocument(each.kind, other[0].uri, inward, each.source, each.at))
        source, target = generation.chunks.rows_of([here[0].content_hash, there[0].content_hash]).tolist()
        edges.append(_Edge(source, EdgeKind(each.kind.value), target, each.source))
    for edge, row, target in _rows(generation, learned):
        edges.append(_Edge(row, EdgeKind(edge.kind.value), target, edge.source, edge.micro / MICRO))
    for edge, one, another in _present(generation, learned.of_kinds(CAUSAL)):
        for end, related in _ends_of(edge, one, another):
            by_end[end].append(related)
        disputes += product(one.ends, another.ends) if edge.kind is LinkKind.CONTRADICTS else ()
    counterparts = _counterparts(generation, by_end, edges)
    for end, related in _clustered(disputes, by_end):
        by_end[end].append(related)
    return ResolvedRelations(dict(by_end), edges, *counterparts)


def _met(
    generation: OpenGeneration, declared: Sequence[Relation]
) -> Iterator[tuple[Relation, Sequence[Chunk], Sequence[Chunk]]]:
    """Relations with the chunks at both ends; a warning names those that have none at one."""
    unmet: list[str] = []
    for each in declared:
        here, there = _chunks_at(generation, each.uri), _chunks_at(generation, each.target)
        if here and there:
            yield each, here, there
        else:
            unmet.append(f"{each.uri} {each.kind} {each.target}")
    if unmet:
        named = ", ".join(unmet[:_NAMED])
        log.warning("%d declared relations lead to no document of what is live: %s", len(unmet), named)


def _counterparts(
    generation: OpenGeneration, by_end: Mapping[str, Sequence[RelatedDocument]], further: Sequence[_Edge]
) -> tuple[Counterparts, Counterparts]:
    """What opposes what, and what supersedes what."""
    every = [(each.kind, each.source, each.target) for each in further]
    with contextlib.suppress(StoreError):  # built without a graph
        stored = generation.graph.arrays()
        some = np.flatnonzero(np.isin(stored.kind, [_KINDS.index(kind) for kind in _OPPOSED]))
        columns = (column[some].tolist() for column in (stored.kind, stored.source, stored.target))
        every += [(_KINDS[kind], source, target) for kind, source, target in zip(*columns, strict=True)]
    opposed_rows, newer_rows = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for kind, source, target in every:
        if kind in _OPPOSED and source != target:
            opposed_rows[source].add(target)
            opposed_rows[target].add(source)
            if kind is EdgeKind.SUPERSEDES:
                newer_rows[target].add(source)
    opposed, newer = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for end, relations in by_end.items():
        for each in relations:
            if each.kind in (LinkKind.CONTRADICTS, LinkKind.SUPERSEDES):
                opposed[end].add(each.uri)
                if each.kind is LinkKind.SUPERSEDES and each.inward:
                    newer[end].add(each.uri)
    return (Counterparts(_frozen(opposed_rows), _frozen(opposed)), Counterparts(_frozen(newer_rows), _frozen(newer)))


def _frozen(sets: Mapping[Name, set[Name]]) -> dict[Name, frozenset[Name]]:
    return {name: frozenset(each) for name, each in sets.items()}


@dataclass(frozen=True, slots=True)
class _Stands:
    """Where a content stands."""

    uris: tuple[str, ...]
    chunk_ids: tuple[str, ...]

    @property
    def ends(self) -> Iterator[_End]:
        """Each of its chunks."""
        return zip(self.chunk_ids, self.uris, strict=True)


def _rows(generation: OpenGeneration, learned: LearnedEdges) -> Iterator[tuple[LearnedEdge, int, int]]:
    """Found edges whose contents the generation holds both, with their rows."""
    sources, targets = (
        generation.chunks.rows_of(names).tolist()
        for names in ([each.content for each in learned.edges], [each.target for each in learned.edges])
    )
    for each, source, target in zip(learned.edges, sources, targets, strict=True):
        if source >= 0 and target >= 0:
            yield each, source, target


def _ends_of(edge: LearnedEdge, here: _Stands, there: _Stands) -> Iterator[tuple[str, RelatedDocument]]:
    """Each chunk that a relation leads from or to, and the document at its other end.

    What supersedes another does so as a whole: there it is each document that has one content and not the other.
    """
    if edge.kind is LinkKind.SUPERSEDES:
        newer, older = (
            [uri for uri in one.uris if uri not in other.uris] for one, other in ((here, there), (there, here))
        )
        for one, another in product(newer, older):
            yield one, RelatedDocument(edge.kind, another, False, edge.source, None)
            yield another, RelatedDocument(edge.kind, one, True, edge.source, None)
        return
    for own, other, inward in ((here, there, False), (there, here, True)):
        related = RelatedDocument(edge.kind, other.uris[0], inward, edge.source, None)
        yield from ((end, related) for end in own.chunk_ids)


def _present(generation: OpenGeneration, learned: LearnedEdges) -> Iterator[tuple[LearnedEdge, _Stands, _Stands]]:
    """Found edges whose contents the generation holds both."""
    chunks = generation.chunks
    rows = sorted({row for _, *ends in _rows(generation, learned) for row in ends})
    places = {
        content.content_hash: _Stands(
            tuple(place.uri for place in content.occurrences),
            tuple(str(place.chunk.chunk_id) for place in content.occurrences),
        )
        for content in chunks.contents(rows)
    }
    for each in learned.edges:
        if each.content in places and each.target in places:
            yield each, places[each.content], places[each.target]


def _clustered(
    disputes: Iterable[tuple[_End, _End]], direct: Mapping[str, Sequence[RelatedDocument]]
) -> Iterator[tuple[str, RelatedDocument]]:
    """Each end of a contradiction with the documents of its cluster that it does not contradict itself."""
    both = [pair for pair in disputes if pair[0] != pair[1]]
    if not both:
        return
    ends = sorted({end for pair in both for end in pair})
    place = {end: at for at, end in enumerate(ends)}
    source, target = (np.array([place[pair[side]] for pair in both]) for side in (0, 1))
    graph = sparse.coo_matrix((np.ones(len(both)), (source, target)), shape=(len(ends), len(ends)))
    labels = csgraph.connected_components(graph, directed=False)[1]
    clusters: defaultdict[int, list[_End]] = defaultdict(list)
    for end, label in zip(ends, labels.tolist(), strict=True):
        clusters[label].append(end)
    for cluster in clusters.values():
        uris = {uri for _, uri in cluster}
        for name, own in cluster:
            opponents = {each.uri for each in direct[name] if each.kind is LinkKind.CONTRADICTS}
            for uri in sorted(uris - opponents - {own}):
                yield name, RelatedDocument(LinkKind.CONTRADICTS, uri, False, RelationSource.AUTO, direct=False)


def _stored(
    generation: OpenGeneration,
) -> Iterator[tuple[LinkKind, tuple[_End, _End], tuple[RelatedDocument, RelatedDocument]]]:
    """The generation's own relations, by both ends: a document where it is its first chunk, else that chunk."""
    try:
        stored = generation.graph.relations()
    except StoreError:
        return
    if not stored:
        return
    places = generation.chunks.uri_and_sequence(list({end for each in stored for end in (each.chunk, each.target)}))
    for each in stored:
        kind, source = LinkKind(each.kind.value), RelationSource(each.source)
        (uri, sequence), (target, second) = places[each.chunk], places[each.target]
        ends = (str(each.chunk) if sequence else uri, uri), (str(each.target) if second else target, target)
        outward = RelatedDocument(kind, target, False, source, each.time)
        yield kind, ends, (outward, RelatedDocument(kind, uri, True, source, each.time))


def _chunks_at(generation: OpenGeneration, name: str) -> list[Chunk]:
    """The chunks that a document or a part of it has."""
    uri, _, anchor = name.partition("#")
    return [chunk for chunk in generation.chunks.chunks_of_document(uri) if is_at_anchor(chunk, anchor)]
