"""A generation, opened: chunks, vectors and text of one corpus as one immutable value (ARC-2)."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.domain.errors import CorruptionError, StoreError
from weft.domain.ids import ContentHash
from weft.indexes.chunk_store import ChunkStore
from weft.indexes.copies import TableCopies
from weft.indexes.dense.tokens import TokenStore, has_tokens
from weft.indexes.dense.vectors import DenseIndex, open_dense
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
from weft.indexes.shards import shards_of
from weft.indexes.text.lexical import LexicalIndex
from weft.runtime.storage.files import verify_files

_TO_COME = "still to come, by words until then: `weft index` makes vectors and links"


class Generation:
    """All indexes of one generation; row i means the same content in each. Shared by threads, never changed."""

    def __init__(
        self, folder: Path, manifest: Manifest, chunks: ChunkStore, dense: Mapping[str, DenseIndex], graph: Graph | None
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.chunks = chunks
        self._dense = dict(dense)
        self._graph = graph
        folders = {name: encoder_folders(folder, name) for name in dense}
        self._tokens = {name: TokenStore(*each) for name, each in folders.items() if has_tokens(each[0])}

    @cached_property
    def lexical(self) -> LexicalIndex:
        """The words; opened when first asked for, since whoever only names contents needs no Java."""
        with _whole(self.manifest):
            folders = [shard / LUCENE_FOLDER for shard in shards_of(self.folder)]
            return LexicalIndex(folders, self.manifest.lexical, rows=len(self.chunks))

    @cached_property
    def _impacts(self) -> Any:
        if not self.manifest.weighed_with:
            return None
        opener = importlib.import_module(IMPACTS_MODULE)
        with _whole(self.manifest):
            folders = [shard / IMPACTS_FOLDER for shard in shards_of(self.folder)]
            return opener.ImpactIndex(folders, rows=len(self.chunks))

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
        return sorted(self._dense)

    def dense(self, encoder: str) -> DenseIndex:
        """The vectors of one encoder; StoreError where the generation was built without it."""
        try:
            return self._dense[encoder]
        except KeyError:
            if self.manifest.is_by_words:
                raise StoreError(_TO_COME) from None
            names = ", ".join(self.encoders) or "none"
            raise StoreError(f"{self.manifest.id}: expected vectors of {encoder}, found {names}; reindex") from None

    def tokens(self, encoder: str) -> TokenStore | None:
        """The token embeddings of one encoder; None where none were kept."""
        return self._tokens.get(encoder)

    def impacts(self, encoder: str) -> Any:
        """The term weights of one sparse encoder; StoreError where the generation was built without them."""
        own = self.manifest.sparse_encoder
        if self._impacts is None or own != encoder:
            name = own or "none"
            raise StoreError(f"{self.manifest.id}: expected term weights of {encoder}, found {name}; reindex")
        return self._impacts

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
        for opened in filter(None, map(self.__dict__.get, ("_impacts", "lexical"))):
            opened.close()
        self.chunks.close()


def open_generation(folder: Path, *, verify: bool = True, copies: Path | None = None) -> Generation:
    """Open a generation, perhaps with a folder of decoded copies that processes share."""
    manifest = verify_generation(folder) if verify else read_generation_manifest(folder)
    tables = None if copies is None else TableCopies(copies, manifest.id)
    with _whole(manifest):
        chunks = ChunkStore(folder / CHUNKS_FOLDER, copies=tables)
        dense = {name: open_dense(encoder_folders(folder, name), facts) for name, facts in manifest.dense.items()}
        graph = Graph(folder / GRAPH_FOLDER, chunks.hashes, copies=tables) if (folder / GRAPH_FOLDER).is_dir() else None
    for name, index in dense.items():
        if len(index) != len(chunks):
            raise CorruptionError(f"{folder}: expected {len(chunks)} vectors of {name}, found {len(index)}; rebuild")
    return Generation(folder, manifest, chunks, dense, graph)


@contextmanager
def _whole(manifest: Manifest) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptionError(f"{error.filename}: expected a file of {manifest.id}, found none; rebuild") from error


def encoder_folders(generation: Path, encoder: str) -> list[Path]:
    """Where an encoder's files lie in each shard."""
    return [shard / VECTORS_FOLDER / encoder_folder(encoder) for shard in shards_of(generation)]


def verify_generation(folder: Path) -> Manifest:
    """The manifest of a generation, every file compared with its hash; errors as in `open_generation`."""
    manifest = read_generation_manifest(folder)
    verify_files(folder, manifest.files)
    return manifest
