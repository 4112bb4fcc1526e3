"""ARC-3, FBK-4: copies of a partition's state are made by its owner alone."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tests.support.feedback_events import RULES, explicit, impression, records, session
from tests.support.feedback_source import FakeLog, FakeSource
from tests.support.folded_evidence import digest_of_stores
from weft.domain.errors import FencedError
from weft.feedback.run.partitions import partition_folder
from weft.feedback.run.updater import Updater
from weft.feedback.store.checkpoints import checkpoints_in, write_checkpoint
from weft.runtime.storage.files import read_manifest, verify_files

LOG = FakeLog.of(records([session(), impression(), explicit()]))


def opened(store: Path) -> Updater:
    return Updater.open(FakeSource(LOG), store, [0], RULES)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_fenced_updater_neither_writes_nor_deletes_a_copy(tmp_path: Path) -> None:
    """FBK-4: it may have woken while the new owner writes one of its own."""
    first = opened(tmp_path)
    write_checkpoint(first._states[0])
    second = opened(tmp_path)
    second.step(0.0)
    write_checkpoint(second._states[0])
    copies = partition_folder(tmp_path, 0) / "checkpoints"
    (copies / ".staged").mkdir()
    (copies / ".staged" / "half").write_bytes(b"of the new owner's")
    before = contents(copies)
    with pytest.raises(FencedError, match="another updater took partition 0"):
        write_checkpoint(first._states[0])
    assert contents(copies) == before


def test_two_that_copy_at_once_leave_whole_copies(tmp_path: Path) -> None:
    """ARC-3, FBK-4: a woken updater and its heir, in thirty stores; one would seal what the other has half written."""

    def inherit(store: Path, together: Barrier) -> None:
        heir = opened(store)
        heir.step(0.0)
        shutil.rmtree(partition_folder(store, 0) / "checkpoints")
        together.wait(30)
        sealed = write_checkpoint(heir._states[0])
        heir.close()
        verify_files(sealed, read_manifest(sealed)["files"])
        assert digest_of_stores([sealed]) == digest_of_stores([sealed.parent.parent])
        assert list(sealed.parent.iterdir()) == [sealed]

    with ThreadPoolExecutor(1) as beside:
        for store in [tmp_path / str(number) for number in range(30)]:
            woken, together = opened(store), Barrier(2)
            heir = beside.submit(inherit, store, together)
            together.wait(30)
            with pytest.raises(FencedError):
                write_checkpoint(woken._states[0])
            heir.result()
            woken.close()


def test_what_a_killed_updater_left_half_written_is_removed(tmp_path: Path) -> None:
    """ARC-3: by the next copy, so that a partition's folder does not grow with every kill."""
    updater = opened(tmp_path)
    updater.step(0.0)
    copies = partition_folder(tmp_path, 0) / "checkpoints"
    for left in (".staged", ".staged-7"):
        (copies / left).mkdir()
        (copies / left / "state.db").write_bytes(b"half")
    written = write_checkpoint(updater._states[0])
    assert written in checkpoints_in(copies.parent)
    assert set(copies.iterdir()) == set(checkpoints_in(copies.parent))
