"""What supersedes what in the live generation, found by the night in its texts (CON-4)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from weft.catalog.catalog import Catalog
from weft.consolidation.tending.succession import FindSuccessions, Page, Passage, Successions, find_successions
from weft.domain.arrays import Flags, Ints
from weft.domain.ids import ContentHash
from weft.domain.links import LinkKind
from weft.indexes.chunk_store import ChunkStore
from weft.learning.edges import LearnedEdges
from weft.retrieval.snapshot.ports import OpenGeneration
from weft.retrieval.snapshot.relations import resolve_relations
from weft.settings import Settings


def successions_of(settings: Settings) -> FindSuccessions | None:
    """Finds what supersedes what in the live generation; None where nothing is live."""
    catalog, rules = Catalog(Path(settings.storage.root)), settings.consolidation.succession
    if catalog.pointer().generation is None:
        return None

    def find() -> Successions:
        with closing(catalog.open_live()) as generation:
            chunks = generation.chunks
            pages = [Page(each.uri, each.title, each.content_type, each.modified_at) for each in chunks.documents()]
            successions = find_successions(pages, PassageReader(chunks), rules)
            return replace(successions, superseded=_superseded(generation, catalog, successions.edges))

    return find


def superseded_contents(catalog: Catalog, edges: LearnedEdges) -> Collection[ContentHash]:
    """Contents of the live generation that stand in nothing but what something supersedes."""
    with closing(catalog.open_live()) as generation:
        return _superseded(generation, catalog, edges)


def _superseded(generation: OpenGeneration, catalog: Catalog, edges: LearnedEdges) -> Collection[ContentHash]:
    chunks, newer = generation.chunks, edges.of_kinds((LinkKind.SUPERSEDES,))
    documents = resolve_relations(generation, catalog.relations(), newer).newer.documents
    stays = chunks.mask(lambda document: document.uri not in documents)
    return {chunks.hashes[row] for row in np.flatnonzero(~stays).tolist()}


class PassageReader:
    """Reads the contents of documents of an opened generation; where each stands is looked up once for all."""

    def __init__(self, chunks: ChunkStore) -> None:
        self._chunks = chunks

    def __call__(self, uri: str) -> Sequence[Passage]:
        """The contents of a document, in its order."""
        rows, places, first, alone = self._standings
        number = self._numbers[uri]
        here = slice(first[number], first[number + 1])
        texts = self._texts.take(pa.array(places[here])).to_pylist()
        return [
            Passage(self._chunks.hashes[row], text, alone=bool(alone[row]))
            for row, text in zip(rows[here].tolist(), texts, strict=True)
        ]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {each.uri: number for number, each in enumerate(self._chunks.documents())}

    @cached_property
    def _texts(self) -> Any:
        return self._chunks.table("chunks")["text"]

    @cached_property
    def _standings(self) -> tuple[Ints, Ints, Ints, Flags]:
        """Rows and places by document, where each document begins, and which contents stand in one document only."""
        row, place, document = self._chunks.occurrence_arrays(np.arange(len(self._chunks)))
        order = np.lexsort((place, document))
        first = np.searchsorted(document[order], np.arange(len(self._numbers) + 1))
        # Places of one content are ordered by document: it stands in several where the first and the last differ.
        begin = np.searchsorted(row, np.arange(len(self._chunks) + 1))
        alone = document[begin[:-1]] == document[begin[1:] - 1]
        return row[order], place[order], first, alone
