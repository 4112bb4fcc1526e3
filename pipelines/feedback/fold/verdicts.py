"""Verdicts that repeat each other: most events are some, and are noted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.domain.events import ShownResult
from pipelines.feedback.fold.credit import Credit, note_credits
from pipelines.feedback.fold.names import Allowance
from pipelines.feedback.fold.words import ContentVerdict
from pipelines.feedback.settings import DAY_MS
from pipelines.learning.observe.outcomes import OutcomeScope
from pipelines.learning.observe.tallies import Tally


@dataclass(slots=True)
class RepeatedVerdict:
    """What verdicts on one result come to that say the same, by the same principal and agent, on one day.

    Attributes:
        source: As events are counted by it.
        allowance: Of the principal who says so.
        from_ms, until_ms: The day; 0 once the same principal has called the result otherwise.
        shown_offset, shown_ms: Offset and time of the impression.
        beyond, within: How often they are said beyond that allowance, and within.
        repeats: How many of them repeat the first.
    """

    from_ms: int
    until_ms: int
    shown_offset: int
    shown_ms: int
    source: tuple[str, str, str]
    allowance: Allowance
    micro: int
    credited: Sequence[Credit]
    where: OutcomeScope
    page: Sequence[ShownResult]
    word: ContentVerdict
    beyond: int = 0
    within: int = 0
    repeats: int = 0

    def note(self, tally: Tally) -> None:
        """Add all of them to a tally."""
        self.word.note(tally, times=self.beyond + self.within)
        for surplus, times in ((True, self.beyond), (False, self.within)):
            if times:
                day = self.from_ms // DAY_MS
                note_credits(tally, self.credited, self.where, self.page, day=day, surplus=surplus, times=times)
