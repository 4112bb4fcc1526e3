"""What the disk under a file, the system or SQLite refused, and what helps: one sentence for one cause (OPS-15).

Few errors of SQLite speak of what a file holds. All others speak of the place: a full disk, a quota, a lock, a
permission. Whoever takes one of those for damage gives up an intact file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from weft.domain.errors import DiskError, StoreError

LOOK_AROUND = "look at the path, its permissions and its disk"
"""The advice where the cause is not among those that are told apart."""

_PROBE = 65_536  # bytes: twice what SQLite takes at once, for the index of its write-ahead log
_PERMISSION = "give this user permission to read and write there"
_WAIT = "wait for the process that holds it, or end that process"
_NETWORK = "look at the address, and at the network on the way there"
_OF_DISK = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS),
    *(errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE),
)
_ADVICE: Mapping[str, str] = {
    "ENOSPC": "free space on {mount}",
    "EDQUOT": "raise the quota on {mount}, or remove files that count against it",
    "EFBIG": "raise the limit on the size of files (`ulimit -f`)",
    "EROFS": "mount {mount} for writing",
    "EACCES": _PERMISSION,
    "EPERM": _PERMISSION,
    "EIO": "look into the system's log for what the disk under {mount} reports",
    "EMFILE": "raise the limit on open files (`ulimit -n`)",
    "ENOENT": "make what is missing, or correct the path",
    "ENAMETOOLONG": "name a shorter path",
    "ELOOP": "correct the links in that path: they lead in a circle",
    "ENFILE": "raise the system's limit on open files (sysctl fs.file-max)",
    "ENOMEM": "free memory",
    "ESTALE": "mount that file system again",
    "EPIPE": "read its output to the end",
    "EADDRINUSE": "use what listens there, or another port",
    "ECONNREFUSED": "start what is to listen there, or correct the address",
    "EHOSTUNREACH": _NETWORK,
    "ENETUNREACH": _NETWORK,
    "ETIMEDOUT": _NETWORK,
    "SQLITE_FULL": "free space on {mount}",
    "SQLITE_READONLY": "give this user permission to write the file and its folder",
    "SQLITE_PERM": _PERMISSION,
    "SQLITE_CANTOPEN": "let this user read and write there; make its folder where that is missing",
    "SQLITE_BUSY": _WAIT,
    "SQLITE_LOCKED": _WAIT,
    "SQLITE_IOERR": "look at that disk: it is full, beyond a quota, or fails",
    "SQLITE_NOMEM": "free memory",
}
_ERRNOS = {getattr(errno, name): name for name in _ADVICE if not name.startswith("SQLITE")}
_SQLITE = {getattr(sqlite3, name): name for name in _ADVICE if name.startswith("SQLITE")}

_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""Pages, the header, and names in the schema that statements no longer find."""
_UNEXPLAINED = frozenset(
    {
        *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
        *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOLFS),
    }
)
"""Codes for which SQLite keeps the system's reason to itself."""


def advice_on(error: BaseException, *, damaged: str = LOOK_AROUND, otherwise: str = LOOK_AROUND) -> str:
    """One thing that helps, by the code of an error, or by the system's own words for it in its text.

    Examples:
        >>> advice_on(OSError(28, "No space left on device"))
        'free space on that disk'
        >>> advice_on(ValueError("IO Error: could not write: Disk quota exceeded"))
        'raise the quota on that disk, or remove files that count against it'
    """
    if isinstance(error, UnicodeDecodeError):
        return "save it in UTF-8"
    if isinstance(error, sqlite3.Error):
        return damaged if is_damage(error) else _advice(_SQLITE.get(code_of(error))) or otherwise
    if isinstance(error, OSError) and error.errno in _ERRNOS:
        path = error.filename2 or error.filename
        return _advice(_ERRNOS[error.errno], Path(path) if isinstance(path, str) else None) or otherwise
    named = (name for number, name in _ERRNOS.items() if os.strerror(number) in str(error))
    return _advice(next(named, None)) or otherwise


def refused(path: Path, error: OSError | sqlite3.Error) -> StoreError:
    """What to raise for an error that is no damage: the cause in the system's words, and what helps."""
    if isinstance(error, sqlite3.Error):
        return _refused_by_sqlite(path, error)
    helps = _advice(_ERRNOS[error.errno], path) if error.errno in _OF_DISK else LOOK_AROUND
    return DiskError(f"{path}: expected to read and write it, found: {error.strerror or error}; {helps}")


def _refused_by_sqlite(path: Path, error: sqlite3.Error) -> StoreError:
    code = code_of(error)
    if code == sqlite3.SQLITE_FULL:
        return refused(path, _error(errno.ENOSPC, path))
    if code in _UNEXPLAINED and (cause := cause_at(path)) is not None:
        return refused(path, cause)
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreError(f"{path}: expected its lock, found it held by another process; {_WAIT}")
    kind = DiskError if code in _UNEXPLAINED else StoreError
    advice = _advice(_SQLITE.get(code), path) or "look at what the log says before"
    named = getattr(error, "sqlite_errorname", "no code")
    return kind(f"{path}: expected SQLite to read and write it, found: {error} ({named}); {advice}")


def refusal_behind(path: Path, error: BaseException) -> StoreError | None:
    """What the disk under a database refused, where an error of a library began with that; None where it did not."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, sqlite3.Error) and not is_damage(cause):
            return refused(path, cause)
        if isinstance(cause, OSError) and cause.errno in _OF_DISK:
            return refused(Path(cause.filename or path), cause)
        cause = cause.__cause__ or cause.__context__
    return None


def code_of(error: sqlite3.Error) -> int:
    """Primary result code, without what SQLite adds to tell its variants apart; 0 where Python raised it by itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error says that a file does not hold what was written into it."""
    # Python itself raises an operational error without a code where a text is no UTF-8.
    return code_of(error) in _DAMAGE or (type(error) is sqlite3.OperationalError and code_of(error) == 0)


def cause_at(path: Path) -> OSError | None:
    """What keeps a file from growing now, asked by writing beside it for a moment; None where nothing does."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        longest = max((each.stat().st_size for each in path.parent.glob(f"{path.name}*")), default=0)
        if limit != resource.RLIM_INFINITY and longest + _PROBE > limit:
            return _error(errno.EFBIG, path)
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(bytes(_PROBE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return _error(error.errno or errno.EIO, path)
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return _error(errno.EACCES, path)
    return None


def cause_in(text: str, path: Path) -> OSError | None:
    """The disk's error that the text of a library's error quotes; None where it quotes none."""
    return next((_error(number, path) for number in _OF_DISK if os.strerror(number) in text), None)


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Have an OSError that leaves the block carry path and number: libraries leave out either."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is not None:
            raise
        cause = cause_at(path) if error.errno is None else _error(error.errno, path)
        if cause is None:
            raise
        raise cause from error


def _advice(name: str | None, path: Path | None = None) -> str | None:
    text = _ADVICE.get(name or "")
    return None if text is None else text.format(mount="that disk" if path is None else _mount_of(path))


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


def _mount_of(path: Path) -> Path:
    place = Path(os.path.realpath(path))
    while not os.path.ismount(place) and place != place.parent:
        place = place.parent
    return place
