"""Writing the Lucene index: shards of contiguous rows side by side, then one merge that keeps their order (ING-24).

The index is sorted by row and merged into one segment, so that document order, statistics and scores are the same for
any number of shards.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pipelines.domain.documents import ContentType
from pipelines.indexes.chunk_store import ChunkStore, Content
from pipelines.indexes.code_terms import code_terms, symbol_terms
from pipelines.indexes.jvm import JAVA, java_class
from pipelines.indexes.lexical import FIELDS, ROW, analyzer, check_order, directory, similarity
from pipelines.indexes.settings import LexicalSettings

_INDEX = "org.apache.lucene.index."
_DOCUMENT = "org.apache.lucene.document."
CODE = frozenset({ContentType.CODE})
"""Content types whose identifiers are split into words."""


@dataclass(frozen=True, slots=True)
class LexicalDocument:
    """What Lucene is given of one content: text by field."""

    contents: str
    title: str
    symbols: str


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Rows [first, stop) of the staged chunks, to be written as one Lucene index in `folder`."""

    chunks: Path
    folder: Path
    first: int
    stop: int


MapShards = Callable[[Callable[[ShardTask], int], Sequence[ShardTask]], Iterable[int]]
"""Runs a function on every task, like `map`: in this process, or on the actors of a cluster."""


class ShardWriter:
    """Writes shards; a worker without state between tasks, so that a task lost with its worker is simply run again."""

    def __init__(self, settings: LexicalSettings) -> None:
        self._settings = settings

    def run(self, task: ShardTask) -> int:
        """Write one shard from scratch and return its number of documents."""
        shutil.rmtree(task.folder, ignore_errors=True)
        store = ChunkStore(task.chunks)
        starts = range(task.first, task.stop, self._settings.batch_size)
        batches = (range(start, min(task.stop, start + self._settings.batch_size)) for start in starts)
        documents = ((content.row, lexical_document(content)) for rows in batches for content in store.contents(rows))
        return write_shard(task.folder, documents, self._settings)


def build_lexical(
    chunks: Path, folder: Path, *, rows: int, shards: int, settings: LexicalSettings, map_shards: MapShards = map
) -> None:
    """Write the Lucene index of staged chunks into `folder`, through `shards` writers.

    Raises:
        CorruptionError: The merged index is not in row order.
    """
    bounds = [rows * shard // shards for shard in range(shards + 1)]
    parts = folder.with_name(f".{folder.name}-shards")
    tasks = [
        ShardTask(chunks, parts / f"{shard:04d}", first, stop)
        for shard, (first, stop) in enumerate(pairwise(bounds))
        if stop > first
    ]
    try:
        list(map_shards(ShardWriter(settings).run, tasks))
        merge_shards([task.folder for task in tasks], folder, settings)
    finally:
        shutil.rmtree(parts, ignore_errors=True)
    with JAVA, contextlib.closing(java_class(_INDEX + "DirectoryReader").open(directory(folder))) as reader:
        check_order(reader, folder, rows, probes=max(1, rows))


def lexical_document(content: Content) -> LexicalDocument:
    """The text of a content by field.

    A record is its title and text once, as in published baselines. Code gets the words of its identifiers appended.
    Every other chunk is its own text, which carries its headings already.
    """
    first = content.occurrences[0]
    title = first.title or ""
    contents = content.text
    if first.content_type is ContentType.RECORD and title and not contents.startswith(title):
        contents = f"{title} {contents}"
    if first.content_type in CODE:
        contents = " ".join((contents, *code_terms(contents)))
    names = (name for name in (first.chunk.symbol, *first.chunk.defines) if name)
    return LexicalDocument(contents, title, " ".join(symbol_terms(names)))


def write_shard(folder: Path, documents: Iterable[tuple[int, LexicalDocument]], settings: LexicalSettings) -> int:
    """Write (row, document) pairs, rows ascending, as one Lucene index.

    Returns:
        How many were written.
    """
    # One document object is filled again and again: creating Java objects costs more than indexing short texts.
    with JAVA:
        document, texts, row = _blank_document()
    written = 0
    with _writer(folder, settings) as writer:
        for number, content in documents:
            with JAVA:
                row.setLongValue(number)
                for name, field in texts.items():
                    field.setStringValue(getattr(content, name))
                writer.addDocument(document)
            written += 1
        with JAVA:
            writer.forceMerge(1)
    return written


def merge_shards(folders: Sequence[Path], out: Path, settings: LexicalSettings) -> None:
    """Merge shards, in their order, into one index of one segment."""
    with JAVA, _writer(out, settings) as writer:
        if folders:
            writer.addIndexes(*(directory(folder) for folder in folders))
        writer.forceMerge(1)


@contextlib.contextmanager
def _writer(folder: Path, settings: LexicalSettings) -> Iterator[Any]:
    folder.mkdir(parents=True, exist_ok=True)
    with JAVA:
        lucene = directory(folder)
        writer = java_class(_INDEX + "IndexWriter")(lucene, _writing(settings))
    try:
        yield writer
        with JAVA:
            writer.commit()
    finally:
        with JAVA:
            writer.close()
            lucene.close()
    (folder / "write.lock").unlink(missing_ok=True)


def _writing(settings: LexicalSettings) -> Any:
    config = java_class(_INDEX + "IndexWriterConfig")(analyzer(settings.stemmer))
    config.setSimilarity(similarity(settings))
    config.setRAMBufferSizeMB(settings.writer_buffer_mb)
    config.setUseCompoundFile(False)
    # Segments are merged where they are, next to next: other policies order them by size.
    config.setMergePolicy(java_class(_INDEX + "LogDocMergePolicy")())
    config.setMergeScheduler(java_class(_INDEX + "SerialMergeScheduler")())
    kind = java_class("org.apache.lucene.search.SortField$Type").LONG
    by_row = java_class("org.apache.lucene.search.SortField")(ROW, kind)
    config.setIndexSort(java_class("org.apache.lucene.search.Sort")(by_row))
    return config


def _blank_document() -> tuple[Any, dict[str, Any], Any]:
    document = java_class(_DOCUMENT + "Document")()
    unstored = java_class(_DOCUMENT + "Field$Store").NO
    texts = {name: java_class(_DOCUMENT + "TextField")(name, "", unstored) for name in FIELDS}
    row = java_class(_DOCUMENT + "NumericDocValuesField")(ROW, 0)
    for field in (*texts.values(), row):
        document.add(field)
    return document, texts, row
