"""Files that anybody may have put there, read within bounds and without ever leaving their folder (ING-3)."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from weft.domain.documents import Rejection

MAX_DEPTH = 64
"""Folders below a source's root; what lies deeper is rejected."""

UNREADABLE = "unreadable"
"""The reason noted for an item that the system refuses."""

VANISHED = "vanished"
"""The reason noted for an item that was listed, and is gone from every host by the time it is read."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # opening a FIFO must not wait for its writer
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class UnreadableError(Exception):
    """One item cannot be read; `reason` is a stable code."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason

    def rejection(self, uri: str) -> Rejection:
        """The same as a row of the table of rejected items."""
        return Rejection(uri, self.reason, str(self))


def read_bounded(path: Path, limit: int, *, flags: int = 0) -> bytes:
    """The first bytes of a regular file; none where it is no such file or cannot be read, which never waits."""
    try:
        descriptor = os.open(path, _READ | flags)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except (OSError, ValueError):  # a zero byte in a name that a file gave
        return b""


def read_bytes(root: Path, path: tuple[str, ...], *, limit: int) -> tuple[bytes, float]:
    """Content and modification time of one regular file below a folder."""
    with opened_file(root, path, limit=limit) as file:
        return _content(file, limit)


@contextlib.contextmanager
def opened_file(root: Path, path: tuple[str, ...], *, limit: int | None = None) -> Iterator[IO[bytes]]:
    """One regular file below a folder, of at most `limit` bytes, open for reading."""
    try:
        with opened_folder(root, path[:-1]) as folder:
            name = path[-1] if path else "."
            if len(path) > MAX_DEPTH and stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise UnreadableError("too_deep", f"expected at most {MAX_DEPTH} folders below the root, found more")
            file = _opened(name, folder, limit)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise UnreadableError("symlink", "a folder on the way is a link now") from error
        raise refused(error) from error
    with file:
        yield file


def refused(error: OSError) -> UnreadableError:
    """What the system says of an item that it does not let anybody read, as a reason."""
    gone = error.errno in {errno.ENOENT, errno.ESTALE}
    return UnreadableError(VANISHED if gone else UNREADABLE, error.strerror or str(error))


def content_of(name: str, folder: int, limit: int) -> tuple[bytes, float]:
    """Content and modification time of one regular file in an open folder."""
    with _opened(name, folder, limit) as file:
        return _content(file, limit)


def _content(file: IO[bytes], limit: int) -> tuple[bytes, float]:
    try:
        data = file.read(limit + 1)
    except OSError as error:
        raise refused(error) from error
    if len(data) > limit:
        raise UnreadableError("too_large", f"expected at most {limit} bytes, found more")
    return data, os.fstat(file.fileno()).st_mtime


def _opened(name: str, folder: int, limit: int | None) -> IO[bytes]:
    # Looked at before opening, since opening a device may do something; and after, since it may be another file then.
    _require_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), limit)
    file = os.fdopen(os.open(name, _READ | os.O_NOFOLLOW, dir_fd=folder), "rb")
    try:
        _require_regular(os.fstat(file.fileno()), limit)
    except UnreadableError:
        file.close()
        raise
    return file


def _require_regular(status: os.stat_result, limit: int | None) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise UnreadableError("symlink", "links are not followed")
    if stat.S_ISDIR(status.st_mode):
        raise UnreadableError(UNREADABLE, "the folder cannot be listed")
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError("not_regular", f"expected a regular file, found {stat.filemode(status.st_mode)}")
    if limit is not None and status.st_size > limit:
        raise UnreadableError("too_large", f"expected at most {limit} bytes, found {status.st_size}")


@contextlib.contextmanager
def opened_folder(root: Path, path: Sequence[str]) -> Iterator[int]:
    """A descriptor of a folder, reached step by step so that no link is followed below the root."""
    descriptor = os.open(root, _FOLDER)
    try:
        for name in path:
            inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)
