"""A log in which every event names a session, principal, model and agent of its own; prints what it took as JSON.

EVENTS FOLDER EVENTS_AT_ONCE: run as a process of its own, so that its peak of memory is nobody else's.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from tests.support.feedback_events import NOON, RULES
from weft.feedback.pipeline import consume
from weft.feedback.publish.snapshot import publish_snapshot
from weft.feedback.run.partitions import partition_folder
from weft.feedback.store.state import PartitionState
from weft.feedback.store.tables import evidence_in
from weft.runtime.kafka.log import LogFacts, Record

FACTS = LogFacts("weft.feedback", "one", 1)


def record(number: int) -> Record:
    """Of three events one starts a session, one is about it, and one is about a session that shares what it learns."""
    named = number - 1 if number % 3 == 1 else number
    facts = {"event_id": f"e{number}", "ts": NOON, "session_id": f"s{named}", "principal": f"p{named}"}
    said = {"type": "review", "domain": "code", "confidence": 0.5, "good": True}
    if number % 3 == 0:
        said = {"type": "session", "phase": "start"}
    names = {"agent": f"a{number}", "model": f"m{number}"}
    return Record(0, number, NOON, b"", json.dumps({**facts, **said, **names}).encode())


def main(events: int, folder: Path, at_once: int) -> None:
    state = PartitionState(partition_folder(folder, 0), 0, RULES)
    state.claim(FACTS, log_start=0)
    for first in range(0, events, at_once):
        last = min(events, first + at_once)
        consume([record(number) for number in range(first, last)], FACTS, state, RULES)
    publish_snapshot(state)
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    report = state.report()
    told = {
        "peak_mb": int(peak[1]) // 1024 if peak else 0,
        "overflow": dict(state._connection.execute("select kind, events from overflow")),
        "applied": report.applied,
        "balanced": report.balanced,
        "digest": state.read(evidence_in).digest(),
        "open": report.open_sessions,
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
