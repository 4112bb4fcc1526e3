"""LES-6: what an episode teaches, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.lesson_figures import says, steps_of
from tests.support.lessons import a_lesson, labelled, settings
from weft.domain.lesson import Conditions, LessonKind, LessonSource
from weft.lessons.reflection import EpisodeStep, Reflection, RuleReflector

REFLECTOR = RuleReflector(settings().lessons)


def reflected(episode: dict[str, Any]) -> Reflection:
    injected = [a_lesson(content) for content in episode.get("injected", ())]
    return REFLECTOR.reflect(list(steps_of(episode)), injected)


def test_precision_on_episodes_that_the_rules_were_not_chosen_by() -> None:
    """LES-6: .9 at least, with something found in most of those that teach something."""
    proposed = right = taught = learned = 0
    for episode in labelled("episodes", held_out=True):
        proposals = reflected(episode).proposals
        expected = episode.get("expected", [])
        correct = sum(any(says(each, wanted) for wanted in expected) for each in proposals)
        proposed += len(proposals)
        right += correct
        taught += bool(expected)
        learned += correct > 0
    assert taught >= 50
    assert right >= 0.9 * proposed
    assert learned >= 0.7 * taught


RULED_OUT = [
    "The poster says: always wash your hands.",
    "The guideline on the wall states that you must never run.",
    "You need to fill in the form I sent you.",
]


@pytest.mark.parametrize("text", RULED_OUT)
def test_what_something_says_and_what_was_handed_over_is_no_lesson(text: str) -> None:
    """LES-6."""
    assert reflected({"turns": [{"user": text}]}).proposals == ()


def test_a_rule_may_say_what_something_needs() -> None:
    """LES-6: "every endpoint needs a rate limit" begins with no verb; what obliges nobody is no rule."""
    (proposed,) = reflected({"turns": [{"user": "Rule: each webhook must carry a signature."}]}).proposals
    assert proposed.content == "Each webhook must carry a signature"
    assert reflected({"turns": [{"user": "Rule: the webhook of the shop."}]}).proposals == ()


def test_nothing_injected_is_extracted_again_and_no_planted_secret_is_stored() -> None:
    """LES-6: in any of 200 episodes, half of them without a lesson."""
    episodes = [*labelled("episodes", held_out=True), *labelled("episodes", held_out=False)]
    assert len(episodes) >= 200
    assert sum("expected" not in episode for episode in episodes) >= 100
    secrets = 0
    for episode in episodes:
        found = reflected(episode)
        stored = "".join(lesson.to_json() for lesson in found.proposals) + repr(found.refusals)
        if "secret" in episode:
            secrets += 1
            assert episode["secret"] not in stored
            assert found.proposals == ()
        if "injected" in episode:
            assert found.proposals == ()
    assert secrets >= 15


def test_a_proposal_says_where_it_comes_from() -> None:
    """LES-6: with reasoning, span and conditions of the step before; twice the same."""
    episode = [
        EpisodeStep("edit", "tool", "Edit", files=("db/0001.sql",)),
        EpisodeStep("Hm. You forgot to add an index on the foreign key column. Look."),
    ]
    (lesson,) = REFLECTOR.reflect(episode, []).proposals
    assert lesson.content == lesson.missed == "Add an index on the foreign key column"
    assert lesson.span == "You forgot to add an index on the foreign key column."
    assert lesson.conditions == Conditions(tools=("Edit",), files=("*.sql",))
    assert (lesson.source, lesson.kind) == (LessonSource.AGENT_INFERENCE, LessonKind.CHECKLIST)
    assert lesson.reasoning
    assert REFLECTOR.reflect(episode, []) == REFLECTOR.reflect(episode, [])


def contents_of(text: str) -> list[str]:
    return [lesson.content for lesson in reflected({"turns": [{"user": text}]}).proposals]


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("use port 8001, never port 8000, since the proxy has it", []),
        ("use port 8001,\nnever port 8000, since the proxy has it", []),
        ("No, use port 8001, never use port 8000, since the proxy has it", ["Use port 8001, never use port 8000"]),
        ("In tests, never use a fixed delay", ["In tests, never use a fixed delay"]),
        ("When you deployed the shop you forgot to run the smoke test.", []),
        ("For deploys, from now on use the canary script.", ["For deploys, from now on use the canary script"]),
        ('Never use "npm install" in CI.', ['Never use "npm install" in CI']),
        ("Never merge branches open since last week.", ["Never merge branches open since last week"]),
        ("Always sign commits unless stated otherwise.", ["Always sign commits unless stated otherwise"]),
        ("Never start the import again from the first page.", ["Never start the import again from the first page"]),
        ("Never use tabs, e.g. in the build files.", ["Never use tabs, e.g. in the build files"]),
        ("No, never use tabs because the linter objects.", ["Never use tabs"]),
    ],
)
def test_a_clause_is_taken_with_its_sentence_or_not(text: str, contents: list[str]) -> None:
    """LES-6: half a sentence, cut at a comma, a line's end, a quotation or a word such as "since", is no lesson."""
    assert contents_of(text) == contents


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Never restart the voucher service during a settlement run.", LessonSource.USER_CORRECTION),
        ("You should always squash commits before merging.", LessonSource.USER_CORRECTION),
        ("From now on, don't push to main.", LessonSource.USER_CORRECTION),
        ("In this project, we use pnpm over npm.", LessonSource.USER_CORRECTION),
        ("Every endpoint needs a rate limit.", LessonSource.USER_CORRECTION),
        ("Rule: sign every release.", LessonSource.KNOWLEDGE_BLOCK),
        ("You forgot to run the migrations.", LessonSource.AGENT_INFERENCE),
        ("Don't push to main!", LessonSource.AGENT_INFERENCE),
        ("Use tabs instead of spaces.", LessonSource.AGENT_INFERENCE),
        ("Next time, run the linter before pushing.", LessonSource.AGENT_INFERENCE),
    ],
)
def test_only_a_rule_for_good_is_believed_at_once(text: str, source: LessonSource) -> None:
    """LES-2, LES-6: what was said of one piece of work starts below what is active, also where it is urgent."""
    (lesson,) = reflected({"turns": [{"user": text}]}).proposals
    assert lesson.source is source
    prior = settings().priors.lessons
    assert (prior.sources[lesson.source] >= prior.active) is (source is not LessonSource.AGENT_INFERENCE)
    assert prior.sources[LessonSource.AGENT_INFERENCE] < prior.active_urgent


def test_a_rule_that_the_agent_states_is_a_proposal() -> None:
    """LES-2, LES-6: no person said so."""
    (lesson,) = REFLECTOR.reflect([EpisodeStep("Rule: sign every release.", "agent")], []).proposals
    assert lesson.source is LessonSource.AGENT_INFERENCE


def test_the_opposite_of_an_injected_lesson_is_a_lesson_of_its_own() -> None:
    """LES-6: what was injected is not proposed, and what contradicts it is news."""
    episode = [EpisodeStep("Never squash commits before merging.")]
    injected = [a_lesson("Always squash commits before merging")]
    assert [lesson.content for lesson in REFLECTOR.reflect(episode, injected).proposals] == [
        "Never squash commits before merging"
    ]


def test_another_value_than_an_injected_lesson_has_is_a_lesson_of_its_own() -> None:
    """LES-6, LES-13: it corrects what was told."""
    episode = [EpisodeStep("From now on, use MySQL for the session store.")]
    injected = [a_lesson("Use PostgreSQL for the session store")]
    assert [each.content for each in REFLECTOR.reflect(episode, injected).proposals] == [
        "Use MySQL for the session store"
    ]


def test_a_vague_directive_is_refused_with_its_reason() -> None:
    """LES-6: nobody can follow or break it."""
    found = REFLECTOR.reflect([EpisodeStep("Remember to be more careful next time.")], [])
    assert found.proposals == ()
    assert [each.reason for each in found.refusals] == ["not_atomic"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Every shell script needs set -e at the top.", "Every shell script needs set -e at the top"),
        ("All endpoints must return models, never dicts.", "All endpoints must return models, never dicts"),
    ],
)
def test_a_rule_about_all_of_a_kind_stands_as_it_was_said(text: str, rule: str) -> None:
    """LES-6: it names what it holds for, and no instruction is cut out of its middle."""
    (lesson,) = reflected({"turns": [{"user": "go on"}, {"agent": "Done."}, {"user": text}]}).proposals
    assert lesson.content == rule


@pytest.mark.parametrize(
    "text", ["those tests must hate me", "this must be done", "Circles go in the middle, not left."]
)
def test_what_is_said_of_the_work_at_hand_is_no_rule(text: str) -> None:
    """LES-6."""
    assert reflected({"turns": [{"user": "go on"}, {"agent": "Done."}, {"user": text}]}).proposals == ()
