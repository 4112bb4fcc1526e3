"""FBK-11, OPS-15: what a secured broker refuses is named at once, with what changes it; and what lets a client in."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.certificates import Authority
from tests.support.feedback_events import session
from tests.support.secured_kafka import PASSWORD, Permission, SecuredKafka, permissions_in
from weft.cli.commands import update
from weft.cli.main import main
from weft.domain.errors import BrokerUnavailableError, ConfigurationError
from weft.feedback.events.codec import encode
from weft.feedback.events.producer import FeedbackProducer
from weft.runtime.kafka.reader import KafkaSource
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.settings import Settings

DOCUMENTED = (Path(__file__).resolve().parents[2] / "docs/kafka.md").read_text(encoding="utf-8")
PERMISSIONS = permissions_in(DOCUMENTED.splitlines())
OF_DEAD_LETTERS = [permission for permission in PERMISSIONS if permission.name == "weft.feedback.dlq"]
NEEDED = [permission for permission in PERMISSIONS if permission.kind != "group" and permission not in OF_DEAD_LETTERS]
RULES = "feedback.topic=closed"

Way = Callable[[Settings], object]


def sent_by_a_service(settings: Settings) -> None:
    """What a service does that does not wait for its broker."""
    producer = FeedbackProducer.connect(settings.kafka, settings.feedback)
    try:
        producer.session("s1", "start", principal="ada")
        producer.flush()
    finally:
        producer.close()


def read(settings: Settings) -> None:
    with closing(KafkaSource(settings.kafka, settings.feedback.topic, max_poll_records=10)) as source:
        source.facts()
        source.assign([0])
        source.seek(0, 0)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            source.poll(10, 0.1)


def run_updater(settings: Settings) -> None:
    update.run(settings, local=True, until_caught_up=False)  # which waits for ever where a broker is away


WAYS: dict[str, Way] = {
    "connect": sent_by_a_service,
    "connect_now": lambda settings: FeedbackProducer.connect_now(settings.kafka, settings.feedback),
    "read": read,
    "create": lambda settings: create_topic(settings.kafka, settings.feedback.topic, partitions=1, replication=1),
    "update": run_updater,
}


NEEDS = {"connect": "Write", "connect_now": "Write", "read": "Read", "create": "Describe", "update": "Read"}


@pytest.fixture(scope="module", autouse=True)
def closed(secured_kafka: SecuredKafka) -> None:
    """A topic that nobody may use."""
    secured_kafka.make_topic("closed")


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    """Signs what the broker does not trust."""
    return Authority(tmp_path, "stranger")


def refused(settings: Settings, way: Way) -> str:
    """What the error says that comes before any patience with silent brokers ends."""
    # Who takes a refusal for silence is patient, and meets the time limit of the test.
    with pytest.raises(ConfigurationError) as caught:
        way(settings)
    said = str(caught.value)
    assert "is the broker up" not in said
    assert PASSWORD not in said
    assert "wr0ng" not in said
    assert settings.kafka.bootstrap in said
    return said


PASSWORDS: dict[str, tuple[dict[str, Any], str]] = {
    "a wrong password": ({"sasl_password": "wr0ng"}, "user 'ada' .* kafka.sasl_password .WEFT__KAFKA__SASL_PASSWORD"),
    "an unknown user": ({"sasl_username": "eve"}, "user 'eve' .* kafka.sasl_username"),
    "a wrong password in plain": (
        {"sasl_password": "wr0ng", "sasl_mechanism": "PLAIN"},
        "'ada' to be let in with PLAIN",
    ),
    "another mechanism": ({"sasl_mechanism": "SCRAM-SHA-512"}, "offer SCRAM-SHA-512, .* set kafka.sasl_mechanism"),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", PASSWORDS)
def test_a_refused_user_is_named(secured_kafka: SecuredKafka, case: str, way: str, tmp_path: Path) -> None:
    """FBK-11, OPS-15: with the settings to change, without secrets."""
    changes, expected = PASSWORDS[case]
    settings = secured_kafka.by_password("ada", RULES, f"storage.root={tmp_path}", **changes)
    assert re.search(expected, refused(settings, WAYS[way]))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", WAYS)
def test_what_tls_refuses_is_named(secured_kafka: SecuredKafka, way: str, stranger: Authority, tmp_path: Path) -> None:
    """FBK-11, OPS-15: each by the setting it is about."""
    trusted, mine = secured_kafka.authority.file, stranger.signed("mine")
    tls = {"security_protocol": "SSL", "ssl_cafile": trusted}
    known = {"ssl_certfile": mine.certificate, "ssl_keyfile": mine.key}
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("TLS", {**tls, "ssl_cafile": stranger.file}, "authority that signed it as kafka.ssl_cafile"),
        ("TLS", tls, "the broker asks for one: set kafka.ssl_certfile and kafka.ssl_keyfile"),
        ("TLS", {**tls, **known}, f"the certificate in {mine.certificate} to be accepted, found it refused"),
        ("EXPIRED", tls, "found an expired one: renew it at the broker"),
        ("ELSEWHERE", tls, "found one for others: .* kafka.ssl_check_hostname"),
    ]
    for listener, changes, expected in cases:
        settings = secured_kafka.settings(listener, RULES, f"storage.root={tmp_path}", **changes)
        assert re.search(expected, refused(settings, WAYS[way])), (listener, expected)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("listener", "protocol"), [("SASL", "PLAINTEXT"), ("TLS", "PLAINTEXT"), ("OPEN", "SSL")])
def test_a_listener_that_hangs_up_is_not_said_to_be_down(
    secured_kafka: SecuredKafka, listener: str, protocol: str
) -> None:
    """OPS-15: a broker that stops looks alike, so it is asked again; the advice fits both."""
    settings = secured_kafka.settings(listener, RULES, security_protocol=protocol, connect_timeout_ms=700)
    with pytest.raises(BrokerUnavailableError) as caught:
        WAYS["connect_now"](settings)
    advice = f"does its listener expect another kafka.security_protocol than {protocol}, or does it stop?"
    assert str(caught.value).endswith(advice)


@pytest.mark.timeout(120)
def test_a_certificate_is_a_way_in(secured_kafka: SecuredKafka) -> None:
    """FBK-11: its key may be locked, hosts may go by other names, and a password may travel over TLS."""
    client = secured_kafka.authority.signed("client", password="0pen")
    principal = "User:CN=client"
    secured_kafka.permit(*(Permission(principal, operation, "topic", "closed") for operation in ("Read", "Write")))
    tls = {"security_protocol": "SSL", "ssl_cafile": secured_kafka.authority.file}
    locked = {**tls, "ssl_certfile": client.certificate, "ssl_keyfile": client.key}
    with pytest.raises(ConfigurationError, match=r"opened by kafka.ssl_keyfile_password"):
        WAYS["connect_now"](secured_kafka.settings("TLS", RULES, **locked))
    documented = as_documented(secured_kafka, "TLS", {"client.pem": client.certificate, "client.key": client.key})
    settings = secured_kafka.settings("TLS", RULES, **documented, ssl_keyfile_password="0pen")
    publisher = KafkaPublisher(settings.kafka, "closed")
    publisher.send(b"s1", b"{}")
    publisher.flush()
    assert publisher.close() == 0
    with closing(KafkaSource(settings.kafka, "closed", max_poll_records=10)) as source:
        assert (source.facts().partitions, source.log_start(0)) == (1, 0)
    secured_kafka.withdraw(principal)
    elsewhere = secured_kafka.settings("ELSEWHERE", **tls, ssl_check_hostname="false")
    create_topic(elsewhere.kafka, "closed", partitions=1, replication=1)
    over_tls = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "ada"}
    over_tls |= {"sasl_password": PASSWORD, "ssl_cafile": str(secured_kafka.authority.file)}
    said = refused(secured_kafka.settings("SASLTLS", RULES, **over_tls), WAYS["connect_now"])
    assert "permission Write on topic closed for user 'ada'" in said


def as_documented(broker: SecuredKafka, listener: str, files: dict[str, Path]) -> dict[str, str]:
    """The settings that the page gives for a listener's protocol, with files of this run."""
    protocol = {"TLS": "SSL", "SASLTLS": "SASL_SSL"}[listener]
    blocks = [yaml.safe_load(block)["kafka"] for block in re.findall(r"```yaml\n(.*?)```", DOCUMENTED, re.DOTALL)]
    (block,) = [block for block in blocks if block["security_protocol"] == protocol]
    del block["bootstrap"]
    there = {"authority.pem": broker.authority.file, **files}
    return {key: str(there[Path(value).name]) if value.startswith("/") else value for key, value in block.items()}


@pytest.fixture
def ada(secured_kafka: SecuredKafka) -> Iterator[Callable[..., None]]:
    """Gives the user ada permissions on the topic `closed`, until the test ends."""
    yield lambda *operations: secured_kafka.permit(
        *(Permission("User:ada", operation, "topic", "closed") for operation in operations)
    )
    secured_kafka.withdraw("User:ada")


@pytest.mark.timeout(120)
def test_a_missing_permission_is_named_with_the_command_that_gives_it(
    secured_kafka: SecuredKafka, ada: Callable[..., None], tmp_path: Path
) -> None:
    """FBK-11, OPS-15: to see a topic, to read it, to write it, to make it."""
    settings = secured_kafka.by_password("ada", RULES, f"storage.root={tmp_path}")
    secured_kafka.permit(Permission("User:ada", "Read", "group", "weft"))
    for way, operation in NEEDS.items():
        said = refused(settings, WAYS[way])
        assert f"permission {operation} on topic closed for user 'ada' (kafka.sasl_username)" in said
        assert said.endswith(
            f"kafka-acls.sh --bootstrap-server {settings.kafka.bootstrap} --add --allow-principal User:ada "
            f"--operation {operation} --topic closed"
        )
    ada("Describe")
    for way in ("connect", "connect_now", "read", "update"):
        assert f"permission {NEEDS[way]} on topic closed" in refused(settings, WAYS[way])
    secured_kafka.permit(Permission("User:ada", "Describe", "topic", "unmade"))
    unmade = settings.model_copy(update={"feedback": settings.feedback.model_copy(update={"topic": "unmade"})})
    assert "permission Create on topic unmade" in refused(unmade, WAYS["create"])


@pytest.mark.timeout(120)
def test_commands_end_with_the_reason(
    secured_kafka: SecuredKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-15: exit code 1, and one line on stderr."""
    settings = secured_kafka.by_password("ada", RULES, sasl_password="wr0ng")
    names = ("bootstrap", "security_protocol", "sasl_mechanism", "sasl_username")
    kafka = {name: getattr(settings.kafka, name) for name in names} | {"sasl_password": "wr0ng"}
    conf = tmp_path / "mine.yaml"
    conf.write_text(json.dumps({"kafka": kafka}))
    documents = tmp_path / "ubi.ndjson"
    documents.write_text("")
    (tmp_path / "store").mkdir()
    assert main(["ubi", str(documents), "--conf", str(conf)]) == 78
    said = capsys.readouterr().err.splitlines()[-1]
    assert re.search(r"user 'ada' .* check kafka.sasl_username and kafka.sasl_password", said)
    assert "wr0ng" not in said


def named(missing: Permission) -> str:
    """How a message names a permission that is missing."""
    user = missing.principal.removeprefix("User:")
    return f"expected the permission {missing.operation} on {missing.kind} {missing.name} for user '{user}'"


@pytest.fixture
def loop(secured_kafka: SecuredKafka, tmp_path: Path) -> Iterator[Callable[[], dict[str, Any]]]:
    """The whole loop, on topics that are not there yet: updaters make them, a service tells, updaters learn."""
    known = as_documented(secured_kafka, "SASLTLS", {})
    store = f"storage.root={tmp_path}"
    as_updater = secured_kafka.settings("SASLTLS", store, **known, sasl_password=PASSWORD)
    as_producer = secured_kafka.settings("SASLTLS", **{**known, "sasl_username": "producer"}, sasl_password=PASSWORD)
    topics = (as_updater.feedback.topic, as_updater.feedback.dead_letter_topic)
    secured_kafka.drop_topics(*topics)

    def run() -> dict[str, Any]:
        update.run(as_updater, local=True, until_caught_up=True)
        publisher = KafkaPublisher(as_producer.kafka, as_producer.feedback.topic)
        publisher.send(b"s1", encode(session(ts=round(time.time() * 1000))))
        publisher.send(b"s1", b"no event")
        publisher.flush()
        assert publisher.close() == 0
        return update.summary(update.run(as_updater, local=True, until_caught_up=True))

    yield run
    secured_kafka.withdraw("User:producer", "User:updater")
    secured_kafka.drop_topics(*topics)


@pytest.mark.timeout(120)
def test_the_loop_works_with_the_documented_permissions(
    secured_kafka: SecuredKafka, loop: Callable[[], dict[str, Any]]
) -> None:
    """FBK-11: the commands of docs/kafka.md, no more, and its settings; topics are made as the page says."""
    secured_kafka.permit(*PERMISSIONS)
    learned = loop()
    assert (learned["applied"], learned["dead_lettered"], learned["balanced"]) == (1, 1, True)
    (letter,) = secured_kafka.log_of("weft.feedback.dlq")
    assert json.loads(letter)["reason"] == "undecodable"
    assert secured_kafka.config_of("weft.feedback")["message.timestamp.type"] == "LogAppendTime"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("missing", NEEDED, ids=lambda permission: "-".join(permission[1:]))
def test_the_loop_stops_where_a_documented_permission_is_missing(
    secured_kafka: SecuredKafka, loop: Callable[[], dict[str, Any]], missing: Permission
) -> None:
    """FBK-11, OPS-15: by its name; so the page asks for no more than is needed."""
    secured_kafka.permit(*(permission for permission in PERMISSIONS if permission != missing))
    with pytest.raises(ConfigurationError) as caught:
        loop()
    assert named(missing) in str(caught.value)


@pytest.mark.timeout(120)
def test_a_group_that_may_not_be_read_costs_no_record(
    secured_kafka: SecuredKafka, loop: Callable[[], dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    """FBK-4: the broker's refusal comes with records, which are applied; it is said once, with the permission."""
    secured_kafka.permit(*(permission for permission in PERMISSIONS if permission.kind != "group"))
    learned = loop()
    assert (learned["applied"], learned["dead_lettered"], learned["balanced"]) == (1, 1, True)
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("group weft")]
    assert len(said) <= 2, "once for each of the two runs"
    assert all("the permission Read on the group" in line for line in said)
    assert said


@pytest.mark.timeout(120)
@pytest.mark.parametrize("missing", OF_DEAD_LETTERS, ids=lambda permission: "-".join(permission[1:]))
def test_dead_letters_wait_where_their_permission_is_missing(
    secured_kafka: SecuredKafka,
    loop: Callable[[], dict[str, Any]],
    missing: Permission,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """FBK-3, FBK-11: events go on being applied, and the log names the permission."""
    secured_kafka.permit(*(permission for permission in PERMISSIONS if permission != missing))
    learned = loop()
    assert (learned["applied"], learned["dead_letters_waiting"], learned["balanced"]) == (1, 1, True)
    assert named(missing) in caplog.text


@pytest.mark.timeout(120)
def test_a_running_updater_says_that_its_permission_was_withdrawn(secured_kafka: SecuredKafka, tmp_path: Path) -> None:
    """OPS-15: it neither waits for the broker nor goes on as if nothing were there to read."""
    secured_kafka.permit(*PERMISSIONS)
    settings = secured_kafka.by_password("updater", f"storage.root={tmp_path}")
    ended: list[BaseException] = []
    begun = threading.Event()

    def run() -> None:
        try:
            update.run(settings, local=True, until_caught_up=False, on_progress=lambda _: begun.set())
        except ConfigurationError as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert begun.wait(100)
    secured_kafka.withdraw("User:updater")
    thread.join()
    assert "expected the permission Read on topic weft.feedback for user 'updater'" in str(ended[0])
    secured_kafka.withdraw("User:producer")
    secured_kafka.drop_topics(settings.feedback.topic, settings.feedback.dead_letter_topic)
