"""LES-5: what people say of injected lessons, and what teaches one, as heads on the bundled encoder hear it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.lessons import a_lesson, settings
from weft.app.lessons.hearing import load_hearing
from weft.domain.lesson import LessonResult, LessonSource
from weft.domain.texts import ReadText
from weft.lessons.hearing import (
    ClassifierHead,
    DetectedOutcome,
    EarlierTurns,
    Hearing,
    Injection,
    Taught,
    Utterance,
    sentences_in,
    turns_of,
    unquoted,
)

MIGRATIONS = "Run the migrations before starting the API"
KEYS = "Rotate API keys every 90 days"


@pytest.fixture(scope="module")
def hearing() -> Hearing:
    loaded = load_hearing(settings())
    assert loaded is not None
    return loaded


def heard(hearing: Hearing, *said: str, lessons: tuple[str, ...] = (MIGRATIONS,), agent: str) -> list[DetectedOutcome]:
    """What is heard of lessons where a user answers an agent."""
    injections = [Injection(f"i-{at}", a_lesson(lesson)) for at, lesson in enumerate(lessons)]
    spoken = [Utterance(text) for text in said]
    return hearing.outcomes([Utterance("start the API"), Utterance(agent, "agent"), *spoken], injections)


STARTED = "Started on port 8000."
MIGRATED = "I ran the migrations first, then started the API."


@pytest.mark.parametrize(
    ("agent", "text", "result"),
    [
        (MIGRATED, "Exactly, always migrate first, that's how we do it here.", LessonResult.CONFIRMATION),
        (MIGRATED, "That's outdated, the API runs its migrations by itself since May.", LessonResult.CONTRADICTION),
        (STARTED, "You forgot to run the migrations, again.", LessonResult.FAILURE),
        (MIGRATED, "No more missing-table errors since the migrations run first, thanks!", LessonResult.SUCCESS),
    ],
)
def test_each_outcome_is_heard_with_its_words(hearing: Hearing, agent: str, text: str, result: LessonResult) -> None:
    """LES-5: as sure as a probability says, and with the span that says so."""
    (one,) = heard(hearing, text, agent=agent)
    assert one.result is result
    assert settings().lessons.hearing.least <= one.sure <= 1.0
    assert (one.turn, text[one.start : one.end]) == (2, one.span)


@pytest.mark.parametrize(
    "text",
    [
        "Which version runs in production?",
        "Rename the table to invoice_line, please.",
        'Translate this: "You forgot to run the migrations."',
        "> You forgot to run the migrations before starting the API.",
        "```\nyou forgot to run the migrations before starting the API\n```",
        "My train is late again, what a day.",
    ],
)
def test_other_subjects_and_what_is_quoted_say_nothing_of_a_lesson(hearing: Hearing, text: str) -> None:
    """LES-5."""
    assert heard(hearing, text, agent=STARTED) == []


def test_one_turn_speaks_of_the_lesson_that_it_is_about(hearing: Hearing) -> None:
    """LES-5: of several that were injected, one."""
    text = "You forgot to run the migrations, again."
    (one,) = heard(hearing, text, lessons=(KEYS, MIGRATIONS), agent=STARTED)
    assert one.injection.lesson.content == MIGRATIONS


def test_an_id_names_its_lesson(hearing: Hearing) -> None:
    """LES-5: as it stands in the prompt form."""
    name = a_lesson(KEYS).id
    found = heard(hearing, f"Lesson {name} is wrong, that rule is outdated.", lessons=(MIGRATIONS, KEYS), agent=STARTED)
    assert {each.injection.lesson.content for each in found} <= {KEYS}


def test_an_agent_speaks_of_a_lesson_only_behind_a_tools_output() -> None:
    """LES-5: what it says of its own work is no evidence."""
    said = [Utterance("start it"), Utterance("All works now.", "agent"), Utterance("ok")]
    assert [turn.place for turn in turns_of(said)] == [0, 2]
    shown = [
        Utterance("start it"),
        Utterance("8 passed", "tool"),
        Utterance("All works now.", "agent"),
        Utterance("ok"),
    ]
    assert [(turn.place, turn.before) for turn in turns_of(shown)] == [(0, ""), (2, "8 passed"), (3, "All works now.")]


def test_a_conversation_that_is_heard_twice_says_the_same(hearing: Hearing) -> None:
    """LES-7: with the same ids; what is said twice of one injection counts once."""
    text = "You forgot to run the migrations, again."
    once, twice = heard(hearing, text, agent=STARTED), heard(hearing, text, text, agent=STARTED)
    assert [each.outcome_id for each in once] == [each.outcome_id for each in twice]
    assert once == heard(hearing, text, agent=STARTED)


def taught(hearing: Hearing, *said: tuple[str, str]) -> list[Taught]:
    return hearing.teachings([Utterance(text, speaker) for text, speaker in said])


def test_a_rule_for_good_is_told_from_a_correction(hearing: Hearing) -> None:
    """LES-6: and both from an order, from thanks and from what holds once."""
    asked = (("Add a price column.", "user"), ("`price numeric(10,2)` added.", "agent"))
    (rule,) = taught(hearing, *asked, ("Remember for the future: prices are always stored as integer cents.", "user"))
    assert rule.source is LessonSource.USER_CORRECTION
    text = "We store amounts as integer cents, floats have cost us a tax audit. Make it integer."
    (correction,) = taught(hearing, *asked, (text, "user"))
    assert correction.source is LessonSource.AGENT_INFERENCE
    assert "integer cents" in correction.words
    for plain in ("Thanks!", "Now sort the list by name.", "Call it price_net this time."):
        assert taught(hearing, *asked, (plain, "user")) == []


def test_what_was_heard_at_an_earlier_stop_is_not_heard_again(hearing: Hearing) -> None:
    """LES-7: and a correction that was heard then is a mistake made again when it is said once more."""
    text = "We store amounts as integer cents, floats have cost us a tax audit. Make it integer."
    said = [("Add a price column.", "user"), ("`price numeric(10,2)` added.", "agent"), (text, "user")]
    said += [("Done.", "agent"), ("And a discount.", "user"), ("`discount float` added.", "agent"), (text, "user")]
    utterances = [Utterance(*each) for each in said]
    (first,) = hearing.teachings(utterances[:4])
    (again,) = hearing.teachings(utterances, EarlierTurns(4, (first.words,)))
    assert [first, again] == hearing.teachings(utterances)
    assert again.source is LessonSource.REPEATED_MISTAKE


@given(st.text(max_size=80))
def test_quotations_leave_every_other_character_in_its_place(text: str) -> None:
    """LES-5: spans are told in the text as it stands."""
    assert len(unquoted(text)) == len(text)
    for start, end, words in sentences_in(text):
        assert words.split()[0][0] == text[start]
        assert 0 <= start < end <= len(text)


def test_a_head_computes_its_formula() -> None:
    """LES-5: against the formula of its docstring, written out in double precision."""
    rng = np.random.default_rng(7)
    shapes = {"w": (2, 4, 6), "b": (2, 4), "q": (2, 3, 2, 4), "u": (2, 5, 26), "c": (2, 5), "v": (2, 3, 5), "d": (2, 3)}
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    weights |= {"facts_mean": rng.normal(size=2), "facts_scale": np.array([1.5, 0.5]), "t": np.array([0.8])}
    texts = [rng.normal(size=(count, 6)) for count in (3, 0, 5)]
    facts = rng.normal(size=2)

    def softmax(values: np.ndarray) -> np.ndarray:
        shares: np.ndarray = np.exp(values) / np.exp(values).sum()
        return shares

    logs = []
    for at in range(2):
        parts = []
        for text, questions in zip(texts, weights["q"][at], strict=True):
            scaled = np.array([(token - token.mean()) / np.sqrt(token.var() + 1e-5) for token in text])
            read = [np.tanh(weights["w"][at] @ token + weights["b"][at]) for token in scaled]
            for question in questions:
                shares = softmax(np.array([3.0 * z @ question for z in read])) if read else np.zeros(0)
                parts.append(sum((share * z for share, z in zip(shares, read, strict=True)), np.zeros(4)))
        given_facts = (facts - weights["facts_mean"]) / weights["facts_scale"]
        hidden = np.maximum(0, weights["u"][at] @ np.concatenate([*parts, given_facts]) + weights["c"][at])
        logs.append(np.log(softmax(weights["v"][at] @ hidden + weights["d"][at])))
    expected = softmax(np.mean(logs, axis=0) / 0.8)
    read_texts = [ReadText(text.astype(np.float32), np.zeros(6, np.float32)) for text in texts]
    assert ClassifierHead(weights)(read_texts, facts.tolist()) == pytest.approx(expected, rel=1e-4)


def test_who_states_a_rule_once_more_and_who_speaks_of_others_say_nothing_of_it(hearing: Hearing) -> None:
    """LES-5: an agent is shown many lessons, and most of what is said is about none of them."""
    rule = "Commit messages in this repository start with the ticket number"
    assert heard(hearing, f"{rule}.", lessons=(rule,), agent="Noted.") == []
    text = "from 8 s to 210 ms with the eager loading, great"
    agent = "I added eager loading for the order lines."
    assert heard(hearing, text, lessons=(rule, "Send invoices on Fridays"), agent=agent) == []
    (one,) = heard(hearing, text, lessons=(rule, "Use eager loading for order lines"), agent=agent)
    assert one.injection.lesson.content == "Use eager loading for order lines"
