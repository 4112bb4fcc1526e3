"""Folder trees: list them in a fixed order and read their files without ever leaving them (ING-3)."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from pipelines.domain.documents import Rejection
from pipelines.ingestion.ignore import IGNORE_FILE, IGNORE_FILE_BYTES, rules

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A folder above a source may let nobody list it.
_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # opening a FIFO must not wait for its writer

UNREADABLE = "unreadable"
"""The reason noted for an item that the system refuses."""

VANISHED = "vanished"
"""The reason noted for an item that was listed, and is gone from every host by the time it is read."""

Rules = tuple[GitIgnoreSpec | None, ...]
"""Of folders from the outermost to the innermost, None of one without any."""


class UnreadableError(Exception):
    """One item cannot be read; `reason` is a stable code.

    Attributes:
        reason: "symlink", "not_regular", "too_large", "too_deep", `UNREADABLE` or `VANISHED`.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason

    def rejection(self, uri: str) -> Rejection:
        """The same as a row of the table of rejected items."""
        return Rejection(uri, self.reason, str(self))


def listed(
    root: Path, *, skipped: Sequence[str], max_depth: int, left_out: tuple[str, ...] | None = None
) -> Iterator[tuple[str, ...]]:
    """Paths below a folder that are to be read, as their parts, in the order of their bytes.

    What `.gitignore` files exclude is left out, at every level from the top of the repository that the folder lies in,
    if it does, and so are `skipped` names and the path `left_out`.
    Links, devices and folders that cannot be listed are named too: reading them tells why they cannot be read.
    """
    way, outer = _outer_rules(root)
    waiting: list[tuple[tuple[str, ...], Rules]] = [((), outer)]
    while waiting:
        folder, above = waiting.pop()
        try:
            with _opened_folder(root, folder) as descriptor:
                entries = sorted(_entries(descriptor), key=lambda entry: os.fsencode(entry[0]))
                in_force = (*above, _rules(descriptor))
        except OSError:
            yield folder
            continue
        below = []
        for name, is_folder in entries:
            path = (*folder, name)
            if name in skipped or path == left_out or _ignored((*way, *path), in_force, is_folder=is_folder):
                continue
            if is_folder and len(path) <= max_depth:
                below.append((path, in_force))
            else:
                yield path
        waiting.extend(reversed(below))


def read_bytes(root: Path, path: tuple[str, ...], *, limit: int, max_depth: int) -> tuple[bytes, float]:
    """Content and modification time of one regular file below a folder.

    Raises:
        UnreadableError: It is no regular file, larger than `limit` bytes, too deep, or the system refuses.
    """
    try:
        with _opened_folder(root, path[:-1]) as folder:
            name = path[-1] if path else "."
            if len(path) > max_depth and stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise UnreadableError("too_deep", f"expected at most {max_depth} folders below the root, found more")
            return _content(name, folder, limit)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise UnreadableError("symlink", "a folder on the way is a link now") from error
        raise refused(error) from error


def refused(error: OSError) -> UnreadableError:
    """What the system says of an item that it does not let anybody read, as a reason."""
    gone = error.errno in {errno.ENOENT, errno.ESTALE}
    return UnreadableError(VANISHED if gone else UNREADABLE, error.strerror or str(error))


def _content(name: str, folder: int, limit: int) -> tuple[bytes, float]:
    # Looked at before opening, since opening a device may do something; and after, since it may be another file then.
    _require_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), limit)
    descriptor = os.open(name, _FILE, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        _require_regular(status, limit)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise UnreadableError("too_large", f"expected at most {limit} bytes, found more")
    return data, status.st_mtime


def _require_regular(status: os.stat_result, limit: int) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise UnreadableError("symlink", "links are not followed")
    if stat.S_ISDIR(status.st_mode):
        raise UnreadableError(UNREADABLE, "the folder cannot be listed")
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError("not_regular", f"expected a regular file, found {stat.filemode(status.st_mode)}")
    if status.st_size > limit:
        raise UnreadableError("too_large", f"expected at most {limit} bytes, found {status.st_size}")


@contextlib.contextmanager
def _opened_folder(root: Path, path: Sequence[str]) -> Iterator[int]:
    """A descriptor of a folder, reached step by step so that no link is followed below the root."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in path:
            inner = os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _entries(descriptor: int) -> list[tuple[str, bool]]:
    with os.scandir(descriptor) as found:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]


def _outer_rules(root: Path) -> tuple[tuple[str, ...], Rules]:
    """The way from the top of a folder's repository to the folder, and the rules of all folders before it on that way.

    Nothing where it lies in no repository, is the top of one, or is itself left out: who names such a folder means it.
    """
    top = _top_of(root)
    if top is None:
        return (), ()
    way, found = root.relative_to(top).parts, list[GitIgnoreSpec | None]()
    for depth in range(len(way)):
        found.append(_rules_in(top.joinpath(*way[:depth])))
        if _ignored(way[: depth + 1], found, is_folder=True):
            return (), ()
    return way, tuple(found)


def _top_of(root: Path) -> Path | None:
    """The nearest folder above that holds `.git`, where that belongs to whom the folder does.

    Git trusts nobody else's either: whoever may write to a folder above, such as /tmp, could leave out what they like.
    """
    for folder in (root, *root.parents):
        with contextlib.suppress(OSError):
            mark = (folder / ".git").stat()
            if stat.S_ISDIR(mark.st_mode) or stat.S_ISREG(mark.st_mode):
                return folder if mark.st_uid == root.stat().st_uid else None
    return None


def _rules_in(folder: Path) -> GitIgnoreSpec | None:
    try:
        descriptor = os.open(folder, _WAY)
    except OSError:
        return None
    try:
        return _rules(descriptor)
    finally:
        os.close(descriptor)


def _rules(folder: int) -> GitIgnoreSpec | None:
    try:
        data, _ = _content(IGNORE_FILE, folder, IGNORE_FILE_BYTES)
    except (OSError, UnreadableError):
        return None
    return rules(data)


def _ignored(path: tuple[str, ...], in_force: Sequence[GitIgnoreSpec | None], *, is_folder: bool) -> bool:
    """Whether the innermost file that says anything about a path excludes it."""
    for depth in range(len(in_force) - 1, -1, -1):
        spec = in_force[depth]
        if spec is not None:
            verdict = spec.check_file("/".join(path[depth:]) + ("/" if is_folder else "")).include
            if verdict is not None:
                return verdict
    return False
