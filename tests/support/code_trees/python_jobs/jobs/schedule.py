"""Jobs that come again at fixed times."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.base import Job, Queue


@dataclass
class Every:
    """A job that is due every so many seconds."""

    name: str
    seconds: float
    last: float = 0.0


def enqueue_due(entries: list[Every], queue: Queue, now: float) -> int:
    """Push a job for every entry whose interval has passed; missed intervals count once."""
    due = [entry for entry in entries if now - entry.last >= entry.seconds]
    for entry in due:
        entry.last = now
        queue.push(Job(entry.name))
    return len(due)


def parse_interval(text: str) -> float:
    """Seconds of texts such as "90s", "5m" and "2h"."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    if text[-1:] not in units:
        raise ValueError(f"expected an interval such as 5m, found {text!r}")
    return float(text[:-1]) * units[text[-1]]
