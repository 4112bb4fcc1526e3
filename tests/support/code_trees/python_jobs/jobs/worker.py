"""Takes jobs and runs them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from jobs.base import Job, Queue
from jobs.retry import Backoff

log = logging.getLogger(__name__)


class Worker:
    """Runs the jobs of one queue, one after the other."""

    def __init__(self, queue: Queue, *, backoff: Backoff | None = None, clock: Callable[[], float] = time.time) -> None:
        self._queue = queue
        self._handlers: dict[str, Callable[[dict], None]] = {}
        self._backoff = backoff or Backoff()
        self._clock = clock
        self.dead: list[Job] = []
        self._stopping = False

    def handles(self, name: str) -> Callable[[Callable[[dict], None]], Callable[[dict], None]]:
        """Register a function for jobs of a name."""

        def register(function: Callable[[dict], None]) -> Callable[[dict], None]:
            self._handlers[name] = function
            return function

        return register

    def run_once(self) -> bool:
        """Run the next job; whatever it raises sends it to `_failed`. False where nothing was due."""
        job = self._queue.take(self._clock())
        if job is None:
            return False
        try:
            self._handlers[job.name](job.payload)
        except Exception as error:
            self._failed(job, error)
        return True

    def _failed(self, job: Job, error: Exception) -> None:
        """Put a job back with a delay, or among the dead ones when it had its last attempt."""
        job.attempts += 1
        delay = self._backoff.delay(job.attempts)
        if delay is None:
            log.error("%s gave up: %s", job.name, error)
            self.dead.append(job)
            return
        job.run_at = self._clock() + delay
        self._queue.push(job)

    def stop(self) -> None:
        """Finish the job at hand and take no other."""
        self._stopping = True

    def run(self, idle_s: float = 1.0) -> None:
        """Run until stopped, sleeping while nothing is due."""
        while not self._stopping:
            if not self.run_once():
                time.sleep(idle_s)
