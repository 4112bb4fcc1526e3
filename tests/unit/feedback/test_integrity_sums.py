"""ARC-3: sums over a partition's tables follow every write, and notice whatever was not written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.session_store import Partition, judged, phase
from weft.domain.errors import CorruptionError
from weft.feedback.store.rows import MASSES, define_row_hash, verify
from weft.feedback.store.state import STATE_FILE

EVENTS = [
    *judged("s2"),
    phase("start"),
    *judged(),
    phase("complete"),
    phase("start", "s3"),
    # More than an allowance: what draws on none lies in an overlay.
    *(event for number in range(14) for event in judged("s3", -1.0, 2, f"q3-{number}")),
]


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


@pytest.mark.parametrize("table", [*MASSES, "shown"])
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
