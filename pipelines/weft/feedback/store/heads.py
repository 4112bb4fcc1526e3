"""Who owns a partition of a store that lies in an object store, and from where another host goes on (SCL-14).

The head of a partition is one small table, replaced by compare-and-set alone: it names the owner with its epoch, the
newest snapshot and the newest checkpoints. An updater that lost its partition finds another epoch there, and ends. The
order of taking over is the argument that no host works on what another one left behind:

1. a state that lies here, though another host owned the partition last, is removed;
2. the epoch is raised, and this host is the owner;
3. where there is no state, that of the newest checkpoint takes its place; what came later is replayed from the log.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from weft.domain.errors import FencedError, StoreError
from weft.feedback.store.report import PartitionReport
from weft.feedback.store.state import STATE_FILE, PartitionState
from weft.runtime.storage.files import sha256_of
from weft.runtime.storage.locks import Patience, locked
from weft.runtime.storage.working_copy import HEAD, WorkingCopy, working_copy_of

_COPIES = 2  # checkpoints kept, as on a disk
_PATIENCE = Patience(stopped_s=5.0, seconds=60.0)  # for another process that fetches the same checkpoint
_STATES, _VIEWED, _OWNED, _SHOWING = "states", "viewed", "owned", ".showing"


@dataclass(frozen=True, slots=True)
class PartitionHead:
    """What an object store knows of a partition."""

    epoch: int = 0
    owner: str = ""  # the working copy in which the partition's state lies
    offset: int = 0  # of the first record that is not in the snapshot
    files: Mapping[str, tuple[str, str]] | None = None  # of the snapshot: key and SHA-256 by name
    former: Sequence[str] = ()  # keys of the snapshot before: somebody may be reading it
    checkpoints: Sequence[str] = ()  # newest first


def take_over(folder: Path) -> int | None:
    """Make this host the owner of a partition, with a state to go on from; its epoch. None in a folder of its own."""
    copy = _copy_of(folder)
    if copy is None:
        return None

    def owned(now: PartitionHead) -> PartitionHead:
        if now.owner != copy.id:
            _remove_state(folder)
        return replace(now, epoch=now.epoch + 1, owner=copy.id)

    with locked(folder / _SHOWING, _PATIENCE):  # whoever only looks leaves what is owned from here on
        raised = _moved(copy, folder, owned)
        if not (folder / STATE_FILE).exists():
            _bring_state(copy, folder, raised)
        (folder / _OWNED).write_text(str(raised.epoch), encoding="utf-8")
    return raised.epoch


def show(folder: Path) -> None:
    """Have a partition that another host owns lie here as it was at its newest checkpoint, to be looked at."""
    copy, viewed = _copy_of(folder), folder / _VIEWED
    if copy is None or not _is_elsewhere(copy, read_head(folder)):
        return
    with locked(folder / _SHOWING, _PATIENCE):
        head, owned = read_head(folder), folder / _OWNED
        # It may have been taken over here meanwhile; and what is known of a head may be older than what is owned.
        if not _is_elsewhere(copy, head) or (owned.exists() and int(owned.read_text()) >= head.epoch):
            return
        if not viewed.exists() or viewed.read_text(encoding="utf-8") != head.checkpoints[0]:
            _bring_state(copy, folder, head)
            viewed.write_text(head.checkpoints[0], encoding="utf-8")


def _is_elsewhere(copy: WorkingCopy, head: PartitionHead) -> bool:
    return head.owner not in {"", copy.id} and bool(head.checkpoints)


def publish_files(state: PartitionState, report: PartitionReport, names: Sequence[str]) -> None:
    """Send a snapshot, the file last that names the others.

    Raises:
        FencedError: Another host took the partition; its snapshot stands.
    """
    copy = _copy_of(state.folder)
    if copy is None:
        return
    at = f"updaters/{state.partition}/snapshots/{report.next_offset:020d}-{report.epoch}"
    files = {name: (f"{at}/{name}", sha256_of(state.folder / name)) for name in names if name}
    for name, (key, _) in files.items():
        copy.objects.put(key, state.folder / name)

    def named(now: PartitionHead) -> PartitionHead:
        _require_owner(copy, now, report)
        former = [key for key, _ in (now.files or {}).values()]
        return replace(now, offset=report.next_offset, files=files, former=former)

    before = read_head(state.folder)
    _moved(copy, state.folder, named)
    copy.objects.delete(set(before.former) - {key for key, _ in files.values()})


def publish_checkpoint(state: PartitionState, report: PartitionReport, checkpoint: Path) -> None:
    """Send a checkpoint; of older ones one stays. Errors as in `publish_files`."""
    copy = _copy_of(state.folder)
    if copy is None:
        return
    name = f"{_states_of(state.folder)}/{checkpoint.name}-{report.epoch}"
    copy.publish(name, checkpoint)
    dropped: list[str] = []

    def named(now: PartitionHead) -> PartitionHead:
        _require_owner(copy, now, report)
        others = [each for each in now.checkpoints if each != name]
        dropped[:] = others[_COPIES - 1 :]
        return replace(now, checkpoints=[name, *others[: _COPIES - 1]])

    _moved(copy, state.folder, named)
    for each in dropped:
        copy.remove(each)


def is_shared(folder: Path) -> bool:
    """Whether the partition may go on from another host."""
    return _copy_of(folder) is not None


def is_behind(folder: Path, offset: int) -> bool:
    """Whether what was published of a partition reaches further than `offset`, as it does while a host catches up."""
    return offset < read_head(folder).offset


def read_head(folder: Path) -> PartitionHead:
    """The head of a partition as it is known here; that of nobody where there is none."""
    path = folder / HEAD
    return _parsed(path.read_bytes() if path.exists() else None)


def _moved(copy: WorkingCopy, folder: Path, change: Callable[[PartitionHead], PartitionHead]) -> PartitionHead:
    name = (folder / HEAD).absolute().relative_to(copy.root).as_posix()
    return _parsed(copy.update(name, lambda data: json.dumps(asdict(change(_parsed(data)))).encode()))


def _parsed(data: bytes | None) -> PartitionHead:
    return PartitionHead() if data is None else PartitionHead(**json.loads(data))


def _require_owner(copy: WorkingCopy, head: PartitionHead, report: PartitionReport) -> None:
    if (head.owner, head.epoch) != (copy.id, report.epoch):
        raise FencedError(
            f"{copy.url}: expected epoch {report.epoch} of partition {report.partition}, found {head.epoch}: an "
            "updater on another host took it; stop this one"
        )


def _bring_state(copy: WorkingCopy, folder: Path, head: PartitionHead) -> None:
    """Put the newest checkpoint that can be had in the place of a state; without any, the log begins anew."""
    for number, name in enumerate(head.checkpoints):
        shutil.rmtree(folder / _STATES, ignore_errors=True)
        try:
            brought = copy.bring(name)
            _remove_state(folder)
            brought.joinpath(STATE_FILE).replace(folder / STATE_FILE)
        except (StoreError, OSError):
            if number + 1 == len(head.checkpoints):
                raise
            continue
        shutil.rmtree(folder / _STATES, ignore_errors=True)
        return


def _remove_state(folder: Path) -> None:
    for path in folder.glob(f"{STATE_FILE}*"):
        path.unlink()
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    for name in (_VIEWED, _OWNED):
        (folder / name).unlink(missing_ok=True)


def _states_of(folder: Path) -> str:
    return f"updaters/{folder.name}/{_STATES}"


def _copy_of(folder: Path) -> WorkingCopy | None:
    return working_copy_of(folder.absolute().parents[1])
