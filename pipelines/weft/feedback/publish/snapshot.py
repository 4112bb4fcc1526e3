"""What searches read of a partition: its evidence and its open sessions, replaced as one (FBK-7, LRN-14).

The order of the steps is the argument that a session always reads what it forked from, whatever is killed when:

1. sessions that started since the last snapshot get a base, and those that ended lose theirs, with a report of their
   merge; both are committed to the partition's store;
2. the open sessions are written to a file of a new name;
3. the evidence, which names that file, replaces its predecessor: this is the step that readers see;
4. files and bases that nothing refers to any more are removed.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weft.catalog.catalog import Catalog
from weft.catalog.learned import read_snapshot
from weft.catalog.overlays import (
    BASES_KEY,
    MOMENTS_KEY,
    OFFSET_KEY,
    SESSIONS_KEY,
    TOPIC_KEY,
    BaseId,
    SessionRows,
    metadata_of,
    read_listing,
    write_listing,
)
from weft.domain.errors import CorruptionError, StoreError
from weft.domain.ids import SessionId
from weft.feedback.fold.sessions import MERGED, OPEN
from weft.feedback.store.heads import is_behind, publish_files
from weft.feedback.store.overlays import (
    SETTLED,
    Fork,
    bases_in,
    forks_in,
    has_forks,
    open_sessions_in,
    overlay_in,
    write_forks,
)
from weft.feedback.store.report import PartitionReport
from weft.feedback.store.state import PartitionState
from weft.feedback.store.tables import evidence_in, evidence_table_in
from weft.learning.pooling.conflicts import Sides, conflicts, sides_of
from weft.learning.pooling.sessions import to_plain
from weft.runtime.storage.files import write_atomically

_log = logging.getLogger(__name__)

NAME = "evidence.parquet"
# A conflict: session and others moved a rate by at least the margin, in opposite directions. So many
# pseudo-observations of a rate of one half let few outcomes move no rate far, as in pooling.initial.
_MARGIN, _STRENGTH = 0.02, 20.0
_REPORTED = 100  # conflicts kept per merge, the widest first
_AT_ONCE = 10_000  # sessions held in memory together
_SESSIONS = "sessions-{}-{}.parquet"


def publish_snapshot(state: PartitionState) -> Path:
    """Write a partition's evidence beside its state, and the overlays of its open sessions with it.

    The file's metadata says how far it reaches: `weft.partition`, `weft.offset` (the next one), `weft.epoch`,
    `weft.topic`, `weft.topic_id`, `weft.version`; `weft.sessions`, the file of the open sessions; and `weft.alike`, how
    much those that completed differ. The partition is held still meanwhile, so that an updater which lost it can never
    lay an older snapshot over a newer one.

    Raises:
        FencedError: Another updater owns the partition; its snapshot stands.
    """
    if is_behind(state.folder, state.report().next_offset):
        return state.folder / NAME  # what was published from another host is newer
    if not state.read(has_forks):
        return _publish(state)
    catalog = Catalog(state.folder.parents[1])
    with catalog.bases.writing(state.rules.patience):
        Forks(catalog, state).follow()
        path = _publish(state)
        catalog.bases.prune(_bases_in_use(catalog))
    return path


def repair_snapshot(state: PartitionState) -> None:
    """Publish a partition anew where what it published is damaged: its state holds all of it."""
    path = state.folder / NAME
    if not path.exists():
        return
    try:
        read_snapshot(path)
        read_listing([path])
    except CorruptionError as error:
        _log.warning("%s is published anew: %s", path, error)
        _publish(state)


def rows_of(path: Path) -> int:
    """How many masses a published snapshot holds."""
    return int(pq.read_metadata(path).num_rows)


def _publish(state: PartitionState) -> Path:
    path = state.folder / NAME
    with state.owned() as (connection, report):
        bases = bases_in(connection)
        name = _write_sessions(state.folder, report, open_sessions_in(connection)) if bases else ""
        facts = {
            "weft.partition": report.partition,
            OFFSET_KEY.decode(): report.next_offset,
            "weft.epoch": report.epoch,
            "weft.topic": report.topic,
            TOPIC_KEY.decode(): report.topic_id,
            "weft.version": report.version,
            SESSIONS_KEY.decode(): name,
            BASES_KEY.decode(): ",".join(bases),
            MOMENTS_KEY.decode(): json.dumps(to_plain(state.session_variance.moments(connection))),
        }
        write_atomically(path, _parquet(evidence_table_in(connection), facts))
        for old in state.folder.glob(_SESSIONS.format("*", "*")):
            if old.name != name:
                old.unlink(missing_ok=True)
    publish_files(state, report, [name, NAME])
    return path


def _write_sessions(folder: Path, report: PartitionReport, sessions: Iterator[SessionRows]) -> str:
    name, buffer = _SESSIONS.format(report.epoch, report.next_offset), io.BytesIO()
    write_listing(buffer, sessions)
    write_atomically(folder / name, buffer.getvalue())
    return name


def _parquet(table: pa.Table, facts: Mapping[str, object]) -> bytes:
    buffer = io.BytesIO()
    described = table.replace_schema_metadata({name: str(value) for name, value in facts.items()})
    pq.write_table(described, buffer, write_page_checksum=True)
    return buffer.getvalue()


def _bases_in_use(catalog: Catalog) -> set[BaseId]:
    named = (metadata_of(path).get(BASES_KEY, b"").decode() for path in catalog.live.snapshots())
    return {BaseId(base) for names in named for base in names.split(",") if base}


class Forks:
    """The bases of one partition's sessions; the caller holds `catalog.bases.writing()`."""

    def __init__(self, catalog: Catalog, state: PartitionState) -> None:
        self._catalog = catalog
        self._state = state
        self._read: dict[BaseId, Sides] = {}

    def follow(self) -> None:
        """Fork what started since the last time, and let go of what ended; durable when this returns."""
        bases = sorted(set(self._state.read(bases_in)))
        lost = [base for base in bases if not self._catalog.bases.exists(BaseId(base))]
        while some := self._state.read(forks_in, lost[:_AT_ONCE], at_most=_AT_ONCE):
            self._state.write(write_forks, [self._followed(fork) for fork in some])

    def _followed(self, fork: Fork) -> Fork:
        life = fork.life
        if life is None or life.phase not in OPEN:
            return self._ended(fork)
        return fork._replace(base=self._base, started_ms=life.started_ms, settled=life.settled)

    @cached_property
    def _base(self) -> BaseId:
        """One for all sessions that started since the last time."""
        return self._catalog.bases.fork(at=self._state.report().clock_ms / 1000)

    def _ended(self, fork: Fork) -> Fork:
        life = fork.life
        if life is None:
            return fork._replace(base="")
        self._catalog.memories.forget(SessionId(life.session))
        report = self._report(fork) if life.phase in MERGED and fork.base else fork.report
        return fork._replace(base="", report=report)

    def _report(self, fork: Fork) -> str | None:
        """What the merge of a session met, as JSON (LRN-16)."""
        life = fork.life
        if life is None or fork.settled:
            return None  # what was settled before the fork cannot be told from what came after
        try:
            before = self._before(BaseId(fork.base))
        except StoreError:
            return None  # what it forked from is gone, and with it what others added since
        mine = sides_of(self._state.read(overlay_in, life.session, SETTLED))
        met = conflicts(before, self._now, mine, margin=_MARGIN, strength=_STRENGTH)
        shown = [asdict(conflict) for conflict in met[:_REPORTED]]
        return json.dumps({"conflicts": len(met), "widest": shown})

    def _before(self, base: BaseId) -> Sides:
        if base not in self._read:
            self._read[base] = sides_of(self._catalog.bases.read(base).evidence)
        return self._read[base]

    @cached_property
    def _now(self) -> Sides:
        """What is known now, with everything that this partition has merged."""
        return sides_of(self._catalog.live.given_partition(self._state.partition, self._state.read(evidence_in)))
