"""LES-5: what a user says of injected lessons."""

from __future__ import annotations

import json

import pytest

from tests.support.lessons import LABELLED, a_lesson, labelled, settings
from weft.domain.lesson import LessonResult
from weft.lessons.detection import Detection, Detector, Injection, Utterance

LESSONS: dict[str, list[str]] = json.loads((LABELLED / "injected.json").read_text(encoding="utf-8"))
INJECTIONS = {
    name: [Injection(f"{name}-{at}", a_lesson(content)) for at, content in enumerate(contents)]
    for name, contents in LESSONS.items()
}
DETECTOR = Detector(settings().lessons)
MIGRATIONS = "Run the migrations before starting the API"


def said(*texts: str) -> list[Detection]:
    """Of the user, about the lessons of the first set."""
    return DETECTOR.detect([Utterance(text) for text in texts], INJECTIONS["A"])


def test_precision_and_recall_on_turns_that_the_phrases_were_not_chosen_by() -> None:
    """LES-5: precision .95 and the right lesson .95 at least, by explicit words alone a third; each with its span."""
    wanted = right = right_lesson = detected = 0
    for turn in labelled("turns", held_out=True):
        detections = DETECTOR.detect([Utterance(turn["text"])], INJECTIONS[turn["lessons"]])
        wanted += "result" in turn
        detected += len(detections)
        for each in detections:
            assert turn["text"][each.start : each.end] == each.span != ""
            same_lesson = "lesson" in turn and each.injection == INJECTIONS[turn["lessons"]][turn["lesson"]]
            near = "span" in turn and (turn["span"] in each.span or each.span in turn["span"])
            right_lesson += same_lesson
            right += same_lesson and near and each.result == turn["result"]
    assert wanted >= 60
    assert right >= 0.95 * detected
    assert right_lesson >= 0.95 * detected
    assert right >= 0.35 * wanted


def test_the_labelled_set_is_as_large_as_it_is_to_be() -> None:
    """LES-5: 300 turns, a third of them adversarial."""
    turns = [*labelled("turns", held_out=True), *labelled("turns", held_out=False)]
    assert len(turns) >= 300
    assert sum(turn["adversarial"] for turn in turns) >= 100


def test_what_the_agent_says_is_no_outcome() -> None:
    """LES-5."""
    text = "You forgot to run the migrations before starting the API."
    assert DETECTOR.detect([Utterance(text, by_user=False)], INJECTIONS["A"]) == []
    assert [each.result for each in said(text)] == [LessonResult.FAILURE]


def test_between_two_lessons_that_are_as_near_none_is_meant() -> None:
    """LES-5: the one lesson that the span is about, else none."""
    lessons = [a_lesson("Set a timeout on database calls"), a_lesson("Set a timeout on broker calls")]
    injections = [Injection(str(at), lesson) for at, lesson in enumerate(lessons)]
    assert DETECTOR.detect([Utterance("You forgot the timeout on the calls.")], injections) == []
    (one,) = DETECTOR.detect([Utterance("You forgot the timeout on the broker calls.")], injections)
    assert one.injection.lesson == lessons[1]


@pytest.mark.parametrize(
    "text",
    [
        "you forgot the migrations again",
        "You skipped the migrations.",
        "You didn't run the migrations again!",
        "Why have you still not run the migrations? You missed the migrations.",
    ],
)
def test_what_a_lesson_wants_done_and_was_forgotten_is_its_failure(text: str) -> None:
    """LES-5: people name what was left out, and no more of the lesson."""
    (one,) = said(text)
    assert (one.result, one.injection.lesson.content) == (LessonResult.FAILURE, MIGRATIONS)


@pytest.mark.parametrize(
    "text",
    ["you forgot the api again", "you forgot the tests again", "you forgot the migrations of the wiki", "you forgot"],
)
def test_what_was_forgotten_beside_what_a_lesson_wants_done_is_no_failure_of_it(text: str) -> None:
    """LES-5: before what it is done, or something else, is another matter."""
    injections = [Injection("i", a_lesson(MIGRATIONS)), Injection("j", a_lesson("Never commit the migrations folder"))]
    assert DETECTOR.detect([Utterance(text)], injections) == []


def test_a_reminder_of_what_a_lesson_forbids_is_no_contradiction() -> None:
    """LES-5: "never" against "never" agrees."""
    injections = [Injection("i", a_lesson("Never force-push to main"))]
    assert DETECTOR.detect([Utterance("Don't force-push to main.")], injections) == []
    (one,) = DETECTOR.detect([Utterance("The rule about force-pushing to main is outdated.")], injections)
    assert one.result is LessonResult.CONTRADICTION


def test_that_rule_means_what_the_agent_named_last() -> None:
    """LES-5: and a bare "that's wrong" means nothing of any lesson."""
    agent = Utterance("I'll run the migrations before starting the API.", by_user=False)
    (one,) = DETECTOR.detect([agent, Utterance("That rule is outdated.")], INJECTIONS["A"])
    assert (one.turn, one.injection.lesson.content) == (1, MIGRATIONS)
    assert DETECTOR.detect([agent, Utterance("That's wrong.")], INJECTIONS["A"]) == []


def test_an_id_names_its_lesson() -> None:
    """LES-5: as it stands in the prompt form."""
    lesson = INJECTIONS["A"][4].lesson
    (one,) = said(f"Lesson {lesson.id} is obsolete.")
    assert one.injection.lesson == lesson


def test_one_outcome_an_injection_and_result_and_the_same_id_again() -> None:
    """LES-7: detection may run twice, and what is said twice of one injection counts once."""
    text = "You forgot to run the migrations before starting the API."
    once, twice = said(text), said(text, text)
    assert [each.outcome_id for each in once] == [each.outcome_id for each in twice]
    later = [*INJECTIONS["A"], Injection("again", INJECTIONS["A"][0].lesson, turn=1)]
    both = DETECTOR.detect([Utterance(text), Utterance(text)], later)
    assert [each.injection.injection_id for each in both] == ["A-0", "again"]


def test_what_is_said_with_a_sneer_is_no_praise() -> None:
    """LES-5: precision before recall."""
    assert said("Yeah right, rotate the API keys every 90 days, my favourite pastime.") == []
    assert [each.result for each in said("Right, rotating the API keys every 90 days was the right call.")] == [
        LessonResult.CONFIRMATION
    ]


QUOTED = [
    'He wrote "you forgot to run the migrations before starting the API".',
    "> You forgot to run the migrations before starting the API.",
    "```\nyou forgot to run the migrations before starting the API\n```",
    "    you forgot to run the migrations before starting the API",
    "«You forgot to run the migrations before starting the API.»",
]


@pytest.mark.parametrize("text", QUOTED)
def test_quotations_and_code_do_not_count(text: str) -> None:
    """LES-5."""
    assert said(text) == []


NO_OUTCOMES = [
    "It's not that you forgot to quote the variables in the shell scripts.",
    "It is not true that pinning dependency versions in requirements.txt is wrong.",
    "You have not missed to quote the variables in the shell scripts.",
    "You missed nothing: the variables in the shell scripts are quoted.",
    "Nothing is wrong with parameterized queries in SQL.",
    "I doubt that parameterized queries in SQL are wrong.",
    "You almost forgot to run the migrations before starting the API.",
    "Oh great, API keys rotated every 90 days, and nobody can log in.",
    "Wow, well done, you rotated the API keys every 90 days by hand.",
    "Sure, because parameterized queries in SQL are exactly what we needed.",
    "In the other repository we no longer rotate API keys every 90 days.",
    "For the demo project, the variables in shell scripts are not quoted.",
    "Thanks, now quote the variables in the shell scripts.",
    "Thanks, then quote the variables in the shell scripts.",
    "Yes, and quote the variables in the shell scripts as well.",
    "TODO: variables in the shell scripts are not quoted.",
    "The variables in the shell scripts are not quoted by design.",
    "The API keys are not rotated every 90 days because I turned it off.",
    "Bob: you forgot to run the migrations before starting the API.",
    "<quote>You forgot to run the migrations before starting the API.</quote>",
    "<log>\nyou forgot to run the migrations before starting the API\n</log>",
    "The API started before the migrations, and that is not a bug.",
]
OUTCOMES = [
    ("Problem: you forgot to run the migrations before starting the API.", LessonResult.FAILURE, 0),
    ("You force-pushed to main again.", LessonResult.FAILURE, 2),
    ("Good that you quoted the variables in the shell scripts.", LessonResult.CONFIRMATION, 3),
    ("We no longer rotate API keys every 90 days.", LessonResult.CONTRADICTION, 9),
    ("<b>Note</b> that you forgot to run the migrations before starting the API.", LessonResult.FAILURE, 0),
]


@pytest.mark.parametrize("text", NO_OUTCOMES)
def test_what_only_sounds_like_an_outcome_is_none(text: str) -> None:
    """LES-5: denied twice, with a sneer, elsewhere, asked for, meant so, said by others."""
    assert said(text) == []


@pytest.mark.parametrize(("text", "result", "lesson"), OUTCOMES)
def test_what_is_said_near_such_words_is_one(text: str, result: LessonResult, lesson: int) -> None:
    """LES-5: precision costs no plain word."""
    assert [(each.result, each.injection) for each in said(text)] == [(result, INJECTIONS["A"][lesson])]


def test_why_somebody_did_not_is_no_question() -> None:
    """LES-5."""
    (found,) = said("Why didn't you run the migrations before starting the API?")
    assert found.result is LessonResult.FAILURE
    assert said("Why do we run the migrations before starting the API?") == []
