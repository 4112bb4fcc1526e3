"""LES-6: what an episode teaches, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.lesson_figures import steps_of
from tests.support.lessons import a_lesson, labelled, settings
from weft.app.lessons.hearing import load_hearing
from weft.domain.lesson import Conditions, LessonSource
from weft.lessons.reflection import EpisodeStep, HearingReflector, Reflection

BLOCKS = HearingReflector(None, settings().lessons)


@pytest.fixture(scope="module")
def reflector() -> HearingReflector:
    return HearingReflector(load_hearing(settings()), settings().lessons)


def reflected(reflector: HearingReflector, episode: dict[str, Any]) -> Reflection:
    injected = [a_lesson(content) for content in episode.get("injected", ())]
    return reflector.reflect(list(steps_of(episode)), injected)


@pytest.mark.parametrize("nth", [pytest.param(1, marks=pytest.mark.slow), 10])
def test_nothing_injected_is_extracted_again_and_no_planted_secret_is_stored(
    reflector: HearingReflector, nth: int
) -> None:
    """LES-6: in any of 200 episodes, half of them without a lesson; of few of these one is proposed."""
    episodes = [*labelled("episodes", held_out=True), *labelled("episodes", held_out=False)][::nth]
    assert len(episodes) >= 200 // nth
    secrets = falsely = without = 0
    for episode in episodes:
        found = reflected(reflector, episode)
        stored = "".join(lesson.to_json() for lesson in found.proposals) + repr(found.refusals)
        if "secret" in episode:
            secrets += 1
            assert episode["secret"] not in stored
        told = {a_lesson(content).id for content in episode.get("injected", ())}
        assert told.isdisjoint(lesson.id for lesson in found.proposals)
        if "expected" not in episode:
            without += 1
            falsely += bool(found.proposals)
    assert secrets >= 15 // nth
    assert without >= 100 // nth
    assert falsely <= 0.15 * without


ASKED = [EpisodeStep("Add a price column to the add-ons."), EpisodeStep("`price numeric(10,2)` added.", "agent")]


def test_a_lesson_is_said_in_the_words_of_who_taught_it(reflector: HearingReflector) -> None:
    """LES-2, LES-6: what was true of one piece of work starts below what is active, with reason, span, conditions."""
    tool = EpisodeStep("edit", "tool", "Edit", files=("db/0001.sql",))
    text = "We store amounts as integer cents, floats have cost us a tax audit. Thanks!"
    (lesson,) = reflector.reflect([tool, *ASKED, EpisodeStep(text)], []).proposals
    assert lesson.content == "We store amounts as integer cents, floats have cost us a tax audit"
    assert (lesson.span, lesson.source) == (f"{lesson.content}.", LessonSource.AGENT_INFERENCE)
    assert lesson.conditions == Conditions(tools=("Edit",), files=("*.sql",))
    assert lesson.reasoning
    prior = settings().priors.lessons
    assert prior.sources[lesson.source] < min(prior.active, prior.active_urgent)
    assert reflector.reflect([tool, *ASKED, EpisodeStep(text)], []).proposals == (lesson,)


def test_a_rule_for_good_is_believed_at_once(reflector: HearingReflector) -> None:
    """LES-2, LES-6."""
    rule = EpisodeStep("Remember for the future: prices are always stored as integer cents.")
    (lesson,) = reflector.reflect([*ASKED, rule], []).proposals
    prior = settings().priors.lessons
    assert prior.sources[lesson.source] >= prior.active


def test_what_an_injected_lesson_says_already_is_not_proposed(reflector: HearingReflector) -> None:
    """LES-6."""
    injected = [a_lesson("Prices are always stored as integer cents")]
    rule = EpisodeStep("Remember: prices are always stored as integer cents.")
    assert reflector.reflect([*ASKED, rule], injected).proposals == ()


def test_a_secret_is_left_out_of_what_is_taught(reflector: HearingReflector) -> None:
    """LES-6: the lesson stays where it says something without it."""
    said = "Connect to the replica with the read-only user, never as admin with Tr0ub4dor&3-x."
    found = reflector.reflect([*ASKED, EpisodeStep(f"Remember: {said}")], [])
    assert "Tr0ub4dor" not in "".join(each.to_json() for each in found.proposals) + repr(found.refusals)


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("Rule: sign every release.", ["Sign every release"]),
        ("```lesson\nSign every release\n```", ["Sign every release"]),
        ("Lesson learned: pay attention and do your best.", []),
        ("The webhook of the shop.", []),
    ],
)
def test_blocks_state_rules_without_any_model(text: str, contents: list[str]) -> None:
    """LES-6: by a person they are believed, by an agent they are proposals; vague ones are none."""
    for speaker, source in (("user", LessonSource.KNOWLEDGE_BLOCK), ("agent", LessonSource.AGENT_INFERENCE)):
        proposals = BLOCKS.reflect([EpisodeStep(text, speaker)], []).proposals
        assert [each.content for each in proposals] == contents
        assert {each.source for each in proposals} <= {source}
