"""Background jobs."""

from jobs.queue import MemoryQueue
from jobs.worker import Worker

__all__ = ["MemoryQueue", "Worker"]
