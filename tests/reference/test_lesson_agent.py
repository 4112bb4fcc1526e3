"""LES-6, LES-8: a simulated agent with twenty recurring mistakes is corrected once of each.

It makes the mistake of a situation four times in five, unless the lesson of that situation is put before it: then once
in ten. Lessons come from its user's words by the reflector, and to it by their conditions, as in an agent's hooks.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

import pytest

from tests.support.feedback_events import SETTINGS, lesson_added
from tests.support.lesson_words import believed
from tests.support.lessons import labelled
from weft.app.lessons.hearing import load_hearing
from weft.domain.lesson import Lesson
from weft.lessons.finding import LessonFinder, ToolUse, finder_of
from weft.lessons.reflection import EpisodeStep, HearingReflector

HEARING = load_hearing(SETTINGS)
ROUNDS = 20
CARELESS, TOLD = 0.8, 0.1
MOST = 5
"""Lessons that the agent is told before a tool."""

Situation = Mapping[str, Any]
SITUATIONS: Sequence[Situation] = [*labelled("uses", held_out=True), *labelled("uses", held_out=False)]


def correction(situation: Situation) -> list[Lesson]:
    """What one correction by the user teaches."""
    use = situation["use"]
    done = EpisodeStep(use["text"], "tool", use["tool"], tuple(use["files"]))
    said = situation["content"][0].lower() + situation["content"][1:]
    reflector = HearingReflector(HEARING, SETTINGS.lessons)
    episode = [EpisodeStep(use["text"]), done, EpisodeStep(f"No. Always {said}.")]
    return list(reflector.reflect(episode, []).proposals)


def made(situations: Sequence[Situation], finder: LessonFinder, taught: Mapping[str, Collection[str]]) -> Counter[str]:
    """How often each mistake is made; the same luck in the same round, whatever was taught."""
    mistakes: Counter[str] = Counter()
    for at, situation in enumerate(situations):
        use, wanted = situation["use"], taught.get(situation["content"], ())
        for number in range(ROUNDS):
            rng = random.Random(f"{at} {number}")
            luck = rng.random()
            told = finder.find(ToolUse(use["tool"], tuple(use["files"]), use["text"]), limit=MOST, rng=rng)
            known = any(each.match.believed.lesson.id in wanted for each in told)
            mistakes[situation["content"]] += luck < (TOLD if known else CARELESS)
    return mistakes


@pytest.mark.slow
def test_repeats_halve_after_one_correction_and_others_stay() -> None:
    """LES-6, LES-8: of twenty new mistakes, among thirty others of which it learned before or never."""
    learnable = list(islice(filter(correction, SITUATIONS), 50))
    corrected, known, unknown = learnable[:20], learnable[20:35], learnable[35:50]
    assert (len(corrected), len(known), len(unknown)) == (20, 15, 15)
    lessons = {each["content"]: correction(each) for each in (*corrected, *known)}
    taught = {content: {lesson.id for lesson in some} for content, some in lessons.items()}
    weights = SETTINGS.priors.lessons.relevance

    def mistakes(learned: Sequence[Situation]) -> Counter[str]:
        said = [lesson_added(lesson) for each in learned for lesson in lessons[each["content"]]]
        finder = finder_of(believed(said), weights, SETTINGS.lessons.duplicates)
        return made([*corrected, *known, *unknown], finder, taught)

    before, after = mistakes(known), mistakes([*known, *corrected])
    # What is learned anew pushes nothing out that was known, and what was never said is done as before.
    assert all(after[each["content"]] == before[each["content"]] for each in (*known, *unknown))
    # One correction in twenty names nothing of the situation in which it is to be told.
    assert sum(after[each["content"]] <= before[each["content"]] / 2 for each in corrected) >= 19
    assert sum(before[each["content"]] for each in known) < 0.2 * len(known) * ROUNDS
