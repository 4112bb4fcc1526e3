"""ARC-3: a state that an earlier version kept is taken over."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from pipelines.feedback.store.overlays import PENDING, SETTLED
from pipelines.feedback.store.report import losses_in
from pipelines.feedback.store.rows import define_row_hash, protect
from pipelines.feedback.store.state import STATE_FILE, PartitionState
from pipelines.feedback.store.tables import write_republished
from pipelines.learning.evidence import Evidence
from tests.support.feedback_events import RULES, rules
from tests.support.session_store import Partition, alone, judged, phase


def _as_before(file: Path, table: str) -> None:
    """Bring a table into the columns that it had before questions were told apart."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        define_row_hash(connection)
        columns = [row[1] for row in connection.execute(f"pragma table_info({table})") if row[1] != "question"]
        names, key = ", ".join(columns), ", ".join(columns[:-1])
        connection.execute(f"alter table {table} rename to later")
        connection.execute(f"create table {table} ({names}, primary key ({key})) without rowid")
        connection.execute(f"insert into {table} select {names} from later")
        connection.execute("drop table later")
        connection.execute("delete from sums where name = ?", (table,))
        protect(connection)
        connection.commit()


def _without_parts(file: Path) -> None:
    """Bring what sessions hold back into overlays as a whole, where it lay before parts were told apart."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        define_row_hash(connection)
        for table in ("evidence", "usage"):
            names = ", ".join(row[1] for row in connection.execute(f"pragma table_info({table})"))
            of_parts = ", ".join(f"part_{table}.{name}" for name in names.split(", "))
            connection.execute(
                f"insert into overlay_{table} (session, settled, {names}) select session, settled, {of_parts}"
                f" from part_{table} join draws using (session, part)"
            )
            connection.execute("delete from sums where name in (?, ?)", (f"part_{table}", f"overlay_{table}"))
            connection.execute(f"delete from part_{table}")
        connection.execute("delete from draws")
        protect(connection)
        connection.commit()


def _without_kinds(file: Path) -> None:
    """Bring allowances and what sessions draw on them back to one for everything."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        define_row_hash(connection)
        for table, key in (("allowances", "day, principal"), ("draws", "principal, day, first, part")):
            columns = [row[1] for row in connection.execute(f"pragma table_info({table})") if row[1] != "allowance"]
            names = ", ".join(columns)
            for (index,) in connection.execute(
                "select name from sqlite_schema where type = 'index' and tbl_name = ? and sql is not null", (table,)
            ).fetchall():
                connection.execute(f"drop index {index}")
            connection.execute(f"alter table {table} rename to later")
            connection.execute(f"create table {table} ({names}, primary key ({key})) without rowid")
            connection.execute(f"insert into {table} select {names} from later")
            connection.execute("drop table later")
            connection.execute("delete from sums where name = ?", (table,))
            connection.execute("delete from checks where name = ?", (table,))
        connection.execute("create index draws_of_session on draws (session, part)")
        connection.execute("create index draws_counted on draws (principal, day, first, part) where counted = 1")
        protect(connection)
        connection.commit()


def _without_questions(evidence: Evidence) -> Evidence:
    return Evidence(evidence.counts, {key._replace(question=""): micro for key, micro in evidence.usage.items()})


@pytest.mark.parametrize("tables", [["usage", "overlay_usage"], ["usage"], []])
def test_uses_kept_before_questions_were_told_apart_are_taken_over(tmp_path: Path, tables: list[str]) -> None:
    """ARC-3: every mass stays, under a question that is not known; the sums hold, and work goes on."""
    partition = Partition(tmp_path)
    partition.feed([*judged("s0"), phase("start"), *judged("s1", query="q2")])
    shared, overlay = partition.shared, partition.overlay("s1", PENDING)
    assert all(key.question for evidence in (shared, overlay) for key in evidence.usage)
    partition.state.close()
    _without_parts(partition.state.folder / STATE_FILE)
    for table in tables:
        _as_before(partition.state.folder / STATE_FILE, table)
    partition.open()
    assert partition.shared == (_without_questions(shared) if "usage" in tables else shared)
    assert partition.overlay("s1", PENDING) == (_without_questions(overlay) if "overlay_usage" in tables else overlay)
    partition.feed(judged("s3", query="q3"))
    partition.state.close()
    partition.open()
    assert len(partition.shared.usage) == 2


def test_allowances_kept_before_each_report_had_its_own_are_taken_over(tmp_path: Path) -> None:
    """ARC-3, LRN-20: what was drawn was drawn for weights, and sessions come out as they went in."""
    tight = rules(limits__principal_daily=1.0, limits__session_part=0.5)
    found, left = [], [*judged("loose"), phase("start", "later"), *judged("later", query="q2")]
    for name, earlier in (("earlier", True), ("now", False)):
        partition = Partition(tmp_path / name, tight)
        partition.feed([phase("start"), *judged(query="q1"), phase("complete"), *judged("loose", query="q0")])
        partition.state.close()
        if earlier:
            _without_kinds(partition.state.folder / STATE_FILE)
        partition.open()
        partition.feed([*left, phase("complete", "later")])
        merged = partition.shared
        partition.feed([phase("unlearn")])
        found.append((merged, partition.shared, partition.overlay("later", SETTLED)))
    assert found[0] == found[1]


def test_sessions_merged_before_parts_were_kept_come_out_as_they_went_in(tmp_path: Path) -> None:
    """LRN-17, ARC-3: overlays that hold all of a session; what comes after is kept in parts beside them."""
    partition = Partition(tmp_path / "store")
    partition.feed([phase("start"), *judged(), phase("complete"), *judged("other", -1.0)])
    partition.state.close()
    _without_parts(partition.state.folder / STATE_FILE)
    partition.open()
    assert partition.overlay("s1", SETTLED) == alone(tmp_path / "one", judged())
    partition.feed(judged(query="q2"))
    assert partition.overlay("s1", SETTLED) == alone(tmp_path / "both", [*judged(), *judged(query="q2")])
    partition.feed([phase("unlearn")])
    assert partition.shared == alone(tmp_path / "others", judged("other", -1.0))


def _before_losses(file: Path) -> None:
    """Bring a store back to what it was before losses were counted, its sums included."""
    later = ("dead_letters_waiting", "lost", "offset_base", "log_end")
    with contextlib.closing(sqlite3.connect(file)) as connection:
        define_row_hash(connection)
        for event in ("insert", "update", "delete"):
            connection.execute(f"drop trigger check_{event}_progress")
        connection.execute("drop table losses")
        connection.execute("delete from checks where name in ('progress', 'losses')")
        for column in later:
            connection.execute(f"alter table progress drop column {column}")
        protect(connection)
        connection.commit()


def test_a_store_from_before_losses_were_counted_is_taken_over(tmp_path: Path) -> None:
    """ARC-3, FBK-3: dead letters that wait are counted, and it can be looked into before an updater opens it."""
    partition = Partition(tmp_path)
    partition.feed([b"{", b"}", *judged()])
    partition.state.write(write_republished, 1)
    partition.state.close()
    _before_losses(partition.state.folder / STATE_FILE)
    with contextlib.closing(PartitionState(partition.state.folder, 0, RULES)) as state:
        assert (state.report().dead_lettered, state.report().lost, state.read(losses_in)) == (2, 0, [])
    for _ in range(2):
        partition.open()
        report = partition.state.report()
        assert (report.dead_letters_waiting, report.lost, report.offset_base) == (1, 0, 0)
        assert report.balanced
        partition.state.close()
