"""Hosts of one store in an object store: each is a working copy of its own."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from weft.runtime.storage.working_copy import make_working_copy

Host = Callable[[str], Path]


def memory_url() -> str:
    """An empty object store in the memory of this process."""
    return f"memory://{secrets.token_hex(8)}"


def hosts_of(url: str, below: Path) -> Host:
    """The folder to work in on the host of a name."""

    def host(name: str) -> Path:
        folder = below / name
        make_working_copy(folder, url)
        return folder

    return host
