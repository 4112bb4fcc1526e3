"""What carries events, also for services that start before their broker: what is said meanwhile waits (FBK-2)."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from weft.domain.errors import BrokerUnavailableError, ConfigurationError, InvalidEventError, WeftError

_log = logging.getLogger(__name__)


class Publisher(Protocol):
    """Carries keyed records to one topic, in the order they were sent per key.

    Attributes:
        waiting: Records that `send` took, neither acknowledged nor lost yet.
        lost: Records that `send` took, and that no broker will have.
    """

    @property
    def waiting(self) -> int: ...  # noqa: D102

    @property
    def lost(self) -> int: ...  # noqa: D102

    def send(self, key: bytes, value: bytes) -> None:
        """Hand a record over; BrokerUnavailableError when it cannot be taken in a bounded time."""

    def flush(self) -> None:
        """Wait until all are acknowledged; BrokerUnavailableError or ConfigurationError when one was not."""

    def close(self) -> int:
        """Flush, and release the connection; never raises. How many that `send` took were not acknowledged."""


class BufferedPublisher:
    """Opens another publisher in the background, and keeps records in their order until it has taken them.

    Once nothing waits any more, records are handed to that publisher at once, by whoever sends them; where it does not
    take one, that one and all later ones wait again. All methods may be called from any thread; `flush` and `close`
    wait, and `send` only as long as the publisher it hands to.

    Implements `Publisher`.
    """

    def __init__(
        self, opened: Callable[[], Publisher], *, most_bytes: int, retry_s: float, patience_s: float, broker: str
    ) -> None:
        """Begin to open."""
        self._opened = opened
        self._most_bytes = most_bytes
        self._retry_s = retry_s
        self._patience_s = patience_s
        self._broker = broker
        self._waiting: deque[tuple[bytes, bytes]] = deque()
        self._bytes = 0
        self._in_hand = 0  # neither among those that wait, nor with the publisher yet
        self._refused = self._reported = 0
        self._reason: WeftError | None = None
        self._publisher: Publisher | None = None  # once it was opened
        self._ready = False  # it takes records at once: nothing waits
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._begin()

    @property
    def waiting(self) -> int:
        """Records taken by `send` that are neither acknowledged nor lost."""
        publisher = self._publisher
        return len(self._waiting) + self._in_hand + (0 if publisher is None else publisher.waiting)

    @property
    def lost(self) -> int:
        """Records taken by `send` that no broker will have."""
        publisher = self._publisher
        return self._refused + (0 if publisher is None else publisher.lost)

    def send(self, key: bytes, value: bytes) -> None:
        """Hand a record over.

        Raises:
            BrokerUnavailableError: As much waits as may.
            ConfigurationError: The broker answers, and refuses this client.
            InvalidEventError: The broker would never take this record.
        """
        with self._changed:
            publisher = self._publisher
            if publisher is None or not self._ready:
                self._keep(key, value)
                return
        try:
            publisher.send(key, value)
        except BrokerUnavailableError as error:
            self._tell(error)
            with self._changed:
                if self._ready:
                    self._ready = False
                    self._begin()
                self._keep(key, value)

    def flush(self) -> None:
        """Wait until all are acknowledged.

        Raises:
            BrokerUnavailableError: One was not; those that wait are kept, and sent once a broker answers.
            ConfigurationError: One was not, since the broker refuses this client.
        """
        with self._changed:
            self._changed.wait_for(self._is_decided, self._patience_s if self._waiting or self._in_hand else 0.0)
            publisher = self._publisher if self._ready else None
        if publisher is not None:
            publisher.flush()
        with self._changed:
            waiting = len(self._waiting) + self._in_hand
            refused, self._reported = self._refused - self._reported, self._refused
        if waiting and isinstance(self._reason, ConfigurationError):
            raise self._reason
        if waiting or refused:
            raise BrokerUnavailableError(
                f"{waiting} events wait for {self._broker}, and {refused} were refused by it: "
                f"{self._reason or 'no answer yet'}"
            ) from self._reason

    def close(self) -> int:
        """Flush, and release the connection; never raises. What is not acknowledged then is logged.

        Returns:
            How many of the records that `send` took were not acknowledged.
        """
        with contextlib.suppress(WeftError):
            self.flush()
        with self._changed:
            self._closed.set()
            self._ready = False
            self._changed.wait_for(lambda: not self._in_hand)
            unsent = len(self._waiting)
            self._refused, self._bytes = self._refused + unsent, 0
            self._waiting.clear()
            publisher = self._publisher
        if unsent:
            _log.warning(
                "%d events waited for %s, and are lost: %s", unsent, self._broker, self._reason or "no answer yet"
            )
        if publisher is not None:
            publisher.close()
        return self.lost

    def _is_decided(self) -> bool:
        return self._ready or isinstance(self._reason, ConfigurationError)

    def _keep(self, key: bytes, value: bytes) -> None:
        if isinstance(self._reason, ConfigurationError):
            raise self._reason
        if self._closed.is_set():
            raise BrokerUnavailableError(f"expected an open producer for {self._broker}, found it closed: open another")
        if self._bytes + len(key) + len(value) > self._most_bytes:
            raise BrokerUnavailableError(
                f"expected an answer from {self._broker}, found none so far: {len(self._waiting)} events wait for it "
                f"in {self._bytes} bytes, and no more than {self._most_bytes} may"
            )
        self._waiting.append((key, value))
        self._bytes += len(key) + len(value)

    def _begin(self) -> None:
        threading.Thread(target=self._run, name="waiting for the broker", daemon=True).start()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                publisher = self._publisher or self._adopted(self._opened())
                if self._handed_over(publisher):
                    return
            except WeftError as error:
                self._tell(error)
            except Exception as error:  # noqa: BLE001  whoever sends is told; a thread that dies tells nobody
                self._tell(ConfigurationError(f"reaching {self._broker}: refused, see the kafka section: {error!r}"))
            self._closed.wait(self._retry_s)

    def _adopted(self, publisher: Publisher) -> Publisher:
        """Make a publisher the one that `close` closes; it does so itself where that came first."""
        with self._changed:
            self._publisher = publisher
            late = self._closed.is_set()
        if late:
            publisher.close()
        return publisher

    def _handed_over(self, publisher: Publisher) -> bool:
        """Hand over what waits; whether that was all, and records need not wait any more."""
        while True:
            with self._changed:
                if self._closed.is_set():
                    return False
                if not self._waiting:
                    self._become_ready()
                    return True
                record = self._waiting.popleft()
                self._in_hand = 1
            self._hand_over(publisher, record)

    def _become_ready(self) -> None:
        self._ready = True
        if self._reason is not None:
            _log.info("%s answers: nothing waits any more", self._broker)
            self._reason = None
        self._changed.notify_all()

    def _hand_over(self, publisher: Publisher, record: tuple[bytes, bytes]) -> None:
        refused, back = 0, True
        try:
            publisher.send(*record)
            back = False
        except InvalidEventError as error:  # no later try helps this one, and others wait behind it
            _log.warning("an event is lost: %s", error)
            refused, back = 1, False
        finally:
            with self._changed:
                self._in_hand = 0
                self._refused += refused
                if back:
                    self._waiting.appendleft(record)
                else:
                    self._bytes -= sum(map(len, record))
                self._changed.notify_all()

    def _tell(self, error: WeftError) -> None:
        if self._reason is None or type(self._reason) is not type(error):
            _log.warning("%s; events wait, and the broker is asked again every %g s", error, self._retry_s)
        with self._changed:
            self._reason = error
            self._changed.notify_all()
