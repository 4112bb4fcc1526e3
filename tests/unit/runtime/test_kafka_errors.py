"""OPS-15: what Kafka's client raises ends at the adapter, and says what helps."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from weft.domain.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    InvalidEventError,
    MissingTopicError,
    WeftError,
    WrongLogError,
)
from weft.runtime.kafka.client import mapped, tls_context
from weft.runtime.kafka.errors import Access, Refusal
from weft.settings import load_settings

EVERY = [name for name, code in vars(KafkaError).items() if isinstance(code, int)]
SETTINGS = load_settings(
    [],
    [
        "kafka.bootstrap=kafka:9092",
        "kafka.sasl_username=ada",
        "kafka.sasl_password=s3cret",
        "kafka.security_protocol=SSL",
    ],
    environment={},
).kafka


def access(operation: str = "Read") -> Access:
    return Access(SETTINGS, operation, "events")


def told(name: str, operation: str = "Read") -> WeftError:
    return mapped(KafkaError(getattr(KafkaError, name)), access(operation))


@pytest.mark.parametrize("name", EVERY)
def test_every_foreign_error_becomes_one_of_ours(name: str) -> None:
    """FBK-5: each says what a caller can do: retry, stop, or mend the settings; OPS-11: and no secret."""
    assert "s3cret" not in str(told(name))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_TIMED_OUT", BrokerUnavailableError),
        ("_TRANSPORT", BrokerUnavailableError),
        ("UNKNOWN_TOPIC_OR_PART", MissingTopicError),
        ("OFFSET_OUT_OF_RANGE", WrongLogError),
        ("TOPIC_AUTHORIZATION_FAILED", ConfigurationError),
        ("MSG_SIZE_TOO_LARGE", InvalidEventError),
    ],
)
def test_what_a_caller_does_differs(name: str, kind: type[WeftError]) -> None:
    """FBK-5."""
    assert isinstance(told(name), kind)


def test_a_broker_that_gives_no_producer_ids_names_that_permission() -> None:
    """OPS-15: brokers before 2.8 want it beside Write."""
    found = told("CLUSTER_AUTHORIZATION_FAILED", "Write")
    assert isinstance(found, ConfigurationError)
    assert str(found).endswith("--add --allow-principal User:ada --operation IdempotentWrite --cluster")


@pytest.mark.parametrize("refusal", Refusal)
def test_every_refusal_names_a_setting_and_asks_for_no_running_broker(refusal: Refusal) -> None:
    """OPS-15."""
    said = str(access().refused(refusal))
    assert said.startswith("reading events at kafka:9092: expected ")
    assert "found" in said
    assert "kafka." in said
    assert "is the broker up" not in said


@pytest.mark.parametrize("name", ["ssl_cafile", "ssl_certfile", "ssl_keyfile"])
def test_a_file_that_is_missing_or_is_no_certificate_is_named(name: str, tmp_path: Path) -> None:
    """OPS-15: before any broker is asked."""
    wrong = tmp_path / "wrong.pem"
    with pytest.raises(ConfigurationError, match=rf"kafka.{name}: expected a PEM file, found none at {wrong}"):
        tls_context(SETTINGS.model_copy(update={name: str(wrong)}))
    wrong.write_text("no certificate")
    files = {"ssl_certfile": str(wrong)} if name == "ssl_keyfile" else {}
    with pytest.raises(ConfigurationError, match=r"kafka\.ssl_(ca|key)file: expected .* found"):
        tls_context(SETTINGS.model_copy(update={**files, name: str(wrong)}))
