"""Apache Kafka in KRaft mode on this machine: one broker or several, open or with passwords, certificates and ACLs."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient

from tests.support.ports import free_ports
from weft.runtime.kafka.broker import _die_with_parent

ROOT = Path(__file__).resolve().parents[2]
_POM = ROOT / "infra/kafka/apache/pom.xml"
_CLUSTER_ID = "d2VmdC10ZXN0cy1rYWZrYQ"  # 22 characters of base64, as Kafka wants it
_JAVA = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_START_TIMEOUT_S = 120.0


class MissingKafkaError(Exception):
    """This machine cannot run Apache Kafka; the text says what it lacks."""


def jars() -> Path:
    """The folder with a broker's jars, fetched once by Maven.

    Raises:
        MissingKafkaError: Java or Maven is missing, or Maven reaches no repository.
    """
    for program, package in (("java", "default-jre-headless"), ("mvn", "maven")):
        if shutil.which(program) is None:
            raise MissingKafkaError(f"Apache Kafka needs {program}: apt-get install {package}")
    folder = ROOT / "build" / f"apache-kafka-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    staging = folder.with_name(f".{folder.name}-{os.getpid()}")
    command = ["mvn", "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies", f"-DoutputDirectory={staging}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        shutil.rmtree(staging, ignore_errors=True)
        raise MissingKafkaError(f"Maven did not fetch Apache Kafka: {ended.stdout.strip()[-300:]}")
    try:
        staging.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(staging)
    return folder


@dataclass(frozen=True)
class Listener:
    """Where clients connect.

    Attributes:
        name: Of the listener, such as "PLAINTEXT" or "TLS".
        protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        settings: Of this listener alone, without the prefix "listener.name.<name>.".
    """

    name: str
    protocol: str
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Node:
    number: int
    folder: Path
    ports: Mapping[str, int]
    process: subprocess.Popen[bytes] | None = None


class ApacheKafka:
    """A cluster of brokers that are controllers too. A context manager; every broker dies with this process.

    Args:
        folder: Where logs and settings lie; they outlive `stop` and `kill`, so that `start` goes on with them.
        brokers: How many, numbered from 1 on.
        listeners: The first one is `bootstrap`, which brokers use among themselves, too.
        settings: Of every broker, beside the defaults below.
        scram: Passwords by user, for SCRAM-SHA-256.
    """

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 1,
        listeners: Sequence[Listener] = (Listener("PLAINTEXT", "PLAINTEXT"),),
        settings: Mapping[str, str] | None = None,
        scram: Mapping[str, str] | None = None,
    ) -> None:
        self._jars = jars()
        self._listeners = listeners
        self._settings = dict(settings or {})
        self._scram = dict(scram or {})
        names = ["CONTROLLER", *(listener.name for listener in listeners)]
        ports = iter(free_ports(brokers * len(names)))
        self._nodes = [
            _Node(number, folder / str(number), {name: next(ports) for name in names})
            for number in range(1, brokers + 1)
        ]

    @property
    def bootstrap(self) -> str:
        """host:port of every broker, separated by commas, at the first listener."""
        return self.at(self._listeners[0].name)

    def at(self, listener: str) -> str:
        """The same at a listener."""
        return ",".join(f"127.0.0.1:{node.ports[listener]}" for node in self._nodes)

    def admin(self, **settings: str) -> AdminClient:
        """A client for topics, ACLs and users, at the first listener."""
        return AdminClient({"bootstrap.servers": self.bootstrap, **settings})

    def pid(self, broker: int) -> int:
        """Process id of a running broker."""
        process = self._nodes[broker - 1].process
        if process is None:
            raise ValueError(f"broker {broker} does not run")
        return process.pid

    def start(self, *brokers: int) -> None:
        """Start brokers, all where none is named, and wait until they answer."""
        for node in self._chosen(brokers):
            self._launch(node)
        for node in self._chosen(brokers):
            self._await(node)

    def kill(self, *brokers: int) -> None:
        """Kill brokers, all where none is named, as a power failure does."""
        for node in self._chosen(brokers):
            if node.process is not None:
                node.process.kill()
                node.process.wait()
                node.process = None

    def stop(self, *brokers: int) -> None:
        """End brokers in order, all where none is named."""
        for node in self._chosen(brokers):
            if node.process is not None:
                node.process.terminate()
                node.process.wait(60)
                node.process = None

    def log_text(self) -> str:
        """What the brokers said, for messages of failed tests."""
        return "\n".join(
            file.read_text(errors="replace")[-3000:] for node in self._nodes for file in node.folder.glob("broker.log")
        )

    def __enter__(self) -> Self:
        try:
            for node in self._nodes:
                self._format(node)
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _chosen(self, brokers: Iterable[int]) -> list[_Node]:
        return [self._nodes[broker - 1] for broker in brokers] or self._nodes

    def _format(self, node: _Node) -> None:
        node.folder.mkdir(parents=True)
        (node.folder / "server.properties").write_text(self._properties(node), encoding="utf-8")
        users = [
            part
            for user, password in self._scram.items()
            for part in ("--add-scram", f"SCRAM-SHA-256=[name={user},password={password}]")
        ]
        ended = subprocess.run(
            [
                *self._java("kafka.tools.StorageTool"),
                *("format", "--cluster-id", _CLUSTER_ID, "--config", str(node.folder / "server.properties"), *users),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(f"Kafka did not format its storage: {ended.stdout}{ended.stderr}")

    def _properties(self, node: _Node) -> str:
        copies = str(min(len(self._nodes), 3))
        names = ",".join(f"{one.name}://127.0.0.1:{node.ports[one.name]}" for one in self._listeners)
        protocols = ",".join(f"{one.name}:{one.protocol}" for one in self._listeners)
        voters = ",".join(f"{one.number}@127.0.0.1:{one.ports['CONTROLLER']}" for one in self._nodes)
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(node.number),
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{names},CONTROLLER://127.0.0.1:{node.ports['CONTROLLER']}",
            "advertised.listeners": names,
            "listener.security.protocol.map": f"{protocols},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": self._listeners[0].name,
            "log.dirs": str(node.folder / "logs"),
            "default.replication.factor": copies,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": "1",
            # Few partitions and short pauses: a test waits for none of them.
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.backoff.ms": "100",
            "log.retention.check.interval.ms": "500",
            "log.segment.delete.delay.ms": "100",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
            "broker.heartbeat.interval.ms": "500",
            "broker.session.timeout.ms": "3000",
            **{
                f"listener.name.{one.name.lower()}.{key}": value
                for one in self._listeners
                for key, value in one.settings.items()
            },
            **self._settings,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def _java(self, main: str) -> list[str]:
        return ["java", *_JAVA, "-cp", f"{self._jars}/*", main]

    def _launch(self, node: _Node) -> None:
        with (node.folder / "broker.log").open("ab") as output:
            node.process = subprocess.Popen(
                [*self._java("kafka.Kafka"), str(node.folder / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509
            )

    def _await(self, node: _Node) -> None:
        # The port is opened last, when the broker is ready to serve.
        port = node.ports[self._listeners[0].name]
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            if node.process is None or node.process.poll() is not None:
                raise RuntimeError(f"broker {node.number} ended: {self.log_text()}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"broker {node.number} did not start in {_START_TIMEOUT_S:g} s: {self.log_text()}")
