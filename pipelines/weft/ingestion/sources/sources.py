"""Sources: a folder tree, a file, a corpus, a table. Listing is cheap and ordered; each item can be read anywhere."""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.documents import Document, Domain, Rejection
from weft.domain.errors import SourceError
from weft.ingestion.git.rules import PathRules
from weft.ingestion.git.safe_files import refused
from weft.ingestion.git.times import Commit, last_commits
from weft.ingestion.metadata.assigned import epoch_seconds, moment_seconds
from weft.ingestion.metadata.declared import sidecar_names, sidecars
from weft.ingestion.settings import IngestSettings, ParquetSettings, SourceSettings
from weft.ingestion.sources import corpus, transcripts, tree
from weft.ingestion.sources.corpus import SUFFIXES, as_document, corpus_name, corpus_trust
from weft.ingestion.sources.files import read_file, sidecar_uri
from weft.ingestion.sources.formats.registry import HEAD_BYTES, Convert, format_of
from weft.ingestion.sources.formats.registry import convert as convert_here
from weft.ingestion.sources.items import (
    RECORDS_PER_ITEM,
    TABLE_SUFFIX,
    FileItem,
    RecordsItem,
    RowsItem,
    SourceItem,
    StoredItem,
    escaped,
    table_name,
)
from weft.ingestion.sources.remote import bring, bring_item
from weft.ingestion.sources.stored import read_stored
from weft.ingestion.sources.tree import SkipReason
from weft.runtime.storage.errors import advice_on

# Parquet files with a text column: a row is a record, its other columns are facts about it (ING-1).

_MOST_ITEMS = 64  # of a file: each of them reads its row group up to its own rows
_BATCH_ROWS = 64  # decoded at a time: bounds memory where rows are long
_RELATIONS = "relations"  # a column of lists of kind and target, or of their JSON (GRA-1)
_DAMAGED = (pa.ArrowException, OSError)


def list_rows(path: Path) -> Iterator[RowsItem]:
    """Items of neighbouring rows, none of which reaches into another row group."""
    try:
        with path.open("rb") as file:  # Arrow itself takes no name that is not UTF-8
            metadata = pq.read_metadata(file)
    except pa.ArrowException as error:
        raise OSError(f"expected a Parquet file, found: {error}") from error
    actual = path.resolve()
    stride = max(RECORDS_PER_ITEM, -(-metadata.num_rows // _MOST_ITEMS))
    for group in range(metadata.num_row_groups):
        rows, size = metadata.row_group(group).num_rows, metadata.row_group(group).total_byte_size
        for first in range(0, rows, stride):
            count = min(stride, rows - first)
            yield RowsItem(str(actual), table_name(actual, 0), group, first, count, size * count // rows)


def read_rows(item: RowsItem, settings: IngestSettings, domain: Domain | None) -> Iterator[Document | Rejection]:
    """Documents of the rows of one item; a row that is no record is a rejection that names it."""
    path = Path(item.path)
    place = f"{item.name}:group {item.group}"
    try:
        with path.open("rb") as opened, pq.ParquetFile(opened) as file:
            columns = _Columns(file.schema_arrow, settings.parquet)
            if columns.text is None:
                names = ", ".join(file.schema_arrow.names)[:200]
                expected = ", ".join(settings.parquet.text)
                yield Rejection(
                    place, "no_text_column", f"expected a column of texts, one of {expected}; found {names}"
                )
                return
            for number, row in _rows(file, item, columns.read):
                at = f"{place} row {number}"
                text = row[columns.text]
                if len(text or "") > settings.max_file_bytes:
                    detail = f"expected a text of at most {settings.max_file_bytes} characters, found more"
                    yield Rejection(at, "too_large", detail)
                elif isinstance(text, bytes):
                    yield Rejection(at, "undecodable", "expected a text in UTF-8, found other bytes")
                else:
                    own = columns.own_id(row)
                    record = columns.record(row, own or f"{item.group}-{number}")
                    name = item.name if own is None else table_name(path, 0)
                    trust = corpus_trust(item.source, settings)
                    yield as_document(record, at, name, trust, domain, modified=columns.time(row))
    except _DAMAGED as error:
        if getattr(error, "errno", None) is not None:  # of the system: Arrow's own name none
            raise
        yield Rejection(place, "undecodable", f"damaged Parquet file: {' '.join(str(error).split())[:200]}")


def _rows(file: pq.ParquetFile, item: RowsItem, columns: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    at = 0
    batches = file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[item.group], columns=list(columns))
    for batch in batches:
        begin, end = max(at, item.first), min(at + batch.num_rows, item.first + item.count)
        if begin < end:
            yield from zip(range(begin, end), _values(batch.slice(begin - at, end - begin)), strict=True)
        at += batch.num_rows
        if at >= item.first + item.count:
            return


def _values(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as Python's values; texts that are not UTF-8 stay bytes, and times beyond Python's calendar are numbers."""
    try:
        return rows.to_pylist()
    except (ValueError, OverflowError):
        columns: list[tuple[str, Any]] = list(zip(rows.schema.names, rows.columns, strict=True))
        return [{name: _value(cells[row]) for name, cells in columns} for row in range(rows.num_rows)]


def _value(cell: Any) -> Any:
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        cell = cell.value if isinstance(cell, pa.DictionaryScalar) else cell
        if isinstance(cell, pa.ListScalar):
            return [_value(one) for one in cell.values or ()]
        return cell.as_buffer().to_pybytes()
    except (ValueError, OverflowError):
        return cell.value  # how a time is stored


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


class _Columns:
    """Which column of a file holds what."""

    def __init__(self, schema: pa.Schema, settings: ParquetSettings) -> None:
        texts = [field.name for field in schema if _is_text(field.type)]
        scalars = [field.name for field in schema if _is_scalar(field.type)]
        self.text = next((name for name in settings.text if name in texts), None)
        self._id = next((name for name in settings.id if name in scalars), None)
        self._title = next((name for name in settings.title if name in texts), None)
        self._time = next((name for name in settings.time if name in scalars), None)
        # A number in a column of times is one that no calendar has, in a unit of its own.
        self._is_temporal = self._time in {field.name for field in schema if pa.types.is_temporal(field.type)}
        self._facts = [field.name for field in schema if field.name == _RELATIONS or _is_fact(field.type)]
        self.read = list(dict.fromkeys(name for name in (self.text, *self._facts) if name))

    def own_id(self, row: Mapping[str, Any]) -> str | None:
        """The identity that a row states, where it does."""
        own = _decoded(row.get(self._id)) if self._id else None
        # NaN, which pandas writes for a missing number, differs from itself.
        return None if own is None or own == "" or own != own else str(own)  # noqa: PLR0124

    def record(self, row: Mapping[str, Any], identity: str) -> dict[str, Any]:
        """A row as a record of a corpus."""
        used = {self.text, self._id, self._title}
        return {
            "_id": identity,
            "title": _decoded(row.get(self._title)) if self._title else None,
            "text": row[self.text] if self.text else None,
            "metadata": {name: _decoded(row[name]) for name in self._facts if name not in used},
        }

    def time(self, row: Mapping[str, Any]) -> float | None:
        """When the row was changed last, in seconds since the epoch, as far as it says so in a way understood."""
        value = row.get(self._time) if self._time else None
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                return None
        if isinstance(value, datetime):
            return moment_seconds(value)
        if isinstance(value, date):
            return moment_seconds(datetime(value.year, value.month, value.day))
        if isinstance(value, int | float) and not isinstance(value, bool) and not self._is_temporal:
            return epoch_seconds(value)
        return None


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_scalar(kind: pa.DataType) -> bool:
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(_is_text(kind) or numbers or pa.types.is_temporal(kind) or pa.types.is_decimal(kind))


def _is_fact(kind: pa.DataType) -> bool:
    """Whether a column may be kept as metadata: no bytes, and no lists of numbers, which are vectors."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_text(kind.value_type)
    return _is_scalar(kind)


CRASHED = "reader_crashed"
"""The reason noted for an item that a reader failed at in a way that nobody foresaw."""

_DETAIL_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class SourceListing:
    """What a source holds."""

    items: Sequence[SourceItem]  # in a fixed order
    # entries of a tree that are not read, by reason; see `tree.SkipReason`
    left_out: Mapping[tree.SkipReason, int] = field(default_factory=dict)
    # declared sources that cannot be read, each with its error
    broken: Mapping[Path, str] = field(default_factory=dict)


def list_items(path: Path, settings: IngestSettings, *, store: Path | None = None) -> list[SourceItem]:
    """Items of a source; see `list_source`."""
    return list(list_source(path, settings, store=store).items)


def list_source(path: Path, settings: IngestSettings, *, store: Path | None = None) -> SourceListing:
    """Items of a source in a fixed order; no content of a tree is read, a corpus is read once to find its lines."""
    origin = bring(path)
    listing = _listed(path, settings, store)
    if origin is None:
        return listing
    below = path.is_dir()
    return replace(listing, items=[_from(item, origin, below=below) for item in listing.items])


def _from(item: SourceItem, origin: str, *, below: bool) -> SourceItem:
    """An item with the URL of its object: that of its source, or one below it."""
    if isinstance(item, StoredItem):
        return item
    names = item.path if below and isinstance(item, FileItem) else ()
    return replace(item, origin="/".join((origin, *names)))


def _listed(path: Path, settings: IngestSettings, store: Path | None) -> SourceListing:
    try:
        if path.is_dir():
            return _files(path, settings, store)
        if not path.is_file():
            raise SourceError(
                f"source {path} on host {socket.gethostname()}, where the job runs: expected a folder or a regular "
                "file, found none; check the path"
            )
        if path.name.endswith(corpus.SUFFIXES) and _is_corpus(path):
            return SourceListing(list(corpus.list_records(path, settings)))
        if path.name.endswith(TABLE_SUFFIX):
            return SourceListing(list(list_rows(path)))
    except OSError as error:
        raise SourceError(
            f"source {path}: expected to read it, found: {error.strerror or error}: {advice_on(error)}"
        ) from error
    actual = path.resolve()  # the user named it, so it may be a link; nothing below a root may
    beside = {name for name in sidecar_names(actual.name) if (actual.parent / name).is_file()}
    paths = [(name,) for name in sorted({actual.name, *beside})]
    return SourceListing([item for item in _described(actual.parent, paths, settings) if item.path == (actual.name,)])


def read_item(
    item: SourceItem, settings: IngestSettings, *, domain: Domain | None, convert: Convert = convert_here
) -> Iterator[Document | Rejection]:
    """Documents of one item, or why there are none; what an item holds raises nothing but MemoryError.

    Args:
        convert: What reads files that are more than text: in this process, or in a child that can be killed.
    """
    bring_item(item)
    if isinstance(item, StoredItem):
        yield from read_stored(item, domain)
        return
    tenant = None if item.source is None else item.source.tenant
    try:
        for one in _read(item, settings, domain or (None if item.source is None else item.source.domain), convert):
            if tenant is not None and isinstance(one, Document):
                yield replace(one, metadata={**one.metadata, "tenant": tenant})
            else:
                yield one
    except MemoryError:
        raise
    except OSError as error:
        yield refused(error).rejection(place_of(item))
    except Exception as error:  # noqa: BLE001  hostile input may raise anything inside a reader, and must not stop a run
        yield Rejection(place_of(item), CRASHED, f"{type(error).__name__}: {error}"[:_DETAIL_CHARACTERS])


def _read(
    item: FileItem | RecordsItem | RowsItem, settings: IngestSettings, domain: Domain | None, convert: Convert
) -> Iterator[Document | Rejection]:
    if isinstance(item, FileItem):
        return read_file(item, settings, domain, convert)
    if isinstance(item, RowsItem):
        return read_rows(item, settings, domain)
    return corpus.read_records(item, settings, domain)


def place_of(item: SourceItem) -> str:
    """What names an item where none of its documents can."""
    if isinstance(item, FileItem):
        return item.uri
    if isinstance(item, RecordsItem):
        return f"{corpus.corpus_name(Path(item.path))}:line {item.first_line}"
    name = item.name if isinstance(item, RowsItem) else escaped(Path(item.folder).name)
    return f"{name}:group {item.group} row {item.first}"


def root_of(item: SourceItem) -> Path:
    """The folder or file that an item was listed from."""
    if isinstance(item, FileItem):
        return Path(item.root)
    return Path(item.folder if isinstance(item, StoredItem) else item.path)


def paths_of(item: SourceItem) -> dict[str, Path]:
    """The files that an item is read from, by the places that rejections name them by; none of a stored one."""
    if isinstance(item, StoredItem):
        return {}
    if not isinstance(item, FileItem):
        return {place_of(item): Path(item.path)}
    path = Path(item.root, *item.path)
    sidecar = {} if item.sidecar is None else {sidecar_uri(item): path.with_name(item.sidecar)}
    return {item.uri: path, **sidecar}


def read_source(path: Path, settings: IngestSettings, *, domain: Domain | None) -> Iterator[Document | Rejection]:
    """Every document of a source, and every item that could not become one, in order."""
    for item in list_items(path, settings):
        yield from read_item(item, settings, domain=domain)


def _files(root: Path, settings: IngestSettings, store: Path | None) -> SourceListing:
    with os.scandir(root):
        pass  # a root that cannot be listed is an error of the source, not of an item
    actual = root.resolve()
    own = None if store is None else store.resolve()
    left_out = own.relative_to(actual).parts if own is not None and actual in own.parents else None
    listing = tree.listed(actual, skipped=settings.skipped_names, left_out=left_out, secrets=settings.secret_files)
    return SourceListing(list(_described(actual, listing.paths, settings)), listing.left_out)


def _described(root: Path, paths: Sequence[tuple[str, ...]], settings: IngestSettings) -> Iterator[FileItem]:
    """Items for all paths but those of sidecars, with what is known about them from outside."""
    commits = last_commits(root, within_s=settings.git_seconds)
    as_of = _newest(root, paths, commits)
    for folder, group in itertools.groupby(paths, key=lambda path: path[:-1]):
        together = list(group)
        beside = sidecars({path[-1] for path in together if path})
        sidecar_names = set(beside.values())
        for path in together:
            if not path or path[-1] not in sidecar_names:
                status = _status(root, path)
                yield FileItem(
                    root=str(root),
                    path=path,
                    uri="/".join(escaped(name) for name in (root.name, *path)),
                    sidecar=beside.get(path[-1]) if path else None,
                    commit=commits.get(os.fsencode("/".join((*folder, path[-1])))) if path else None,
                    as_of=as_of,
                    size=0 if status is None else status.st_size,
                )


def _newest(root: Path, paths: Iterable[tuple[str, ...]], commits: Mapping[bytes, Commit]) -> float | None:
    """The newest change among files, leaving out times that lie in the future."""
    now = time.time()
    times = [commit.time for commit in commits.values()] or [
        status.st_mtime for path in paths if (status := _status(root, path)) is not None
    ]
    return max((moment for moment in times if moment <= now), default=None)


def _status(root: Path, path: tuple[str, ...]) -> os.stat_result | None:
    try:
        return os.lstat(os.path.join(root, *path))  # noqa: PTH118  for every file of a tree: ten times as fast
    except OSError:
        return None


def _is_corpus(path: Path) -> bool:
    """Whether a file of lines holds records; else turns of a conversation, or objects of any kind, by how it begins."""
    if path.name.endswith(".gz"):
        return True
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    first = head.partition(b"\n")[0].decode("utf-8", "replace")
    other = first.lstrip("\ufeff \t").startswith("{") and '"_id"' not in first
    return not (other or format_of(path.name, head) is not None or transcripts.is_of_turns(first))


def list_declared(source: SourceSettings, settings: IngestSettings, *, store: Path) -> SourceListing:
    """Items of a declared source, each with the declaration."""
    listing = list_source(source.place, settings, store=store)
    wanted = [_with_source(item, source) for item in listing.items if _is_wanted(item, source)]
    left_out = Counter(listing.left_out)
    if excluded := len(listing.items) - len(wanted):
        left_out[SkipReason.DECLARED] += excluded
    return SourceListing(wanted, dict(left_out))


def uri_prefixes(path: Path) -> tuple[str, ...]:
    """How URIs of the documents of a source begin, told from its path alone: it may not be there any more.

    Examples:
        >>> uri_prefixes(Path("/data/app")), uri_prefixes(Path("/data/notes.jsonl"))
        (('app/', 'data/app'), ('notes:',))
    """
    if path.name.endswith(SUFFIXES):
        return (f"{corpus_name(path)}:",)
    if path.name.endswith(TABLE_SUFFIX):
        return (f"{table_name(path, 0)}:", f"{table_name(path, 1)}:")
    return (f"{escaped(path.name)}/", f"{escaped(path.parent.name)}/{escaped(path.name)}")


def _is_wanted(item: SourceItem, source: SourceSettings) -> bool:
    if not isinstance(item, FileItem):
        return True
    return (not source.include or _matches(item.path, source.include)) and not _matches(item.path, source.exclude)


def _matches(path: Sequence[str], globs: Iterable[str]) -> bool:
    """Whether globs match a file, or a folder that it lies in."""
    rules, depths = PathRules(globs), range(len(path), 0, -1)
    verdicts = (rules.verdict("/".join(path[:depth]), is_folder=depth < len(path)) for depth in depths)
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _with_source(item: SourceItem, source: SourceSettings) -> SourceItem:
    return item if isinstance(item, StoredItem) else replace(item, source=source)
