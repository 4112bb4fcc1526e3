"""What people called contents right or wrong under questions, as evidence, and as searches read it (LRN-18)."""

from __future__ import annotations

from collections.abc import Iterable

from weft.domain.ids import principal_fingerprint, question_of
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.precedents import Precedents, read_precedents
from weft.learning.observe.verdicts import VerdictBin, is_good, question_bin
from weft.learning.uses import UsageKey
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
PRIOR = PRIORS.outcomes
TODAY = 20_000
HALF_LIFE = PRIORS.recency.project_half_life_days


def a_word(
    content: str,
    question: str,
    principal: str,
    *,
    good: bool = True,
    day: int = TODAY,
    ms: int = 0,
    share: float | None = 0.7,
    weight: float = 1.0,
    text: bool = True,
) -> Evidence:
    """One principal's word on a content under a question, with the question's text unless it is private."""
    asked = question_of(question)
    name = VerdictBin(good, ms, share).name
    usage = {UsageKey(day, content, name, principal_fingerprint(principal), asked): round(weight * MICRO)}
    if text:
        usage[UsageKey(day, "", question_bin(question), question=asked)] = MICRO
    return Evidence(usage=usage)


def side_of(bin_: str) -> str:
    """Whether a bin of use is good or bad, said outright or not; its own name where it is neither."""
    return {True: "positive", False: "negative", None: bin_}[is_good(bin_)]


def an_outcome(
    content: str, question: str, principal: str, observations: float, *, good: bool = True, day: int = TODAY
) -> Evidence:
    """Outcomes of a content that nobody said outright."""
    key = UsageKey(
        day, content, "positive" if good else "negative", principal_fingerprint(principal), question_of(question)
    )
    return Evidence(usage={key: round(observations * MICRO)})


def precedents_of(*said: Evidence, today: int = TODAY) -> Precedents:
    """What is in force today."""
    return read_precedents(PRIOR, Evidence.sum(said), today, half_life_days=HALF_LIFE)


def by_many(people: Iterable[str], content: str, question: str, **more: object) -> Evidence:
    """The same word of several people."""
    return Evidence.sum(a_word(content, question, each, **more) for each in people)  # type: ignore[arg-type]
