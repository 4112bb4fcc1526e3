"""What helps against what the machine or SQLite did not allow: one sentence for one cause."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from pipelines.runtime.storage import disk
from pipelines.runtime.storage.sqlite import ADVICE, code_of, is_damage

LOOK_AROUND = "look at the path, its permissions and its disk"
"""The advice where the cause is not among those that are told apart."""

_NETWORK = "look at the address, and at the network on the way there"

_OF_SYSTEM: Mapping[int, str] = {
    errno.ENOENT: "make what is missing, or correct the path",
    errno.ENAMETOOLONG: "name a shorter path",
    errno.ELOOP: "correct the links in that path: they lead in a circle",
    errno.ENFILE: "raise the system's limit on open files (sysctl fs.file-max)",
    errno.ENOMEM: "free memory",
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
        'raise the quota on that disk, or remove files that count against it'
    """
    if isinstance(error, UnicodeDecodeError):
        return "save it in UTF-8"
    if isinstance(error, OSError) and (advice := _of_system(error)) is not None:
        return advice
    if isinstance(error, sqlite3.Error):
        return damaged if is_damage(error) else ADVICE.get(code_of(error), otherwise)
    text = str(error)
    if (cause := disk.cause_in(text)) is not None:
        return _of_system(cause) or otherwise
    named = (advice for code, advice in _OF_SYSTEM.items() if os.strerror(code) in text)
    return next(named, otherwise)


def _of_system(error: OSError) -> str | None:
    path = error.filename2 or error.filename
    return disk.advice(error, Path(path) if isinstance(path, str) else None) or _OF_SYSTEM.get(error.errno or 0)
