"""FBK-2: the examples in docs/feedback.md, run as they stand against a broker, and what comes of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.partitioner.default import murmur2

from tests.support.answers import a_query, an_answer
from tests.support.apache_kafka import MissingKafkaError, jars
from tests.support.feedback_events import HASHES, impression
from tests.support.words_spoken import side_of
from weft.catalog.catalog import Catalog
from weft.cli.commands import update
from weft.domain.ids import question_fingerprint
from weft.feedback.events.codec import decode, encode
from weft.learning.evidence import Evidence
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTED = "127.0.0.1:9092"


def example(language: str, names: str, page: str = "docs/feedback.md") -> str:
    """The one code block of that language in which `names` stands."""
    text = (ROOT / page).read_text()
    blocks = [block for block in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL) if names in block]
    assert len(blocks) == 1
    return blocks[0]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


def settings_at(broker: EmbeddedBroker, root: Path) -> Settings:
    """For a store of its own, with a topic made."""
    made = load_settings([], [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={root}"], environment={})
    create_topic(made.kafka, made.feedback.topic, partitions=4, replication=1)
    return made


@pytest.fixture
def settings(broker: EmbeddedBroker, tmp_path: Path) -> Settings:
    return settings_at(broker, tmp_path)


def learned(settings: Settings) -> tuple[dict[str, int], Evidence]:
    """Counts over all partitions, and the evidence, once everything is consumed."""
    standings = update.run(settings, local=True, until_caught_up=True)
    summary = update.summary(standings)
    assert summary["balanced"]
    counts = {name: summary[name] for name in ("applied", "dead_lettered", "late", "duplicate")}
    return counts, Catalog(Path(settings.storage.root)).live.evidence()


def parameters(evidence: Evidence) -> set[str]:
    return {key.parameter for key in evidence.counts}


def ran(code: str, broker: EmbeddedBroker, **names: object) -> None:
    exec(compile(code.replace(DOCUMENTED, broker.bootstrap), "docs/feedback.md", "exec"), names)


def test_every_client_is_understood(
    broker: EmbeddedBroker, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FBK-2: weft's producer, kafka-python, confluent-kafka and bare JSON, one after the other, on one topic."""
    monkeypatch.setenv("WEFT__KAFKA__BOOTSTRAP", broker.bootstrap)
    query = a_query()
    ran(example("python", "FeedbackProducer"), broker, searcher=SimpleNamespace(search=an_answer), query=query)
    counts, evidence = learned(settings)
    assert counts == {"applied": 5, "dead_lettered": 0, "late": 0, "duplicate": 0}
    used = {side_of(key.bin) for key in evidence.usage if key.content_hash == HASHES[1]}
    assert used == {"positive", "inclusion", "reference"}
    assert "decay" in parameters(evidence)

    shown = impression("q-7", session_id="s-41", ts=round(time.time() * 1000))
    raw = KafkaProducer(bootstrap_servers=broker.bootstrap, acks="all")
    raw.send(settings.feedback.topic, key=b"s-41", value=encode(shown))
    raw.flush()
    ran(example("python", "from kafka import"), broker)
    counts, evidence = learned(settings)
    assert counts["applied"] == 7
    assert {side_of(key.bin) for key in evidence.usage if key.content_hash == HASHES[3]} == {"negative"}

    ran(example("python", "from confluent_kafka import"), broker)
    counts, evidence = learned(settings)
    assert counts["applied"] == 8
    assert {side_of(key.bin) for key in evidence.usage if key.content_hash == HASHES[3]} == {"negative", "positive"}

    for line in bare_lines():
        key, _, value = line.partition("|")
        raw.send(settings.feedback.topic, key=key.encode(), value=value.encode())
    raw.close()
    counts, evidence = learned(settings)
    assert counts == {"applied": 10, "dead_lettered": 0, "late": 0, "duplicate": 0}
    assert {"threshold", "trust.blog"} <= parameters(evidence)


def test_the_producer_of_the_readme_meets_its_impression(broker: EmbeddedBroker, settings: Settings) -> None:
    """FBK-2: in the partition where weft put it, which librdkafka would not choose by itself."""
    query_id = "q-readme"
    assert (murmur2(query_id.encode()) & 0x7FFFFFFF) % 4 != crc32(query_id.encode()) % 4
    publisher = KafkaPublisher(settings.kafka, settings.feedback.topic)
    shown = impression(query_id, session_id=query_id, ts=round(time.time() * 1000))
    publisher.send(query_id.encode(), encode(shown))
    publisher.close()
    code = example("python", "Producer(", "README.md").replace("the id that the search printed", query_id)
    ran(code, broker)
    _, evidence = learned(settings)
    asked = question_fingerprint(shown.query_hash or "")
    assert {side_of(key.bin) for key in evidence.usage if key.question == asked} == {"positive"}


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("README.md", "Producer("),
        ("docs/feedback.md", "from kafka import"),
        ("docs/feedback.md", "from confluent_kafka import"),
    ],
)
def test_no_example_makes_a_topic(page: str, names: str) -> None:
    """FBK-1: a missing topic is named as missing; a broker would make it with a number of partitions of its own."""
    with EmbeddedBroker() as empty:
        with pytest.raises(SystemExit, match=r"topic weft\.feedback.*start the updaters"):
            ran(example("python", names, page).replace("flush(10)", "flush(3)"), empty)
        admin = KafkaAdminClient(bootstrap_servers=empty.bootstrap)
        assert admin.list_topics() == []
        admin.close()


def arrives(settings: Settings, *program: str | Path, name: str, folder: Path) -> None:
    """Run an example with an answer's token, and see that its verdict meets the impression."""
    query = a_query(query_id=f"q-{name}", session_id=f"s-{name}")
    publisher = KafkaPublisher(settings.kafka, settings.feedback.topic)
    shown = impression(f"q-{name}", session_id=f"s-{name}", ts=round(time.time() * 1000))
    publisher.send(f"s-{name}".encode(), encode(shown))
    publisher.close()
    command = [*program, an_answer(query).token, HASHES[2]]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    counts, evidence = learned(settings)
    assert counts == {"applied": 2, "dead_lettered": 0, "late": 0, "duplicate": 0}
    assert {side_of(key.bin) for key in evidence.usage if key.content_hash == HASHES[2]} == {"positive"}


@pytest.mark.slow
def test_a_verdict_from_node_meets_its_impression(tmp_path: Path) -> None:
    """FBK-2: by an answer's token, in the partition where weft put the impression."""
    if (npm := shutil.which("npm")) is None or (node := shutil.which("node")) is None:
        pytest.skip("Node is missing: apt-get install nodejs npm")
    install = [npm, "install", "--silent", "kafkajs@2.2.4"]
    installed = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"npm did not install kafkajs: {installed.stderr[-300:]}")
    with EmbeddedBroker() as own:
        code = example("js", "kafkajs").replace(DOCUMENTED, own.bootstrap)
        (tmp_path / "verdict.js").write_text(code, encoding="utf-8")
        arrives(settings_at(own, tmp_path), node, "verdict.js", name="node", folder=tmp_path)


@pytest.mark.slow
def test_a_verdict_from_java_meets_its_impression(tmp_path: Path) -> None:
    """FBK-2: the same with Kafka's own client."""
    if shutil.which("javac") is None:
        pytest.skip("a JDK is missing: apt-get install default-jdk-headless")
    try:
        class_path = jars()
    except MissingKafkaError as missing:
        pytest.skip(str(missing))
    with EmbeddedBroker() as own:
        code = example("java", "KafkaProducer").replace(DOCUMENTED, own.bootstrap)
        (tmp_path / "Verdict.java").write_text(code, encoding="utf-8")
        java = ("java", "-cp", f"{class_path}/*", "Verdict.java")
        arrives(settings_at(own, tmp_path), *java, name="java", folder=tmp_path)


def bare_lines() -> list[str]:
    """What the shell example sends, a record a line."""
    shell = example("sh", "kafka-console-producer")
    sent = shell.split("<<END\n")[1].split("END\n")[0].replace("NOW", str(round(time.time() * 1000)))
    return sent.splitlines()


def test_the_bare_lines_are_events_of_the_session_that_their_key_names() -> None:
    """FBK-1: the key is the session's id."""
    for line in bare_lines():
        key, _, value = line.partition("|")
        assert decode(value.encode(), max_bytes=10_000).session_id == key
