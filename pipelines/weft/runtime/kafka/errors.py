"""What weft says where Kafka refuses a client: who was refused, and the setting or permission that changes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from weft.domain.errors import BrokerUnavailableError, ConfigurationError, MissingTopicError
from weft.runtime.settings import KafkaSettings

_ALERTS = ("bad certificate", "certificate unknown", "certificate required", "certificate expired", "unknown ca")
_OTHER_HOST = ("mismatch", "not valid for")
_DOING = {"Read": "reading", "Write": "writing", "Describe": "looking at", "Create": "making"}


class Refusal(StrEnum):
    """Why a broker and a client do not come together."""

    USER = "user"
    MECHANISM = "mechanism"
    PROTOCOL = "protocol"
    AUTHORITY = "authority"
    EXPIRED = "expired"
    HOST = "host"
    CERTIFICATE = "certificate"


@dataclass(frozen=True, slots=True)
class Access:
    """What a client wants of Kafka."""

    settings: KafkaSettings
    operation: str  # as Kafka names it: Read, Write, Describe or Create
    topic: str  # which one it is about

    def __str__(self) -> str:
        return f"{_DOING[self.operation]} {self.topic} at {self.settings.bootstrap}"

    def refused(self, refusal: Refusal, text: str = "") -> ConfigurationError:
        """The error of a broker that does not let this client in, or is not trusted; `text` says more."""
        return ConfigurationError(f"{self}: {_reason(refusal, self.settings)}{text and f' ({text})'}")

    def not_permitted(self, operation: str = "", resource: str = "") -> ConfigurationError:
        """The error of a user who may not do that; by default this access's operation on its topic."""
        operation, resource = operation or self.operation, resource or f"topic {self.topic}"
        user = self.settings.sasl_username
        principal = "User:NAME" if user is None else f"User:{user}"
        whose = "the user of kafka.ssl_certfile" if user is None else f"user {user!r} (kafka.sasl_username)"
        command = " ".join(
            [
                *("kafka-acls.sh", "--bootstrap-server", self.settings.bootstrap),
                *("--add", "--allow-principal", principal, "--operation", operation, f"--{resource}"),
            ]
        )
        return ConfigurationError(
            f"{self}: expected the permission {operation} on {resource} for {whose}, found none: {command}"
        )

    def too_large(self) -> ConfigurationError:
        """The error of a topic that takes smaller records than weft sends."""
        return ConfigurationError(
            f"{self}: expected the topic to take a record of this size, found a lower limit: raise max.message.bytes "
            f"of {self.topic}"
        )

    def no_topic(self) -> MissingTopicError:
        """The error of a topic that nobody has made yet."""
        return MissingTopicError(
            f"{self}: expected the topic, found none: updaters make it (`weft update`), or whoever may create it"
        )

    def unavailable(self, text: str) -> BrokerUnavailableError:
        """The error of a broker that does not answer."""
        if "Disconnected" in text or "closed by peer" in text:
            protocol = self.settings.security_protocol
            advice = f"does its listener expect another kafka.security_protocol than {protocol}, or does it stop?"
        else:
            advice = "is the broker up?"
        return BrokerUnavailableError(f"{self}: expected an answer, found {text}; {advice}")


def connection_refusal(text: str) -> Refusal | None:
    """What the words of the client, and those of OpenSSL in them, tell of a refusal; None where they tell of none."""
    words = text.lower()
    if "invalid response size" in words:  # a TLS alert, read as the length of an answer
        return Refusal.PROTOCOL
    if "alert" in words:  # the broker's words about this client
        return Refusal.CERTIFICATE if any(alert in words for alert in _ALERTS) else None
    if "certificate verify failed" not in words:
        return None
    if "has expired" in words:
        return Refusal.EXPIRED
    return Refusal.HOST if any(part in words for part in _OTHER_HOST) else Refusal.AUTHORITY


def sasl_refusal(text: str) -> Refusal:
    """What of a password's way in was refused, by librdkafka's words."""
    words = text.lower()
    if "unsupported sasl mechanism" in words:
        return Refusal.MECHANISM
    return Refusal.PROTOCOL if "current sasl state" in words else Refusal.USER


_REASONS = {
    Refusal.USER: (
        "expected user {user!r} to be let in with {mechanism}, found the authentication refused: check "
        "kafka.sasl_username and kafka.sasl_password (WEFT__KAFKA__SASL_PASSWORD)"
    ),
    Refusal.MECHANISM: (
        "expected the broker to offer {mechanism}, found that it does not: set kafka.sasl_mechanism to one of its "
        "listener"
    ),
    Refusal.PROTOCOL: (
        "expected a listener for {protocol}, found one that speaks otherwise: set kafka.security_protocol as the "
        "listener has it, or the port of such a listener in kafka.bootstrap"
    ),
    Refusal.AUTHORITY: (
        "expected a broker's certificate signed by an authority, {trusted}, found another: give the file of the "
        "authority that signed it as kafka.ssl_cafile"
    ),
    Refusal.EXPIRED: (
        "expected a broker's certificate that is valid today, found an expired one: renew it at the broker, or correct "
        "this machine's clock; kafka.ssl_cafile cannot help"
    ),
    Refusal.HOST: (
        "expected a broker's certificate for a host of {bootstrap}, found one for others: name brokers in "
        "kafka.bootstrap as their certificates do, or set kafka.ssl_check_hostname to false"
    ),
    Refusal.CERTIFICATE: (
        "expected the certificate in {certificate} to be accepted, found it refused: give one that is valid and signed "
        "by an authority of the broker as kafka.ssl_certfile"
    ),
}
_NO_CERTIFICATE = (
    "expected to be let in without a certificate, found that the broker asks for one: set kafka.ssl_certfile and "
    "kafka.ssl_keyfile"
)


def _reason(refusal: Refusal, settings: KafkaSettings) -> str:
    if refusal is Refusal.CERTIFICATE and settings.ssl_certfile is None:
        return _NO_CERTIFICATE
    return _REASONS[refusal].format(
        user=settings.sasl_username,
        mechanism=settings.sasl_mechanism,
        protocol=settings.security_protocol,
        bootstrap=settings.bootstrap,
        certificate=settings.ssl_certfile,
        trusted="one that this machine trusts" if settings.ssl_cafile is None else f"one in {settings.ssl_cafile}",
    )
