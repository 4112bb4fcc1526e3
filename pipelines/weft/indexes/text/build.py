"""Writing the Lucene index: shards of contiguous rows side by side, then one merge that keeps their order (ING-24)."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.domain.documents import ContentType
from weft.indexes.schemas import DOCUMENTS
from weft.indexes.settings import LexicalSettings
from weft.indexes.text.analysis import EXACT, FIELDS, by_field, texts_by_field
from weft.indexes.text.jvm import JAVA, java_class, java_error
from weft.indexes.text.lexical import similarity
from weft.indexes.text.opened import ROW, check_order, directory, row_value
from weft.indexes.text.words import normalised, split_identifier
from weft.runtime.storage.errors import cause_in
from weft.runtime.storage.run_files import Brought

_INDEX = "org.apache.lucene.index."
_DOCUMENT = "org.apache.lucene.document."
_BUFFER_MB = 128.0  # text held in memory before a writer flushes a segment
_OF_DOCUMENTS = ["uri", "title", "content_type", "triggers"]
_NAME = re.compile(r"\w+(?:\.\w{2,})*")
_HUMP = re.compile("[a-z][A-Z]")
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:[./:-]+[^\W\d]\w*)*")


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
    """Rows [first, stop) of the staged chunks of a shard, to be written as one Lucene index in `folder`."""

    chunks: Path
    documents: tuple[Path, ...]  # the tables of all shards
    number: int  # of the shard
    folder: Path
    first: int
    stop: int
    settings: LexicalSettings

    @property
    def reads(self) -> list[Brought]:
        """The documents that its chunks may stand in."""
        return [Brought(file.parent, (file.name,)) for file in self.documents]


def shard_tasks(whole: ShardTask, work: Path, *, writers: int) -> list[ShardTask]:
    """Contiguous rows of a shard for each of at most so many writers."""
    rows = whole.stop - whole.first
    bounds = [whole.first + rows * writer // writers for writer in range(writers + 1)]
    return [
        replace(whole, folder=work / f"lucene-{whole.number:04d}-{writer:04d}", first=first, stop=stop)
        for writer, (first, stop) in enumerate(pairwise(bounds))
        if stop > first
    ]


def build_shard(task: ShardTask) -> int:
    """Write one shard from scratch and return its number of documents; a task lost with its worker is run again."""
    shutil.rmtree(task.folder, ignore_errors=True)
    documents = lexical_documents(task.chunks, task.documents, task.first, task.stop)
    first = row_value(task.number, 0)
    return write_shard(task.folder, ((first + row, text) for row, text in documents), task.settings)


@dataclass(frozen=True, slots=True)
class MergeShards:
    """Shards that become, in their order, the one index of a generation; one alone is written where it belongs."""

    shards: tuple[ShardTask, ...]
    folder: Path
    number: int  # of the generation's shard that they make up
    rows: int
    settings: LexicalSettings

    @property
    def reads(self) -> list[Brought]:
        """What writing the only one takes; several are there."""
        return self.shards[0].reads


def build_merged(task: MergeShards) -> None:
    """Merge shards, or write the only one, and check the order of the result; run again it writes an equal index."""
    shutil.rmtree(task.folder, ignore_errors=True)
    if len(task.shards) == 1:
        build_shard(replace(task.shards[0], folder=task.folder))
    else:
        merge_shards([shard.folder for shard in task.shards], task.folder, task.settings)
    with JAVA, contextlib.closing(java_class(_INDEX + "DirectoryReader").open(directory(task.folder))) as reader:
        check_order(reader, task.folder, task.number, task.rows, probes=max(1, task.rows))


def lexical_documents(chunks: Path, of: Sequence[Path], first: int, stop: int) -> Iterator[tuple[int, LexicalDocument]]:
    """(row, what Lucene is given of it) for rows [first, stop) of a shard's chunks, read group by group."""
    spans = pq.read_table(chunks / "contents.parquet", columns=["first_chunk"])["first_chunk"].to_numpy()[first:stop]
    documents = _documents_of(chunks, of)
    uris = documents["uri"].combine_chunks()
    for position, batch in _groups(pq.ParquetFile(chunks / "chunks.parquet"), int(spans[0]), int(spans[-1]) + 1):
        lowest, above = np.searchsorted(spans, [position, position + batch.num_rows])
        rows = batch.take(pa.array(spans[lowest:above] - position))
        facts = documents.take(pc.index_in(rows["uri"], value_set=uris))
        for at, (row, fact) in enumerate(zip(rows.to_pylist(), facts.to_pylist(), strict=True)):
            yield first + int(lowest) + at, lexical_document(row, fact)


def _documents_of(chunks: Path, documents: Sequence[Path]) -> pa.Table:
    """What the text index is given of the documents that a shard's chunks stand in; no worker holds those of all."""
    wanted = pq.read_table(chunks / "chunks.parquet", columns=["uri"])["uri"].unique()
    files = [pq.ParquetFile(path) for path in documents]
    groups = (
        file.read_row_group(group, columns=_OF_DOCUMENTS) for file in files for group in range(file.num_row_groups)
    )
    some = [group.filter(pc.is_in(group["uri"], value_set=wanted)) for group in groups]
    return pa.concat_tables([DOCUMENTS.empty_table().select(_OF_DOCUMENTS), *some])


def _groups(chunks: pq.ParquetFile, start: int, stop: int) -> Iterator[tuple[int, pa.Table]]:
    """Row groups that hold any of the chunks [start, stop), with the position of their first row."""
    position = 0
    for group in range(chunks.num_row_groups):
        rows = chunks.metadata.row_group(group).num_rows
        if position < stop and position + rows > start:
            yield position, chunks.read_row_group(group, columns=["uri", "text", "sequence", "defines", "parent_id"])
        position += rows


def lexical_document(chunk: Mapping[str, Any], document: Mapping[str, Any]) -> LexicalDocument:
    """The text of a content by field, from its first chunk and that chunk's document.

    Titles join texts that do not say them (ING-37), words of identifiers join code, names' words join all other texts.
    A window of a record has no words: the record has them, and would count them twice (ING-36).
    """
    if document["content_type"] == ContentType.RECORD and chunk["parent_id"] is not None:
        return LexicalDocument("", "", "")
    title, contents = normalised(document["title"] or ""), normalised(chunk["text"])
    named = contents.startswith(title) if document["content_type"] == ContentType.RECORD else title in contents
    if not named:
        contents = f"{title} {contents}"
    code = document["content_type"] in CODE
    contents = " ".join((contents, *(code_terms(contents) if code else prose_terms(contents))))
    if chunk["sequence"] == 0 and document["triggers"]:
        contents = " ".join((contents, *document["triggers"]))
    return LexicalDocument(contents, title, " ".join(symbol_terms(_names(chunk, of_code=code))))


def _names(chunk: Mapping[str, Any], *, of_code: bool) -> Iterator[str]:
    """What a chunk is called: the names that it defines, without what qualifies them, and the path of a file of code.

    A further part of a function defines nothing, and each member of a type would repeat the type's name.
    """
    for name in chunk["defines"]:
        yield name.rpartition(".")[2]
    if of_code:
        yield from PurePosixPath(chunk["uri"]).with_suffix("").parts[1:]  # the source has a name for itself


def write_shard(folder: Path, documents: Iterable[tuple[int, LexicalDocument]], settings: LexicalSettings) -> int:
    """Write (row, document) pairs, rows ascending, as one Lucene index; how many were written."""
    # One document object is filled again and again: creating Java objects costs more than indexing short texts.
    with JAVA:
        document, fields, row = _blank_document(settings)
    written = 0
    with _writer(folder, settings) as writer:
        for number, content in documents:
            texts = texts_by_field(content, settings)
            with JAVA:
                row.setLongValue(number)
                for name, text in texts.items():
                    fields[name].setStringValue(text)
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
def _disk_errors(folder: Path) -> Iterator[None]:
    """Have what the disk refuses Java raised as any other such error."""
    try:
        yield
    except java_error() as error:
        if (cause := cause_in(str(error), folder)) is None:
            raise
        raise cause from error


@contextlib.contextmanager
def _writer(folder: Path, settings: LexicalSettings) -> Iterator[Any]:
    with JAVA:
        analyzer, scoring = by_field(), similarity(settings)
    with index_writer(folder, analyzer, scoring) as writer:
        yield writer


@contextlib.contextmanager
def index_writer(folder: Path, analyzer: Any, scoring: Any) -> Iterator[Any]:
    """Lucene's writer of an index that is sorted by row; what was added is committed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    with _disk_errors(folder):
        with JAVA:
            lucene = directory(folder)
            writer = java_class(_INDEX + "IndexWriter")(lucene, _writing(analyzer, scoring))
        try:
            yield writer
            with JAVA:
                writer.commit()
        finally:
            with JAVA:
                writer.close()
                lucene.close()
    (folder / "write.lock").unlink(missing_ok=True)


def _writing(analyzer: Any, scoring: Any) -> Any:
    config = java_class(_INDEX + "IndexWriterConfig")(analyzer)
    config.setSimilarity(scoring)
    config.setRAMBufferSizeMB(_BUFFER_MB)
    config.setUseCompoundFile(False)
    # Segments are merged where they are, next to next: other policies order them by size.
    config.setMergePolicy(java_class(_INDEX + "LogDocMergePolicy")())
    config.setMergeScheduler(java_class(_INDEX + "SerialMergeScheduler")())
    kind = java_class("org.apache.lucene.search.SortField$Type").LONG
    by_row = java_class("org.apache.lucene.search.SortField")(ROW, kind)
    config.setIndexSort(java_class("org.apache.lucene.search.Sort")(by_row))
    return config


def _blank_document(settings: LexicalSettings) -> tuple[Any, dict[str, Any], Any]:
    document = java_class(_DOCUMENT + "Document")()
    unstored = java_class(_DOCUMENT + "Field$Store").NO
    names = FIELDS if settings.analysis == "english" else (*FIELDS, EXACT)
    texts = {name: java_class(_DOCUMENT + "TextField")(name, "", unstored) for name in names}
    row = java_class(_DOCUMENT + "NumericDocValuesField")(ROW, 0)
    for field in (*texts.values(), row):
        document.add(field)
    return document, texts, row


def code_terms(text: str) -> list[str]:
    """The words of every compound identifier in a text, each identifier once, in order of appearance."""
    return list(_words(dict.fromkeys(_IDENTIFIER.findall(text))))


def prose_terms(text: str) -> list[str]:
    """The words of every name in a text that is no code: what has dots, underscores or a capital inside.

    Examples:
        >>> prose_terms("With app.dependency_overrides or maxRetryCount, e.g. in well-known cases/places.")
        ['app', 'dependency', 'overrides', 'max', 'retry', 'count']
    """
    return list(_words(dict.fromkeys(name for name in _NAME.findall(text) if _is_compound(name))))


def _is_compound(name: str) -> bool:
    head = name.rstrip("_").rpartition("_")[0]
    return "." in name or any(letter.isalpha() for letter in head) or _HUMP.search(name) is not None


def symbol_terms(names: Iterable[str]) -> list[str]:
    """Names followed by their words, each name once: the symbols field of a chunk."""
    return [term for name in dict.fromkeys(names) for term in (name, *split_identifier(name))]


def _words(identifiers: Iterable[str]) -> Iterable[str]:
    for identifier in identifiers:
        words = split_identifier(identifier)
        if len(words) > 1:
            yield from words
