"""What surrounds a result, within one budget of tokens (RET-16)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

from msgspec import structs

from weft.domain.chunks import Chunk, Context, ContextPart, Reach, Role
from weft.domain.errors import StoreError
from weft.domain.ids import ChunkId
from weft.domain.ranking import RankedResult
from weft.domain.understanding import QueryType
from weft.indexes.graph.graph import CROSS_REFERENCES, RELATIONS, Direction, EdgeKind, Graph, Neighbour
from weft.retrieval.settings import ContextSettings
from weft.retrieval.snapshot.ports import OpenGeneration

Surrounding = tuple[Role, Chunk]

_WITHIN: Mapping[Reach, tuple[Role, ...]] = {
    Reach.CHUNK: (),
    Reach.SIBLINGS: (Role.SIBLING,),
    Reach.PARENT: (Role.TYPE,),
    Reach.LEVEL_UP: (Role.TYPE, Role.HEADER),
    Reach.REFERENCES: (Role.HEADER, Role.TYPE, Role.DEPENDENCY, Role.TEST, Role.USER),
    Reach.HIERARCHY: (Role.TYPE, Role.HEADER, Role.DEPENDENCY, Role.SIBLING),
}
"""What belongs to each reach, the most telling first."""

_FIELDS = "fields"  # kind of a chunk that holds fields of a type
_LEVELS = {Reach.PARENT: 1, Reach.LEVEL_UP: 2}


def surroundings(
    reach: Reach,
    chunk: Chunk,
    document: Sequence[Chunk],  # every chunk of its document, in source order
    *,
    points_to: Sequence[Chunk],  # chunks that it points to, what it calls first, then the surest
    used_by: Iterable[Chunk],  # chunks that point to it, the surest first
    tested_by: Iterable[Chunk] = (),  # chunks that test it, the surest first
    most: Mapping[Role, int],  # chunks of each role at most
) -> list[Surrounding]:
    """What belongs into a chunk's context beside itself, the most telling first, each chunk once."""
    by_role: Mapping[Role, Iterable[Chunk]] = {
        Role.HEADER: document[:1],
        Role.TYPE: [*_above(chunk, document, _LEVELS.get(reach, len(document))), *_owners(chunk, points_to)],
        Role.SIBLING: _beside(chunk, document),
        Role.DEPENDENCY: points_to,
        Role.TEST: tested_by,
        Role.USER: used_by,
    }
    seen = {chunk.chunk_id}
    return [(role, each) for role in _WITHIN[reach] for each in _first(by_role[role], most[role], seen)]


def _first(chunks: Iterable[Chunk], most: int, seen: set[ChunkId]) -> list[Chunk]:
    new = [chunk for chunk in chunks if chunk.chunk_id not in seen][:most]
    seen.update(chunk.chunk_id for chunk in new)
    return new


def _above(chunk: Chunk, document: Sequence[Chunk], levels: int) -> Iterator[Chunk]:
    """What a chunk is part of, the nearest first."""
    by_id = {each.chunk_id: each for each in document}
    here = chunk
    passed = {chunk.chunk_id}
    for _ in range(levels):
        above = [by_id[one] for one in (here.bundle, here.parent_id) if one in by_id and one not in passed]
        if not above:
            return
        here = above[0]
        passed.add(here.chunk_id)
        yield here
        # The head of a type says its name, and its fields what it holds.
        yield from (
            each for each in document if each.kind == _FIELDS and here.chunk_id in (each.bundle, each.parent_id)
        )


def _owners(chunk: Chunk, points_to: Iterable[Chunk]) -> list[Chunk]:
    """Types of which a chunk is a member, where they stand in another file, as that of a method in Go may."""
    owner = (chunk.symbol or "").rpartition(".")[0]
    return [each for each in points_to if owner and each.symbol == owner]


def _beside(chunk: Chunk, document: Sequence[Chunk]) -> list[Chunk]:
    """What shares its parent, the nearest first; of equally near ones the earlier."""
    siblings = [each for each in document if each.parent_id == chunk.parent_id and each.chunk_id != chunk.chunk_id]
    return sorted(siblings, key=lambda each: (abs(each.sequence - chunk.sequence), each.sequence))


MOST: Mapping[Role, int] = MappingProxyType(
    {Role.HEADER: 1, Role.TYPE: 3, Role.CHUNK: 1, Role.SIBLING: 4, Role.DEPENDENCY: 4, Role.TEST: 2, Role.USER: 2}
)
"""Chunks of each role around one result at most; the budget of tokens ends most contexts before."""

_ORDER = {role: place for place, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Reads what stands around chunks."""

    document: Callable[[str], Sequence[Chunk]]  # every chunk of a document, in source order
    # chunks that a result's content points to, what it calls first, then the surest
    points_to: Callable[[RankedResult], Sequence[Chunk]]
    used_by: Callable[[RankedResult], Sequence[Chunk]]  # chunks that point to it
    tested_by: Callable[[RankedResult], Sequence[Chunk]] = lambda _: ()  # chunks that test it


def with_contexts(
    results: Sequence[RankedResult],
    kind: QueryType,
    neighbours: Neighbours,
    moved: Callable[[RankedResult], float],
    settings: ContextSettings,
) -> tuple[RankedResult, ...]:
    """Results with their contexts: first every own chunk, then, from the best result on, what surrounds it.

    A chunk stands in one context, that of the best result it belongs to.
    """
    wanted = [_wanted(result, kind, neighbours, moved(result), settings) for result in results]
    budget = settings.max_context_tokens
    taken: dict[ChunkId, None] = {}
    fitting: list[list[Surrounding]] = [[] for _ in results]
    # The own chunks of all results, then the surroundings of each.
    for rows in (slice(0, 1), slice(1, None)):
        for place, (_, around) in enumerate(wanted):
            for role, chunk in around[rows]:
                if chunk.chunk_id not in taken and chunk.tokens <= budget:
                    budget -= chunk.tokens
                    taken[chunk.chunk_id] = None
                    fitting[place].append((role, chunk))
    return tuple(
        structs.replace(result, context=_context(reach, mine, len(around) - len(mine)))
        for result, (reach, around), mine in zip(results, wanted, fitting, strict=True)
    )


def _wanted(
    result: RankedResult, kind: QueryType, neighbours: Neighbours, moved: float, settings: ContextSettings
) -> tuple[Reach, list[Surrounding]]:
    reach = reach_of(kind, result.confidence, moved=moved, settings=settings)
    document = neighbours.document(result.uris[0])
    own = next(chunk for chunk in document if chunk.chunk_id == result.chunk_id)
    around = surroundings(
        reach,
        own,
        document,
        points_to=neighbours.points_to(result),
        used_by=neighbours.used_by(result),
        tested_by=neighbours.tested_by(result),
        most=MOST,
    )
    return reach, [(Role.CHUNK, own), *around]


def _context(reach: Reach, chunks: Sequence[Surrounding], left_out: int) -> Context:
    ordered = sorted(chunks, key=lambda item: (_ORDER[item[0]], item[1].uri, item[1].sequence))
    return Context(reach, tuple(_part(role, chunk) for role, chunk in ordered), left_out)


def _part(role: Role, chunk: Chunk) -> ContextPart:
    return ContextPart(role, chunk.chunk_id, chunk.uri, chunk.start_line, chunk.end_line, chunk.text, chunk.tokens)


def reach_of(kind: QueryType, confidence: float, *, moved: float, settings: ContextSettings) -> Reach:
    """The reach of one result's context."""
    if kind is QueryType.HOW:
        return Reach.REFERENCES
    if kind is QueryType.DEBUG:
        return Reach.HIERARCHY
    if confidence > min(1.0, max(0.0, settings.high + moved)):
        return Reach.SIBLINGS if kind is QueryType.EXPLORATORY else Reach.CHUNK
    return Reach.PARENT if confidence >= min(1.0, max(0.0, settings.low + moved)) else Reach.LEVEL_UP


# What a document replaced or contradicts is no part of what is needed to understand it.
_POINTERS = CROSS_REFERENCES - {EdgeKind.SIMILAR, *RELATIONS}


def neighbours_in(generation: OpenGeneration, *, most: int) -> Neighbours:
    """The surroundings of a generation's chunks; without a graph nothing points anywhere."""
    try:
        graph: Graph | None = generation.graph
    except StoreError:
        graph = None

    def linked(direction: Direction, *kinds: Collection[EdgeKind]) -> Callable[[RankedResult], Sequence[Chunk]]:
        def of(result: RankedResult) -> Sequence[Chunk]:
            edges = [] if graph is None else [graph.neighbours(result.content_hash, some, direction) for some in kinds]
            return _chunks_at(generation, chain.from_iterable(edges), most)

        return of

    return Neighbours(
        document=generation.chunks.chunks_of_document,
        points_to=linked(Direction.OUT, {EdgeKind.CALLS}, _POINTERS - {EdgeKind.CALLS}),
        used_by=linked(Direction.IN, _POINTERS),
        tested_by=linked(Direction.IN, {EdgeKind.TESTS}),
    )


def _chunks_at(generation: OpenGeneration, ends: Iterable[Neighbour], most: int) -> list[Chunk]:
    """The first chunks at the ends of edges, each once."""
    wanted = [
        (row, near.there)
        for near in ends
        if near.content and (row := generation.chunks.row_of(near.content)) is not None
    ]
    wanted = list(dict.fromkeys(wanted))[:most]
    contents = generation.chunks.contents([row for row, _ in wanted])
    return [
        next(
            (place.chunk for place in content.occurrences if place.chunk.chunk_id == there),
            content.occurrences[0].chunk,
        )
        for content, (_, there) in zip(contents, wanted, strict=True)
    ]
