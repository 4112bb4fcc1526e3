"""The live pointer: one small file that names the generation and the learned version in force."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from weft.catalog.store_id import ensure_store_id
from weft.domain.errors import CorruptionError
from weft.domain.ids import GenerationId, VersionName
from weft.runtime.storage.working_copy import POINTER, replace_table, working_copy_of

POINTER_FILE = POINTER
_LOCK_FILE = ".catalog.lock"


@dataclass(frozen=True, slots=True)
class Pointer:
    """What is live."""

    generation: GenerationId | None = None
    learned: VersionName | None = None
    sequence: int = 0  # how often the pointer was moved; grows by 1 each time
    previous: GenerationId | None = None  # the generation that was live before, to fall back to
    # the newest learned version that was ever live: what was streamed up to its cut is settled, in or out; what
    # came later counts, whether or not a newer version waits for its verdict
    decided: VersionName | None = None


_POINTER = TypeAdapter(Pointer)


class PointerFile:
    """Reads and moves the pointer of one store; writers of all processes take turns."""

    def __init__(self, root: Path) -> None:
        self.path = root / POINTER_FILE
        self._root = root
        self._copy = working_copy_of(root)
        self._lock = root / _LOCK_FILE

    def read(self) -> Pointer:
        """What is live now; an empty pointer in a new store."""
        if self._copy is not None:
            self._copy.follow()
        try:
            return self._parsed(self.path.read_bytes())
        except FileNotFoundError:
            return Pointer()

    def _parsed(self, data: bytes | None) -> Pointer:
        try:
            return Pointer() if data is None else _POINTER.validate_json(data)
        except ValidationError as error:
            raise CorruptionError(
                f"{self.path}: expected the live pointer, found: {error}; remove it and make a generation live with "
                "`weft generations rollback`"
            ) from error

    def move(self, change: Callable[[Pointer], Pointer]) -> Pointer:
        """Replace the pointer by what `change` makes of the one in force, in one step and one writer at a time."""
        with self.writing():
            return self.replace(change)

    def replace(self, change: Callable[[Pointer], Pointer]) -> Pointer:
        """The same, for a caller that holds `writing`; `change` may be called again, and refuse by what it raises."""
        ensure_store_id(self._root)

        def moved(data: bytes | None) -> bytes:
            before = self._parsed(data)
            after = replace(change(before), sequence=before.sequence + 1)
            return json.dumps(asdict(after), sort_keys=True).encode() + b"\n"

        return self._parsed(replace_table(self._root, POINTER_FILE, moved))

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the store's writer lock; the system lets go of it when the process dies."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
