"""Immutable copies of a partition's state, and the way back to one when the state itself is damaged (ARC-3).

A checkpoint lies below the partition's folder, in the storage root, so that another node can take over from it: one
sealed folder per offset, written aside, then renamed. The log does the rest: what came after a checkpoint is replayed,
exactly, because the offset is in the copy. The first one is written before anything is consumed. Damaged states are set
aside, each in a folder of its own, which no run removes or writes to again (OPS-15).
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from pathlib import Path

from weft.domain.errors import CorruptionError
from weft.domain.event_fields import SCHEMA_VERSION
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.heads import publish_checkpoint
from weft.feedback.store.report import PartitionReport
from weft.feedback.store.state import STATE_FILE, PartitionState
from weft.runtime.storage.errors import named
from weft.runtime.storage.files import (
    file_hashes,
    read_manifest,
    sync_folder,
    sync_tree,
    verify_files,
    write_manifest,
)
from weft.runtime.storage.locks import Patience, locked

_log = logging.getLogger(__name__)

MOST_DAMAGED = 4
"""States set aside per partition before a person has to remove some: a disk that damages so many needs one."""

_COPIES = 2  # kept per partition: the newest may be the one that was damaged
_EVERY_S = 900.0  # far below any retention

_FOLDER, _STAGED, _LOCK = "checkpoints", ".staged", ".restoring"
_DIGITS = 20  # of an offset in a folder's name, so that names sort as offsets do


def write_checkpoint(state: PartitionState) -> Path:
    """Copy a partition's state as it is now; older copies than the newest two are deleted."""
    with state.owned() as (_, report):
        folder = state.folder / _FOLDER / f"{report.next_offset:0{_DIGITS}d}"
        if not folder.exists():
            _write(folder, state, report)
    publish_checkpoint(state, report, folder)
    for old in checkpoints_in(state.folder)[_COPIES:]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def _write(folder: Path, state: PartitionState, report: PartitionReport) -> None:
    for left in folder.parent.glob(f"{_STAGED}*"):  # by updaters that were killed
        shutil.rmtree(left)
    staged = folder.with_name(_STAGED)
    staged.mkdir(parents=True)
    try:
        state.copy_to(staged / STATE_FILE)
        facts = {"partition": report.partition, "topic_id": report.topic_id, "events": SCHEMA_VERSION}
        write_manifest(staged, {**facts, "files": file_hashes(staged)})
        sync_tree(staged)
        staged.rename(folder)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)  # a full disk needs the room
        raise
    sync_folder(folder.parent)


def checkpoints_in(folder: Path) -> list[Path]:
    """Checkpoints of a partition, newest first; whether they are intact is not looked at."""
    return sorted((path for path in (folder / _FOLDER).glob("[0-9]*") if path.is_dir()), reverse=True)


def is_due(folder: Path, offset: int, rules: FeedbackSettings, *, now: float) -> bool:
    """Whether a partition that stands at `offset` should be copied again, since the log must reach back to its copy."""
    newest = next(iter(checkpoints_in(folder)), None)
    if newest is None:
        return True
    behind = offset - int(newest.name)
    old = now - newest.stat().st_mtime >= _EVERY_S
    return behind >= rules.checkpoint_records or (behind > 0 and old)


def exclusive_folder(folder: Path, patience: Patience) -> contextlib.AbstractContextManager[None]:
    """Hold a partition's folder, so that one updater at a time opens and restores what is in it."""
    return locked(folder / _LOCK, patience)


def is_lost(folder: Path) -> bool:
    """Whether a partition has checkpoints, and no state that could have any."""
    state = folder / STATE_FILE
    return bool(checkpoints_in(folder)) and (not state.exists() or state.stat().st_size == 0)


def restore(folder: Path, damage: str, *, log_start: int) -> None:
    """Put the newest intact checkpoint in the place of a damaged state, which is set aside."""
    if (count := len(damaged_in(folder))) >= MOST_DAMAGED:
        raise CorruptionError(
            f"{folder / STATE_FILE}: expected a partition's state, found damage ({damage}), and {count} damaged states"
            f" in {folder / DAMAGED} already; look into the system's log for what the disk reports, then remove them"
            f" with `weft feedback damaged remove {folder.name}`"
        )
    chosen = next((each for each in checkpoints_in(folder) if _is_intact(each)), None)
    if chosen is None and log_start > 0:
        raise CorruptionError(
            f"{folder / STATE_FILE}: expected a partition's state, found damage ({damage}), no intact checkpoint beside"
            f" it, and a log that starts at {log_start}; bring back a copy of the folder, or delete it to start there"
            ", without what this partition taught before"
        )
    staged = None if chosen is None else _copied(chosen / STATE_FILE, folder / _STAGED)
    aside = set_aside(folder, STATE_FILE)
    if staged is not None:
        staged.rename(folder / STATE_FILE)
        sync_folder(folder)
    origin = "the start of the log" if chosen is None else f"checkpoint {int(chosen.name)}"
    where = "" if aside is None else f"; the damaged files are in {aside}"
    _log.warning("%s: %s; restored from %s%s", folder / STATE_FILE, damage, origin, where)


def _copied(path: Path, staged: Path) -> Path:
    try:
        with named(staged), path.open("rb") as source, staged.open("wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fsync(copy.fileno())
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    return staged


def _is_intact(checkpoint: Path) -> bool:
    try:
        verify_files(checkpoint, read_manifest(checkpoint)["files"])
    except (CorruptionError, KeyError) as error:
        _log.warning("checkpoint %s is not used: %s", checkpoint, error)
        return False
    return True


DAMAGED = "damaged"
"""Folder below a partition's, with a folder per state that was set aside, named by its number from 1 on."""

_DIGITS = 4  # of a number in a folder's name, so that names sort as numbers do


def damaged_in(folder: Path) -> list[Path]:
    """Folders with a damaged state of a partition, oldest first."""
    return sorted({path.parent for path in (folder / DAMAGED).rglob("*") if path.is_file()})


def set_aside(folder: Path, name: str) -> Path | None:
    """Move a state's files into a folder of their own; None where there are none."""
    files = sorted(folder.glob(f"{name}*"))
    if not files:
        return None
    parent = folder / DAMAGED
    numbers = [int(path.name) for path in parent.glob("[0-9]*") if path.name.isdecimal()]
    aside = parent / f"{max(numbers, default=0) + 1:0{_DIGITS}d}"
    aside.mkdir(parents=True)
    for path in files:
        path.rename(aside / path.name)
    for changed in (aside, parent, folder):
        sync_folder(changed)
    return aside


def remove_damaged(folder: Path) -> int:
    """Remove all that was set aside of a partition, for good; how many states that were."""
    count = len(damaged_in(folder))
    if (folder / DAMAGED).exists():
        shutil.rmtree(folder / DAMAGED)
    return count
