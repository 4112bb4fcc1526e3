"""Fixtures every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.support.apache_kafka import ApacheKafka, MissingKafkaError
from tests.support.places import Place
from tests.support.secured_kafka import SecuredKafka
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.ray.cluster import connect, disconnect
from weft.settings import load_settings

collect_ignore = ["support/code_trees"]  # trees that tests index, with tests of their own

# How long one example takes says more about what else the machine does than about the code.
hypothesis.settings.register_profile("weft", deadline=None, max_examples=20)
hypothesis.settings.register_profile("long", deadline=None, max_examples=100)
hypothesis.settings.register_profile("check", deadline=None, max_examples=6, stateful_step_count=15)
hypothesis.settings.load_profile("weft")

ROOT = Path(__file__).resolve().parent.parent

# Ray has its workers give way to all else: beside other parts of the suite they would hardly ever run.
os.environ.setdefault("RAY_worker_niceness", "0")


def _data_root() -> Path:
    return Path(os.environ.get("WEFT_DATA", ROOT / ".." / "shared" / "data")).resolve()


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real test collections; the test skips where it is missing."""
    root = _data_root()
    if not root.is_dir():
        pytest.skip(f"no test collections at {root}: set WEFT_DATA")
    return root


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """One local Ray cluster for the whole session: starting one takes seconds. Its CPUs are logical."""
    settings = load_settings(assignments=["cluster.cpus=4", "cluster.address=local"], environment={}).cluster
    connect(settings)
    yield
    disconnect()


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """One open Apache Kafka broker for the whole session: tests take topics of their own, and leave it running."""
    try:
        broker = ApacheKafka(tmp_path_factory.mktemp("apache-kafka"))
    except MissingKafkaError as missing:
        pytest.skip(str(missing))
    with broker:
        yield broker


@pytest.fixture(params=["embedded", "apache"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Topics of the test's own, once on the embedded broker and once on Apache Kafka."""
    if request.param == "apache":
        yield Place(request.getfixturevalue("apache_kafka").bootstrap)
        return
    with EmbeddedBroker() as broker:
        yield Place(broker.bootstrap)


@pytest.fixture(scope="session")
def secured_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """One Apache Kafka broker with passwords, certificates and ACLs for the whole session."""
    try:
        broker = SecuredKafka(tmp_path_factory.mktemp("secured-kafka"))
    except MissingKafkaError as missing:
        pytest.skip(str(missing))
    with broker:
        yield broker
