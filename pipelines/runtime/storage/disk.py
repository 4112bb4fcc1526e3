"""What the disk under a file refuses, and what helps: a full disk, a quota, a limit, a mount without writing (OPS-15).

None of these says anything about what the file holds: who meets one keeps the file as it is, and ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from pipelines.domain.errors import DiskError

_PROBE = 65_536  # bytes: twice what SQLite takes at once, for the index of its write-ahead log
_ADVICE: Mapping[int, str] = MappingProxyType(
    {
        errno.ENOSPC: "free space on {mount}",
        errno.EDQUOT: "raise the quota on {mount}, or remove files that count against it",
        errno.EFBIG: "raise the limit on the size of files (`ulimit -f`)",
        errno.EROFS: "mount {mount} for writing",
        errno.EACCES: "give this user permission to read and write there",
        errno.EPERM: "give this user permission to read and write there",
        errno.EIO: "look into the system's log for what the disk under {mount} reports",
        errno.EMFILE: "raise the limit on open files (`ulimit -n`)",
    }
)


def advice(error: OSError, path: Path | None) -> str | None:
    """What helps against the cause of an error at a path; None where the cause is none of the disk's.

    Args:
        path: None where nobody knows it.

    Examples:
        >>> advice(OSError(errno.EFBIG, "File too large"), Path("state.sqlite"))
        'raise the limit on the size of files (`ulimit -f`)'
    """
    text = _ADVICE.get(error.errno or 0)
    return None if text is None else text.format(mount="that disk" if path is None else _mount_of(path))


def refused(path: Path, error: OSError) -> DiskError:
    """The error that says what the disk refused to do with a file, and what helps."""
    helps = advice(error, path) or "look at the path, its permissions and its disk"
    return DiskError(f"{path}: expected to read and write it, found: {error.strerror or error}; {helps}")


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


def cause_in(text: str, path: Path | None = None) -> OSError | None:
    """The error of the system that the text of a library's error quotes; None where it quotes none of the disk's.

    Examples:
        >>> cause_in("java.io.IOException: No space left on device", Path("segment")).filename
        'segment'
    """
    return next((_error(number, path) for number in _ADVICE if os.strerror(number) in text), None)


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Have an error of the system that leaves the block say which file, and why: libraries leave out either.

    Raises:
        OSError: With the path and a number.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is not None:
            raise
        cause = cause_at(path) if error.errno is None else _error(error.errno, path)
        if cause is None:
            raise
        raise cause from error


def _error(number: int, path: Path | None) -> OSError:
    named = () if path is None else (str(path),)
    return OSError(number, os.strerror(number), *named)


def _mount_of(path: Path) -> Path:
    place = path.resolve()
    while not place.is_mount() and place != place.parent:
        place = place.parent
    return place
