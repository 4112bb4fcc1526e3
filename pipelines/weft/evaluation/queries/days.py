"""The folders of a log: one per day, removed when their time has come."""

from __future__ import annotations

import logging
import os
import shutil
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weft.runtime.clock import SECONDS_PER_DAY
from weft.runtime.storage.files import sync_folder

log = logging.getLogger(__name__)

QUERY_LOG = Path("logs") / "queries"
"""Folder of logged queries below a store."""

OUTCOME_LOG = Path("logs") / "outcomes"
"""Folder of what became of them."""

MERGED_FILES = 100
"""Small files of a day that are made into one."""

_PREFIX = "date="
_MERGED = "merged-"


def day_folder(folder: Path, day: int) -> Path:
    """The folder of one day."""
    return folder / f"{_PREFIX}{datetime.fromtimestamp(day * SECONDS_PER_DAY, UTC):%Y-%m-%d}"


def files_of(folder: Path, *, since_day: int = 0) -> list[Path]:
    """Readable files of the days from one on, oldest day first.

    A file that is none is left out with a warning: one bad file must not hide the rest of the log.
    """
    days = ((day, path) for day, path in _days(folder) if since_day <= day)
    return [file for _, path in sorted(days) for file in sorted(path.glob("*.parquet")) if _is_readable(file)]


def keep_days(folder: Path, days: int, *, today: int) -> list[Path]:
    """Remove days that ended `days` or more ago; what is removed already is no failure."""
    old = [path for day, path in _days(folder) if day <= today - days]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return old


def merge_small(folder: Path, *, least: int = MERGED_FILES) -> Path | None:
    """Make one file of a day's files that were not merged yet, where there are `least` of them or more.

    The merged file is complete before the others go: a crash in between leaves rows twice, which readers count once.

    Returns:
        The merged file; None where there was too little to merge.
    """
    small = [path for path in sorted(folder.glob("*.parquet")) if not path.name.startswith(_MERGED)]
    readable = [path for path in small if _is_readable(path)] if len(small) >= least else []
    if len(readable) < least:
        return None
    merged = folder / f"{_MERGED}{uuid.uuid4().hex}.parquet"
    staged = folder / f".{merged.name}"
    schema = pq.read_table(readable[0]).schema
    try:
        with pq.ParquetWriter(staged, schema, compression="zstd", write_page_checksum=True) as writer:
            for path in readable:  # one after the other: a day may be larger than memory
                writer.write_table(pq.read_table(path, schema=schema))
        with staged.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(staged, merged)
    except BaseException:
        staged.unlink(missing_ok=True)  # a full disk needs the room
        raise
    sync_folder(folder)
    for path in readable:
        path.unlink(missing_ok=True)  # another process may be merging, too
    return merged


def _days(folder: Path) -> Iterator[tuple[int, Path]]:
    for path in folder.glob(f"{_PREFIX}*"):
        try:
            day = date.fromisoformat(path.name.removeprefix(_PREFIX))
        except ValueError:
            continue  # a folder of somebody else
        yield (day - date(1970, 1, 1)).days, path


def _is_readable(file: Path) -> bool:
    try:
        pq.read_metadata(file)
    except (OSError, pa.ArrowInvalid) as error:
        log.warning("left out of the log: %s: %s", file, error)
        return False
    return True
