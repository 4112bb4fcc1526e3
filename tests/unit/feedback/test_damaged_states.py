"""OPS-15, ARC-3: what is set aside as damaged stays until a person removes it, and a full disk sets nothing aside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.feedback_events import RULES, explicit, impression, records, session
from tests.support.feedback_source import FakeLog, FakeSource
from tests.support.small_disk import small_disk
from weft.cli.main import main
from weft.domain.errors import CorruptionError, DiskError
from weft.feedback.run.partitions import partition_folder
from weft.feedback.run.updater import Updater
from weft.feedback.store.checkpoints import MOST_DAMAGED, checkpoints_in, write_checkpoint

LOG = FakeLog.of(records([session(), impression(), explicit()]))


def read_all(store: Path) -> int:
    """Open an updater and read to the end; how many events the state has applied."""
    updater = Updater.open(FakeSource(LOG), store, [0], RULES)
    while updater.step(0.0):
        pass
    (found,) = updater.progress()
    updater.close()
    assert found.report.balanced
    return found.report.applied


def damage(store: Path, text: bytes) -> None:
    (partition_folder(store, 0) / "state.sqlite").write_bytes(text * 1_000)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_damaged_state_is_set_aside_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """OPS-15: no later run touches any of them."""
    applied, aside = read_all(tmp_path), partition_folder(tmp_path, 0) / "damaged"
    expected: dict[str, bytes] = {}
    for number, text in enumerate((b"first", b"second"), start=1):
        damage(tmp_path, text)
        assert read_all(tmp_path) == applied
        expected[f"{number:04d}/state.sqlite"] = text * 1_000
        assert read_all(tmp_path) == applied
        assert contents(aside) == expected


def test_too_many_damaged_states_end_the_updater_until_a_person_removes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-15: the message names the command, which says what there is and removes it; the next run restores."""
    applied, folder = read_all(tmp_path), partition_folder(tmp_path, 0)
    for number in range(MOST_DAMAGED):
        damage(tmp_path, b"%d" % number)
        read_all(tmp_path)
    damage(tmp_path, b"one more")
    before = contents(folder)
    for _ in range(2):
        with pytest.raises(CorruptionError, match=r"4 damaged states in .*`weft feedback damaged remove 0`"):
            read_all(tmp_path)
    assert contents(folder) == before
    assert main(["feedback", "damaged", "list", "--json", "--store", str(tmp_path)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["partition"], Path(row["folder"]).name, row["bytes"]) for row in rows] == [
        (0, f"{number:04d}", 1_000) for number in range(1, 5)
    ]
    assert main(["feedback", "damaged", "remove", "0", "--store", str(tmp_path)]) == 0
    assert read_all(tmp_path) == applied
    assert sorted(path.name for path in (folder / "damaged").iterdir()) == ["0001"]
    assert main(["feedback", "damaged", "remove", "7", "--store", str(tmp_path)]) == 1
    assert "expected damaged states of partition 7, found none" in capsys.readouterr().err


def test_a_damaged_state_stays_where_it_is_while_there_is_no_room_for_its_copy(tmp_path: Path) -> None:
    """ARC-3: nothing moves before the copy is whole; with room the next run restores."""
    with small_disk(tmp_path / "disk", mib=4) as disk:
        store = disk.path / "store"
        applied, folder = read_all(store), partition_folder(disk.path / "store", 0)
        damage(store, b"damaged")
        before = contents(folder)
        disk.fill(left_kib=4)
        with pytest.raises(OSError, match=r"No space left on device: '.*\.staged'"):
            read_all(store)
        assert contents(folder) == before
        disk.free()
        assert read_all(store) == applied
        assert contents(folder / "damaged") == {"0001/state.sqlite": before["state.sqlite"]}


def test_a_checkpoint_without_room_leaves_the_older_ones(tmp_path: Path) -> None:
    """ARC-3: and nothing half written, which would take the room that commits need."""
    with small_disk(tmp_path / "disk", mib=4) as disk:
        updater = Updater.open(FakeSource(LOG), disk.path, [0], RULES)
        while updater.step(0.0):
            pass
        copies = partition_folder(disk.path, 0) / "checkpoints"
        before = contents(copies)
        disk.fill(left_kib=64)
        with pytest.raises(DiskError, match=rf"\.staged/state\.sqlite: .*No space left on device; free .* {disk.path}"):
            write_checkpoint(updater._states[0])
        assert contents(copies) == before
        assert disk.room_kib() == 64
        disk.free()
        assert write_checkpoint(updater._states[0]) in checkpoints_in(copies.parent)
        updater.close()
