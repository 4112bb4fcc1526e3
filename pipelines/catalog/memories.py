"""Memories of suspended sessions: written when one is suspended, read when it is resumed (LRN-15)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pipelines.catalog.bases import FOLDER
from pipelines.domain.ids import SessionId
from pipelines.domain.sessions import SessionMemory
from pipelines.runtime.storage.files import write_atomically


class MemoryStore:
    """One file per session, named by a hash: session ids come from outside and never become part of a path."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER / "memories"

    def write(self, session_id: SessionId, memory: SessionMemory) -> None:
        """Keep a session's memory, durably."""
        write_atomically(self._path(session_id), memory.to_json().encode())

    def read(self, session_id: SessionId) -> SessionMemory:
        """Exactly what was kept last; an empty memory where nothing was.

        Raises:
            CorruptionError: The file is not what was written.
        """
        try:
            return SessionMemory.from_json(self._path(session_id).read_bytes())
        except FileNotFoundError:
            return SessionMemory()

    def forget(self, session_id: SessionId) -> None:
        """Remove what a session that has ended left."""
        self._path(session_id).unlink(missing_ok=True)

    def _path(self, session_id: SessionId) -> Path:
        return self._folder / f"{hashlib.sha256(session_id.encode()).hexdigest()}.json"
