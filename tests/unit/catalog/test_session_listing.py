"""Open sessions as searches read them: what cannot be read is not thereby damaged."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from weft.catalog.overlays import SESSIONS_KEY, metadata_of, read_listing
from weft.domain.errors import CorruptionError, StoreError
from weft.learning.evidence import Evidence


def test_evidence_that_cannot_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    """ARC-2: a folder in a file's place stands for any failure to read."""
    (tmp_path / "evidence.parquet").mkdir()
    with pytest.raises(StoreError, match="expected to read and write it") as raised:
        metadata_of(tmp_path / "evidence.parquet")
    assert not isinstance(raised.value, CorruptionError)


def test_sessions_that_cannot_be_read_are_not_called_damaged(tmp_path: Path) -> None:
    """ARC-2: neither are those of the file that the evidence names."""
    (tmp_path / "sessions.parquet").mkdir()
    table = Evidence().to_table().replace_schema_metadata({SESSIONS_KEY: b"sessions.parquet"})
    pq.write_table(table, tmp_path / "evidence.parquet")
    with pytest.raises(StoreError, match="expected to read and write it") as raised:
        read_listing([tmp_path / "evidence.parquet"])
    assert not isinstance(raised.value, CorruptionError)


def test_damage_is_called_damage(tmp_path: Path) -> None:
    """ARC-2: bytes that were read and are no evidence."""
    (tmp_path / "evidence.parquet").write_bytes(b"PAR1 and nothing that belongs there PAR1")
    with pytest.raises(CorruptionError, match="expected evidence"):
        metadata_of(tmp_path / "evidence.parquet")
