"""What sessions should come to, as plain dicts: written from the specification, with none of weft's code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

Masses = Counter[tuple[str, str]]
"""Micro-units by content hash and "positive" or "negative"."""

Drawn = Counter[tuple[bool, str]]
"""Micro-units of outcomes that draw on allowances, by whether they count, and "good" or "bad"."""

OPEN = ("active", "suspended")
MERGED = ("completed", "expired")
DAY_MS = 86_400_000


Draws = Counter[tuple[int, str]]
"""Micro-units of outcomes that draw on allowances, by day, "good" or "bad": contents are shown with one score, and
evidence of scores knows no content."""


@dataclass
class ModelSession:
    """One session that was started."""

    phase: str
    started: int
    heard_ms: int
    pending: Masses = field(default_factory=Counter)
    settled: Masses = field(default_factory=Counter)
    pending_events: int = 0
    settled_events: int = 0
    pending_draws: Draws = field(default_factory=Counter)
    settled_draws: Draws = field(default_factory=Counter)

    def drawn(self) -> Drawn:
        """What it reads of what it alone has."""
        found: Drawn = Counter()
        for (_, verdict), micro in self.pending_draws.items():
            found[True, verdict] += micro
        return found

    def settle(self) -> None:
        self.settled_draws += self.pending_draws
        self.pending_draws = Counter()


@dataclass
class ModelEvent:
    """What the model needs to know of an event."""

    kind: str  # "impression", "explicit" or a phase
    event_id: str
    session: str
    at_ms: int
    query: str = ""
    content: str = ""
    signal: float = 0.0

    @property
    def verdict(self) -> str:
        return "good" if self.signal > 0 else "bad"


@dataclass
class Model:
    """A partition: apply events one by one, `settle_clock` where a batch ends."""

    idle_ms: int
    suspended_ms: int
    daily: int
    shared: Masses = field(default_factory=Counter)
    sessions: dict[str, ModelSession] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    shown: set[tuple[str, str]] = field(default_factory=set)
    early: dict[tuple[str, str], list[ModelEvent]] = field(default_factory=dict)
    clock_ms: int = 0
    duplicates: int = 0
    version: int = 0
    dropped: int = 0
    outside: Drawn = field(default_factory=Counter)
    drawn_outside: Counter[int] = field(default_factory=Counter)

    def drawn(self) -> Drawn:
        """What all share, as it counts once all is known."""
        found, merged = Counter(self.outside), sum((one.settled_draws for one in self.sessions.values()), Counter())
        whole = Counter[int]()
        for (day, _), micro in merged.items():
            whole[day] += micro
        for (day, verdict), micro in merged.items():
            left = max(0, self.daily - self.drawn_outside[day])
            counts = micro if whole[day] <= left else micro * left // whole[day]
            found[True, verdict] += counts
            found[False, verdict] += micro - counts
        return found

    def apply(self, event: ModelEvent) -> None:
        self.clock_ms = max(self.clock_ms, event.at_ms)
        if event.event_id in self.seen:
            self.duplicates += 1
            return
        self.seen.add(event.event_id)
        self.expire([event.session])
        if event.session in self.sessions:
            self.sessions[event.session].heard_ms = self.clock_ms
        query = (event.session, event.query)
        if event.kind == "impression":
            self.shown.add(query)
            self.credit(event)  # that it was shown is evidence, too, of no mass that is looked at here
            for one in self.early.pop(query, []):
                self.credit(one)
        elif event.kind == "explicit":
            if query in self.shown:
                self.credit(event)
            else:
                self.early.setdefault(query, []).append(event)
        else:
            self.turn(event)

    def settle_clock(self) -> None:
        self.expire(list(self.sessions))

    def expire(self, names: Iterable[str]) -> None:
        for name in names:
            session = self.sessions.get(name)
            if session is None or session.phase not in OPEN:
                continue
            limit = self.suspended_ms if session.phase == "suspended" else self.idle_ms
            if self.clock_ms - session.heard_ms > limit:
                self.settle(session, "expired")

    def credit(self, event: ModelEvent) -> None:
        mass = Counter(
            {(event.content, "positive" if event.signal > 0 else "negative"): round(abs(event.signal) * 10**6)}
        )
        session = self.sessions.get(event.session)
        if session is None:
            self.shared += mass
            self.draw_outside(event)
        elif session.phase in OPEN:
            session.pending += mass
            session.pending_events += 1
            self.draw(event, session.pending_draws)
        elif session.phase in MERGED:
            self.shared += mass
            session.settled += mass
            session.settled_events += 1
            self.draw(event, session.settled_draws)
        else:
            self.dropped += 1

    def draw_outside(self, event: ModelEvent) -> None:
        day, micro = event.at_ms // DAY_MS, round(abs(event.signal) * 10**6)
        self.outside[self.drawn_outside[day] < self.daily, event.verdict] += micro
        self.drawn_outside[day] += micro

    def draw(self, event: ModelEvent, draws: Draws) -> None:
        if micro := round(abs(event.signal) * 10**6):
            draws[event.at_ms // DAY_MS, event.verdict] += micro

    def turn(self, event: ModelEvent) -> None:
        session = self.sessions.get(event.session)
        is_open = session is not None and session.phase in OPEN
        if event.kind in {"start", "resume"}:
            if session is None:
                self.sessions[event.session] = ModelSession("active", self.clock_ms, self.clock_ms)
            else:
                session.started = session.started if is_open else self.clock_ms
                session.phase = "active"
        elif session is None:
            return
        elif event.kind == "suspend" and is_open:
            session.phase = "suspended"
        elif event.kind == "complete" and is_open:
            self.settle(session, "completed")
        elif event.kind == "abandon" and is_open:
            self.drop(session, "abandoned")
        elif event.kind == "unlearn":
            self.drop(session, "unlearned")
            self.version += session.settled_events > 0
            self.shared -= session.settled
            self.dropped += session.settled_events
            session.settled, session.settled_events = Counter(), 0
            session.settled_draws = Counter()

    def settle(self, session: ModelSession, phase: str) -> None:
        self.shared += session.pending
        session.settled += session.pending
        session.settled_events += session.pending_events
        session.pending, session.pending_events = Counter(), 0
        session.settle()
        session.phase = phase
        self.version += 1

    def drop(self, session: ModelSession, phase: str) -> None:
        self.dropped += session.pending_events
        session.pending, session.pending_events = Counter(), 0
        session.pending_draws = Counter()
        session.phase = phase
