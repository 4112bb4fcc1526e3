"""What a person called right or wrong, as evidence of the content under the question (LRN-18, LRN-23). Pure."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.domain.events import Correction, Impression
from pipelines.domain.ids import question_fingerprint, question_of
from pipelines.feedback.settings import DAY_MS
from pipelines.learning.evidence import MICRO
from pipelines.learning.observe.tallies import Tally
from pipelines.learning.observe.verdicts import VerdictBin, question_bin
from pipelines.learning.uses import UsageKey


class QuestionText(NamedTuple):
    """A question.

    Attributes:
        fingerprint: What outcomes under it are kept by; "" where nothing was asked.
        text: "" where it is private.
    """

    fingerprint: str
    text: str


class ContentVerdict(NamedTuple):
    """One principal's word on one content under one question.

    Attributes:
        content: Its hash, or the URI of where it stands.
        at_ms: Since when this is the principal's word, in milliseconds since the epoch.
        weight: In observations, > 0.
        share: Of the best score on its page that it was shown with, in [0, 1]; None where it was not.
    """

    content: str
    good: bool
    at_ms: int
    weight: float
    principal: str
    question: QuestionText
    share: float | None = None

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
