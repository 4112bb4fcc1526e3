"""Reading a generation's chunks: which content stands at a row, and everywhere that it stands (ARC-4)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.domain.chunks import JOINED, Chunk, ChunkLabel
from weft.domain.documents import ContentType, Domain
from weft.domain.errors import CorruptionError
from weft.domain.ids import ContentHash
from weft.indexes.copies import TableCopies, read_whole
from weft.indexes.defined_names import DefinedNames, unqualified
from weft.indexes.former_places import FormerPlaces
from weft.indexes.rows import Hashes, read_hashes
from weft.indexes.schemas import CHUNKS, cell_reader, chunk_reader, label_reader, table_to_chunks
from weft.indexes.shards import shards_of


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What is known of one document."""

    uri: str
    title: str | None
    domain: Domain
    content_type: ContentType
    language: str | None
    modified_at: float | None
    trust_level: int
    metadata: Mapping[str, str]
    intent: str | None
    tier: str | None
    validation: str | None
    citations: int | None
    indexed_at: float | None = None  # when the first generation that held it was made; None where this is the one


class DefinedPlace(NamedTuple):
    """A chunk that bears a name as its symbol, or defines it."""

    row: int  # of its content
    document: int  # number of its document
    kind: str
    symbol: str  # of several the one that ends with the name; "" where it has none
    signature: str
    bears: bool  # whether its symbol ends with the name
    begins: bool  # whether the name is defined in its text: of a unit in parts the one with the signature


class Occurrence:
    """One place where a content stands: the chunk, and what is known of its document."""

    __slots__ = ("_decode", "_label", "content_type", "domain", "facts", "modified_at", "place", "title", "uri")

    def __init__(
        self, place: int, facts: StoredDocument, decode: Callable[[int], Chunk], label: Callable[[int], ChunkLabel]
    ) -> None:
        self.place = place
        self._decode = decode
        self._label = label
        self.facts = facts
        self.uri = facts.uri
        self.title = facts.title
        self.domain = facts.domain
        self.content_type = facts.content_type
        self.modified_at = facts.modified_at

    @property
    def chunk(self) -> Chunk:
        """The chunk at that place."""
        return self._decode(self.place)

    @property
    def label(self) -> ChunkLabel:
        """What is said of a result at that place."""
        return self._label(self.place)


class Content:
    """One text and every place it stands in."""

    __slots__ = ("_text", "content_hash", "occurrences", "row")

    def __init__(
        self, row: int, content_hash: ContentHash, occurrences: tuple[Occurrence, ...], text: Callable[[int], str]
    ) -> None:
        self.row = row
        self.content_hash = content_hash
        self.occurrences = occurrences
        self._text = text

    @property
    def text(self) -> str:
        """What was indexed."""
        return self._text(self.occurrences[0].place)


class ChunkStore:
    """Chunks and documents of one generation; files are opened at once and decoded on first use."""

    def __init__(self, folder: Path, *, copies: TableCopies | None = None) -> None:
        """Open the tables in the folder of a generation's chunks, and in those of its shards."""
        self._copies = copies
        self._loading = threading.RLock()
        try:
            # Mapped now: a reader keeps its generation even when that is pruned meanwhile.
            shards = [shard / folder.name for shard in shards_of(folder.parent)]
            self._files = {
                name: [pq.ParquetFile(one / f"{name}.parquet", memory_map=True) for one in folders]
                for names, folders in ((_OF_ALL, [folder]), (_OF_SHARDS, shards))
                for name in names
            }
            self.former_places = FormerPlaces(folder)
        except (pa.ArrowInvalid, FileNotFoundError) as error:
            raise CorruptionError(f"{folder}: expected Parquet files, found: {error}; rebuild or roll back") from error

    def __len__(self) -> int:
        return sum(file.metadata.num_rows for file in self._files["contents"])

    @property
    def hashes(self) -> Sequence[ContentHash]:
        """Content hash by row, sorted."""
        return self._hashes

    def row_of(self, content_hash: ContentHash) -> int | None:
        """Row of a content, None where the generation does not hold it."""
        (row,) = self.rows_of([content_hash]).tolist()
        return None if row < 0 else int(row)

    def rows_of(self, hashes: Sequence[str]) -> np.ndarray:
        """Row of each content, −1 of those that the generation does not hold, int64 (n,)."""
        return self._hashes.rows_of(hashes)

    def row_now(self, content_hash: ContentHash) -> int | None:
        """Row of a content, or of the first that took its place; None where it is gone."""
        row = self.row_of(content_hash)
        return next(iter(self.revisions_of(content_hash)), None) if row is None else row

    def revisions_of(self, content_hash: str) -> tuple[int, ...]:
        """Rows of the contents that took the place of one that was here before, ascending; none of any other."""
        gone, rows = self._revisions
        some = slice(*(np.searchsorted(gone, content_hash.encode("ascii", "replace"), side) for side in _SIDES))
        return tuple(sorted(rows[some].tolist()))

    def contents(self, rows: Sequence[int] | np.ndarray) -> list[Content]:
        """The contents at some rows, in the order asked for; IndexError where a row is outside the generation."""
        wanted = self._checked(rows)
        places, counts = self._places_of(wanted)
        occurrences = self._occurrences(places)
        ends = np.cumsum(counts)
        return [
            self._content(int(row), tuple(occurrences[end - count : end]))
            for row, count, end in zip(wanted, counts, ends, strict=True)
        ]

    def occurrence_arrays(self, rows: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Places that contents stand in: position of the content in `rows`, place of the chunk, its document.

        Contents in the order asked, places of each by (URI, sequence), the representative first.
        """
        places, counts = self._places_of(self._checked(rows))
        return np.repeat(np.arange(len(counts)), counts), places, self._places[0][places]

    def texts(self, rows: Sequence[int] | np.ndarray) -> Iterator[str]:
        """The texts of contents at ascending rows, some read at a time, none kept; IndexError as in `contents`."""
        places, start = self._spans[0][self._checked(rows)], 0
        groups = [(file, group) for file in self._files["chunks"] for group in range(file.num_row_groups)]
        for file, group in groups:
            stop = start + file.metadata.row_group(group).num_rows
            some = places[slice(*np.searchsorted(places, [start, stop]))] - start
            if len(some):
                with self._loading:
                    texts = file.read_row_group(group, columns=["text"])["text"]
                yield from map(str, texts.take(pa.array(some)).to_pylist())
            start = stop

    def rows_of_document(self, uri: str) -> list[int]:
        """Rows of the contents that stand in a document, ascending."""
        places = np.flatnonzero(pc.equal(self._chunks["uri"], pa.scalar(uri)).to_numpy(zero_copy_only=False))
        return sorted({int(row) for row in np.searchsorted(self._spans[0], places, side="right") - 1})

    def chunks_of_document(self, uri: str) -> list[Chunk]:
        """Every chunk of a document, in source order; none of a document that is not here."""
        chunks = table_to_chunks(self._chunks.filter(pc.equal(self._chunks["uri"], pa.scalar(uri))))
        return sorted(chunks, key=lambda chunk: chunk.sequence)

    def trigger_phrases(self) -> list[tuple[str, tuple[int, ...]]]:
        """Every phrase that a document declares, with the rows of its contents in the document's order."""
        declared = self.table("documents", ["uri", "triggers"]).to_pylist()
        return [
            (phrase, rows)
            for document in declared
            if document["triggers"] and (rows := tuple(self._rows_in_order(document["uri"])))
            for phrase in document["triggers"]
        ]

    def documents(self) -> Sequence[StoredDocument]:
        """What is known of every document, by its number."""
        return self._places[1]

    def defining(self, name: str, *, most: int) -> list[DefinedPlace]:
        """Chunks that bear a name or define it, by place; none where there are more than `most`."""
        bearing, defining = self._defined.bearing(name), self._defined.defining(name)
        places = np.union1d(bearing, defining)
        if len(places) > most:
            return []
        rows = np.searchsorted(self._spans[0], places, side="right") - 1
        labels = self._chunks.select(["kind", "symbol", "signature"]).take(places)
        columns = [[str(value or "") for value in column.to_pylist()] for column in labels.columns]
        columns[1] = [
            next((each for each in self._joined.get(place, ()) if unqualified(each) == name), symbol)
            for place, symbol in zip(places.tolist(), columns[1], strict=True)
        ]
        marks = (np.isin(places, bearing).tolist(), np.isin(places, defining).tolist())
        numbers = self._places[0][places].tolist()
        return [DefinedPlace(*each) for each in zip(rows.tolist(), numbers, *columns, *marks, strict=True)]

    def structure(self) -> np.ndarray:
        """How whole each chunk is, by place: its parse's quality times its share of the unit, float64 (chunks,)."""
        quality, share = (self._chunks[name].to_numpy() for name in ("parse_quality", "completeness"))
        return np.asarray(quality * share)

    def heading_path(self, place: int) -> tuple[str, ...]:
        """Headings above a chunk, the outermost first."""
        return tuple(self._heading_path(place))

    def parents(self) -> np.ndarray:
        """Place of each chunk's parent, int64 (chunks,); −1 where it has none."""
        return _positions(self._chunks["parent_id"], self._chunks["chunk_id"])

    def uri_and_sequence(self, chunk_ids: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        """URI and sequence of chunks by their ids; what is not here is left out."""
        columns = self._chunks.select(["chunk_id", "uri", "sequence"])
        some = columns.filter(pc.is_in(columns["chunk_id"], value_set=pa.array(chunk_ids, pa.string())))
        rows = zip(*(some[name].to_pylist() for name in some.column_names), strict=True)
        return {str(one): (str(uri), int(sequence)) for one, uri, sequence in rows}

    def rows_of_tiers(self, tiers: Collection[str]) -> set[int]:
        """Rows of the contents of documents that declare one of these tiers."""
        declared = self.table("documents", ["uri", "tier"])
        some = declared.filter(pc.is_in(pc.utf8_lower(declared["tier"]), pa.array(list(tiers), pa.string())))
        return {row for uri in some["uri"].to_pylist() for row in self.rows_of_document(str(uri))}

    def mask(self, holds: Callable[[StoredDocument], bool]) -> np.ndarray:
        """Which contents stand in a document that something holds of, bool (contents,); asks once per document."""
        numbers, documents = self._places
        return self._any_of(np.array([holds(facts) for facts in documents], dtype=bool)[numbers])

    def kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """Kind and level of each chunk, by place: str (chunks,) and int32 (chunks,)."""
        return self._chunks["kind"].to_numpy(), self._chunks["level"].to_numpy()

    def mask_of_kinds(self, holds: Callable[[str, int], bool]) -> np.ndarray:
        """Which contents stand in a chunk of whose kind and level something holds, bool (contents,)."""
        kinds, levels = self.kinds()
        held = {pair: holds(str(pair[0]), int(pair[1])) for pair in set(zip(kinds, levels, strict=True))}
        return self._any_of(np.array([held[pair] for pair in zip(kinds, levels, strict=True)], dtype=bool))

    def mask_of_attribute(self, name: str) -> np.ndarray:
        """Which contents stand in a chunk that has an attribute, bool (contents,)."""
        return self._any_of(pc.match_substring(self._chunks["attributes"], f'"{name}"').to_numpy())

    def _any_of(self, by_place: np.ndarray) -> np.ndarray:
        """Which contents stand in any of some places, bool (contents,)."""
        firsts, counts = self._spans
        ends = np.cumsum(np.concatenate([[0], by_place]))
        return np.asarray(ends[firsts + counts] > ends[firsts])

    def uris(self) -> list[str]:
        """Every document's URI, ascending."""
        return sorted(self._documents)

    def __iter__(self) -> Iterator[Content]:
        for start in range(0, len(self), _BATCH):
            yield from self.contents(range(start, min(len(self), start + _BATCH)))

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A stored table, or some of its columns: documents and rejected by their `uri`, chunks, contents, mentions."""
        wanted, files = None if columns is None else list(columns), self._files[name]
        with self._loading:
            table = pa.concat_tables([file.read(columns=wanted) for file in files])
        return table.sort_by("uri") if name in _BY_URI and len(files) > 1 else table

    def close(self) -> None:
        """Release the files."""
        for file in (file for files in self._files.values() for file in files):
            file.close(force=True)

    def _checked(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        wanted = np.asarray(rows, dtype=np.int64)
        if wanted.size and not (wanted.min() >= 0 and wanted.max() < len(self)):
            raise IndexError(f"expected rows in [0, {len(self)}), got {wanted.min()} to {wanted.max()}")
        return wanted

    def _places_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of contents, one content's after the other's, and how many each has."""
        firsts, counts = self._spans[0][rows], self._spans[1][rows]
        return np.repeat(firsts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum()), counts

    def _rows_in_order(self, uri: str) -> list[int]:
        """Rows of a document's contents, each once, as they follow one another."""
        places = np.flatnonzero(pc.equal(self._chunks["uri"], pa.scalar(uri)).to_numpy(zero_copy_only=False))
        order = np.argsort(self._chunks["sequence"].to_numpy()[places], kind="stable")
        rows = np.searchsorted(self._spans[0], places[order], side="right") - 1
        return list(dict.fromkeys(rows.tolist()))

    def _content(self, row: int, occurrences: tuple[Occurrence, ...]) -> Content:
        return Content(row, self._hashes[row], occurrences, self._text)

    @cached_property
    def _chunk(self) -> Callable[[int], Chunk]:
        return chunk_reader(self._chunks)

    @cached_property
    def _heading_path(self) -> Callable[[int], Sequence[str]]:
        return cell_reader(self._chunks["heading_path"])

    @cached_property
    def _text(self) -> Callable[[int], str]:
        return cell_reader(self._chunks["text"])

    @cached_property
    def _label(self) -> Callable[[int], ChunkLabel]:
        return label_reader(self._chunks)

    def _occurrences(self, places: np.ndarray) -> list[Occurrence]:
        numbers, documents = self._places
        return [
            Occurrence(place, documents[number], self._chunk, self._label)
            for place, number in zip(places.tolist(), numbers[places].tolist(), strict=True)
        ]

    @cached_property
    def _defined(self) -> DefinedNames:
        return DefinedNames(self._chunks["symbol"], self._chunks["defines"], self._joined)

    @cached_property
    def _joined(self) -> Mapping[int, Sequence[str]]:
        """By place, the symbols of what was joined to a chunk for being too small to stand alone."""
        attributes = self._chunks["attributes"]
        places = np.flatnonzero(pc.match_substring(attributes, f'"{JOINED}"').to_numpy())
        return {
            place: str(json.loads(str(each))[JOINED]).split("\n")
            for place, each in zip(places.tolist(), attributes.take(places).to_pylist(), strict=True)
        }

    @cached_property
    def _places(self) -> tuple[np.ndarray, list[StoredDocument]]:
        """For each chunk the number of its document, and the documents."""
        documents = pa.chunked_array([list(self._documents)], pa.string())
        with self._loading:  # this column alone: who asks where contents stand need not hold their texts
            numbers = [_positions(file.read(columns=["uri"])["uri"], documents) for file in self._files["chunks"]]
        return np.concatenate(numbers), list(self._documents.values())

    @cached_property
    def _chunks(self) -> pa.Table:
        with self._loading:
            return pa.concat_tables(
                [self._read_chunks(number, file) for number, file in enumerate(self._files["chunks"])]
            )

    def _read_chunks(self, shard: int, file: pq.ParquetFile) -> pa.Table:
        if self._copies is None:
            return read_whole(file, CHUNKS.names)
        return self._copies.read(f"chunks-{shard:04d}" if shard else "chunks", file, CHUNKS.names)

    @cached_property
    def _hashes(self) -> Hashes:
        with self._loading:
            return Hashes(np.concatenate([read_hashes(file) for file in self._files["contents"]]))

    @cached_property
    def _revisions(self) -> tuple[np.ndarray, np.ndarray]:
        """Contents that are gone, sorted, and the row of what took the place of each."""
        gone, became = ([str(each) for each in self.table("revisions")[name].to_pylist()] for name in _REVISED)
        return np.array(gone, dtype="S64"), self.rows_of(became)

    @cached_property
    def _spans(self) -> tuple[np.ndarray, np.ndarray]:
        counts = self.table("contents", ["occurrences"])["occurrences"].to_numpy().astype(np.int64)
        return np.cumsum(counts) - counts, counts

    @cached_property
    def _documents(self) -> dict[str, StoredDocument]:
        # Some at a time, and only what is known of them: rows in Python take ten times what is kept.
        metadata = lru_cache(_BATCH)(json.loads)  # many documents have the same, such as none
        names = [field.name for field in fields(StoredDocument)]
        with self._loading:
            batches = [file.iter_batches(_BATCH, columns=names) for file in self._files["documents"]]
            rows = (row for some in batches for batch in some for row in batch.to_pylist())
            documents = {row["uri"]: _facts(row, metadata) for row in rows}
            return dict(sorted(documents.items())) if len(batches) > 1 else documents


_OF_ALL = ("revisions",)
_OF_SHARDS = ("chunks", "contents", "mentions", "documents", "rejected")
_BY_URI = ("documents", "rejected")  # in whichever shards they lie
_REVISED = ("content_hash", "revision")
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
_BATCH = 1_024  # contents decoded at once while iterating


def _positions(values: pa.ChunkedArray[Any], among: pa.ChunkedArray[Any]) -> np.ndarray:
    """Where each value stands among others, int64; −1 where it does not."""
    large = pa.large_string()  # all in one piece, however many there are
    positions: Any = pc.index_in(values.cast(large), value_set=among.cast(large).combine_chunks())
    return np.asarray(pc.fill_null(positions, -1).to_numpy(), dtype=np.int64)


def _facts(row: Mapping[str, Any], metadata: Callable[[str], Mapping[str, str]]) -> StoredDocument:
    read: dict[str, Callable[[Any], Any]] = {"domain": Domain, "content_type": ContentType, "metadata": metadata}
    names = (field.name for field in fields(StoredDocument))
    return StoredDocument(**{name: read[name](row[name]) if name in read else row[name] for name in names})
