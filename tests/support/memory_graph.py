"""A graph of a few edges, in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from weft.domain.ids import ContentHash
from weft.indexes.graph.graph import ChunkRelation, Direction, EdgeArrays, EdgeKind, Neighbour


class MemoryGraph:
    """Edges of (kind, source, target), contents by row and entities by name; all of them as sure as can be."""

    def __init__(
        self, contents: int, *edges: tuple[EdgeKind, int, int | str], hashes: Sequence[ContentHash] = ()
    ) -> None:
        self._hashes = hashes
        self._names = sorted({target for _, _, target in edges if isinstance(target, str)})
        self._contents = contents
        self._edges = edges

    def arrays(self) -> EdgeArrays:
        places = {name: self._contents + node for node, name in enumerate(self._names)}
        kinds, sources, targets = [list(column) for column in zip(*self._edges, strict=True)] or ([], [], [])
        return EdgeArrays(
            np.array([list(EdgeKind).index(kind) for kind in kinds], dtype=np.int8),
            np.array(sources, dtype=np.int64),
            np.array([places.get(target, target) for target in targets], dtype=np.int64),
            np.ones(len(kinds)),
            contents=self._contents,
            entities=len(self._names),
        )

    def neighbours(
        self, content: ContentHash, kinds: Collection[EdgeKind], direction: Direction = Direction.OUT
    ) -> list[Neighbour]:
        ends = [(kind, *(pair if direction is Direction.OUT else pair[::-1])) for kind, *pair in self._edges]
        return [
            Neighbour(kind, self._hashes[there], None, None, None, 1.0, 1.0, declared=False)
            for kind, here, there in ends
            if kind in kinds and isinstance(here, int) and isinstance(there, int) and self._hashes[here] == content
        ]

    def relations(self) -> list[ChunkRelation]:
        return []

    def communities(self) -> None:
        return None

    def degree_changes(self) -> None:
        return None

    def spellings(self) -> list[tuple[int, list[str]]]:
        return [(node, [name]) for node, name in enumerate(self._names)]
