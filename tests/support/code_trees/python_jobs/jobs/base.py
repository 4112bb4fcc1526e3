"""What a queue is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field


@dataclass
class Job:
    """One piece of work."""

    name: str
    payload: dict = field(default_factory=dict)
    attempts: int = 0
    run_at: float = 0.0
    priority: int = 0


class Queue(ABC):
    """Holds jobs until somebody takes them."""

    @abstractmethod
    def push(self, job: Job) -> None:
        """Put a job into it."""

    @abstractmethod
    def take(self, now: float) -> Job | None:
        """The next job that is due."""
