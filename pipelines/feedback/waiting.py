"""A publisher for services that start before their broker: what is said meanwhile waits, in bounded memory (FBK-2)."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipelines.domain.errors import BrokerUnavailableError, ConfigurationError, InvalidEventError, WeftError

if TYPE_CHECKING:
    from pipelines.feedback.producer import Publisher

_log = logging.getLogger(__name__)


class WaitingPublisher:
    """Opens another publisher in the background, and keeps records in their order until it has taken them.

    Once nothing waits any more, records are handed to that publisher at once, by whoever sends them; where it does not
    take one, that one and all later ones wait again. All methods may be called from any thread; `flush` and `close`
    wait, and `send` only as long as the publisher it hands to.

    Implements `pipelines.feedback.producer.Publisher`.
    """

    def __init__(
        self, opened: Callable[[], Publisher], *, most_bytes: int, retry_s: float, patience_s: float, broker: str
    ) -> None:
        """Begin to open.

        Args:
            opened: Gives the publisher, or raises BrokerUnavailableError while nobody answers; asked in a thread.
            most_bytes: Of keys and values that wait; a record beyond is refused.
            retry_s: Pause before asking again.
            patience_s: How long `flush` and `close` wait for a broker that never answered.
            broker: Its address, for messages.
        """
        self._opened = opened
        self._most_bytes = most_bytes
        self._retry_s = retry_s
        self._patience_s = patience_s
        self._broker = broker
        self._waiting: deque[tuple[bytes, bytes]] = deque()
        self._bytes = 0
        self._refused = 0
        self._reason: WeftError | None = None
        self._publisher: Publisher | None = None  # while nothing waits
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._begin(None)

    @property
    def waiting(self) -> int:
        """Records that no broker has been handed yet."""
        return len(self._waiting)

    def send(self, key: bytes, value: bytes) -> None:
        """Hand a record over.

        Raises:
            BrokerUnavailableError: As much waits as may.
            ConfigurationError: The broker answers, and refuses this client.
            InvalidEventError: The broker would never take this record.
        """
        with self._changed:
            publisher = self._publisher
            if publisher is None:
                self._keep(key, value)
                return
        try:
            publisher.send(key, value)
        except BrokerUnavailableError as error:
            self._tell(error)
            with self._changed:
                if self._publisher is publisher:
                    self._publisher = None
                    self._begin(publisher)
                self._keep(key, value)

    def flush(self) -> None:
        """Wait until all are acknowledged.

        Raises:
            BrokerUnavailableError: One was not; those that wait are kept, and sent once a broker answers.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._publisher is not None, self._patience_s if self._waiting else 0.0)
            publisher, waiting = self._publisher, len(self._waiting)
        if publisher is not None:
            publisher.flush()
        self._require_none_refused(waiting)

    def close(self) -> None:
        """Flush, and release the connection.

        Raises:
            BrokerUnavailableError: Records were not sent, and are lost now.
        """
        try:
            self.flush()
        finally:
            with self._changed:
                self._closed.set()
                publisher = self._publisher
            if publisher is not None:
                publisher.close()

    def _keep(self, key: bytes, value: bytes) -> None:
        if isinstance(self._reason, ConfigurationError):
            raise self._reason
        if self._bytes + len(key) + len(value) > self._most_bytes:
            raise BrokerUnavailableError(
                f"expected an answer from {self._broker}, found none so far: {len(self._waiting)} events wait for it "
                f"in {self._bytes} bytes, and no more than {self._most_bytes} may (kafka.wait_bytes)"
            )
        self._waiting.append((key, value))
        self._bytes += len(key) + len(value)

    def _require_none_refused(self, waiting: int) -> None:
        with self._changed:
            refused, self._refused = self._refused, 0
        if waiting or refused:
            raise BrokerUnavailableError(
                f"{waiting} events wait for {self._broker}, and {refused} were refused by it: "
                f"{self._reason or 'no answer yet'}"
            ) from self._reason

    def _begin(self, publisher: Publisher | None) -> None:
        threading.Thread(target=self._run, args=(publisher,), name="waiting for the broker", daemon=True).start()

    def _run(self, publisher: Publisher | None) -> None:
        while not self._closed.is_set():
            try:
                publisher = publisher or self._opened()
                if self._handed_over(publisher):
                    return
            except WeftError as error:
                self._tell(error)
            except Exception as error:  # noqa: BLE001  whoever sends is told; a thread that dies tells nobody
                self._tell(ConfigurationError(f"reaching {self._broker}: refused, see the kafka section: {error!r}"))
            self._closed.wait(self._retry_s)
        if publisher is not None:
            publisher.close()

    def _handed_over(self, publisher: Publisher) -> bool:
        """Hand over what waits; whether that was all, and records need not wait any more."""
        while True:
            with self._changed:
                if self._closed.is_set():
                    return False
                if not self._waiting:
                    self._publisher = publisher
                    self._changed.notify_all()
                    if self._reason is not None:
                        _log.info("%s answers: nothing waits any more", self._broker)
                        self._reason = None
                    return True
                key, value = self._waiting[0]
            refused = 0
            try:
                publisher.send(key, value)
            except InvalidEventError as error:  # no later try helps this one, and others wait behind it
                _log.warning("an event is lost: %s", error)
                refused = 1
            with self._changed:
                self._refused += refused
                self._waiting.popleft()
                self._bytes -= len(key) + len(value)

    def _tell(self, error: WeftError) -> None:
        if self._reason is None or type(self._reason) is not type(error):
            _log.warning("%s; events wait, and the broker is asked again every %g s", error, self._retry_s)
        self._reason = error
