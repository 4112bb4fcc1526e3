"""Single values of Arrow columns: whatever a column holds, and wherever it was cut out, Arrow says the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.indexes.cells import cell_reader

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6)
COLUMNS = st.one_of(
    st.tuples(st.sampled_from([pa.string(), pa.large_string()]), st.lists(TEXT, max_size=8)),
    st.tuples(st.sampled_from([pa.string(), pa.large_string()]), st.lists(st.none() | TEXT, max_size=8)),
    st.tuples(st.just(pa.list_(pa.string())), st.lists(st.lists(TEXT, max_size=3), max_size=8)),
    st.tuples(st.just(pa.list_(pa.string())), st.lists(st.none() | st.lists(st.none() | TEXT, max_size=3), max_size=8)),
    st.tuples(st.just(pa.list_(pa.int64())), st.lists(st.lists(st.integers(-9, 9), max_size=3), max_size=8)),
    st.tuples(
        st.sampled_from([pa.list_(pa.int64()), pa.large_list(pa.string())]),
        st.lists(st.none() | st.just([]), max_size=8),
    ),
    st.tuples(st.just(pa.int32()), st.lists(st.integers(-9, 9), max_size=8)),
    st.tuples(st.just(pa.int32()), st.lists(st.none() | st.integers(-9, 9), max_size=8)),
    st.tuples(st.just(pa.float64()), st.lists(st.floats(allow_nan=False), max_size=8)),
)


@given(COLUMNS, st.integers(0, 8), st.integers(0, 8), st.booleans())
def test_a_reader_tells_what_arrow_tells(
    column: tuple[pa.DataType, list[Any]], start: int, length: int, chunked: bool
) -> None:
    """RET-20: of every row of any part of a column; lists come as tuples."""
    kind, values = column
    whole = pa.array(values, type=kind)
    array = whole.slice(start, length)
    if chunked:
        array = pa.chunked_array([array, whole], type=kind)
    read = cell_reader(array)
    told = [tuple(value) if isinstance(value, list) else value for value in array.to_pylist()]
    assert [read(row) for row in range(len(array))] == told


@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.string())])
def test_a_column_without_rows_has_a_reader(kind: pa.DataType) -> None:
    """RET-20: an empty generation is one, too."""
    cell_reader(pa.array([], type=kind))
    cell_reader(pa.chunked_array([], type=kind))
