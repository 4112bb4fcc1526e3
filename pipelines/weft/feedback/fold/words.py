"""What a person called right or wrong, as evidence of the content under the question (LRN-18, LRN-23). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.domain.events import Correction, Impression, ShownResult
from weft.domain.ids import question_fingerprint, question_of
from weft.feedback.fold.credit import Credit, drawn_by, note_credits
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
class EqualVerdicts:
    """What verdicts on one result come to that say the same, by the same principal on one day."""

    word: ContentVerdict
    credit: Credit
    where: OutcomeScope
    page: Sequence[ShownResult]
    day: int
    about: str  # principal and content, by which the page keeps last words
    last: tuple[bool, int]  # the last word then: once there is another, who says the same says something new
    # how often it was said, by where that goes and whether it was within an allowance
    noted: dict[tuple[Tally, bool], int] = field(default_factory=dict)
    micro: int = field(init=False)  # that each draws on an allowance

    def __post_init__(self) -> None:
        self.micro = drawn_by((self.credit,))

    def note(self, tally: Tally, *, within: bool, times: int) -> None:
        """Add those that go to one tally."""
        self.word.note(tally, times=times)
        note_credits(tally, (self.credit,), self.where, self.page, day=self.day, surplus=not within, times=times)
