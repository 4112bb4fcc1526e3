"""Files of a run that its hosts give each other through the object store, where that is all that they share (SCL-6).

A task names what it reads that another host may have written, and what it writes that another one may read. What else
belongs to a shard stays on the host that builds it.
"""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from weft.domain.errors import StoreError
from weft.runtime.stages import RunTasks
from weft.runtime.storage.files import canonical, files_below, read_manifest, write_atomically
from weft.runtime.storage.locks import Patience, locked
from weft.runtime.storage.working_copy import GRACE_S, WorkingCopy, working_copy_of

PARTS = "parts"
"""Where the files lie in the object store; and, on each host, notes on which of them it has."""

_RECORD = "sent.json"
_GUEST = "guest"
_WAITING = Patience(stopped_s=60.0, seconds=3600.0)  # for another process here that fetches the same


class Brought(NamedTuple):
    """What a task reads."""

    path: Path
    only: tuple[str, ...] = ()  # what the names of its files begin with, of a folder; none for all of it
    optional: bool = False  # whether nobody may have sent it


@dataclass(frozen=True, slots=True)
class RunFiles:
    """What hosts give each other of one store; each has a working copy of it at the same path."""

    root: Path  # of the store, absolute
    folders: tuple[Path, ...] = ()  # of the run, on every host
    # A folder in which the files of a published generation appear as they are needed, and the name of that
    borrowed: tuple[Path, str] | None = None

    def spread(self, run: RunTasks, hosts: Sequence[str]) -> Callable[[Callable[[Any], Any], Sequence[Any]], Any]:
        """What runs tasks that exchange files: those with a `number` on the host that it says, others on this one."""

        def mapped(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterable[Any]:
            with_files = partial(_with_files, self, function)
            if hosts and all(hasattr(task, "number") for task in tasks):
                return run(with_files, tasks, on=[hosts[task.number % len(hosts)] for task in tasks])
            return run(with_files, tasks, here=True)

        return mapped

    @property
    def copy(self) -> WorkingCopy:
        """The working copy on this host."""
        copy = working_copy_of(self.root)
        if copy is None:
            raise StoreError(f"{self.root}: expected the working copy of an object store, found none: run again")
        return copy

    def enter(self, folder: Path) -> bool:
        """Make a folder of the run here, if another host has it; whether this host is such a guest."""
        guest = self._note(folder) / _GUEST
        if folder.is_dir() and not guest.exists():
            return False
        guest.parent.mkdir(parents=True, exist_ok=True)
        guest.touch()
        folder.mkdir(parents=True, exist_ok=True)
        return True

    def send(self, path: Path) -> None:
        """Send a file, or all files below a folder; what is not there is not sent.

        Each attempt has names of its own, and the record that says which one counts comes last.
        """
        if not path.exists():
            return
        attempt, objects, key = secrets.token_hex(8), self.copy.objects, self._key(path)
        names = [file.relative_to(path).as_posix() for file in files_below(path)] if path.is_dir() else [""]
        self.copy.each(lambda name: objects.put(_data(key, attempt, name), path / name), names)
        record = {"attempt": attempt, "names": names}
        objects.put(f"{key}/{_RECORD}", canonical(record))
        self._keep(path, {**record, "here": names})

    def bring(self, path: Path, only: tuple[str, ...] = (), *, optional: bool = False) -> None:
        """Fetch what another host has sent, unless it is here; see `Brought`.

        Raises:
            StoreError: Nobody has sent it.
        """
        if self.borrowed is not None and path.is_relative_to(self.borrowed[0]):
            self._borrow(*self.borrowed, path)
            return
        note = self._record_of(path)
        with locked(note.with_suffix(".lock"), _WAITING):
            noted = json.loads(note.read_bytes()) if note.exists() else {"attempt": "", "names": [], "here": []}
            if note.exists() and set(_some(noted["names"], only)) <= set(noted["here"]):
                return
            key = self._key(path)
            there = self.copy.objects.get(f"{key}/{_RECORD}")
            if there is None:
                if optional:
                    return
                raise StoreError(f"{self.copy.url}: expected {key} of another host of the run, found none: run again")
            sent = json.loads(there.data)
            if sent["names"] != [""]:
                path.mkdir(parents=True, exist_ok=True)
            here = set(noted["here"]) if noted["attempt"] == sent["attempt"] else set()
            missing = [name for name in _some(sent["names"], only) if name not in here]
            self.copy.each(lambda name: self.copy.fetch(_data(key, sent["attempt"], name), path / name), missing)
            self._keep(path, {**sent, "here": sorted(here | set(missing))})

    def leave(self, folder: Path) -> None:
        """Remove what a run left on this host, of a folder that another host has; the notes on a folder of its own."""
        if (self._note(folder) / _GUEST).exists():
            shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self._note(folder), ignore_errors=True)

    def forget(self, folder: Path) -> None:
        """Remove what was sent of a folder from the object store."""
        self.copy.objects.delete(each.key for each in self.copy.objects.list(f"{self._key(folder)}/"))

    def guests(self) -> set[Path]:
        """Folders of runs of other hosts that are here, and were entered within the grace period."""
        oldest = time.time() - GRACE_S
        notes = [note for note in (self.root / PARTS).rglob(_GUEST) if note.stat().st_mtime >= oldest]
        return {self.root / note.parent.relative_to(self.root / PARTS) for note in notes}

    def _borrow(self, folder: Path, name: str, path: Path) -> None:
        if not folder.is_symlink():  # on the host of the run it is all there
            below = path.relative_to(folder).as_posix()
            self.copy.add(name, folder, lambda file: below in (".", file) or file.startswith(f"{below}/"))
            for file in read_manifest(folder)["files"]:  # which shards there are, folders say
                (folder / file).parent.mkdir(parents=True, exist_ok=True)

    def _key(self, path: Path) -> str:
        return f"{PARTS}/{path.relative_to(self.root).as_posix()}"

    def _note(self, path: Path) -> Path:
        return self.root / PARTS / path.relative_to(self.root)

    def _record_of(self, path: Path) -> Path:
        note = self._note(path)
        return note.with_name(f"{note.name}.json")

    def _keep(self, path: Path, record: object) -> None:
        write_atomically(self._record_of(path), canonical(record))


def _some(names: Iterable[str], only: tuple[str, ...]) -> list[str]:
    return [name for name in names if not only or name.startswith(only)]


def _data(key: str, attempt: str, name: str) -> str:
    return f"{key}/{attempt}/{name}" if name else f"{key}/{attempt}"


def _with_files(run_files: RunFiles, function: Callable[[Any], Any], task: Any) -> Any:
    """A task with what it reads before it, and what it writes after it; running it again sends the same again."""
    for folder in run_files.folders:
        run_files.enter(folder)
    for wanted in getattr(task, "reads", ()):
        run_files.bring(wanted.path, wanted.only, optional=wanted.optional)
    result = function(task)
    for path in getattr(task, "writes", ()):
        run_files.send(path)
    return result
