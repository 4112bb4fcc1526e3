"""How librdkafka reaches brokers, and what its codes and texts mean to weft; kafka-python is told the same of TLS.

The client tries again until its time is over, and says why at once to whoever listens: see `ClientEvents`.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from weft.domain.errors import ConfigurationError, InvalidEventError, WeftError, WrongLogError
from weft.runtime.kafka.errors import Access, Refusal, connection_refusal, sasl_refusal
from weft.runtime.settings import KafkaSettings

_log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_WRONG_LOG = frozenset(
    {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._NO_OFFSET, KafkaError._LOG_TRUNCATION}
)
_SASL = frozenset(
    {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.UNSUPPORTED_SASL_MECHANISM}
)
_NO_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
_SILENT = frozenset({KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})
_HANDSHAKE_S = 2.0
_LOOK_S = 0.02  # between looks at what the client says while an answer is waited for


def mapped(error: KafkaError, access: Access) -> WeftError:
    """The error of weft's own tree that says what a caller can do about one of librdkafka's."""
    code, text = error.code(), error.str()
    if code in _WRONG_LOG:
        return WrongLogError(f"{access}: the log does not hold the offset sought: {text}")
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        return InvalidEventError("oversized", f"{access}: {text}")
    if code in _NO_TOPIC:
        return access.no_topic()
    return refused(error, access) or access.unavailable(text)


def refused(error: KafkaError, access: Access) -> ConfigurationError | None:
    """The error of a setting or a permission that stands in the way; None where it is none."""
    code, text = error.code(), error.str()
    if code in {KafkaError._INVALID_ARG, KafkaError.INVALID_CONFIG, KafkaError.TOPIC_EXCEPTION}:
        return ConfigurationError(f"{access}: expected settings that the client takes, see the section kafka: {text}")
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return access.not_permitted()
    if code == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
        return access.not_permitted(*(("IdempotentWrite", "cluster") if access.operation == "Write" else ()))
    if code in _SASL:
        return access.refused(sasl_refusal(text), text)
    return connection_refused(text, access)


def connection_refused(text: str, access: Access) -> ConfigurationError | None:
    """The error of a connection that ended by a refusal."""
    refusal = connection_refusal(text)
    if refusal is Refusal.AUTHORITY:
        refusal = connection_refusal(_certificate_error(access.settings)) or refusal
    return None if refusal is None else access.refused(refusal)


def _certificate_error(settings: KafkaSettings) -> str:
    """What is wrong with a broker's certificate: librdkafka says no more than that it could not verify it."""
    context = tls_context(settings)
    for server in settings.bootstrap.split(",") if context is not None else ():
        host, _, port = server.rpartition(":")
        try:
            with (
                socket.create_connection((host, int(port)), _HANDSHAKE_S) as connection,
                context.wrap_socket(connection, server_hostname=host),  # type: ignore[union-attr]
            ):
                continue
        except (OSError, ValueError) as error:
            return str(error)
    return ""


@contextlib.contextmanager
def errors(access: Access) -> Iterator[None]:
    """Errors of librdkafka inside the block become weft's own."""
    try:
        yield
    except KafkaException as error:
        raise mapped(error.args[0], access) from error


class ClientEvents:
    """What one client says aside about its connections: that it is refused, or cut off, it tells nowhere else."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self.refusal: ConfigurationError | None = None
        self.fatal = False  # whether the client does nothing more
        self.text = ""  # why it has no connection

    def __call__(self, error: KafkaError) -> None:
        """Keep an error."""
        self.refusal = refused(error, self._access) or self.refusal
        self.fatal = self.fatal or error.fatal()

    def log(self, _: int, text: str, *values: object) -> None:
        """Keep why the client lost a connection; it says so many times a second, and errors say it once."""
        _log.debug(text, *values)
        line = text % values
        if line.startswith("FAIL "):
            self.text = line.rpartition("]: ")[2] or line
            self.refusal = connection_refused(line, self._access) or self.refusal

    def answer(self, client: Any, future: Future[Answer], timeout_s: float) -> Answer:
        """What a client's call comes to; a refusal ends the wait at once."""
        deadline = time.monotonic() + timeout_s
        while not future.done() and time.monotonic() < deadline:
            client.poll(0)
            if self.refusal is not None:
                raise self.refusal
            with contextlib.suppress(TimeoutError, KafkaException):
                future.result(_LOOK_S)
        try:
            return future.result(0)
        except TimeoutError as error:
            raise self._access.unavailable(self.text or "none in time") from error
        except KafkaException as error:
            silent = error.args[0].code() in _SILENT and self.text
            raise (self._access.unavailable(self.text) if silent else mapped(error.args[0], self._access)) from error


def options(settings: KafkaSettings, events: ClientEvents) -> dict[str, Any]:
    """How librdkafka is told to reach the brokers; errors as in `tls_context`."""
    tls_context(settings)  # says more clearly than the client which file is wrong
    password, key_password = settings.sasl_password, settings.ssl_keyfile_password
    stated = {
        "bootstrap.servers": settings.bootstrap,
        "security.protocol": settings.security_protocol,
        "sasl.mechanism": settings.sasl_mechanism,
        "sasl.username": settings.sasl_username,
        "sasl.password": None if password is None else password.get_secret_value(),
        "ssl.ca.location": settings.ssl_cafile,
        "ssl.certificate.location": settings.ssl_certfile,
        "ssl.key.location": settings.ssl_keyfile or settings.ssl_certfile,
        "ssl.key.password": None if key_password is None else key_password.get_secret_value(),
        "ssl.endpoint.identification.algorithm": "https" if settings.ssl_check_hostname else "none",
        "allow.auto.create.topics": False,  # a look must not make a topic with the broker's default partitions
        "socket.timeout.ms": settings.request_timeout_ms,
        "error_cb": events,
        "logger": events,
    }
    return {name: value for name, value in stated.items() if value is not None}


def tls_context(settings: KafkaSettings) -> ssl.SSLContext | None:
    """What brokers and this client prove to each other; None without TLS."""
    if not settings.security_protocol.endswith("SSL"):
        return None
    for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
        file = getattr(settings, name)
        if file is not None and not Path(file).is_file():
            raise ConfigurationError(f"kafka.{name}: expected a PEM file, found none at {file}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.ssl_check_hostname
    try:
        if settings.ssl_cafile is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(settings.ssl_cafile)
    except ssl.SSLError as error:
        raise ConfigurationError(
            f"kafka.ssl_cafile: expected certificates in PEM in {settings.ssl_cafile}, found {error.reason}"
        ) from error
    _prove_client(context, settings)
    return context


def _prove_client(context: ssl.SSLContext, settings: KafkaSettings) -> None:
    if settings.ssl_certfile is None:
        return
    password = settings.ssl_keyfile_password
    # Without a password, OpenSSL asks the terminal for one.
    secret = "" if password is None else password.get_secret_value()
    try:
        context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile, password=secret)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigurationError(
            f"kafka.ssl_keyfile: expected the key of {settings.ssl_certfile} in {settings.ssl_keyfile}, opened by "
            f"kafka.ssl_keyfile_password (WEFT__KAFKA__SSL_KEYFILE_PASSWORD), found {getattr(error, 'reason', error)}"
        ) from error
