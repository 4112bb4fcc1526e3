"""OPS-15: what Kafka's clients raise ends at the adapter, and says what helps."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import errors

from weft.domain.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    InvalidEventError,
    WeftError,
    WrongLogError,
)
from weft.runtime.kafka.client import mapped, tls_context
from weft.runtime.kafka.errors import Access, Refusal
from weft.settings import load_settings

EVERY = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.KafkaError)]
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


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_every_foreign_error_becomes_one_of_ours(kind: type[Exception]) -> None:
    """FBK-5: each says what a caller can do: retry, stop, or mend the settings; OPS-11: and no secret."""
    try:
        error = kind()
    except TypeError:  # a few ask for arguments
        error = kind.__new__(kind)
    found = mapped(error, access())
    assert isinstance(found, WeftError)
    assert "s3cret" not in str(found)


def test_what_a_caller_does_differs() -> None:
    """FBK-5."""
    assert isinstance(mapped(errors.KafkaTimeoutError(), access()), BrokerUnavailableError)
    assert isinstance(mapped(errors.KafkaConnectionError(), access()), BrokerUnavailableError)
    assert isinstance(mapped(errors.OffsetOutOfRangeError(), access()), WrongLogError)
    assert isinstance(mapped(errors.TopicAuthorizationFailedError(), access()), ConfigurationError)
    assert isinstance(mapped(errors.MessageSizeTooLargeError(), access("Write")), InvalidEventError)


def test_a_broker_that_gives_no_producer_ids_names_that_permission() -> None:
    """OPS-15: kafka-python wraps that refusal in an error of no kind; brokers before 2.8 want it beside Write."""
    wrapped = errors.KafkaError(
        f"Unexpected error in InitProducerIdResponse: {errors.ClusterAuthorizationFailedError()}"
    )
    found = mapped(wrapped, access("Write"))
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
