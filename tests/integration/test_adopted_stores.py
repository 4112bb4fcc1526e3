"""A night that takes over what another store learned, on a real catalog and a real SQLite-backed MLflow."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.consolidating import (
    FIRST_DAY,
    NIGHT,
    SECOND_DAY,
    THIRD_DAY,
    TRACKING,
    Killed,
    go,
    killed,
    move_alias_in_the_ui,
)
from tests.support.nights import stream
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.cli.commands.consolidate import consolidate as consolidate_job
from weft.cli.console.options import run_job
from weft.consolidation.candidate import ADOPTED, Adopted, learned_by
from weft.consolidation.champion import (
    follow_champion,
)
from weft.consolidation.night import Night
from weft.domain.errors import StoreError


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of another topic, which learned on the first day and streamed on the second."""
    root = tmp_path_factory.mktemp("elsewhere")
    stream(root, 0, FIRST_DAY)
    catalog = Catalog(root)
    state = LearnedState(parent=None, evidence=FIRST_DAY, cut=FIRST_DAY)
    catalog.make_live(catalog.learned.publish(state, expected_newest=None))
    stream(root, 0, FIRST_DAY + SECOND_DAY)
    return root


def taken_over(elsewhere: Path) -> Adopted:
    return learned_by(str(elsewhere), Catalog(elsewhere))


def test_what_another_store_learned_joins_what_is_learned_here(root: Path, night: Night, elsewhere: Path) -> None:
    """CON-9, ARC-8: integer for integer, once, told with the version, and taken out again by the alias."""
    stream(root, 0, THIRD_DAY)
    first = go(night)["learned"]
    second = go(night, adopted=taken_over(elsewhere))["learned"]
    assert night.catalog.learned.read(second).evidence == FIRST_DAY + SECOND_DAY + THIRD_DAY
    assert night.catalog.live.evidence() == FIRST_DAY + SECOND_DAY + THIRD_DAY
    assert night.catalog.learned.manifest(second).provenance[ADOPTED]["store"] == str(elsewhere)
    with pytest.raises(StoreError, match=f"found that of {elsewhere} in learned version {second}"):
        go(night, adopted=taken_over(elsewhere))
    stream(root, 0, THIRD_DAY + THIRD_DAY)
    assert night.catalog.live.evidence() == FIRST_DAY + SECOND_DAY + THIRD_DAY + THIRD_DAY
    move_alias_in_the_ui(night, first)
    follow_champion(night.catalog, night.tracking)
    assert night.catalog.live.evidence() == THIRD_DAY + THIRD_DAY
    again = go(night, adopted=taken_over(elsewhere))["learned"]
    assert night.catalog.learned.read(again).evidence == FIRST_DAY + SECOND_DAY + THIRD_DAY + THIRD_DAY


def test_a_store_whose_updaters_are_gone_gives_what_its_live_version_holds(elsewhere: Path) -> None:
    """CON-9: what was folded into it; without them the difference of sums would take even that away."""
    shutil.rmtree(elsewhere / "updaters")
    assert Catalog(elsewhere).live.evidence().is_empty
    assert taken_over(elsewhere).evidence == FIRST_DAY


@pytest.mark.parametrize(
    "killed_before", [pytest.param(f"{TRACKING}.register", marks=pytest.mark.slow), f"{NIGHT}.settle"]
)
def test_taking_over_that_was_killed_is_finished_and_not_done_twice(
    root: Path, night: Night, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, killed_before: str
) -> None:
    """CON-9: the same command once more leaves one version, live, in which everything counts once."""
    stream(root, 0, THIRD_DAY)
    with monkeypatch.context() as patch:
        patch.setattr(killed_before, killed)
        with pytest.raises(Killed):
            go(night, adopted=taken_over(elsewhere))
    summary = go(night, adopted=taken_over(elsewhere))
    assert [summary["learned"]] == night.catalog.learned.versions()
    assert summary["learned"] == night.catalog.pointer().learned
    assert night.catalog.live.evidence() == FIRST_DAY + SECOND_DAY + THIRD_DAY


@pytest.mark.slow
def test_taking_over_comes_after_a_killed_night(
    root: Path, night: Night, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CON-9: what the killed one left is finished first, as a version of its own."""
    stream(root, 0, THIRD_DAY)
    with monkeypatch.context() as patch:
        patch.setattr(f"{NIGHT}.settle", killed)
        with pytest.raises(Killed):
            go(night)
    second = go(night, adopted=taken_over(elsewhere))["learned"]
    first, newest = night.catalog.learned.versions()
    assert (second, night.catalog.learned.manifest(second).parent) == (newest, first)
    assert night.catalog.learned.read(first).evidence == THIRD_DAY
    assert night.catalog.live.evidence() == FIRST_DAY + SECOND_DAY + THIRD_DAY


def test_a_store_of_the_same_topic_is_refused(root: Path, night: Night, elsewhere: Path) -> None:
    """FBK-5: what the topic still holds is read by the updaters here, and would count twice."""
    for store, day in ((root, THIRD_DAY), (elsewhere, FIRST_DAY)):
        path = store / "updaters" / "0" / "evidence.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(day.to_table().replace_schema_metadata({"weft.topic_id": "one"}), path)
    with pytest.raises(StoreError, match="expected a store of another topic"):
        go(night, adopted=taken_over(elsewhere))
    assert night.catalog.learned.versions() == []


def test_a_store_that_is_not_there_is_no_quiet_night(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CON-9: a name mistyped for cron would end well, night after night, and nothing would be learned."""
    mistyped = tmp_path / "stroe"
    assert run_job(consolidate_job, ["--store", str(mistyped)]) == 1
    assert f"expected a store in {mistyped}, found no such folder" in capsys.readouterr().err
    assert not mistyped.exists()


def test_what_cannot_be_taken_over_is_refused(root: Path, elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CON-9: the store itself, and one that has learned nothing; nothing is made in their place."""
    assert run_job(consolidate_job, ["--store", str(root), "--adopt", str(root)]) == 2
    nothing = root / "nothing"
    assert run_job(consolidate_job, ["--store", str(root), "--adopt", str(nothing)]) == 1
    assert f"expected a store that has learned something, found none in {nothing}" in capsys.readouterr().err
    assert not nothing.exists()
