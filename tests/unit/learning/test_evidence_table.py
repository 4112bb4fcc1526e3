"""LRN-1: tables that are not evidence are refused; Parquet keeps evidence exactly."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.domain.errors import StoreError
from weft.learning.evidence import SCHEMA, Evidence, EvidenceKey
from weft.learning.uses import UsageKey

SOME = Evidence(
    {EvidenceKey(1, "code", "m", "a", "*", "relevance", "00/20.good"): 5},
    {UsageKey(1, "a" * 64, "positive"): -(2**63), UsageKey(2, "b" * 64, "negative"): 2**63 - 1},
)


@pytest.mark.parametrize("evidence", [Evidence(), SOME], ids=["none", "some"])
def test_parquet_keeps_evidence_exactly(evidence: Evidence, tmp_path: Path) -> None:
    """LRN-1: to the edges of int64, and an empty table keeps its schema."""
    file = tmp_path / "evidence.parquet"
    pq.write_table(evidence.to_table(), file)
    assert Evidence.from_table(pq.read_table(file)) == evidence


def test_a_table_of_other_columns_is_refused() -> None:
    """LRN-1."""
    with pytest.raises(StoreError, match="expected columns"):
        Evidence.from_table(pa.table({"day": [1]}))


def test_a_row_of_an_unknown_kind_is_refused() -> None:
    """LRN-1."""
    row = {name: [""] for name in SCHEMA.names} | {"kind": ["rumour"], "day": [1], "micro": [1]}
    with pytest.raises(StoreError, match="'rumour'"):
        Evidence.from_table(pa.table(row, schema=SCHEMA))


@pytest.mark.parametrize("name", ["content_hash", "micro", "kind"])
def test_an_empty_cell_is_refused(name: str) -> None:
    """LRN-1: it is no value, and no key; whoever wrote it is told, and not the search that would read it."""
    row = {field: [""] for field in SCHEMA.names} | {"kind": ["usage"], "day": [1], "micro": [1], name: [None]}
    with pytest.raises(StoreError, match=f"value in every cell, found none in some of .*{name}"):
        Evidence.from_table(pa.table(row, schema=SCHEMA))


def test_rows_of_one_key_add_up() -> None:
    """ARC-1: the snapshots of all partitions, one after the other, are the evidence of all."""
    half = Evidence(SOME.counts)
    assert Evidence.from_table(pa.concat_tables([half.to_table(), half.to_table()])) == half + half
