"""A queue in memory."""

from __future__ import annotations

import heapq
import itertools

from jobs.base import Job, Queue


class MemoryQueue(Queue):
    """Keeps jobs in a heap; those of higher priority come first, then older ones."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Job]] = []
        self._later: list[tuple[float, int, Job]] = []
        self._order = itertools.count()

    def push(self, job: Job) -> None:
        """Put a job into the heap, or aside until its time has come."""
        number = next(self._order)
        if job.run_at:
            heapq.heappush(self._later, (job.run_at, number, job))
        else:
            heapq.heappush(self._heap, (-job.priority, number, job))

    def take(self, now: float) -> Job | None:
        """The most urgent job whose time has come; None where nothing is due."""
        self._promote(now)
        return heapq.heappop(self._heap)[2] if self._heap else None

    def _promote(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            _, number, job = heapq.heappop(self._later)
            heapq.heappush(self._heap, (-job.priority, number, job))
