"""Names that producers choose, bounded; and how much of a day's evidence may be one principal's (LRN-3, FBK-11).

Models, agents, intents, sources and principals are free text: a partition tells so many of each kind apart,
and all others share one name, `overflow`. Which ones those are is decided by the log's order alone.

Sessions are free to open; whoever stands behind them is not. Each principal has a fingerprint, under which uses of
contents are kept, so that reading can cap them; and allowances per day, one of evidence about weights and one of
everything that it reports. Beyond them, what it says is kept beside the parameter, visible, and not counted where
others speak.

Names are free as well (FBK-13). So unknown names share one allowance a day until they have a history. A name has one if
it was there on an earlier day of the partition's clock, and was admitted: on each day no more are admitted than were
there before. The first few need none, since nobody else is there.

Events are counted by source, an agent by name or a principal by fingerprint, and by kind (FBK-12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, get_args

from msgspec import structs

from weft.domain.events import AnyEvent, Explicit, Impression, Report, Trust
from weft.domain.ids import principal_fingerprint
from weft.domain.ranking import ANY
from weft.feedback.settings import WEIGHTS, LimitSettings

OVERFLOW = "overflow"
"""Stands for every name beyond its kind's limit."""
NEWCOMERS = "newcomers"
"""Stands for every principal without a history where it draws on an allowance."""

Naming = Impression | Report
"""Events whose names evidence is kept under."""
NAMING = frozenset(get_args(Naming))
"""Their types."""


IMPRESSION, PRAISE, BLAME = "impression", "praise", "blame"
SWEEP = "sweep"
"""A page that a principal opened rather than chose from; counted beside its selections."""
OUTCOMES = frozenset({PRAISE, BLAME, "selection", "reference", "success"})
"""What says something about results that were shown."""

_TYPES = {kind: str(kind.__struct_config__.tag) for kind in get_args(AnyEvent)}

SourceCounts = Counter[tuple[str, str, str]]
"""Events by kind of source, source, and what they were."""


class NameKind(StrEnum):
    """What a name names."""

    PRINCIPAL = "principal"
    MODEL = "model"
    AGENT = "agent"
    INTENT = "intent"
    SOURCE = "source"


class Draw(NamedTuple):
    """Whose allowance is drawn on, which one, and of which day since the epoch."""

    payer: str  # a fingerprint, or the name that all without a history share; "" draws on none
    allowance: str  # of weights, or of something reported
    day: int


@dataclass(slots=True)
class Allowance:
    """What one principal drew on one of its allowances on one day, in micro-units: before the batch, and in it."""

    before: int = 0
    drawn: int = 0

    def draw(self, micro: int, daily: int) -> bool:
        """Draw so much; whether there was anything left of what is allowed a day."""
        left = self.before + self.drawn < daily
        self.drawn += micro
        return left


@dataclass(slots=True)
class NameTracker:
    """The names that a batch mentions, kept current record by record."""

    limits: LimitSettings  # how many of each kind are told apart
    counts: dict[NameKind, int] = field(default_factory=dict)  # how many are told apart so far, by kind
    existing: set[tuple[NameKind, str]] = field(default_factory=set)  # those mentioned that are told apart already
    # by day, principal's fingerprint and what is drawn for, of those mentioned
    allowances: dict[tuple[int, str, str], Allowance] = field(default_factory=dict)
    new: list[tuple[NameKind, int, str]] = field(default_factory=list)  # to be told apart from now on, in order
    overflowed: Counter[NameKind] = field(default_factory=Counter)  # events whose name of a kind was one too many
    principals: dict[str, str] = field(default_factory=dict)  # fingerprints of those met so far, by name
    today: int = 0  # by the partition's clock, in days since the epoch
    # by fingerprint of those mentioned that are new, the day from which on each has a history
    since: dict[str, int] = field(default_factory=dict)
    queue: Counter[int] = field(default_factory=Counter)  # how many have theirs from each day on, of all that are new
    admitted: list[tuple[str, int]] = field(default_factory=list)  # those that the batch added to `since`

    def bounded(self, event: Naming) -> Naming:
        """The event, with names beyond their limits replaced by `OVERFLOW`."""
        changes = {
            kind.value: OVERFLOW
            for kind, name in names_of(event)
            if name != ANY and self._bounded(kind, name) is OVERFLOW
        }
        if not changes:
            return event
        return structs.replace(event, **changes)

    def agent(self, name: str) -> str:
        """An agent's name as it is counted under: those that no other event has named share one."""
        return name if name == ANY or (NameKind.AGENT, name) in self.existing else OVERFLOW

    def principal(self, name: str) -> str:
        """The fingerprint that a principal is kept under."""
        fingerprint = self.principals.get(name)
        if fingerprint is None:
            fingerprint = self.principals[name] = self._bounded(NameKind.PRINCIPAL, principal_fingerprint(name))
        return fingerprint

    def counted(self, name: str) -> str:
        """The same, of whoever sent an event; one too many is counted."""
        fingerprint = self.principals.get(name) or self.principal(name)
        if fingerprint is OVERFLOW:
            self.overflowed[NameKind.PRINCIPAL] += 1
        return fingerprint

    def allowance_owner(self, fingerprint: str, day: int) -> str:
        """On whose allowance a principal draws: its own, or the one that all without a history share."""
        return NEWCOMERS if self.since.get(fingerprint, day) > day else fingerprint

    def allowance(self, fingerprint: str, day: int, name: str = WEIGHTS) -> Allowance:
        """An allowance of a day, to draw on, by its payer and what it is of."""
        key = day, fingerprint, name
        allowance = self.allowances.get(key)
        if allowance is None:
            allowance = self.allowances[key] = Allowance()
        return allowance

    def drawn(self) -> dict[Draw, int]:
        """What the batch drew outside of sessions, in micro-units."""
        return {Draw(who, name, day): each.drawn for (day, who, name), each in self.allowances.items() if each.drawn}

    def _bounded(self, kind: NameKind, name: str) -> str:
        if (kind, name) in self.existing:
            return name
        count = self.counts.get(kind, 0)
        if count >= (self.limits.principals if kind is NameKind.PRINCIPAL else self.limits.names):
            if kind is not NameKind.PRINCIPAL:  # looked up once a batch: `counted` counts
                self.overflowed[kind] += 1
            return OVERFLOW
        if kind is NameKind.PRINCIPAL and count >= self.limits.newcomers:
            self._admit(name, count)
        self.counts[kind] = count + 1
        self.existing.add((kind, name))
        self.new.append((kind, count + 1, name))
        return name

    def _admit(self, fingerprint: str, count: int) -> None:
        """Say from which day on a new principal has a history, behind `count` others.

        From tomorrow on, or from the first day on that has room: whoever makes names up outnumbers those that are there
        no sooner than by doubling them day by day.
        """
        day = max(self.today + 1, max(self.queue, default=0))
        earlier = count - self.queue[day]
        if self.queue[day] >= max(self.limits.newcomers, earlier):
            day += 1
        self.queue[day] += 1
        self.since[fingerprint] = day
        self.admitted.append((fingerprint, day))


def names_of(event: Naming) -> Iterable[tuple[NameKind, str]]:
    """The names that an event carries, with their kinds."""
    yield NameKind.MODEL, event.model
    yield NameKind.AGENT, event.agent
    intent = getattr(event, "intent", ANY)
    if intent != ANY:
        yield NameKind.INTENT, intent
    if isinstance(event, Trust):
        yield NameKind.SOURCE, event.source


def kind_of(event: AnyEvent) -> str:
    """The type that an event counts under; verdicts by their sign."""
    if isinstance(event, Explicit):
        return PRAISE if event.signal > 0.0 else BLAME
    return _TYPES[type(event)]


def source_counts(events: Mapping[tuple[str, str, str], int]) -> SourceCounts:
    """Events counted under both of their sources."""
    counts: SourceCounts = Counter()
    for (fingerprint, agent, kind), times in events.items():
        counts["principal", fingerprint, kind] += times
        if agent != ANY:
            counts["agent", agent, kind] += times
    return counts
