"""Sessions of several projects at random, each of which judges a content of its own: what is read says whose it is."""

from __future__ import annotations

import random
from pathlib import Path

from tests.support.feedback_events import explicit, impression, shown
from tests.support.session_store import Partition, phase
from weft.domain.events import AnyEvent
from weft.domain.ids import SessionId, content_hash


class Project:
    """A store whose sessions each judge a content of their own, so that whatever is read says whose it is."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.partition = Partition(root / name)
        self.pending: list[AnyEvent] = []
        self.open: set[str] = set()
        self.completed: set[str] = set()
        self.known_at_fork: dict[str, set[str]] = {}
        self.known_to_all: set[str] = set()
        self.started: set[str] = set()
        self.asked = 0
        self.publish()

    def content(self, session: str) -> str:
        return content_hash(f"{self.name}/{session}")

    def judge(self, session: str) -> None:
        """Its session is open: another's would be heard by all at once."""
        self.asked += 1
        query = f"q{self.asked}"
        facts = {"session_id": session, "principal": session}
        answer = [shown(1, content_hash=self.content(session))]
        self.pending.append(impression(query, answer, event_id=f"{query} shown", **facts))
        self.pending.append(explicit(1.0, None, query_id=query, event_id=f"{query} judged", **facts))

    def turn(self, name: str, session: str) -> None:
        self.asked += 1
        self.pending.append(phase(name, session, event_id=f"{name} {self.asked}"))
        if name == "start" and session not in self.open:
            self.open.add(session)
            self.started.add(session)
        elif name != "start" and session in self.open:
            self.open.remove(session)
            self.completed |= {session} if name == "complete" else set()

    def publish(self) -> None:
        """All that was produced is consumed in one transaction, and told."""
        if self.pending:
            self.partition.feed(self.pending, cuts=False)
        self.pending = []
        self.partition.publish()
        self.known_at_fork |= dict.fromkeys(self.started & self.open, self.known_to_all)
        self.known_at_fork = {session: self.known_at_fork[session] for session in self.open}
        self.started, self.known_to_all = set(), set(self.completed)
        self.listing = self.partition.catalog.live.listing()
        self.live = self.partition.catalog.live.evidence()

    def strangers_read_by(self, session: str) -> set[str]:
        """Contents in what a session reads that are neither its own nor known to all when it forked."""
        found = self.listing.find(SessionId(session))
        assert (found is not None) == (session in self.known_at_fork)
        if found is None:
            allowed, evidence = self.known_to_all, self.live
        else:
            allowed = self.known_at_fork[session] | {session}
            evidence = self.partition.catalog.bases.read(found.base).evidence + found.overlay
        return {key.content_hash for key in evidence.usage} - {self.content(each) for each in allowed}


def read_at_random(root: Path, *, operations: int) -> None:
    """Random operations over 50 sessions in each of 3 stores; no session ever reads what is neither its own nor shared.

    Raises:
        AssertionError: One did, or hardly any read of a session's own was tried.
    """
    rng = random.Random(14)
    projects = [Project(root, name) for name in ("north", "east", "south")]
    sessions = [f"session {number}" for number in range(50)]
    of_sessions = 0
    for operation in range(operations):
        project, session = rng.choice(projects), rng.choice(sessions)
        kind = rng.choices(("judge", "turn", "read", "publish"), (0.4, 0.2, 0.39, 0.01))[0]
        if kind == "judge" and session in project.open:
            project.judge(session)
        elif kind == "turn":
            project.turn(rng.choice(("start", "start", "complete", "abandon")), session)
        elif kind == "publish":
            project.publish()
        else:
            of_sessions += session in project.known_at_fork
            assert project.strangers_read_by(session) == set(), operation
    assert of_sessions > operations / 20
