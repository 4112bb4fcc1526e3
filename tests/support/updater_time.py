"""Processor time of an updater per event, over a log in memory: `python -m tests.support.updater_time [--profile]`.

Two mixes of one size: verdicts that repeat each other, and verdicts that are each of another result.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import tempfile
import time
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path

from tests.support.feedback_events import NOON
from tests.support.feedback_source import FakeLog, FakeSource
from tests.support.many_sessions import PAGE, PER_QUERY, events_of
from weft.feedback.run.updater import Updater
from weft.runtime.kafka.log import Record, Records
from weft.settings import load_settings

EVENTS, ROUNDS = 60_000, 2
MIXES = {"repeated verdicts": PAGE, "verdicts on different results": PER_QUERY}
"""Results of an answer."""


class _Columns(FakeSource):
    """A source that delivers columns, as the reader of Kafka does."""

    def poll(self, max_records: int, timeout_s: float) -> dict[int, Records]:
        return {one: Records.of(records) for one, records in super().poll(max_records, timeout_s).items()}


def microseconds(page: int, profile: cProfile.Profile | None = None) -> float:
    """Processor time per event, from the first poll to the last snapshot, best of some rounds."""
    events = enumerate(events_of(EVENTS, page=page))
    records = [Record(0, offset, NOON, key, value, by_broker=True) for offset, (key, value) in events]
    return min(_once(records, profile) for _ in range(ROUNDS)) / EVENTS * 1e6


def _once(records: list[Record], profile: cProfile.Profile | None) -> float:
    rules = load_settings([], [], environment={}).feedback
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        updater = stack.enter_context(closing(Updater.open(_Columns(FakeLog.of(records)), folder, [0], rules)))
        stack.enter_context(profile or nullcontext())
        began, consumed = time.process_time(), 0
        while consumed < len(records):
            consumed += updater.step(time.monotonic())
        updater.publish()
        return time.process_time() - began


def main(arguments: list[str]) -> None:
    """Print one line per mix."""
    for name, page in MIXES.items():
        profile = cProfile.Profile() if "--profile" in arguments else None
        sys.stdout.write(f"{name}, {page} results a page: {microseconds(page, profile):.1f} µs an event\n")
        if profile is not None:
            pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(35)


if __name__ == "__main__":
    main(sys.argv[1:])
