from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.generations import publish
from weft.catalog.catalog import Catalog
from weft.catalog.store_id import STORE_FILE, StoreGuard
from weft.domain.errors import CorruptionError, StoreError
from weft.domain.ids import StoreId


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "disk" / "store")


def nowhere(_: Callable[[], None]) -> None:
    """One host alone."""


def on_a_host_without_the_disk(disk: Path) -> Callable[[Callable[[], None]], None]:
    def run(check: Callable[[], None]) -> None:
        away = disk.rename(disk.with_name("away"))
        try:
            check()
        finally:
            away.rename(disk)

    return run


def test_a_store_keeps_the_id_that_it_was_made_with(catalog: Catalog) -> None:
    """SCL-1: written when the store is made, and the same after every later write."""
    made = catalog.claim(nowhere)
    publish(catalog, "g1")
    assert made == StoreGuard(catalog.root, catalog.store_id()) == catalog.claim(nowhere)
    assert json.loads((catalog.root / STORE_FILE).read_text()) == {"id": made.id}
    assert Catalog(catalog.root.with_name("other")).claim(nowhere).id != made.id


def test_a_store_without_an_id_gets_one_as_it_is_written_next(catalog: Catalog) -> None:
    """SCL-1: stores are older than ids; whoever only reads one leaves it as it is."""
    publish(catalog, "g1")
    (catalog.root / STORE_FILE).unlink()
    catalog.require(catalog.store_id())
    assert not (catalog.root / STORE_FILE).exists()
    publish(catalog, "g2")
    catalog.require(catalog.store_id())
    assert catalog.store_id()


def test_what_was_read_before_a_store_got_its_id_stays_readable(catalog: Catalog) -> None:
    """SCL-1: searches go on while the first run of a newer version writes."""
    catalog.root.mkdir(parents=True)
    before = catalog.store_id()
    catalog.claim(nowhere)
    catalog.require(before)


def test_another_store_at_the_path_is_refused(catalog: Catalog) -> None:
    """SCL-1: the message names the host, the path, what was expected and what is there."""
    expected = StoreId("0" * 32)
    found = catalog.claim(nowhere).id
    with pytest.raises(StoreError) as refused:
        catalog.require(expected)
    said = str(refused.value)
    assert said.startswith(
        f"{catalog.root} on host {socket.gethostname()}: expected the store {expected}, found {found}"
    )


@pytest.mark.parametrize("store", [StoreId("0" * 32), None])
def test_no_store_at_the_path_is_refused(catalog: Catalog, store: StoreId | None) -> None:
    """SCL-1: nor is a host of use to a reader that has no folder there."""
    with pytest.raises(StoreError, match="found none: put it on a file system that all hosts share"):
        catalog.require(store)
    assert not catalog.root.exists()


def test_a_copy_of_the_store_is_not_where_a_run_writes(catalog: Catalog) -> None:
    """SCL-1: it has the same id, and lacks what the run has made in the store since."""
    guard = catalog.claim(nowhere)
    copy = Path(shutil.copytree(catalog.root, catalog.root.with_name("copy")))
    made = catalog.stage()
    replace(guard, made=made)()
    replace(guard, root=copy)()
    with pytest.raises(StoreError, match=f"found no {made.name} in it"):
        replace(guard, root=copy, made=copy / made.relative_to(catalog.root))()


@pytest.mark.parametrize("is_there", [False, True])
def test_a_store_that_another_host_does_not_see_stays_as_it_was(catalog: Catalog, is_there: bool) -> None:
    """SCL-1: no folder is made for it, and one that is there gets no file."""
    disk = catalog.root.parent
    disk.mkdir()
    if is_there:
        catalog.root.mkdir()
    before = sorted(disk.rglob("*"))
    with pytest.raises(StoreError, match=f"{catalog.root} on host"):
        catalog.claim(on_a_host_without_the_disk(disk))
    assert sorted(disk.rglob("*")) == before


def test_a_damaged_id_is_named(catalog: Catalog) -> None:
    """OPS-15: whoever reads the message knows what to remove, and when."""
    catalog.claim(nowhere)
    (catalog.root / STORE_FILE).write_text("{}")
    with pytest.raises(
        CorruptionError, match=rf"{STORE_FILE}: expected the id of a store.*remove it while no job runs"
    ):
        catalog.claim(nowhere)
