"""What searches read of open sessions: one Parquet file per partition, named by the evidence it belongs to.

The metadata of a partition's `evidence.parquet` names its file of sessions, so that replacing the one file moves both:
a session's evidence is in its overlay or in what all share, never in both and never in neither.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, NewType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.domain.errors import CorruptionError
from weft.domain.ids import SessionId
from weft.learning.evidence import SCHEMA, Evidence, table_rows
from weft.learning.pooling.sessions import from_plain
from weft.learning.pooling.shrinkage import Moments
from weft.runtime.storage.errors import refused
from weft.runtime.storage.parquet import read_parquet

log = logging.getLogger(__name__)

BaseId = NewType("BaseId", str)
"""Names what sessions forked from: see `BaseStore`."""

OFFSET_KEY, TOPIC_KEY = b"weft.offset", b"weft.topic_id"
"""Metadata of a partition's evidence: offset of the first record that is not in it, and the identity of its topic."""

SESSIONS_KEY, BASES_KEY, MOMENTS_KEY = b"weft.sessions", b"weft.bases", b"weft.alike"
"""The same, of sessions: the file of the open ones, what they forked from, and how much those that completed differ."""

_ATTEMPTS = 5  # a reader that meets a file which was replaced meanwhile looks up the new name
_GROUP = 50_000  # rows of a file that are written together
_SESSION = "session"
_FACTS: Mapping[str, pa.DataType] = {_SESSION: pa.string(), "base": pa.string(), "started_ms": pa.int64()}
_MARK = tuple({"kind": _SESSION, "day": 0, "micro": 0}.get(name, "") for name in SCHEMA.names)
OVERLAY_SCHEMA = pa.schema([*((name, kind) for name, kind in _FACTS.items()), *SCHEMA])
"""Rows of evidence, each with its session; one further row per session, of kind "session", carries no evidence."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that learns by itself for now."""

    session_id: SessionId
    base: BaseId  # what it forked from
    started_ms: int  # when it started, by its partition's clock
    overlay: Evidence  # what it alone has learned


class SessionListing:
    """The open sessions of some partitions at one time; immutable."""

    def __init__(self, tables: Iterable[pa.Table] = ()) -> None:
        self._tables = tuple(tables)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[SessionId]:
        names = [table[_SESSION] for table in self._tables]
        sessions = pc.unique(pa.chunked_array([chunk for name in names for chunk in name.chunks], type=pa.string()))
        return (SessionId(session.as_py()) for session in sessions)

    def find(self, session_id: SessionId | None) -> OpenSession | None:
        """A session, None where it is not open."""
        if session_id is None:
            return None
        # Looked for row by row, a few milliseconds for a million: an index would hold more than all the rows.
        rows = [table.filter(pc.field(_SESSION) == session_id) for table in self._tables]
        parts = [part for part in rows if len(part)]
        if not parts:
            return None
        first = parts[0]
        overlay = Evidence.sum(_evidence_of(part) for part in parts)
        return OpenSession(session_id, BaseId(first["base"][0].as_py()), first["started_ms"][0].as_py(), overlay)


class SessionRows(NamedTuple):
    """An open session as its partition keeps it; its rows are those of `evidence.table_of`."""

    session_id: str
    base: str
    started_ms: int
    counts: Sequence[tuple[Any, ...]]
    usage: Sequence[tuple[Any, ...]]


def write_listing(sink: IO[bytes], sessions: Iterable[SessionRows]) -> None:
    """Write sessions as one Parquet file of schema `OVERLAY_SCHEMA`; memory holds a group of rows, not all of them."""
    with pq.ParquetWriter(sink, OVERLAY_SCHEMA, write_page_checksum=True) as writer:
        columns: list[list[Any]] = [[] for _ in OVERLAY_SCHEMA]
        for session in sessions:
            rows = table_rows(session.counts, session.usage)
            facts = (session.session_id, session.base, session.started_ms)
            for column, values in zip(
                columns, zip(*((*facts, *row) for row in (_MARK, *rows)), strict=True), strict=True
            ):
                column.extend(values)
            if len(columns[0]) >= _GROUP:
                _write_group(writer, columns)
        _write_group(writer, columns)


def _write_group(writer: pq.ParquetWriter, columns: Sequence[list[Any]]) -> None:
    arrays = [pa.array(column, type=part.type) for column, part in zip(columns, OVERLAY_SCHEMA, strict=True)]
    writer.write_table(pa.Table.from_arrays(arrays, schema=OVERLAY_SCHEMA))
    for column in columns:
        column.clear()


def read_listing(snapshots: Sequence[Path]) -> SessionListing:
    """The open sessions that snapshots, every partition's `evidence.parquet`, name; errors as in `metadata_of`."""
    return SessionListing(table for path in snapshots if (table := _sessions_beside(path)) is not None)


def metadata_of(snapshot: Path) -> Mapping[bytes, bytes]:
    """The metadata of a partition's evidence; empty where there is none yet."""
    try:
        file = snapshot.open("rb")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise refused(snapshot, error) from error
    with file:
        try:
            return pq.read_schema(file).metadata or {}
        except (pa.ArrowInvalid, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # the disk's: Arrow's own have no number
                raise refused(snapshot, error) from error
            raise CorruptionError(
                f"{snapshot}: expected evidence, found: {error}; an updater that is started publishes it anew"
            ) from error


def read_session_moments(snapshots: Sequence[Path]) -> Moments:
    """How much completed sessions differ; without snapshots nothing is known. Errors as in `metadata_of`."""
    moments = (from_plain(json.loads(metadata_of(path).get(MOMENTS_KEY, b"{}"))) for path in snapshots)
    return sum(moments, start=from_plain({}))


def _sessions_beside(snapshot: Path) -> pa.Table | None:
    for _ in range(_ATTEMPTS):
        name = metadata_of(snapshot).get(SESSIONS_KEY, b"").decode()
        if not name:
            return None
        path = snapshot.with_name(name)
        try:
            written = io.BytesIO(path.read_bytes())
        except FileNotFoundError:
            continue
        except OSError as error:
            raise refused(path, error) from error
        try:
            table = read_parquet(written)
        except (pa.ArrowInvalid, OSError) as error:
            raise CorruptionError(
                f"{path}: expected open sessions, found: {error}; an updater that is started publishes it anew"
            ) from error
        if not table.schema.equals(OVERLAY_SCHEMA):
            raise CorruptionError(f"{path}: expected columns {OVERLAY_SCHEMA.names}, found {table.schema.names}")
        return table.replace_schema_metadata(None)
    log.warning("%s: its sessions are replaced faster than they are read; they see what all see", snapshot)
    return None


def _evidence_of(rows: pa.Table) -> Evidence:
    evidence = rows.filter(pc.field("kind") != _SESSION).select(SCHEMA.names)
    return Evidence.from_table(evidence)
