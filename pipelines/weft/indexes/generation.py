"""A generation, opened: chunks, vectors and text of one corpus as one immutable value (ARC-2)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from weft.domain.errors import CorruptionError, StoreError
from weft.domain.ids import ContentHash
from weft.indexes.chunk_store import ChunkStore
from weft.indexes.copies import TableCopies
from weft.indexes.dense.tokens import TokenStore, has_tokens
from weft.indexes.dense.vectors import open_dense
from weft.indexes.graph.graph import GRAPH_FOLDER, Graph
from weft.indexes.manifest import (
    CHUNKS_FOLDER,
    IMPACTS_FOLDER,
    IMPACTS_MODULE,
    LUCENE_FOLDER,
    VECTORS_FOLDER,
    Manifest,
    encoder_folder,
    read_generation_manifest,
)
from weft.indexes.parts import WHOLE, IndexPart, Share
from weft.indexes.shards import shard_folders
from weft.indexes.spread import Indexes, SpreadTerms, SpreadTokens, SpreadVectors, local_part
from weft.indexes.text.jvm import JAVA
from weft.indexes.text.lexical import LexicalIndex, similarity
from weft.indexes.text.opened import OpenedTexts
from weft.runtime.storage.files import verify_files

_TO_COME = "still to come, by words until then: `weft index` makes vectors and links"


@dataclass(frozen=True, slots=True)
class _Searched:
    """What searches ask, in this process or spread over others."""

    lexical: LexicalIndex
    dense: Mapping[str, Any]  # by encoder: a `DenseIndex`, or `SpreadVectors` where parts have them
    tokens: Mapping[str, Any] = field(default_factory=dict)
    impacts: Any = None


class Generation:
    """All indexes of one generation; row i means the same content in each. Shared by threads, never changed.

    What searches may be opened when it is first asked for: whoever only names contents needs no Java and no vectors.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        chunks: ChunkStore,
        graph: Graph | None,
        searched: Callable[[], _Searched],
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.chunks = chunks
        self._graph = graph
        self._open_searched = searched

    @cached_property
    def _searched(self) -> _Searched:
        with _whole(self.manifest):
            return self._open_searched()

    def open_searched(self) -> None:
        """Open what searches, where that was not done."""
        _ = self._searched

    @property
    def lexical(self) -> LexicalIndex:
        """The words."""
        return self._searched.lexical

    @property
    def contents(self) -> Sequence[ContentHash]:
        """Content hash by row, sorted."""
        return self.chunks.hashes

    @property
    def created_at(self) -> float:
        """When it was made, seconds since the epoch."""
        return self.manifest.created_at

    @property
    def encoders(self) -> list[str]:
        """Names of the encoders whose vectors it holds, sorted."""
        return sorted(self.manifest.dense)

    def dense(self, encoder: str) -> Any:
        """The vectors of one encoder; StoreError where the generation was built without it."""
        try:
            return self._searched.dense[encoder]
        except KeyError:
            if self.manifest.is_by_words:
                raise StoreError(_TO_COME) from None
            names = ", ".join(self.encoders) or "none"
            raise StoreError(f"{self.manifest.id}: expected vectors of {encoder}, found {names}; reindex") from None

    def tokens(self, encoder: str) -> Any:
        """The token embeddings of one encoder; None where none were kept."""
        return self._searched.tokens.get(encoder)

    def impacts(self, encoder: str) -> Any:
        """The term weights of one sparse encoder; StoreError where the generation was built without them."""
        own = self.manifest.sparse_encoder
        if self._searched.impacts is None or own != encoder:
            name = own or "none"
            raise StoreError(f"{self.manifest.id}: expected term weights of {encoder}, found {name}; reindex")
        return self._searched.impacts

    @property
    def graph(self) -> Graph:
        """Entities, mentions and cross-references; StoreError where the generation was built without them."""
        if self._graph is None and self.manifest.is_by_words:
            raise StoreError(_TO_COME)
        if self._graph is None:
            raise StoreError(f"{self.manifest.id}: expected a graph, found none; set index.graph.enabled and reindex")
        return self._graph

    def close(self) -> None:
        """Release files and memory; searches still running must have ended."""
        if self._graph is not None:
            self._graph.close()
        if "_searched" in self.__dict__:
            self.lexical.close()  # and with it all else of its parts
        self.chunks.close()


def open_generation(
    folder: Path,
    *,
    verify: bool = True,
    copies: Path | None = None,
    parts: Sequence[IndexPart] | None = None,
    searched: bool = True,
) -> Generation:
    """Open a generation, perhaps with a folder of decoded copies that processes share.

    Args:
        parts: Where its shards are searched; then only tables and graph are read here.
        searched: Open what searches now, so that it stays when the files are removed; else when it is asked for.
    """
    manifest = verify_generation(folder) if verify else read_generation_manifest(folder)
    tables = None if copies is None else TableCopies(copies, manifest.id)
    with _whole(manifest):
        chunks = ChunkStore(folder / CHUNKS_FOLDER, copies=tables)
        graph = Graph(folder / GRAPH_FOLDER, chunks.hashes, copies=tables) if (folder / GRAPH_FOLDER).is_dir() else None
    indexes = partial(_here, folder, manifest, len(chunks)) if parts is None else partial(_spread, manifest, parts)
    generation = Generation(folder, manifest, chunks, graph, indexes)
    if searched:
        generation.open_searched()
    return generation


@contextmanager
def _whole(manifest: Manifest) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptionError(f"{error.filename}: expected a file of {manifest.id}, found none; rebuild") from error


def _here(folder: Path, manifest: Manifest, rows: int) -> _Searched:
    here = open_indexes(folder, manifest)
    lexical = LexicalIndex([local_part(here, range(rows))], manifest.lexical)
    return _Searched(lexical, here.dense, here.tokens, here.impacts)


def _spread(manifest: Manifest, parts: Sequence[IndexPart]) -> _Searched:
    return _Searched(
        LexicalIndex(parts, manifest.lexical),
        {name: SpreadVectors(parts, name) for name in manifest.dense},
        {name: SpreadTokens(parts, name) for name in parts[0].facts.projections},
        SpreadTerms(parts) if manifest.weighed_with else None,
    )


def open_indexes(folder: Path, manifest: Manifest, share: Share = WHOLE) -> Indexes:
    """Open the indexes of a share of the shards, which has any."""
    some, rows = share.shards(manifest), len(share.rows(manifest))
    shards = shard_folders(folder, len(manifest.shards))[some]
    with JAVA:
        texts = [shard / LUCENE_FOLDER for shard in shards]
        text = OpenedTexts(texts, similarity(manifest.lexical), rows=rows, first_shard=some.start)
    dense = {name: open_dense(encoder_folders(shards, name), facts) for name, facts in manifest.dense.items()}
    impacts: Any = None
    if manifest.weighed_with:
        opener = importlib.import_module(IMPACTS_MODULE)
        folders = [shard / IMPACTS_FOLDER for shard in shards]
        impacts = opener.ImpactIndex(folders, rows=rows, first_shard=some.start)
    for name, index in dense.items():
        if len(index) != rows:
            raise CorruptionError(f"{folder}: expected {rows} vectors of {name}, found {len(index)}; rebuild")
    stores = {name: encoder_folders(shards, name) for name in dense}
    tokens = {name: TokenStore(*each) for name, each in stores.items() if has_tokens(each[0])}
    return Indexes(text, dense, tokens, impacts)


def encoder_folders(shards: Sequence[Path], encoder: str) -> list[Path]:
    """Where an encoder's files lie in each shard."""
    return [shard / VECTORS_FOLDER / encoder_folder(encoder) for shard in shards]


def verify_generation(folder: Path) -> Manifest:
    """The manifest of a generation, every file compared with its hash; errors as in `open_generation`."""
    manifest = read_generation_manifest(folder)
    verify_files(folder, manifest.files)
    return manifest
