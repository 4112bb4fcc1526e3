"""ARC-3: sums over a partition's tables follow every write, and notice whatever was not written."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.domain.errors import CorruptionError
from pipelines.feedback.run.updater import Updater
from pipelines.feedback.store.rows import MASSES, define_row_hash, verify
from pipelines.feedback.store.state import STATE_FILE
from pipelines.learning.evidence import Evidence
from pipelines.learning.uses import UsageKey
from tests.support.feedback_events import RULES, explicit, impression, records
from tests.support.feedback_source import FakeLog, FakeSource
from tests.support.session_store import Partition, judged, phase

EVENTS = [
    *judged("s2"),
    phase("start"),
    *judged(),
    phase("complete"),
    phase("start", "s3"),
    # More than an allowance: what draws on none lies in an overlay.
    *(event for number in range(14) for event in judged("s3", -1.0, 2, f"q3-{number}")),
]
EARLIER = (*MASSES, "shown")
"""Tables that stores of earlier versions had triggers on."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store that learned something, shared and not, and is not open."""
    partition = Partition(tmp_path)
    partition.feed(EVENTS)
    partition.state.close()
    return tmp_path


def connected(folder: Path) -> closing[sqlite3.Connection]:
    connection = sqlite3.connect(folder / "updaters/0" / STATE_FILE)
    define_row_hash(connection)
    return closing(connection)


@pytest.mark.parametrize("table", EARLIER)
def test_a_row_that_nobody_wrote_is_noticed(folder: Path, table: str) -> None:
    """ARC-3: a mass off by one, a mass of another sign, a row too few: told by the table's name."""
    with connected(folder) as connection:
        verify(connection)
        column = [row[1] for row in connection.execute(f"pragma table_info({table})")][-1]
        for wrong in (f"update {table} set {column} = {column} || '1'", f"delete from {table}"):
            connection.execute("begin")
            connection.execute(wrong)
            with pytest.raises(CorruptionError, match=f"table {table}"):
                verify(connection)
            connection.execute("rollback")


def test_every_bit_of_a_mass_matters(folder: Path) -> None:
    """ARC-3: the sign, too."""
    with connected(folder) as connection:
        for bit in (*range(63), -1):
            connection.execute("begin")
            flipped = "-9223372036854775807 - 1" if bit < 0 else str(1 << bit)
            connection.execute(f"update usage set micro = (micro | {flipped}) - (micro & {flipped})")
            with pytest.raises(CorruptionError, match="table usage"):
                verify(connection)
            connection.execute("rollback")


def test_a_store_with_triggers_is_taken_over(folder: Path) -> None:
    """ARC-3: as earlier versions kept their sums; what it holds is verified first, and sums are kept from then on."""
    with connected(folder) as connection:
        as_before(connection)
        connection.commit()
    partition = Partition(folder)
    before = partition.shared
    partition.feed([phase("unlearn"), *judged("s4", query="q4")])
    partition.open()
    assert partition.report.balanced
    # The one that came said what the one that went had said, when something else was asked.
    assert whatever_was_asked(partition.shared) == whatever_was_asked(before)
    with connected(folder) as connection:
        assert triggers(connection, EARLIER) == 0
        as_before(connection)
        connection.execute("drop trigger check_update_usage")
        connection.execute("update usage set micro = micro + 1")
        connection.commit()
    with pytest.raises(CorruptionError, match="table usage"):
        Partition(folder)


def whatever_was_asked(evidence: Evidence) -> Evidence:
    uses: Counter[UsageKey] = Counter()
    for key, micro in evidence.usage.items():
        uses[key._replace(question="")] += micro
    return Evidence(evidence.counts, uses)


def triggers(connection: sqlite3.Connection, tables: Sequence[str]) -> int:
    marks = ", ".join("?" * len(tables))
    found = f"select count(*) from sqlite_schema where type = 'trigger' and tbl_name in ({marks})"
    return int(connection.execute(found, tables).fetchone()[0])


def as_before(connection: sqlite3.Connection) -> None:
    """Protect a store as earlier versions did: a trigger for every kind of write, and sums of whole rows."""
    connection.execute("drop table sums")
    for table in EARLIER:
        columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
        new, old = (f"row_hash({', '.join(f'{side}.{column}' for column in columns)})" for side in ("new", "old"))
        for event, rows, hashes in (("insert", 1, new), ("update", 0, f"{new} - {old}"), ("delete", -1, f"-{old}")):
            keep = f"update checks set rows = rows + {rows}, hashes = hashes + ({hashes}) where name = '{table}'"
            connection.execute(f"create trigger check_{event}_{table} after {event} on {table} begin {keep}; end")
        sums = f"select ?, count(*), coalesce(sum(row_hash({', '.join(columns)})), 0) from {table}"
        connection.execute(f"insert into checks {sums}", (table,))


def test_a_store_from_before_event_schema_2_is_replayed_where_the_log_is_whole(tmp_path: Path) -> None:
    """ARC-3: its tables cannot be read on; nothing is lost where the log starts at 0, and elsewhere it says so."""
    log = FakeLog.of(records([impression(), explicit()]))
    state = tmp_path / "updaters/0" / STATE_FILE
    state.parent.mkdir(parents=True)
    before = (Path(__file__).parents[2] / "support/recorded/state_before_event_schema_2.sql").read_text()
    with closing(sqlite3.connect(state)) as connection:
        connection.executescript(before)
    log.log_start = 1
    with pytest.raises(CorruptionError, match="a log that starts at 1; bring back a copy of the folder, or delete it"):
        Updater.open(FakeSource(log), tmp_path, [0], RULES)
    log.log_start = 0
    updater = Updater.open(FakeSource(log), tmp_path, [0], RULES)
    assert updater.step(0.0) == 2
    (standing,) = updater.progress()
    updater.close()
    assert (standing.report.applied, standing.report.balanced) == (2, True)
    assert (state.parent / "damaged/0001" / STATE_FILE).exists()
