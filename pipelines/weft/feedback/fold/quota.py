"""What sessions draw on allowances, in parts that count as a whole or stand beside (LRN-3, LRN-17). Pure.

What nobody can take out again draws on its principal's allowance of the day event by event, in the log's order. What a
session says may be taken out, and must then not have taken anybody's place. So an isolated session draws on an
allowance of its own, as large as a day's. Its evidence is kept in *parts*: about `limits.session_part` observations
each, of one principal, day and allowance. Which parts of merged sessions count depends only on the present state. First
comes what the principal said outside of sessions, then all merged parts in the order in which the log began them. A
part counts if anything of the allowance was left before it. The order of merges changes nothing, and when a session is
unlearned its neighbours move up as if it had never been.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.learning.evidence import Evidence
from weft.learning.observe.impressions import EXAMINATION
from weft.learning.observe.tallies import Tally
from weft.learning.observe.triggers import LEARNED
from weft.learning.parameters import SURPLUS


class Draw(NamedTuple):
    """What one event draws."""

    principal: str  # whose allowance it is: a fingerprint, or the name that all without a history share
    day: int  # since the epoch
    allowance: str  # which of the principal's: of weights, or of something reported
    micro: int  # in micro-units
    offset: int  # of the record at which it is drawn


@dataclass(slots=True)
class QuotaSegment:
    """One stretch of what a principal said on one day in one session."""

    number: int  # within its session; unique among those that there are at one time
    principal: str
    day: int
    allowance: str  # which of the principal's it draws on
    first: int  # offset of the record that began it: the place of the part among all of its principal's day
    micro: int = 0  # what was drawn
    # whether the shared evidence held it before the batch; None where the state does not know it
    was_settled: bool | None = None
    counted: bool = False  # whether it counted there
    tally: Tally | None = None  # what the batch adds to it


@dataclass(slots=True)
class QuotaSegments:
    """The parts of one session, kept current event by event."""

    pending: list[QuotaSegment] = field(default_factory=list)  # those that only the session reads
    settled: list[QuotaSegment] = field(default_factory=list)  # those of the shared evidence
    # those that the state knows and that were dropped or unlearned
    gone: list[QuotaSegment] = field(default_factory=list)

    def __iter__(self) -> Iterator[QuotaSegment]:
        yield from self.settled
        yield from self.pending

    def drawn_on(self, draw: Draw, open_parts: list[QuotaSegment], *, size: int, daily: int) -> QuotaSegment | None:
        """The part that something belongs to, which has drawn it then; None where the allowance was used up before."""
        of = draw[:3]
        day = [part for part in self if (part.principal, part.day, part.allowance) == of]
        if sum(part.micro for part in day) >= daily:
            return None
        last = day[-1] if day and day[-1].micro < size and any(part is day[-1] for part in open_parts) else None
        if last is None:
            number = 1 + max((part.number for part in self), default=0)
            last = QuotaSegment(number, *of, draw.offset)
            open_parts.append(last)
        last.micro += draw.micro
        return last

    def settle(self) -> None:
        """What was pending is part of the shared evidence from now on."""
        self.settled += self.pending
        self.pending = []

    def drop(self) -> None:
        """Nothing is pending any more."""
        self.gone += [part for part in self.pending if part.was_settled is not None]
        self.pending = []

    def unlearn(self) -> None:
        """Nothing is left at all."""
        self.gone += [part for part in self.settled if part.was_settled is not None]
        self.settled = []
        self.drop()


def as_surplus(evidence: Evidence) -> Evidence:
    """A part's evidence as it is kept where it does not count: as if it had come beyond an allowance.

    Parameters stand beside those that count; clicks and learned triggers leave no trace; uses are capped when read, and
    stay.
    """
    return Evidence(
        {
            key._replace(parameter=SURPLUS + key.parameter): micro
            for key, micro in evidence.counts.items()
            if key.parameter != EXAMINATION
        },
        {key: micro for key, micro in evidence.usage.items() if not key.bin.startswith(LEARNED)},
    )
