"""How kafka-python reaches brokers, and what it does not say by itself: why a broker did not let it in.

The client tries again until its time is over, logs the reason, and then raises that it had no time. Its connections are
watched here: what refuses it ends the first contact at once, and is remembered later on.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from weft.domain.errors import ConfigurationError, InvalidEventError, WeftError, WrongLogError
from weft.runtime.kafka.errors import Access, Refusal, tls_refusal
from weft.runtime.settings import KafkaSettings

_WRONG_LOG = (
    kafka_errors.OffsetOutOfRangeError,
    kafka_errors.NoOffsetForPartitionError,
    kafka_errors.LogTruncationError,
)
_WRONG_SETTING = (
    kafka_errors.IllegalArgumentError,
    kafka_errors.KafkaConfigurationError,
    kafka_errors.InvalidTopicError,
)
_REFUSALS: tuple[tuple[type[Exception], Refusal], ...] = (
    (kafka_errors.SaslAuthenticationFailedError, Refusal.USER),
    (kafka_errors.UnsupportedSaslMechanismError, Refusal.MECHANISM),
    (kafka_errors.IllegalSaslStateError, Refusal.PROTOCOL),
    (kafka_errors.InvalidReceiveError, Refusal.PROTOCOL),  # a TLS alert, read as the length of an answer
)
_NO_PRODUCER_ID = kafka_errors.ClusterAuthorizationFailedError.__name__
"""Within the text of a general error: the broker let nobody write without repeats."""


def mapped(error: Exception, access: Access) -> WeftError:
    """The error of weft's own tree that says what a caller can do about one of kafka-python's."""
    if isinstance(error, _WRONG_LOG):
        return WrongLogError(f"{access}: the log does not hold the offset sought: {error!r}")
    if isinstance(error, kafka_errors.MessageSizeTooLargeError):
        return InvalidEventError("oversized", f"{access}: {error!r}")
    if isinstance(error, kafka_errors.UnknownTopicOrPartitionError):
        return access.no_topic()
    if isinstance(error, _WRONG_SETTING):
        return ConfigurationError(
            f"{access}: expected settings that the client takes, see the section kafka: {error!r}"
        )
    return _refused(error, access) or access.unavailable(str(error) or repr(error))


def _refused(error: Exception, access: Access) -> ConfigurationError | None:
    """The error of a refusal; None where it is none."""
    if isinstance(error, kafka_errors.TopicAuthorizationFailedError):
        return access.not_permitted()
    if isinstance(error, kafka_errors.AuthorizationError) or _NO_PRODUCER_ID in str(error):
        return access.not_permitted(*(("IdempotentWrite", "cluster") if access.operation == "Write" else ()))
    if (refusal := _refusal(error)) is not None:
        return access.refused(refusal)
    return None


def _refusal(error: Exception) -> Refusal | None:
    """Which refusal of a connection an error tells of."""
    for kind, refusal in _REFUSALS:
        if isinstance(error, kind):
            return refusal
    return tls_refusal(str(error)) if isinstance(error, kafka_errors.KafkaConnectionError) else None


class Connections:
    """Makes the connections of one kafka-python client, and knows which brokers refused them.

    Give it as `kafka_client`, and everything else that `options` returns.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._watched: _Watched | None = None
        self._client: Any = None

    def options(self) -> dict[str, Any]:
        """How kafka-python is told to reach the brokers; errors as in `tls_context`."""
        settings = self._access.settings
        password = settings.sasl_password
        return {
            "bootstrap_servers": settings.bootstrap.split(","),
            "security_protocol": settings.security_protocol,
            "sasl_mechanism": settings.sasl_mechanism,
            "sasl_plain_username": settings.sasl_username,
            "sasl_plain_password": None if password is None else password.get_secret_value(),
            "ssl_context": tls_context(settings),
            "request_timeout_ms": settings.request_timeout_ms,
            "bootstrap_timeout_ms": settings.connect_timeout_ms,
            "kafka_client": self,
        }

    def __call__(self, **configs: Any) -> Any:
        """The client's connections, as kafka-python asks for them."""
        net = NetworkSelector(**configs)
        self._watched = _Watched(net, **configs)
        self._client = KafkaNetClient(net=net, manager=self._watched)
        return self._client

    @property
    def refusal(self) -> ConfigurationError | None:
        """What every broker says that refuses this client now; None while one lets it in, or none was asked."""
        refusal = self._watched and self._watched.refusal
        return None if refusal is None else _refused(refusal, self._access)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Errors of kafka-python inside the block become weft's own."""
        try:
            yield
        except (kafka_errors.KafkaError, OSError) as error:
            raise self.mapped(error) from error

    @contextlib.contextmanager
    def opening(self) -> Iterator[None]:
        """The same for the first contact; where it fails, nothing of the connections is left."""
        try:
            with self.errors():
                yield
        except WeftError:
            if self._client is not None:
                self._client.close()
            raise

    def mapped(self, error: Exception) -> WeftError:
        """The error of weft's own tree for one of kafka-python's; of one that ran out of time, the reason."""
        if isinstance(error, kafka_errors.KafkaTimeoutError) and self._watched is not None:
            missing = kafka_errors.UnknownTopicOrPartitionError(self._access.topic)
            lacks = self._access.operation == "Write" and self._watched.lacks(self._access.topic)
            error = self._watched.refusal or self._watched.failure or (missing if lacks else error)
        return mapped(error, self._access)


class _Watched(KafkaConnectionManager):  # type: ignore[misc]
    """Connections that remember by broker why they failed or ended."""

    def __init__(self, net: Any, **configs: Any) -> None:
        self._failures: dict[Any, Exception] = {}
        super().__init__(net, **configs)

    @property
    def failure(self) -> Exception | None:
        """The latest failure of a broker that has not answered since."""
        return next(reversed(self._failures.values()), None)

    @property
    def refusal(self) -> Exception | None:
        """One of the refusals, where all brokers refuse."""
        brokers = [broker.node_id for broker in self.cluster.brokers() or self.cluster.bootstrap_brokers()]
        failures = [self._failures.get(broker) for broker in brokers]
        refusals = [error for error in failures if error is not None and _refusal(error) is not None]
        return refusals[0] if refusals and len(refusals) == len(failures) else None

    def lacks(self, topic: str) -> bool:
        """Whether brokers answered, and hold no such topic."""
        return bool(self.cluster.brokers()) and topic not in self.cluster.topics()

    def get_connection(self, node_id: Any, **how: Any) -> Any:
        """A connection to a broker; the first contact ends where all refuse, and later ones are tried again."""
        if not self.bootstrapped and (refusal := self.refusal) is not None:
            raise refusal
        connection = super().get_connection(node_id, **how)
        if not connection.init_future.is_done:
            connection.init_future.add_callback(lambda _: self._let_in(node_id, connection))
            connection.init_future.add_errback(partial(self._note, node_id))
        return connection

    def _let_in(self, node_id: Any, connection: Any) -> None:
        self._failures.pop(node_id, None)
        connection.close_future.add_errback(partial(self._note, node_id))

    def _note(self, node_id: Any, error: Exception) -> None:
        if error != kafka_errors.KafkaConnectionError():  # so the client says that it hung up itself
            self._failures.pop(node_id, None)
            self._failures[node_id] = error

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        transport = await super()._build_transport(node, timeout_at=timeout_at)
        transport._sock_recv = _data_first(transport._sock_recv)
        return transport


def _data_first(receive: Callable[[], tuple[bytes, Exception | None]]) -> Callable[[], tuple[bytes, Exception | None]]:
    """Read what a broker said last before it is noticed that it hung up: the client drops it otherwise.

    A broker gives the reason of a refusal, and closes the connection behind it.
    """
    ended: list[Exception] = []

    def read() -> tuple[bytes, Exception | None]:
        if ended:
            return b"", ended[0]
        data, error = receive()
        if data and error is not None:
            ended.append(error)
            return data, None
        return data, error

    return read


def tls_context(settings: KafkaSettings) -> ssl.SSLContext | None:
    """What brokers and this client prove to each other; None without TLS.

    Raises:
        ConfigurationError: A file is missing, is none of its kind, or does not open with its password.
    """
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
