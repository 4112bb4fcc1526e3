"""An updater process that kills itself at a named instant: `python -m tests.support.failpoints NAME NTH ARGUMENTS…`.

The product knows nothing of it: this process watches calls and returns of functions, and statements of SQLite, and
sends itself SIGKILL at the nth time that the named instant comes.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from types import FrameType
from typing import Any

CALLS = {
    "before a claim": ("call", "PartitionState.claim"),
    "after a claim": ("return", "PartitionState.claim"),
    "after a poll": ("return", "KafkaSource.poll"),
    "before records are applied": ("call", "consume"),
    "after records were folded": ("return", "fold"),
    "before a snapshot": ("call", "publish_snapshot"),
    "inside a snapshot": ("call", "write_atomically"),
    "after a snapshot": ("return", "publish_snapshot"),
    "before a checkpoint is sealed": ("call", "write_manifest"),
    "after a checkpoint": ("return", "write_checkpoint"),
}
STATEMENTS = {
    "as the epoch moves": "update progress set epoch",
    "as evidence is written": "insert into evidence",
    "as ids are written": "insert into seen",
    "between evidence and offset": "update progress set next_offset",
    "before the commit": "commit",
    "after the commit": "commit",
}
NAMES = (*CALLS, *STATEMENTS)


class Countdown:
    """The nth arrival is the last."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def arrive(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def watch(name: str, nth: int) -> None:
    """Die at the nth time from now on that the named instant comes."""
    if name in CALLS:
        _watch_calls(*CALLS[name], Countdown(nth))
    else:
        _watch_statements(STATEMENTS[name], Countdown(nth), after=name.startswith("after"))


def _watch_calls(event: str, function: str, death: Countdown) -> None:
    def seen(frame: FrameType, happened: str, _argument: object) -> None:
        if happened == event and frame.f_code.co_qualname == function:
            death.arrive()

    sys.setprofile(seen)


def _watch_statements(wanted: str, death: Countdown, *, after: bool) -> None:
    connect = sqlite3.connect

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            hit = sql.startswith(wanted)
            if hit and not after:
                death.arrive()
            done = super().execute(sql, *parameters)
            if hit and after:
                death.arrive()
            return done

        def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
            if sql.startswith(wanted):
                death.arrive()
            return super().executemany(sql, rows)

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, factory=Connection, **options)

    sqlite3.connect = connected  # type: ignore[assignment]


if __name__ == "__main__":
    from weft.cli.commands.update import update
    from weft.cli.console.options import run_job

    watch(sys.argv[1], int(sys.argv[2]))
    sys.argv = ["jobs.update", *sys.argv[3:]]
    sys.exit(run_job(update))
