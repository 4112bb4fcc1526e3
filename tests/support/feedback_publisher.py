"""A topic in memory, for those who produce."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.feedback_events import RULES
from weft.domain.errors import BrokerUnavailableError, InvalidEventError, WeftError
from weft.domain.events import AnyEvent
from weft.feedback.events.codec import decode
from weft.feedback.events.producer import Publisher
from weft.feedback.publish.dead_letters import DeadLetterSink, Republisher
from weft.feedback.settings import FeedbackSettings


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


class MemoryTopic(DeadLetterSink):
    """Takes records no longer than `most_bytes`, or none while something is the matter.

    Attributes:
        error: What is the matter.
        attempts: How often somebody came, in vain or not.
    """

    def __init__(self, *, most_bytes: int = 1_000_000) -> None:
        self.most_bytes = most_bytes
        self.error: WeftError | None = None
        self.attempts = 0
        self.taken: list[tuple[bytes, bytes]] = []

    def deliver(self, records: Sequence[tuple[bytes, bytes]]) -> Sequence[WeftError | None]:
        self.attempts += 1
        if self.error is not None:
            raise self.error
        self.taken += [record for record in records if len(record[1]) <= self.most_bytes]
        large = InvalidEventError("oversized", f"more than {self.most_bytes} bytes")
        return [None if len(value) <= self.most_bytes else large for _, value in records]

    def close(self) -> None: ...


def republisher(topic: DeadLetterSink, settings: FeedbackSettings) -> Republisher:
    """One that makes its attempts at once, in the thread of whoever looks."""
    return Republisher(lambda: topic, settings, most_bytes=1_000, aside=lambda work: work())
