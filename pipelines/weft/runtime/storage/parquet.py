"""Small Parquet files, read whole and checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq


def read_parquet(source: Path | BinaryIO, *, by_number: Sequence[str] = ()) -> pa.Table:
    """All rows of a file written with page checksums, and the metadata written with them."""
    with pq.ParquetFile(source, page_checksum_verification=True, read_dictionary=[*by_number]) as file:
        return file.read()
