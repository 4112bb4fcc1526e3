"""Logs of several principals, sessions and days, for laws of sessions whose principals use their allowances up."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

from tests.support.feedback_events import NOON, explicit, impression, reports_daily, review, rules, selection, shown
from tests.support.session_store import Partition, phase
from weft.domain.events import AnyEvent
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.overlays import PENDING, SETTLED, sessions_in

OWNERS = {"a1": "ada", "a2": "ada", "a3": "ada", "b1": "bob", "loose": "ada"}
"""Sessions and who is behind them; nobody starts the last one."""
SESSIONS = tuple(name for name in OWNERS if name != "loose")
TALK = ("judge", "judge", "blame", "click", "review")
DEEDS = (*TALK, "judge", "complete", "complete", "start", "suspend", "abandon")
STEP_MS, BACK_MS = 5 * 3_600_000, 20 * 3_600_000
"""Between two deeds; and how far back some of them lie, less than an event may be late."""


class Deed(NamedTuple):
    """Something that is said in a session, or about it, at a place of a log."""

    session: str
    what: str
    weight: float = 1.0
    back: bool = False

    def events(self, place: int) -> list[AnyEvent]:
        ts = NOON + place * STEP_MS - BACK_MS * self.back
        who = {"session_id": self.session, "principal": OWNERS[self.session], "ts": ts}
        name = f"{self.session} {self.what} {place}"
        if self.what not in TALK:
            return [phase(self.what, event_id=name, **who)]
        who["model"] = OWNERS[self.session]  # so that evidence says whose it is
        if self.what == "review":
            return [review(0.7, good=True, event_id=name, **who)]
        answer = impression(name, [shown(rank) for rank in range(1, 6)], event_id=f"{name} shown", **who)
        if self.what == "click":
            return [answer, selection(5, query_id=name, event_id=name, terms=("retry",), **who)]
        signal = self.weight if self.what == "judge" else -self.weight
        verdict = explicit(signal, 1, query_id=name, event_id=name, **who)
        return [verdict, answer] if self.weight < 1.0 else [answer, verdict]


Log = list[tuple[int, Deed]]
"""Deeds and their places, which say when they happen."""

_deeds = st.builds(
    Deed, st.sampled_from(list(OWNERS)), st.sampled_from(DEEDS), st.sampled_from([1.0, 0.4]), st.booleans()
)
logs = st.lists(_deeds, min_size=4, max_size=24).map(
    lambda said: list(
        enumerate(
            [
                *(Deed(name, "start") for name in SESSIONS),
                *(deed for deed in said if deed.session != "loose" or deed.what in TALK),
            ]
        )
    )
)
"""Histories of four sessions and of what is said outside of them, over several days."""


def limited(daily: float, **changes: object) -> FeedbackSettings:
    times = dict.fromkeys(("clock_step_s", "session_idle_s", "session_suspended_s", "session_remembered_s"), 10.0**9)
    limits = {"principal_daily": daily, "reports_daily": reports_daily(daily)}
    changes |= {f"limits__{name}": value for name, value in limits.items()}
    return rules(**{f"time__{name}": value for name, value in times.items()}, **changes)


unlearnings = st.dictionaries(st.sampled_from(SESSIONS), st.integers(4, 30), min_size=1)
"""Which sessions are unlearned, and at which place of a log."""
tight = st.builds(limited, st.sampled_from([0.5, 1.0, 2.0, 3.5, 100.0]))
"""Allowances that are used up all the time, and one that never is."""


def told(log: Log) -> list[AnyEvent]:
    return [event for place, deed in log for event in deed.events(place)]


def fed(folder: Path, settings: FeedbackSettings, log: Log, cuts: Collection[int] = ()) -> Partition:
    """A partition that read a log, in batches that end at some of its events."""
    partition, events = Partition(folder, settings), told(log)
    edges = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    for begin, end in pairwise(edges):
        partition.feed(events[begin:end], cuts=False)
    return partition


def found_in(partition: Partition, *, but: Collection[str] = ()) -> dict[str, object]:
    """Everything that a partition learned, and whose it is."""
    empty = "select count(*) from evidence where micro = 0"
    assert partition.state._connection.execute(empty).fetchone() == (0,)
    return {"": partition.shared.rows()} | {
        life.session: (
            (life.phase, life.pending, life.settled),
            *(partition.overlay(life.session, kind).rows() for kind in (PENDING, SETTLED)),
        )
        for life in partition.state.read(sessions_in)
        if life.session not in but
    }


def with_and_without(log: Log, unlearned: dict[str, int]) -> tuple[Log, Log]:
    """A log in which sessions are unlearned at some place, and the one that never had what they said until then.

    What is said to a session that was unlearned is dropped; once it was started again, it is heard.
    """
    left, never = list(log), log
    for name, at in unlearned.items():
        end = min(at, len(log))
        left.insert(left.index(log[end]) if end < len(log) else len(left), (end, Deed(name, "unlearn")))
        again = [place for place, deed in log if place >= end and (deed.session, deed.what) == (name, "start")]
        heard_from = min(again, default=len(log))
        never = [(place, deed) for place, deed in never if deed.session != name or place >= heard_from]
    return left, never


def require_unlearned(log: Log, limits: FeedbackSettings, unlearned: dict[str, int], cuts: Collection[int]) -> None:
    """Read a log in which sessions are unlearned, and the one that never had them: whatever is left is the same."""
    left, never = with_and_without(log, unlearned)
    gone = {name for name in unlearned if all(deed.session != name for _, deed in never)}
    with tempfile.TemporaryDirectory() as folder:
        found, expected = fed(Path(folder, "a"), limits, left, cuts), fed(Path(folder, "b"), limits, never)
        assert found_in(found, but=gone) == found_in(expected)
        assert found.shared.digest() == expected.shared.digest()
        assert all(found.overlay(name, kind).is_empty for name in gone for kind in (PENDING, SETTLED))
