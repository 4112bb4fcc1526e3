"""Damaged states that were set aside: each in a folder of its own, which no run removes or writes to again (OPS-15)."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipelines.runtime.storage.files import sync_folder

DAMAGED = "damaged"
"""Folder below a partition's, with a folder per state that was set aside, named by its number from 1 on."""

_DIGITS = 4  # of a number in a folder's name, so that names sort as numbers do


def damaged_in(folder: Path) -> list[Path]:
    """Folders with a damaged state of a partition, oldest first; earlier versions put the only one into `damaged`."""
    return sorted({path.parent for path in (folder / DAMAGED).rglob("*") if path.is_file()})


def set_aside(folder: Path, name: str) -> Path | None:
    """Move a state's files into a folder of their own; None where there are none.

    Args:
        folder: Of the partition.
        name: Of the state; what SQLite puts beside it begins with it.
    """
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
