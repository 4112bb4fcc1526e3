"""OPS-15, OPS-10a: what the disk refuses is told by its cause, and is never taken for damage."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.small_disk import small_disk
from weft.domain.errors import CorruptionError, DiskError, StoreError
from weft.runtime.storage.errors import cause_at, is_damage, named, refused
from weft.runtime.storage.files import read_manifest, write_atomically
from weft.runtime.storage.sqlite import BlobCache

CODES = [name for name in dir(sqlite3) if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY"))]
OTHERS = ["FULL", "PERM", "BUSY", "LOCKED", "NOLFS", "AUTH", "NOMEM", "PROTOCOL", "INTERRUPT", "BUSY_RECOVERY"]


def an_error(name: str) -> sqlite3.Error:
    error = sqlite3.OperationalError("said by SQLite")
    error.sqlite_errorcode, error.sqlite_errorname = getattr(sqlite3, name), name
    return error


@pytest.mark.parametrize("name", [*CODES, *(f"SQLITE_{name}" for name in OTHERS)])
def test_no_error_of_the_place_is_damage(name: str, tmp_path: Path) -> None:
    """OPS-15: in no extended form; what to raise for it is no damage either."""
    error = an_error(name)
    assert not is_damage(error)
    assert not isinstance(refused(tmp_path / "a.sqlite", error), CorruptionError)


def test_what_sqlite_says_of_damaged_files_is_damage(tmp_path: Path) -> None:
    """ARC-3: a file that is none, a page of zeros, a table that is gone, a text that is no UTF-8."""
    path = tmp_path / "a.sqlite"

    def error_of(statement: str) -> sqlite3.Error:
        with contextlib.closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.Error) as raised:
            connection.execute(statement).fetchall()
        return raised.value

    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("create table a (b text)")
        connection.execute("insert into a values (cast(x'ff' as text))")
        connection.commit()
    whole = path.read_bytes()
    assert is_damage(error_of("select b from a"))
    assert is_damage(error_of("select b from c"))
    path.write_bytes(whole[:4096] + bytes(4096))
    assert is_damage(error_of("select b from a"))
    path.write_bytes(b"no database" * 1_000)
    assert is_damage(error_of("select b from a"))


def test_a_full_disk_is_named_with_the_path_where_libraries_leave_out_either(tmp_path: Path) -> None:
    """OPS-15: Arrow names no path, and NumPy not even the cause."""
    with small_disk(tmp_path / "disk", mib=1) as disk:
        path, numbers = disk.path / "a", np.arange(2**20)
        assert cause_at(path) is None
        for write in (
            lambda: np.save(path, numbers),
            lambda: pq.write_table(pa.table({"a": numbers}), path, compression="none"),
            lambda: write_atomically(path, numbers.tobytes()),
        ):
            with pytest.raises(OSError, match=r"\[Errno 28\] No space left on device: '.*disk/a'"), named(path):
                write()
            for left in disk.path.iterdir():
                left.unlink()


def test_a_full_disk_costs_no_cache(tmp_path: Path) -> None:
    """OPS-10a: neither where it is written nor where it is opened; with room it goes on as it was."""
    with small_disk(tmp_path / "disk", mib=2) as disk:
        path = disk.path / "cache.sqlite"
        cache = BlobCache(path)
        cache.put({"a": b"1"})
        disk.fill()
        with pytest.raises(DiskError, match=rf"cache\.sqlite: .*No space left on device; free space on {disk.path}"):
            cache.put({"b": bytes(2**19)})
        assert cache.get(["a", "b"]) == {"a": b"1"}
        disk.free()
        cache.close()
        disk.fill()
        with pytest.raises(DiskError, match="No space left on device"):
            BlobCache(path)
        disk.free()
        cache = BlobCache(path)
        assert cache.get(["a", "b"]) == {"a": b"1"}
        cache.close()


def test_a_cache_that_is_damaged_while_two_use_it_is_replaced_once(tmp_path: Path) -> None:
    """OPS-10a: who notices first makes an empty one; what it puts there the other one finds."""
    path = tmp_path / "cache.sqlite"
    first = BlobCache(path)
    first.put({f"{number:04d}": bytes(1_000) for number in range(100)})
    first.close()
    first, second = BlobCache(path), BlobCache(path)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * len(data[4096:])
    path.write_bytes(data)
    assert first.get(["0001"]) == {}
    first.put({"a": b"1"})
    assert second.get(["a", "0001"]) == {"a": b"1"}
    second.put({"b": b"2"})
    assert first.get(["a", "b"]) == {"a": b"1", "b": b"2"}
    first.close()
    second.close()


def test_a_manifest_that_cannot_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    """ARC-2: a link to itself stands for any failure to read; one that is missing is damage."""
    with pytest.raises(CorruptionError):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").symlink_to(tmp_path / "manifest.json")
    with pytest.raises(StoreError) as raised:
        read_manifest(tmp_path)
    assert not isinstance(raised.value, CorruptionError)
