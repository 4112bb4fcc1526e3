"""Queries over tables that exceed their memory bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.domain.errors import StoreError
from weft.runtime.storage.tables import TableQueries

SCHEMA = pa.schema([("name", pa.string()), ("place", pa.string()), ("text", pa.large_string())])
ORDER = ("name", "place")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    """Rows of some 60 MB in no order, many of one name."""
    folder = tmp_path_factory.mktemp("tables") / "part"
    folder.mkdir()
    rng = np.random.default_rng(3)
    names = [f"{number:06d}" for number in rng.integers(0, 9_000, 30_000)]
    texts = [f"{name} says " * 150 for name in names]
    table = pa.table([names, [f"{place:06d}" for place in rng.permutation(30_000)], texts], schema=SCHEMA)
    path = folder / "rows.parquet"
    pq.write_table(table, path, row_group_size=1_024)
    return path, table.sort_by([(column, "ascending") for column in ORDER])


def test_rows_are_ordered_however_little_memory_there_is(written: tuple[Path, pa.Table], tmp_path: Path) -> None:
    """ING-25: a sort that the bound does not hold goes range by range; every row comes once, and in order."""
    path, expected = written
    with TableQueries(tmp_path, memory_mb=24, threads=2) as queries:
        queries.define("rows", [path], SCHEMA)
        query = "select name, place, text from rows"
        with pytest.raises((StoreError, OSError), match="Out of Memory"):
            list(queries.rows(f"{query} order by name, place", SCHEMA, at_once=1_024))
        for each in (query, "select * from rows"):  # of which the latter says what part a row is of
            assert pa.concat_tables(queries.ordered(each, ORDER, SCHEMA, at_once=1_024)).equals(expected)


def test_the_bound_of_a_sort_says_what_to_do(tmp_path: Path) -> None:
    """ING-25: rows alike in the first column are not told apart by it; whoever runs into that learns what to do."""
    folder = tmp_path / "part"
    folder.mkdir()
    texts = [f"{number} says " * 300 for number in range(20_000)]
    places = [f"{number:06d}" for number in range(20_000)]
    pq.write_table(pa.table([["same"] * 20_000, places, texts], schema=SCHEMA), folder / "rows.parquet")
    with TableQueries(tmp_path / "spill", memory_mb=16, threads=2) as queries:
        queries.define("rows", [folder / "rows.parquet"], SCHEMA)
        with pytest.raises(StoreError, match="more memory"):
            list(queries.ordered("select name, place, text from rows", ORDER, SCHEMA, at_once=1_024))


@pytest.mark.parametrize(("name", "other"), [("q?1", "q11"), ("[x]", "x"), ("a*b", "acb"), ("50%25", "50%")])
def test_tables_of_a_folder_are_its_own_whatever_it_is_called(tmp_path: Path, name: str, other: str) -> None:
    """OPS-15: signs that stand for others elsewhere let no rows of a folder beside it in."""
    schema = pa.schema([("name", pa.string())])
    for folder in (name, other):
        path = tmp_path / folder / "part" / "rows.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"name": [folder]}, schema=schema), path)
    with TableQueries(tmp_path / "spill", memory_mb=64, threads=1) as queries:
        queries.define("told", [tmp_path / name / "part" / "rows.parquet"], schema)
        (table,) = queries.rows("select name from told", schema, at_once=10)
    assert table.to_pylist() == [{"name": name}]
