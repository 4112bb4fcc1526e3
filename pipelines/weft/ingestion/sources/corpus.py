"""BEIR corpora: one JSON record a line, `_id`, `title`, `text`, `metadata`; plain or gzip (ING-1)."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

from weft.domain.documents import ContentType, Document, Domain, Rejection
from weft.ingestion.metadata.declared import as_strings, as_text, declared, with_declared
from weft.ingestion.settings import IngestSettings, SourceSettings
from weft.ingestion.sources.items import RECORDS_PER_ITEM, RecordsItem, escaped

SUFFIXES = (".jsonl", ".jsonl.gz")
_MOST_COMPRESSED_ITEMS = 64  # of a file: each of them decompresses it up to its first line
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)


def corpus_name(path: Path) -> str:
    """The folder's name where the file is just called "corpus", else the file's; always encodable."""
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return escaped(path.resolve().parent.name if stem == "corpus" else stem)


def list_records(path: Path, settings: IngestSettings) -> Iterator[RecordsItem]:
    """Items of neighbouring lines; the file is read once to find them."""
    stride = RECORDS_PER_ITEM
    offsets, lines = _line_offsets(path, limit=settings.max_file_bytes, stride=stride)
    merged = (-(-len(offsets) // _MOST_COMPRESSED_ITEMS) or 1) if path.name.endswith(".gz") else 1
    for index in range(0, len(offsets), merged):
        first = index * stride
        count = min(stride * merged, lines - first)
        end = offsets[index + merged] if index + merged < len(offsets) else offsets[index]
        size = end - offsets[index] or offsets[index] * count // max(1, first)  # the last ones are as long as all are
        yield RecordsItem(str(path.resolve()), offsets[index], first + 1, count, size)


def _line_offsets(path: Path, *, limit: int, stride: int) -> tuple[list[int], int]:
    """Offset of every `stride`-th line in the decompressed file, and the number of lines."""
    offsets, count, damaged = [], 0, False
    with _opened(path) as file:
        while not damaged:
            offset = file.tell()
            try:
                if not _skip_line(file, limit):
                    break
            except _DAMAGED:
                damaged = True  # counts as a line, so that reading it reports the damage
            if count % stride == 0:
                offsets.append(offset)
            count += 1
    return offsets, count


def _skip_line(file: IO[bytes], limit: int) -> bool:
    line = file.readline(limit)
    exists = bool(line)
    while line and not line.endswith(b"\n"):
        line = file.readline(limit)
    return exists


def read_records(item: RecordsItem, settings: IngestSettings, domain: Domain | None) -> Iterator[Document | Rejection]:
    """Documents of the lines of one item; a line that is no record is a rejection that names it."""
    path, limit = Path(item.path), settings.max_file_bytes
    name = corpus_name(path)
    with _opened(path) as file:
        for number in range(item.first_line, item.first_line + item.count):
            place = f"{name}:line {number}"
            try:
                if number == item.first_line:
                    file.seek(item.offset)
                line = _line(file, limit)
            except _DAMAGED as error:
                yield Rejection(place, "undecodable", f"damaged compressed file: {error}")
                return
            if line is None:
                yield Rejection(place, "too_large", f"expected a line of at most {limit} bytes, found more")
            elif not line:
                left = item.first_line + item.count - number
                yield Rejection(place, "unreadable", f"expected {left} more lines, found the end: the file was changed")
                return
            elif line.strip():
                yield _document(line, place, name, corpus_trust(item.source, settings), domain)


def corpus_trust(source: SourceSettings | None, settings: IngestSettings) -> int:
    """The trust level of records that declare none."""
    return settings.trust.corpus if source is None or source.trust is None else source.trust


def _opened(path: Path) -> IO[bytes]:
    if path.name.endswith(".gz"):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")


def _line(file: IO[bytes], limit: int) -> bytes | None:
    line = file.readline(limit + 1)
    if len(line) <= limit:
        return line
    while line and not line.endswith(b"\n"):
        line = file.readline(limit)
    return None


def _document(line: bytes, place: str, name: str, trust: int, domain: Domain | None) -> Document | Rejection:
    try:
        return as_document(json.loads(line), place, name, trust, domain)
    except (ValueError, RecursionError) as error:
        return Rejection(place, "invalid_record", f"expected a JSON object, found: {error}")


def as_document(
    record: Any, place: str, name: str, trust: int, domain: Domain | None, *, modified: float | None = None
) -> Document | Rejection:
    """The document of a record of the corpus `name`, or what is wrong with it."""
    if (problem := _problem(record)) is not None:
        return Rejection(place, "invalid_record", problem)
    stated = {key: value for key, value in (record.get("metadata") or {}).items() if key != "_id"}
    document = Document(
        uri=f"{name}:{as_text(str(record['_id']))}",
        content_type=ContentType.RECORD,
        domain=domain or Domain.GENERAL,
        text=as_text(record["text"]),
        title=as_text(record.get("title") or "") or None,
        modified_at=modified,
        trust_level=trust,
        metadata={"_id": as_text(str(record["_id"])), **as_strings(stated)},
    )
    return with_declared(document, replace(declared(stated)[0], title=None, metadata={}))


def _problem(record: Any) -> str | None:
    if not isinstance(record, dict):
        return f"expected a JSON object, found {type(record).__name__}"
    if type(record.get("_id")) not in {str, int} or record["_id"] == "":
        return "expected a record with an _id"
    if not isinstance(record.get("text"), str) or not isinstance(record.get("title") or "", str):
        return "expected title and text to be strings"
    if not isinstance(record.get("metadata") or {}, dict):
        return "expected metadata to be an object"
    return None
