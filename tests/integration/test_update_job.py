"""FBK-4, FBK-5, FBK-7: the job as users run it, against a broker."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from kafka import KafkaProducer

from tests.support.feedback_events import WEIGHTS, explicit, impression
from tests.support.feedback_fold import fold_log
from tests.support.feedback_traffic import traffic
from tests.support.folded_evidence import digest_of_stores
from tests.support.places import Place
from weft.catalog.catalog import Catalog
from weft.cli.commands import update
from weft.domain.errors import BrokerUnavailableError, StoreError
from weft.feedback.events.codec import encode
from weft.feedback.run.actors import Task, UpdaterActor
from weft.feedback.run.updater import PartitionProgress
from weft.learning.evidence import Evidence
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]
TOPIC = "weft.feedback"


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


def settings_for(broker: EmbeddedBroker | Place, store: Path) -> Settings:
    assignments = [f"storage.root={store}", "cluster.object_store_bytes=100000000", *place_of(broker).assignments]
    return load_settings([], assignments, environment={})


def place_of(broker: EmbeddedBroker | Place) -> Place:
    return broker if isinstance(broker, Place) else Place(broker.bootstrap, TOPIC)


def a_task(settings: Settings, *, unreachable_s: float | None) -> Task:
    return Task(Path(settings.storage.root), settings.kafka, settings.feedback, unreachable_s)


def command(broker: EmbeddedBroker | Place, store: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "jobs.update", "--store", str(store), *place_of(broker).arguments, *more]


def an_actor(task: Task) -> UpdaterActor:
    return UpdaterActor(task, range(4), Catalog(task.store).claim(lambda _: None))


def ran(broker: EmbeddedBroker | Place, store: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(broker, store, *more), cwd=ROOT, capture_output=True, text=True, check=False)


def fill(settings: Settings, records: list[tuple[bytes, bytes]]) -> list[list[bytes | None]]:
    """Produce records; the values that each partition then holds, in their order."""
    create_topic(settings.kafka, settings.feedback.topic, partitions=4, replication=1)
    producer = KafkaProducer(bootstrap_servers=settings.kafka.bootstrap, acks="all")
    sent = [(producer.send(settings.feedback.topic, key=key, value=value), value) for key, value in records]
    producer.flush()
    placed = sorted((future.get().partition, future.get().offset, value) for future, value in sent)
    producer.close()
    return [[value for partition, _, value in placed if partition == wanted] for wanted in range(4)]


@pytest.mark.parametrize("place", [pytest.param("embedded", marks=pytest.mark.slow), "apache"], indirect=True)
def test_actors_share_the_partitions_and_consume_everything(place: Place, tmp_path: Path) -> None:
    """FBK-4, FBK-5: two actors on Ray, four partitions, one result: that of an independent reading."""
    settings = settings_for(place, tmp_path)
    now = int(time.time() * 1000) - 60_000
    log = fill(settings, traffic(random.Random(3), 400, until_ms=now, duplicates=0.05, garbage=0.01))
    expected = fold_log(log, weights=WEIGHTS)
    run = ran(place, tmp_path, "--until-caught-up", "--json", "--set", "cluster.object_store_bytes=100000000")
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout.splitlines()[-1])
    assert digest_of_stores((tmp_path / "updaters").iterdir()) == expected.digest()
    assert (summary["consumed"], summary["balanced"]) == (400, True)
    assert {name: summary[name] for name in expected.fates} == dict(expected.fates)
    assert [(row["partition"], row["lag"]) for row in summary["partitions"]] == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_evidence_is_published_within_seconds(place: Place, tmp_path: Path) -> None:
    """FBK-7: from the producer's call to a snapshot that holds it, in less than 5 s, with the log's place in it."""
    settings = settings_for(place, tmp_path)
    create_topic(settings.kafka, settings.feedback.topic, partitions=4, replication=1)
    publisher = KafkaPublisher(settings.kafka, settings.feedback.topic)
    stop, ticks = threading.Event(), []
    runner = threading.Thread(
        target=update.run,
        args=(settings,),
        kwargs={"local": True, "until_caught_up": False, "stop": stop.is_set, "on_tick": lambda: ticks.append(1)},
    )
    runner.start()
    try:
        snapshots = tmp_path / "updaters"
        await_condition(lambda: len(list(snapshots.glob("*/evidence.parquet"))) == 4)
        now = round(time.time() * 1000)
        for event in (impression(ts=now), explicit(ts=now)):
            publisher.send(event.session_id.encode(), encode(event))
        publisher.flush()
        await_condition(lambda: any(mass(path) for path in snapshots.glob("*/evidence.parquet")))
    finally:
        stop.set()
        runner.join()
        publisher.close()
    (path,) = [path for path in snapshots.glob("*/evidence.parquet") if mass(path)]
    facts = pq.read_schema(path).metadata
    assert (facts[b"weft.offset"], facts[b"weft.partition"]) == (b"2", path.parent.name.encode())
    assert facts[b"weft.epoch"] == b"1"
    assert ticks


def test_a_stopped_job_says_where_it_stands(place: Place, tmp_path: Path) -> None:
    """FBK-5, OPS-3a: SIGTERM ends it cleanly, with exit code 0 and its line for machines."""
    fill(settings_for(place, tmp_path), [(b"s1", encode(impression(ts=round(time.time() * 1000))))])
    job = subprocess.Popen(
        command(place, tmp_path, "--local", "--json"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    await_condition(lambda: len(list((tmp_path / "updaters").glob("*/evidence.parquet"))) == 4)
    await_condition((tmp_path / "settings.json").exists)  # while it runs: a store that was moved has none
    os.kill(job.pid, signal.SIGTERM)
    out, err = job.communicate(timeout=30)
    assert job.returncode == 0, err
    assert json.loads(out.splitlines()[-1])["balanced"] is True


def test_a_flagged_source_is_named_whatever_it_is_called(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """FBK-12, OPS-11: agents choose their names; one that is markup neither ends the job nor steers a terminal."""
    settings, agent = settings_for(broker, tmp_path), "[/b] \x1b]0;owned\x07"
    now, most = round(time.time() * 1000), 100
    shown = [impression(f"q{n}", event_id=f"e{n}", agent=agent, ts=now) for n in range(most)]
    fill(settings, [(event.session_id.encode(), encode(event)) for event in shown])
    run = ran(broker, tmp_path, "--until-caught-up", "--local", "--json")
    assert run.returncode == 0, run.stderr
    assert agent in {source["name"] for source in json.loads(run.stdout.splitlines()[-1])["flagged"]}
    assert "agent [/b] \N{REPLACEMENT CHARACTER}]0;owned" in run.stderr
    assert not {"\x1b", "\x07"} & set(run.stderr)


ON_RAY = ["--set", "cluster.object_store_bytes=100000000"]


@pytest.mark.parametrize("where", [["--local"], pytest.param(ON_RAY, marks=pytest.mark.slow)], ids=["local", "Ray"])
def test_another_log_under_the_same_name_is_refused(broker: EmbeddedBroker, tmp_path: Path, where: list[str]) -> None:
    """FBK-5: a broker that lost everything, and a topic made again by its first client; one line, exit code 1."""
    fill(settings_for(broker, tmp_path), [(b"s1", encode(impression(ts=round(time.time() * 1000))))])
    assert ran(broker, tmp_path, "--local", "--until-caught-up").returncode == 0
    with EmbeddedBroker() as other:
        fill(settings_for(other, tmp_path), [])
        refused = ran(other, tmp_path, *where, "--until-caught-up")
    assert refused.returncode == 1
    assert re.match(r"jobs\.update: partition \d: expected topic id", refused.stderr.splitlines()[-1])
    assert "Traceback" not in refused.stderr


@pytest.mark.slow
def test_what_updaters_on_ray_refuse_is_said_in_one_line(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """FBK-5: all of them refuse, and what Ray has to say of that is of no use to whoever looks at the last line."""
    memory = ("--set", "cluster.object_store_bytes=100000000")
    assert ran(broker, tmp_path, "--local", "--until-caught-up").returncode == 0
    with EmbeddedBroker() as other:
        fill(settings_for(other, tmp_path), [])
        refused = ran(other, tmp_path, "--until-caught-up", *memory)
    assert refused.returncode == 1
    last = refused.stderr.splitlines()[-1]
    assert re.match(r"jobs\.update: partition \d: expected topic id \S+, found \S+: the topic was re-created", last)
    assert "Traceback" not in refused.stderr


def test_a_broker_that_never_answers_is_named(tmp_path: Path) -> None:
    """FBK-5: a job that is to catch up gives up after its patience."""
    with EmbeddedBroker() as gone:
        pass
    impatient = ("--set", "feedback.unreachable_s=1", "--set", "kafka.connect_timeout_ms=500")
    run = ran(gone, tmp_path, "--local", "--until-caught-up", *impatient)
    assert run.returncode == 75
    assert "is the broker up?" in run.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_broker_that_goes_away_is_given_up_as_well(tmp_path: Path) -> None:
    """FBK-5: the job is told where it stands about once a second, which is no answer of the broker's."""
    with EmbeddedBroker() as leaving:
        settings = settings_for(leaving, tmp_path)
        changes = {"poll_records": 1, "unreachable_s": 2.0}
        settings = settings.model_copy(update={"feedback": settings.feedback.model_copy(update=changes)})
        fill(settings, [(b"k", b"{}")] * 4_000)

        def leave(standings: Sequence[PartitionProgress]) -> None:
            assert any(standing.lag for standing in standings)
            leaving.__exit__(None, None, None)

        with pytest.raises(BrokerUnavailableError, match="is the broker up"):
            update.run(settings, local=True, until_caught_up=True, on_progress=leave)


def test_an_actor_that_is_restarted_while_the_broker_is_away_waits_for_it(
    broker: EmbeddedBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """FBK-5: what was consumed is in its store; it goes on once the broker answers, and counts nothing twice."""
    settings = settings_for(broker, tmp_path)
    fill(settings, [(b"k", encode(impression(ts=round(time.time() * 1000))))])
    update.run(settings, local=True, until_caught_up=True)
    kafka = settings.kafka.model_copy(update={"connect_timeout_ms": 500, "request_timeout_ms": 500})
    restarted = an_actor(a_task(settings.model_copy(update={"kafka": kafka}), unreachable_s=None))
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        away = [restarted.advance(0.0), restarted.advance(0.0)][-1]
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    assert [(one.lag, one.answers) for one in away] == [(None, False)] * 4
    assert sum(one.report.consumed for one in away) == 1
    (said,) = [record.getMessage() for record in caplog.records if "cannot be claimed yet" in record.getMessage()]
    assert "is the broker up?" in said
    await_condition(lambda: all(one.lag == 0 for one in restarted.advance(1.0)))
    assert sum(one.report.consumed for one in restarted.advance(0.1)) == 1
    restarted.close()


def test_an_actor_that_is_restarted_gives_up_after_its_patience(tmp_path: Path) -> None:
    """FBK-5: one that is to catch up; however often it was asked meanwhile."""
    with EmbeddedBroker() as gone:
        settings = settings_for(gone, tmp_path)
    settings = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"connect_timeout_ms": 200})})
    actor = an_actor(a_task(settings, unreachable_s=1.0))
    assert actor.advance(0.0) == []
    with pytest.raises(BrokerUnavailableError, match="is the broker up"):
        await_condition(lambda: bool(actor.advance(0.0)))


def test_an_actor_on_a_host_without_the_store_makes_nothing(tmp_path: Path) -> None:
    """SCL-1: wherever it was started or restarted, it checks the store's id before it opens a partition's state."""
    settings = load_settings([], [f"storage.root={tmp_path / 'disk' / 'store'}"], environment={})
    actor = an_actor(a_task(settings, unreachable_s=None))
    (tmp_path / "disk").rename(tmp_path / "away")
    with pytest.raises(
        StoreError, match=f"{tmp_path / 'disk' / 'store'} on host .*: expected the store .*, found none"
    ):
        actor.advance(0.0)
    assert not (tmp_path / "disk").exists()


def mass(snapshot: Path) -> int:
    """Mass of the evidence in a snapshot."""
    return sum(Evidence.from_table(pq.read_table(snapshot)).counts.values())


def await_condition(condition) -> None:  # type: ignore[no-untyped-def]
    while not condition():
        time.sleep(0.02)


def test_an_updater_starts_without_what_it_does_not_use() -> None:
    """FBK-5: parsers, optimisers and Ray take longer to import than a short backlog takes to catch up with."""
    heavy = ("tree_sitter", "scipy.optimize", "ray", "mlflow", "torch", "pandas")
    asked = f"import sys, jobs.update; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
