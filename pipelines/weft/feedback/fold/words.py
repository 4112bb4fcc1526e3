"""What a person called right or wrong, as evidence of the content under the question (LRN-18, LRN-23). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weft.domain.events import Correction, Impression, ShownResult
from weft.domain.ids import question_fingerprint, question_of
from weft.feedback.fold.credit import Credit, note_credits
from weft.feedback.fold.names import Allowance
from weft.feedback.settings import DAY_MS
from weft.learning.evidence import MICRO
from weft.learning.observe.outcomes import OutcomeScope
from weft.learning.observe.tallies import Tally
from weft.learning.observe.verdicts import VerdictBin, question_bin
from weft.learning.uses import UsageKey


class QuestionText(NamedTuple):
    """A question."""

    fingerprint: str  # what outcomes under it are kept by; "" where nothing was asked
    text: str  # "" where it is private


class ContentVerdict(NamedTuple):
    """One principal's word on one content under one question."""

    content: str  # its hash, or the URI of where it stands
    good: bool
    at_ms: int  # since when this is the principal's word, in milliseconds since the epoch
    weight: float  # in observations, > 0
    principal: str
    question: QuestionText
    share: float | None = None  # of the best score on its page that it was shown with, in [0, 1]; None where it was not

    def note(self, tally: Tally, *, times: int = 1) -> None:
        """Add the word, said so many times, to a tally."""
        day, ms = divmod(self.at_ms, DAY_MS)
        name = VerdictBin(self.good, ms, self.share).name
        mass = round(self.weight * MICRO) * times  # rounded one by one, wherever batches begin
        tally.note_usage(UsageKey(day, self.content, name, self.principal, self.question.fingerprint), mass)

    def note_with_question(self, tally: Tally) -> None:
        """Add the word to a tally, and the text of what was asked."""
        self.note(tally)
        note_question(tally, self.at_ms // DAY_MS, self.question)


def note_question(tally: Tally, day: int, question: QuestionText, *, times: int = 1) -> None:
    """Add a question's text, once for each outcome under it: it goes when they do."""
    if question.fingerprint and question.text:
        key = UsageKey(day, "", question_bin(question.text), question=question.fingerprint)
        tally.note_usage(key, times * MICRO)


def question_in(impression: Impression) -> QuestionText:
    """What an impression's search was asked."""
    if impression.query_hash is None:
        return QuestionText("", "")
    return QuestionText(question_fingerprint(impression.query_hash), impression.question or "")


def question_of_text(text: str) -> QuestionText:
    """A question whose text is at hand."""
    return QuestionText(question_of(text), text)


def corrected(correction: Correction, at_ms: int, *, principal: str, question: QuestionText) -> ContentVerdict:
    """What a correction says: praise or blame of a content under a question, and of nothing else."""
    content = correction.content_hash or correction.uri or ""
    return ContentVerdict(content, correction.right, at_ms, 1.0, principal, question)


@dataclass(slots=True)
class RepeatedVerdict:
    """What verdicts on one result come to that say the same, by the same principal and agent, on one day."""

    from_ms: int  # The day; 0 once the same principal has called the result otherwise
    until_ms: int
    shown_offset: int  # Offset and time of the impression
    shown_ms: int
    source: tuple[str, str, str]  # as events are counted by it
    allowance: Allowance  # of the principal who says so
    micro: int
    credited: Sequence[Credit]
    where: OutcomeScope
    page: Sequence[ShownResult]
    word: ContentVerdict
    beyond: int = 0  # How often they are said beyond that allowance, and within
    within: int = 0
    repeats: int = 0  # how many of them repeat the first

    def note(self, tally: Tally) -> None:
        """Add all of them to a tally."""
        self.word.note(tally, times=self.beyond + self.within)
        for surplus, times in ((True, self.beyond), (False, self.within)):
            if times:
                day = self.from_ms // DAY_MS
                note_credits(tally, self.credited, self.where, self.page, day=day, surplus=surplus, times=times)
