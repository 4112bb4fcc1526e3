"""Repositories: where they are, and whose (ING-40)."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from weft.ingestion.git.safe_files import read_bounded

_MARK = ".git"
_LINE_BYTES = 8_192  # of a file that holds one path
_HEAD = re.compile(rb"ref:\s*refs/|[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree."""

    top: Path  # the folder that its paths start from
    own: Path  # what belongs to this working tree alone: its head and its index
    shared: Path  # what all working trees of the repository have in common

    @property
    def is_linked(self) -> bool:
        """Whether it is a further working tree of a repository, as `git worktree add` makes them."""
        return self.own != self.shared

    @property
    def head(self) -> bytes:
        """The name of its branch, or its commit."""
        return read_bounded(self.own / "HEAD", _LINE_BYTES).strip()

    @property
    def main_head(self) -> bytes:
        """The same of the repository's first working tree, or of the repository itself where that has none."""
        return read_bounded(self.shared / "HEAD", _LINE_BYTES).strip()


def repository_at(folder: Path) -> Repository | None:
    """The repository whose top a folder is, if it is one."""
    mark = folder / _MARK
    try:
        status = mark.stat()
    except (OSError, ValueError):
        return None
    own = mark if stat.S_ISDIR(status.st_mode) else _named_in(mark)
    if own is None or not _HEAD.match(read_bounded(own / "HEAD", _LINE_BYTES)):
        return None
    common = read_bounded(own / "commondir", _LINE_BYTES).rstrip(b"\r\n")
    own = own.resolve()
    shared = (own / os.fsdecode(common)).resolve() if common else own
    return Repository(folder, own, shared) if (shared / "objects").is_dir() and (shared / "refs").is_dir() else None


def repository_above(folder: Path) -> Repository | None:
    """The repository that a folder lies in, if whoever made it may decide about the folder.

    Others than its owner, who runs this, and root could leave out what they like, where they may write above it.
    """
    status = folder.stat()
    for above in (folder, *folder.parents):
        try:
            if above.stat().st_dev != status.st_dev:
                return None
            repository = repository_at(above)
            if repository is not None:
                trusted = {status.st_uid, os.geteuid(), 0}
                return repository if above == folder or (above / _MARK).stat().st_uid in trusted else None
        except OSError:
            return None
    return None


def _named_in(mark: Path) -> Path | None:
    line = read_bounded(mark, _LINE_BYTES).rstrip(b"\r\n")
    named = line.removeprefix(b"gitdir:").lstrip(b" ")
    if not line.startswith(b"gitdir:") or not named or b"\0" in named:
        return None
    return mark.parent / os.fsdecode(named)
