"""Durable files: written whole, verified by hash, made visible by one rename (ARC-2)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipelines.runtime.storage.disk import named


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hex digits."""
    with named(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_below(folder: Path) -> Iterator[Path]:
    """Every regular file below a folder, in a fixed order."""
    return iter(sorted(path for path in folder.rglob("*") if path.is_file()))


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a text file with their numbers, from 1; what is no UTF-8 is replaced.

    A line ends where lines of files do. `str.splitlines` breaks them at further characters, which JSON holds unescaped.
    """
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            yield number, line.removesuffix("\n")


def sync_folder(folder: Path) -> None:
    """Make the entries of a folder durable: a rename in it survives a power loss only after this."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Make every file and folder below a folder durable, leaves first."""
    for path in files_below(folder):
        with path.open("rb") as file:
            os.fsync(file.fileno())
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        sync_folder(path)
    sync_folder(folder)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content in one step: readers see the old bytes or the new ones, never a mixture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with named(path), os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # mkstemp makes files private; readers may run as another user
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    sync_folder(path.parent)
