"""What surrounds a chunk in its document, and what it points to: code, prose, papers and conversations alike (RET-16).

Every document is a tree of chunks in source order. The type of a method, the section of a paragraph and the session of
a turn are the same thing in it: what the chunk is bundled with, or else its parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pipelines.domain.chunks import Chunk
from pipelines.domain.context import Reach, Role
from pipelines.domain.ids import ChunkId

Surrounding = tuple[Role, Chunk]

_WITHIN: Mapping[Reach, tuple[Role, ...]] = {
    Reach.CHUNK: (),
    Reach.SIBLINGS: (Role.SIBLING,),
    Reach.PARENT: (Role.TYPE,),
    Reach.LEVEL_UP: (Role.TYPE, Role.HEADER),
    Reach.REFERENCES: (Role.DEPENDENCY, Role.USER),
    Reach.HIERARCHY: (Role.TYPE, Role.HEADER, Role.DEPENDENCY, Role.SIBLING),
}
"""What belongs to each reach, the most telling first."""

_LEVELS = {Reach.PARENT: 1, Reach.LEVEL_UP: 2}


def surroundings(
    reach: Reach,
    chunk: Chunk,
    document: Sequence[Chunk],
    *,
    points_to: Iterable[Chunk],
    used_by: Iterable[Chunk],
    most: Mapping[Role, int],
) -> list[Surrounding]:
    """What belongs into a chunk's context beside itself, the most telling first, each chunk once.

    Args:
        document: Every chunk of its document, in source order.
        points_to: Chunks that it points to, the surest first.
        used_by: Chunks that point to it, the surest first.
        most: Chunks of each role at most.
    """
    by_role: Mapping[Role, Iterable[Chunk]] = {
        Role.HEADER: document[:1],
        Role.TYPE: _above(chunk, document, _LEVELS.get(reach, len(document))),
        Role.SIBLING: _beside(chunk, document),
        Role.DEPENDENCY: points_to,
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


def _beside(chunk: Chunk, document: Sequence[Chunk]) -> list[Chunk]:
    """What shares its parent, the nearest first; of equally near ones the earlier."""
    alike = [each for each in document if each.parent_id == chunk.parent_id and each.chunk_id != chunk.chunk_id]
    return sorted(alike, key=lambda each: (abs(each.sequence - chunk.sequence), each.sequence))
