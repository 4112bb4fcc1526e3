"""What helps against what the machine or SQLite did not allow: one sentence for one cause."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from pipelines.runtime.sqlite import ADVICE, is_damage, primary

LOOK_AROUND = "look at the path, its permissions and its disk"
"""The advice where the cause is not among those that are told apart."""

_PERMISSION = "give this user permission to read and write there"
_SPACE = "free space on that disk"
_MEMORY = "free memory"
_NETWORK = "look at the address, and at the network on the way there"

_OF_SYSTEM: Mapping[int, str] = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: "free space of this user, or have the quota raised",
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f)",
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EROFS: "mount that file system for writing, or name a folder on another",
    errno.ENOENT: "make what is missing, or correct the path",
    errno.ENAMETOOLONG: "name a shorter path",
    errno.ELOOP: "correct the links in that path: they lead in a circle",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "raise the system's limit on open files (sysctl fs.file-max)",
    errno.ENOMEM: _MEMORY,
    errno.EIO: "look at that disk, which fails: `dmesg` says how",
    errno.ESTALE: "mount that file system again",
    errno.EPIPE: "read its output to the end",
    errno.EADDRINUSE: "use what listens there, or another port",
    errno.ECONNREFUSED: "start what is to listen there, or correct the address",
    errno.EHOSTUNREACH: _NETWORK,
    errno.ENETUNREACH: _NETWORK,
    errno.ETIMEDOUT: _NETWORK,
}


def advice_on(error: BaseException, *, damaged: str = LOOK_AROUND, otherwise: str = LOOK_AROUND) -> str:
    """One thing that helps, by the code of an error, or by the system's own words for it in its text.

    Args:
        damaged: What helps where SQLite's file is damaged.
        otherwise: What helps against anything else.

    Examples:
        >>> advice_on(OSError(28, "No space left on device"))
        'free space on that disk'
        >>> advice_on(ValueError("IO Error: could not write: Disk quota exceeded"))
        'free space of this user, or have the quota raised'
    """
    if isinstance(error, UnicodeDecodeError):
        return "save it in UTF-8"
    if isinstance(error, OSError) and (advice := _OF_SYSTEM.get(error.errno or 0)) is not None:
        return advice
    if (code := getattr(error, "sqlite_errorcode", None)) is not None:
        return damaged if is_damage(code) else ADVICE.get(primary(code), otherwise)
    text = str(error)
    named = (advice for code, advice in _OF_SYSTEM.items() if os.strerror(code) in text)
    return next(named, otherwise)
