"""Topics that nobody else uses, on a broker that tests may share."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field


def _unused() -> str:
    return f"events-{uuid.uuid4().hex}"


@dataclass(frozen=True)
class Place:
    """Where a test's events are: at a broker, in topics of its own."""

    bootstrap: str
    topic: str = field(default_factory=_unused)

    @property
    def assignments(self) -> tuple[str, ...]:
        """What makes settings read and write there."""
        return (
            f"kafka.bootstrap={self.bootstrap}",
            f"kafka.group=of-{self.topic}",
            f"feedback.topic={self.topic}",
            f"feedback.dead_letter_topic={self.topic}.dlq",
        )

    @property
    def arguments(self) -> tuple[str, ...]:
        """The same for a job."""
        return tuple(part for one in self.assignments for part in ("--set", one))
