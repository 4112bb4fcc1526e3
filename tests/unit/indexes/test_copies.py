"""OPS-5: processes share decoded tables; a copy that cannot be had or is damaged changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.indexes.copies import TableCopies, read_whole, remove_copies

TABLE = pa.table({"name": ["a", "b", None], "texts": [["x"], [], ["y", "z"]], "more": [1, 2, 3]})
COLUMNS = ["texts", "name"]


@pytest.fixture
def file(tmp_path: Path) -> pq.ParquetFile:
    pq.write_table(TABLE, tmp_path / "table.parquet", row_group_size=2)
    return pq.ParquetFile(tmp_path / "table.parquet")


def test_who_reads_second_maps_what_the_first_wrote(file: pq.ParquetFile, tmp_path: Path) -> None:
    """Nothing is decoded and nothing held: the second one's columns lie in the file."""
    first = TableCopies(tmp_path / "copies", "g1").read("table", file, COLUMNS)
    before = pa.total_allocated_bytes()
    second = TableCopies(tmp_path / "copies", "g1").read("table", file, COLUMNS)
    assert pa.total_allocated_bytes() == before
    assert first.equals(second)
    assert second.equals(read_whole(file, COLUMNS))
    assert all(column.num_chunks == 1 for column in second.columns)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "copies").iterdir()] == [0o600]


@pytest.mark.parametrize("damage", [b"", b"ARROW1 and no more", None])
def test_a_damaged_copy_is_made_anew(file: pq.ParquetFile, tmp_path: Path, damage: bytes | None) -> None:
    """None: a copy of another table."""
    copies = TableCopies(tmp_path / "copies", "g1")
    whole = copies.read("table", file, COLUMNS)
    (path,) = (tmp_path / "copies").iterdir()
    path.unlink()  # what is mapped stays
    if damage is None:
        pq.write_table(TABLE.slice(0, 1), tmp_path / "other.parquet")
        copies.read("table", pq.ParquetFile(tmp_path / "other.parquet"), COLUMNS)
    else:
        path.write_bytes(damage)
    assert copies.read("table", file, COLUMNS).equals(whole)
    assert TableCopies(tmp_path / "copies", "g1").read("table", file, COLUMNS).equals(whole)


def test_a_table_is_read_where_no_copy_can_be_written(file: pq.ParquetFile, tmp_path: Path) -> None:
    """As on a full disk, or in a store of somebody else."""
    (tmp_path / "copies").write_text("no folder")
    assert TableCopies(tmp_path / "copies", "g1").read("table", file, COLUMNS).equals(read_whole(file, COLUMNS))


Removing = Callable[[Path, pq.ParquetFile], object]


@pytest.mark.parametrize(
    "removing",
    [
        lambda folder, file: TableCopies(folder, "g2").read("table", file, COLUMNS),
        lambda folder, _: remove_copies(folder, ["g1"]),
    ],
)
def test_copies_of_other_generations_go(file: pq.ParquetFile, tmp_path: Path, removing: Removing) -> None:
    """When another generation is read, and when theirs is pruned; who has mapped them keeps them."""
    mapped = TableCopies(tmp_path / "copies", "g1").read("table", file, COLUMNS)
    removing(tmp_path / "copies", file)
    assert not list((tmp_path / "copies").glob("g1.*"))
    assert mapped.equals(read_whole(file, COLUMNS))
