"""The folders of a log: one per day, removed when their time has come."""

from __future__ import annotations

import logging
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weft.runtime.clock import SECONDS_PER_DAY
from weft.runtime.storage.files import sync_folder, write_atomically
from weft.runtime.storage.working_copy import WorkingCopy, working_copy_of

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
    if (copy := _copy_of(folder)) is not None:
        copy.receive(folder.absolute().relative_to(copy.root).as_posix())
    days = ((day, path) for day, path in _days(folder) if since_day <= day)
    return [file for _, path in sorted(days) for file in sorted(path.glob("*.parquet")) if _is_readable(file)]


def keep_days(folder: Path, days: int, *, today: int) -> list[Path]:
    """Remove days that ended `days` or more ago; what is removed already is no failure."""
    old = [path for day, path in _days(folder) if day <= today - days]
    copy = _copy_of(folder) if old else None
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
        if copy is not None:
            copy.forget([path.absolute()])
    return old


def put_file(file: Path, data: bytes, *, instead_of: Sequence[Path] = ()) -> None:
    """Write one whole file of a day, and remove others; in an object store first, which other hosts read."""
    if (copy := _copy_of(file.parents[1])) is not None:
        copy.objects.put(file.absolute().relative_to(copy.root).as_posix(), data)
        copy.forget([each.absolute() for each in instead_of])
    write_atomically(file, data)
    for each in instead_of:
        each.unlink(missing_ok=True)


def remove_file(file: Path) -> None:
    """Remove one file of a day."""
    if (copy := _copy_of(file.parents[1])) is not None:
        copy.forget([file.absolute()])
    file.unlink(missing_ok=True)


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
    if (copy := _copy_of(folder.parent)) is not None:
        copy.send(merged.absolute())
        copy.forget([path.absolute() for path in readable])
    for path in readable:
        path.unlink(missing_ok=True)  # another process may be merging, too
    return merged


def _copy_of(log_folder: Path) -> WorkingCopy | None:
    """What sends and receives the files of a log; None of a store that lies in its own folder."""
    return working_copy_of(log_folder.absolute().parents[1])


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
