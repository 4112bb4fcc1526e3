"""Reads what stands around a chunk out of a generation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipelines.domain.chunks import Chunk
from pipelines.domain.errors import StoreError
from pipelines.domain.ranking import RankedResult
from pipelines.indexes.graph.graph import CROSS_REFERENCES, Direction, EdgeKind
from pipelines.retrieval.context.assemble import Neighbours
from pipelines.retrieval.snapshot.ports import GraphIndex, OpenGeneration

_POINTERS = CROSS_REFERENCES - {EdgeKind.SIMILAR}


def neighbours_in(generation: OpenGeneration, *, most: int) -> Neighbours:
    """The surroundings of a generation's chunks; without a graph nothing points anywhere.

    Args:
        most: Chunks that a chunk points to, and that point to it, that are read at most.
    """
    try:
        graph: GraphIndex | None = generation.graph
    except StoreError:
        graph = None

    def linked(direction: Direction) -> Callable[[RankedResult], Sequence[Chunk]]:
        return lambda result: [] if graph is None else _linked(generation, graph, result, direction, most)

    return Neighbours(
        document=generation.chunks.chunks_of_document, points_to=linked(Direction.OUT), used_by=linked(Direction.IN)
    )


def _linked(
    generation: OpenGeneration, graph: GraphIndex, result: RankedResult, direction: Direction, most: int
) -> list[Chunk]:
    found = graph.neighbours(result.content_hash, _POINTERS, direction)
    wanted = [
        (row, near.there)
        for near in found
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
