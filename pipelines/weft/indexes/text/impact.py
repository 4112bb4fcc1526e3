"""Learned-sparse search: dot products of whole-numbered term weights over Lucene's impact index (RET-7).

A term is the id of a token in the encoder's vocabulary, its weight in a content the frequency that Lucene keeps of it.
Scores are the dot products themselves: whole numbers, exact below 2^24, which 128 terms of weight 350 do not reach.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.arrays import TermWeights
from weft.domain.errors import StoreError
from weft.indexes import schemas
from weft.indexes.manifest import CHUNKS_FOLDER, IMPACTS_FOLDER, WEIGHTS_FILE
from weft.indexes.parts import Hits
from weft.indexes.rows import RowSet
from weft.indexes.settings import MergeSettings
from weft.indexes.shards import take_over
from weft.indexes.text.analysis import delimited
from weft.indexes.text.build import index_writer
from weft.indexes.text.jvm import JAVA, java_cast, java_class
from weft.indexes.text.opened import NO_HITS, ROW, OpenedIndex, check_order, directory, row_value
from weft.runtime.storage.run_files import Brought
from weft.runtime.storage.tables import TableQueries

_FIELD = "impacts"
_ANALYSIS = "org.apache.lucene.analysis."
_DOCUMENT = "org.apache.lucene.document."
_INDEX = "org.apache.lucene.index."
_ROWS = 1_024  # contents together: bounds memory, changes nothing else

# A content that stands in several parts has the weights of the first: they were made of the same text.
_GATHERED = """
select content_hash, terms, weights from every_weight
join (select content_hash, min(part) as part from every_weight group by content_hash) using (content_hash, part)
semi join contents using (content_hash)
"""
_EVERY = "select * replace ('' as part) from base_weights union all by name select * from weights"


@dataclass(frozen=True, slots=True)
class ImpactTask:
    """Term weights to be put in row order and indexed."""

    parts: tuple[Path, ...]  # folders that may hold a table of weights
    # shards of the generation before that unchanged contents are taken from; its weights were made in the same way
    base: tuple[Path, ...]
    same: Path | None  # the one of them that holds just the contents of this shard
    out: Path  # folder of the shard; its contents are there already
    number: int  # of the shard
    work: Path  # folder for what is needed until the generation is complete
    rows: int
    merge: MergeSettings

    @property
    def reads(self) -> list[Brought]:
        """What was cut for the shard."""
        return [Brought(part) for part in self.parts]


def build_impacts(task: ImpactTask) -> None:
    """Write the weights of all contents and their index; running it again writes the same."""
    weights, folder = task.out / WEIGHTS_FILE, task.out / IMPACTS_FOLDER
    if task.same is not None:
        take_over(task.same, task.out, [WEIGHTS_FILE, IMPACTS_FOLDER])
        return
    weights.parent.mkdir(parents=True, exist_ok=True)
    written = _gather(task, weights)
    if written != task.rows:
        raise StoreError(f"expected term weights of {task.rows} contents, found those of {written}; run with --full")
    shutil.rmtree(folder, ignore_errors=True)
    write_impacts(folder, (weight for batch in _batches(weights) for weight in batch), shard=task.number)
    with JAVA, contextlib.closing(java_class(_INDEX + "DirectoryReader").open(directory(folder))) as reader:
        check_order(reader, folder, task.number, task.rows, probes=max(1, task.rows))


def _gather(task: ImpactTask, out: Path) -> int:
    """Write the weights of each content of the generation once, in row order; how many there are."""
    parts = [path for part in task.parts if (path := part / "weights.parquet").exists()]
    base = [path for shard in task.base if (path := shard / WEIGHTS_FILE).exists()]
    spill, written = task.work / f"weights-{task.number:04d}", 0
    with (
        TableQueries(spill, memory_mb=task.merge.memory_mb, threads=task.merge.threads) as queries,
        pq.ParquetWriter(out, schemas.WEIGHTS, compression="zstd", write_page_checksum=True) as writer,
    ):
        queries.define("weights", parts, schemas.WEIGHTS)
        queries.define("base_weights", base, schemas.WEIGHTS)
        queries.define("contents", [task.out / CHUNKS_FOLDER / "contents.parquet"], schemas.CONTENTS)
        queries.keep("every_weight", _EVERY)
        for table in queries.ordered(_GATHERED, ("content_hash",), schemas.WEIGHTS, at_once=_ROWS):
            writer.write_table(table)
            written += table.num_rows
    return written


def _batches(path: Path) -> Iterator[list[TermWeights]]:
    for batch in pq.ParquetFile(path).iter_batches(batch_size=_ROWS):
        yield schemas.table_to_weights(pa.Table.from_batches([batch]))


def write_impacts(folder: Path, weights: Iterator[TermWeights], *, shard: int = 0) -> None:
    """Write the weights of a shard's contents, in row order, as one Lucene index of one segment."""
    with JAVA:
        document, field, row = _blank_document()
        analyzer, similarity = delimited("delimitedTermFrequency", "|"), _impacts()
    with index_writer(folder, analyzer, similarity) as writer:
        for number, of_content in enumerate(weights):
            with JAVA:
                row.setLongValue(row_value(shard, number))
                field.setStringValue(_written(of_content))
                writer.addDocument(document)
        with JAVA:
            writer.forceMerge(1)


class ImpactIndex:
    """Dot products with term weights; immutable and safe to share between threads."""

    def __init__(self, folders: Sequence[Path], *, rows: int, first_shard: int = 0) -> None:
        """Open the index of each shard, which hold so many rows together."""
        with JAVA:
            self._opened = OpenedIndex(folders, _impacts(), rows=rows, first_shard=first_shard)
            analyzer = java_cast(_ANALYSIS + "Analyzer", delimited("delimitedBoost", "|"))
            self._builder = java_class("org.apache.lucene.util.QueryBuilder")(analyzer)
            # Java loads its classes at the first search, which may take a time that a user's search has not.
            first = [int(term) for term in self._opened.first_terms(_FIELD, count=2)]
        self.search(TermWeights.of(dict.fromkeys(first, 1)), len(first))

    def search(self, query: TermWeights, k: int, among: RowSet | None = None) -> Hits:
        """The k contents with the highest dot product with a query's weights, best first, ties by row."""
        if not len(query.terms) or k < 1:
            return NO_HITS
        with JAVA:
            return self._opened.find(self._builder.createBooleanQuery(_FIELD, _written(query)), k, among)

    def search_many(self, queries: Sequence[TermWeights], k: int, among: Sequence[RowSet | None]) -> Sequence[Hits]:
        """`search` for many queries, in their order."""
        return [self.search(query, k, rows) for query, rows in zip(queries, among, strict=True)]

    def close(self) -> None:
        """Release the files; closing twice is allowed."""
        self._opened.close()


def _written(weights: TermWeights) -> str:
    """Weights as Lucene's filters for delimited ones read them."""
    pairs = zip(weights.terms.tolist(), weights.weights.tolist(), strict=True)
    return " ".join(f"{term}|{weight}" for term, weight in pairs)


def _impacts() -> Any:
    """Scores by frequency times boost alone."""
    return java_class("io.anserini.search.similarity.ImpactSimilarity")()


def _blank_document() -> tuple[Any, Any, Any]:
    kind = java_class(_DOCUMENT + "FieldType")()
    kind.setIndexOptions(java_class(_INDEX + "IndexOptions").DOCS_AND_FREQS)
    kind.setTokenized(True)
    kind.setOmitNorms(True)
    kind.freeze()
    blank = java_cast("java.lang.CharSequence", java_class("java.lang.String")(""))
    field = java_class(_DOCUMENT + "Field")(_FIELD, blank, kind)
    row = java_class(_DOCUMENT + "NumericDocValuesField")(ROW, 0)
    document = java_class(_DOCUMENT + "Document")()
    for each in (field, row):
        document.add(each)
    return document, field, row
