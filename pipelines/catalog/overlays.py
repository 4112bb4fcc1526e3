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
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NewType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.domain.errors import CorruptionError, StoreError
from pipelines.domain.ids import SessionId
from pipelines.learning.alikeness import Moments
from pipelines.learning.evidence import SCHEMA, Evidence
from pipelines.learning.sessions import from_plain

log = logging.getLogger(__name__)

BaseId = NewType("BaseId", str)
"""Names what sessions forked from: see `bases.py`."""

OFFSET_KEY, SESSIONS_KEY, BASES_KEY, ALIKE_KEY = b"weft.offset", b"weft.sessions", b"weft.bases", b"weft.alike"
"""Metadata of a partition's evidence: offset of the first record that is not in it, the file of its open sessions, the
bases that they forked from, and how much sessions that completed differ."""

_ATTEMPTS = 5  # a reader that meets a file which was replaced meanwhile looks up the new name
_SESSION = "session"
_FACTS: Mapping[str, pa.DataType] = {_SESSION: pa.string(), "base": pa.string(), "started_ms": pa.int64()}
_MARK = tuple({"kind": _SESSION, "day": 0, "micro": 0}.get(name, "") for name in SCHEMA.names)
OVERLAY_SCHEMA = pa.schema([*((name, kind) for name, kind in _FACTS.items()), *SCHEMA])
"""Rows of evidence, each with its session; one further row per session, of kind "session", carries no evidence."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that learns by itself for now.

    Attributes:
        base: What it forked from.
        started_ms: When it started, by its partition's clock.
        overlay: What it alone has learned.
    """

    session_id: SessionId
    base: BaseId
    started_ms: int
    overlay: Evidence


class Listing:
    """The open sessions of some partitions at one time; immutable."""

    def __init__(self, tables: Iterable[pa.Table] = ()) -> None:
        self._tables = tuple(tables)

    @cached_property
    def _slices(self) -> dict[str, list[pa.Table]]:
        """Rows by session; looked for only where a search names its session."""
        slices: dict[str, list[pa.Table]] = {}
        for table in self._tables:
            for session, some in _by_session(table):
                slices.setdefault(session, []).append(some)
        return slices

    def __len__(self) -> int:
        return len(self._slices)

    def __iter__(self) -> Iterator[SessionId]:
        return (SessionId(session) for session in self._slices)

    def find(self, session_id: SessionId | None) -> OpenSession | None:
        """A session, None where it is not open.

        Events of one session lie in one partition if their keys are right; where they are not, its overlays add up.
        """
        parts = self._slices.get(session_id, []) if session_id is not None else []
        if session_id is None or not parts:
            return None
        first = parts[0]
        overlay = Evidence.sum(_evidence_of(part) for part in parts)
        return OpenSession(session_id, BaseId(first["base"][0].as_py()), first["started_ms"][0].as_py(), overlay)


def sessions_table(sessions: Iterable[OpenSession]) -> pa.Table:
    """One table of schema `OVERLAY_SCHEMA`, sorted by session."""
    rows: list[tuple[object, ...]] = []
    for session in sorted(sessions, key=lambda each: each.session_id):
        facts = (session.session_id, session.base, session.started_ms)
        rows.append((*facts, *_MARK))
        rows += ((*facts, *row) for row in session.overlay.rows())
    columns = zip(*rows, strict=True) if rows else [()] * len(OVERLAY_SCHEMA)
    arrays = [pa.array(column, type=part.type) for column, part in zip(columns, OVERLAY_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=OVERLAY_SCHEMA)


def read_listing(snapshots: Sequence[Path]) -> Listing:
    """The open sessions that snapshots name.

    Args:
        snapshots: The `evidence.parquet` of every partition.

    Raises:
        CorruptionError: A file is not what was written.
        StoreError: A file is there and cannot be read.
    """
    return Listing(table for path in snapshots if (table := _sessions_beside(path)) is not None)


def metadata_of(snapshot: Path) -> Mapping[bytes, bytes]:
    """The metadata of a partition's evidence; empty where there is none yet.

    Raises:
        CorruptionError: The file is not what was written.
        StoreError: It is there and cannot be read.
    """
    try:
        file = snapshot.open("rb")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(snapshot, error) from error
    with file:
        try:
            return pq.read_schema(file).metadata or {}
        except (pa.ArrowInvalid, OSError) as error:
            raise CorruptionError(f"{snapshot}: expected evidence, found: {error}; remove it") from error


def read_alike(snapshots: Sequence[Path]) -> Moments:
    """How much completed sessions differ, as snapshots say; those written before they said so know nothing.

    Raises:
        CorruptionError: A file is not what was written.
        StoreError: A file is there and cannot be read.
    """
    told = (from_plain(json.loads(metadata_of(path).get(ALIKE_KEY, b"{}"))) for path in snapshots)
    return sum(told, start=from_plain({}))


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
            raise _unreadable(path, error) from error
        try:
            table = pq.read_table(written, page_checksum_verification=True)
        except (pa.ArrowInvalid, OSError) as error:
            raise CorruptionError(f"{path}: expected open sessions, found: {error}; remove it") from error
        if not table.schema.equals(OVERLAY_SCHEMA):
            raise CorruptionError(f"{path}: expected columns {OVERLAY_SCHEMA.names}, found {table.schema.names}")
        return table.replace_schema_metadata(None)
    log.warning("%s: its sessions are replaced faster than they are read; they see what all see", snapshot)
    return None


def _unreadable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path}: expected a readable file, found: {error}; nothing in it is lost by that")


def _by_session(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    if not len(table):
        return
    codes = table[_SESSION].combine_chunks().dictionary_encode().indices.to_numpy()
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(table)]
    for begin, end in pairwise(edges):
        yield table[_SESSION][begin].as_py(), table.slice(begin, end - begin)


def _evidence_of(rows: pa.Table) -> Evidence:
    evidence = rows.filter(pc.field("kind") != _SESSION).select(SCHEMA.names)
    return Evidence.from_table(evidence)
