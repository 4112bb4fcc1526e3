"""OPS: kafka-python's errors end at the adapter."""

import pytest
from kafka import errors

from pipelines.domain.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    InvalidEventError,
    WeftError,
    WrongLogError,
)
from pipelines.runtime.kafka import mapped

EVERY = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.KafkaError)]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_every_foreign_error_becomes_one_of_ours(kind: type[Exception]) -> None:
    """FBK-5: each says what a caller can do: retry, stop, or mend the settings."""
    try:
        error = kind()
    except TypeError:  # a few ask for arguments
        error = kind.__new__(kind)
    assert isinstance(mapped(error, "reading"), WeftError)


def test_what_a_caller_does_differs() -> None:
    """FBK-5."""
    assert isinstance(mapped(errors.KafkaTimeoutError(), "reading"), BrokerUnavailableError)
    assert isinstance(mapped(errors.KafkaConnectionError(), "reading"), BrokerUnavailableError)
    assert isinstance(mapped(errors.OffsetOutOfRangeError(), "reading"), WrongLogError)
    assert isinstance(mapped(errors.TopicAuthorizationFailedError(), "reading"), ConfigurationError)
    assert isinstance(mapped(errors.MessageSizeTooLargeError(), "writing"), InvalidEventError)
