"""A topic in memory, for those who produce."""

from __future__ import annotations

from pipelines.domain.errors import BrokerUnavailableError
from pipelines.domain.events import AnyEvent
from pipelines.feedback.codec import decode
from pipelines.feedback.producer import Publisher
from tests.support.feedback_events import RULES


class MemoryPublisher(Publisher):
    """Keeps what it is sent, in that order, or refuses it as a broker does that is away."""

    waiting = lost = 0

    def __init__(self, *, available: bool = True) -> None:
        self.available = available
        self.sent: list[tuple[bytes, bytes]] = []

    def send(self, key: bytes, value: bytes) -> None:
        if not self.available:
            raise BrokerUnavailableError("nobody answers")
        self.sent.append((key, value))

    def flush(self) -> None: ...

    def close(self) -> int:
        return self.lost

    @property
    def keys(self) -> list[bytes]:
        return [key for key, _ in self.sent]

    @property
    def values(self) -> list[bytes]:
        return [value for _, value in self.sent]

    @property
    def events(self) -> list[AnyEvent]:
        """What it was sent, as an updater reads it: no longer than it takes."""
        return [decode(value, max_bytes=RULES.limits.event_bytes) for value in self.values]
