"""Parquet files with a text column: a row is a record, its other columns are facts about it (ING-1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.documents import Document, Domain, Rejection
from weft.ingestion.metadata.assigned import epoch_seconds, moment_seconds
from weft.ingestion.settings import IngestSettings, ParquetSettings
from weft.ingestion.sources.corpus import as_document, corpus_trust
from weft.ingestion.sources.items import RECORDS_PER_ITEM, RowsItem, table_name

_MOST_ITEMS = 64  # of a file: each of them reads its row group up to its own rows
_BATCH_ROWS = 64  # decoded at a time: bounds memory where rows are long
_RELATIONS = "relations"  # a column of lists of kind and target, or of their JSON (GRA-1)
_DAMAGED = (pa.ArrowException, OSError)


def list_rows(path: Path) -> Iterator[RowsItem]:
    """Items of neighbouring rows, none of which reaches into another row group.

    Raises:
        OSError: It is no Parquet file.
    """
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
