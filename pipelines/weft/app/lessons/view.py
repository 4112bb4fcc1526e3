"""Lessons as they are believed now, found for a tool use (LES-8)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.catalog.catalog import Catalog
from weft.domain.events import InjectedLesson
from weft.domain.lesson import Lesson, LessonStatus
from weft.domain.lesson_match import ChosenLesson
from weft.learning.evidence import day_of
from weft.learning.lessons.beliefs import LessonBelief, LessonBeliefs, read_lessons
from weft.learning.lessons.rows import LessonNote
from weft.lessons.finding import ToolUse, finder_of
from weft.lessons.prompt import MOST_LESSONS, PromptForm, estimated_tokens, prompt_form
from weft.runtime.clock import SECONDS_PER_DAY, Clock, stamp, system_clock
from weft.settings import Settings


def live_lessons(catalog: Catalog, settings: Settings, *, clock: Clock = system_clock) -> LessonBeliefs:
    """What is believed of lessons, from the evidence that is live now."""
    priors = settings.priors
    return read_lessons(
        priors.lessons,
        catalog.live.evidence(),
        day_of(clock()),
        effective_cap=priors.robustness.effective_cap,
        level=priors.interval.level,
    )


def with_texts(beliefs: LessonBeliefs) -> list[tuple[LessonBelief, Lesson]]:
    """Every lesson whose text is known, with what is believed of it."""
    texts = beliefs.lessons()
    return [(belief, texts[belief.id]) for belief in beliefs.all() if belief.id in texts]


def listed(
    beliefs: LessonBeliefs, status: LessonStatus | None, section: str | None, limit: int
) -> tuple[list[dict[str, Any]], int]:
    """Lessons that have a text, the surest first, at most `limit` of them, and how many there are."""
    every = [
        row for row in with_texts(beliefs) if status in {None, row[0].status} and section in {None, row[1].section}
    ]
    every.sort(key=lambda row: (-row[0].p_good, row[0].id))
    return [lesson_document(*row) for row in every[:limit]], len(every)


def lesson_document(belief: LessonBelief, text: Lesson | None) -> dict[str, Any]:
    """A lesson and what is believed of it, in JSON's own types."""
    return {
        "id": belief.id,
        **({} if text is None else text.as_fields()),
        "priority": belief.priority.value,
        "source": belief.source.value,
        "p_good": round(belief.p_good, 4),
        "interval": [round(belief.lower, 4), round(belief.upper, 4)],
        "first_confidence": round(belief.prior, 4),
        "status": belief.status.value,
        "reason": belief.reason,
        "outcomes": {result.value: count for result, count in belief.counts.items()},
        "observations": round(belief.observations, 3),
        "said": belief.sayings,
        "injected": belief.injected,
        "representative": belief.representative,
        "first_day": _day(belief.first_day),
        "last_day": _day(belief.last_day),
        "injected_day": None if belief.injected_day is None else _day(belief.injected_day),
    }


def _day(day: int) -> str:
    return stamp(day * SECONDS_PER_DAY)[:10]


def noted(note: LessonNote) -> dict[str, Any]:
    """A line of a lesson's history, in JSON's own types."""
    facts = {name: getattr(note, name) for name in note.__struct_fields__}
    return {name: value for name, value in facts.items() if value != "" and (name, value) != ("sure", 1.0)}


def to_review(beliefs: LessonBeliefs) -> list[tuple[LessonBelief, Lesson]]:
    """Lessons that a person could decide on, the least sure first, of equals the newest."""
    uncertain = {LessonStatus.NEEDS_VALIDATION, LessonStatus.DORMANT}
    open_ = [row for row in with_texts(beliefs) if row[0].status in uncertain and row[0].representative == row[0].id]
    return sorted(open_, key=lambda row: (row[0].p_good, -row[0].first_day, row[0].id))


@dataclass(frozen=True, slots=True)
class Prompted:
    """What an agent is told before it uses a tool, and which lessons that is."""

    form: PromptForm
    shown: Sequence[ChosenLesson]

    def to_dict(self, injection: str | None) -> dict[str, Any]:
        """All of it in JSON's own types."""
        lessons = [{"lesson_id": each.match.believed.lesson.id, "why": each.why} for each in self.shown]
        facts = {"text": self.form.text, "tokens": self.form.tokens, "injection_id": injection}
        return {**facts, "lessons": lessons}

    def injected(self) -> list[InjectedLesson]:
        """What the topic is told of it."""
        believed = [(each.match.believed, each.propensity) for each in self.shown]
        return [InjectedLesson(lesson_id=one.lesson.id, propensity=p, p_good=one.p_good) for one, p in believed]


def prompted(
    beliefs: LessonBeliefs, settings: Settings, use: ToolUse, *, budget: int | None = None, rng: random.Random
) -> Prompted:
    """The lessons that fit a tool use, within a budget of tokens; by default that of the settings."""
    finder = finder_of(beliefs, settings.priors.lessons.relevance, settings.lessons.duplicates)
    chosen = finder.find(use, limit=MOST_LESSONS, rng=rng)
    most = settings.lessons.prompt.budget if budget is None else budget
    form = prompt_form([each.match.believed for each in chosen], budget=most, count_tokens=estimated_tokens)
    return Prompted(form, [each for each in chosen if each.match.believed.lesson.id in set(form.shown)])
