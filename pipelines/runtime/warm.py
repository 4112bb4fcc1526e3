"""Threads of which the one that was busy last works next."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

log = logging.getLogger(__name__)

Work = Callable[[], object]
"""Something to do that handles its own errors: what it raises is logged alone."""


class WarmThreads:
    """At most so many threads, each started when it is first needed.

    A pool whose threads take turns has as many caches and heaps to warm as threads: one search after the other took a
    tenth longer. Here the same few threads do it, as long as there is no more to do at once.
    """

    def __init__(self, most: int, name: str) -> None:
        """Start none yet.

        Args:
            most: Threads, >= 1; what is more to do at once waits, and is begun in the order it came.
            name: What their names begin with.
        """
        self._threads = [ThreadPoolExecutor(1, thread_name_prefix=f"{name}-{number}") for number in range(most)]
        self._idle = self._threads[::-1]
        self._waiting: deque[Work] = deque()
        self._lock = threading.Lock()

    def start(self, work: Work) -> None:
        """Do something in one of the threads.

        Raises:
            RuntimeError: They were closed.
        """
        with self._lock:
            self._waiting.append(work)
            thread = self._idle.pop() if self._idle else None
        if thread is not None:
            thread.submit(self._work_off, thread)

    def close(self) -> None:
        """Wait until all is done; nothing is begun that was not asked for by now."""
        for thread in self._threads:
            thread.shutdown()

    def _work_off(self, thread: ThreadPoolExecutor) -> None:
        while (work := self._next(thread)) is not None:
            try:
                work()
            except BaseException:
                log.exception("work in a thread was not to fail")

    def _next(self, thread: ThreadPoolExecutor) -> Work | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._idle.append(thread)
            return None
