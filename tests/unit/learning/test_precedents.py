"""LRN-18: which words on contents under questions are in force."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from tests.support.words_spoken import HALF_LIFE, PRIOR, TODAY, a_word, an_outcome, precedents_of
from weft.domain.ids import principal_fingerprint, question_of
from weft.learning.evidence import Evidence
from weft.learning.observe.precedents import Precedents

ONE, OTHER = "a" * 64, "b" * 64
HOW, WHY = "how do I retry?", "why does it fail?"


def in_force(precedents: Precedents, question: str = HOW, content: str = ONE) -> list[tuple[str, float, float]]:
    """Who holds what of a content under a question, and how much that counts."""
    words = precedents.verdicts.take(precedents.under(question_of(question)))
    return sorted(
        (precedents.principals[by], good, weight)
        for of, by, good, weight in zip(words.content, words.principal, words.good, words.weight, strict=True)
        if precedents.contents[of] == content
    )


moments = st.lists(
    st.tuples(st.integers(TODAY - 3, TODAY), st.integers(0, 86_399_999), st.booleans()),
    min_size=1,
    max_size=8,
    unique_by=lambda each: each[:2],
)


@given(moments, st.randoms(use_true_random=False))
def test_the_last_word_counts_in_whatever_order_it_comes(said: list[tuple[int, int, bool]], rng: random.Random) -> None:
    """LRN-18, ARC-1: of one principal on one content under one question, once, however batches are cut."""
    words = [a_word(ONE, HOW, "ada", good=good, day=day, ms=ms) for day, ms, good in said]
    rng.shuffle(words)
    cut = rng.randrange(len(words) + 1)
    found = precedents_of(Evidence.sum(words[:cut]), Evidence.sum(words[cut:]))
    day, _, good = max(said)
    ((who, held, weight),) = in_force(found)
    assert (who, held) == (principal_fingerprint("ada"), float(good))
    assert weight == pytest.approx(0.5 ** ((TODAY - day) / HALF_LIFE))
    assert found.contents == precedents_of(*reversed(words)).contents or len(found) == 1


def test_of_words_of_one_moment_the_one_against_holds() -> None:
    """LRN-18: nobody gains by saying both."""
    both = [a_word(ONE, HOW, "ada", good=good, ms=7) for good in (True, False)]
    assert [good for _, good, _ in in_force(precedents_of(*both))] == [0.0]


def test_what_a_session_took_back_leaves_the_word_before() -> None:
    """LRN-17, LRN-18: evidence is subtracted exactly, and what was said earlier is in force again."""
    before, session = a_word(ONE, HOW, "ada", ms=5), a_word(ONE, HOW, "ada", good=False, ms=9)
    assert [good for _, good, _ in in_force(precedents_of(before + session))] == [0.0]
    assert in_force(precedents_of(before + session - session)) == in_force(precedents_of(before))


def test_a_principal_counts_once_per_content_and_question() -> None:
    """LRN-18: said again on ten days it is one word; on another content, or under another question, one more."""
    again = [a_word(ONE, HOW, "ada", day=TODAY - day) for day in range(10)]
    found = precedents_of(*again, a_word(OTHER, HOW, "ada"), a_word(ONE, WHY, "ada"), a_word(ONE, HOW, "bob"))
    assert len(found) == 4
    assert [weight for _, _, weight in in_force(found)] == [1.0, 1.0]
    assert len(found.under(question_of(HOW))) == 3
    assert len(found.of_content(found.contents.index(ONE))) == 3
    assert not len(found.under(question_of("what?")))


def test_repeated_words_of_one_moment_are_one() -> None:
    """LRN-18: a verdict that was sent ten times that day has ten masses in one row."""
    assert in_force(precedents_of(*[a_word(ONE, HOW, "ada")] * 10)) == in_force(precedents_of(a_word(ONE, HOW, "ada")))


def test_clicks_and_answers_count_half_and_give_way_to_words() -> None:
    """LRN-18: what is implied is at most one noisy statement per principal; whoever says so outright is believed."""
    clicked = an_outcome(ONE, HOW, "ada", 0.4), an_outcome(ONE, HOW, "ada", 0.1, good=False)
    ((_, good, weight),) = in_force(precedents_of(*clicked))
    assert (good, weight) == (pytest.approx(0.8), pytest.approx(PRIOR.implied * 0.5))
    many = in_force(precedents_of(an_outcome(ONE, HOW, "ada", 500.0)))
    assert [weight for _, _, weight in many] == [1.0]
    spoken = in_force(precedents_of(*clicked, a_word(ONE, HOW, "ada", good=False)))
    assert [(good, weight) for _, good, weight in spoken] == [(0.0, 1.0)]


@pytest.mark.parametrize(
    ("others", "weight"), [(0, 1.0), (PRIOR.crowd - 2, 1.0), (PRIOR.crowd - 1, 0.5**PRIOR.flood_power)]
)
def test_a_days_allowance_binds_where_others_speak(others: int, weight: float) -> None:
    """LRN-20: one principal's many words of a day count less each from the third principal on; another day's do not."""
    many = [a_word(ONE, f"question {number}", "ada") for number in range(round(2 * PRIOR.daily_words))]
    more = [a_word(ONE, HOW, f"user {number}") for number in range(others)]
    found = precedents_of(*many, *more, a_word(ONE, WHY, "ada", day=TODAY - 1))
    assert [each for _, _, each in in_force(found, "question 7")] == [pytest.approx(weight)]
    assert {each for _, _, each in in_force(found)} == ({1.0} if others else set())
    assert [each for _, _, each in in_force(found, WHY)] == [pytest.approx(0.5 ** (1.0 / HALF_LIFE))]


def test_words_fade_with_the_projects_half_life() -> None:
    """LRN-2, LRN-18: on read; what was said a half-life ago counts half."""
    found = precedents_of(a_word(ONE, HOW, "ada"), today=TODAY + round(HALF_LIFE))
    assert [weight for _, _, weight in in_force(found)] == [pytest.approx(0.5)]


def test_questions_are_known_by_their_text_unless_they_are_private() -> None:
    """LRN-19: the text goes when the last word under it does."""
    known, private = a_word(ONE, HOW, "ada"), a_word(ONE, WHY, "ada", text=False)
    assert precedents_of(known, private).texts == {question_of(HOW): HOW}
    assert not precedents_of(known + private - known).texts


def test_nothing_said_is_nothing_in_force() -> None:
    """LRN-18: and variances are the priors'."""
    nothing = precedents_of()
    assert len(nothing) == 0
    assert nothing.content_variance == PRIOR.content_variance
    assert nothing.question_variance == pytest.approx(PRIOR.question_variance)


def test_variances_follow_how_people_agree_beyond_what_was_expected() -> None:
    """LRN-18: where outcomes are what scores let expect, effects are small; where people agree on surprises, great."""
    rng = np.random.default_rng(3)

    def variance(*, agreeing: bool) -> float:
        said = []
        for question in range(120):
            score = float(rng.uniform(0.6, 0.95))
            surprise = rng.random() < 0.5
            for who in range(4):
                p = expit(PRIOR.curve.intercept + PRIOR.curve.slope * score)
                good = surprise if agreeing else bool(rng.random() < p)
                content = f"{question:064x}"
                said.append(a_word(content, f"question {question}", f"user {who}", good=good, share=score))
        return precedents_of(*said).question_variance

    assert variance(agreeing=False) < variance(agreeing=True)
    assert variance(agreeing=False) < PRIOR.question_variance


def test_one_principal_alone_shows_nothing_of_how_contents_differ() -> None:
    """LRN-20, FBK-11: whoever praises bad contents under a hundred questions each changes no variance."""
    flood = [
        a_word(f"{content:064x}", f"question {content} {number}", "mallory", share=0.2)
        for content in range(5)
        for number in range(100)
    ]
    found = precedents_of(*flood, a_word(ONE, HOW, "ada"), a_word(OTHER, HOW, "bob"))
    assert found.content_variance == PRIOR.content_variance
    assert found.question_variance == pytest.approx(PRIOR.question_variance)


def test_a_thousand_new_names_count_as_three_people() -> None:
    """FBK-13: names are free; who comes back on another day is somebody."""
    crowd = [a_word(ONE, HOW, f"made up {number}") for number in range(1_000)]
    people = [a_word(ONE, HOW, who) for who in ("ada", "bob", "cyd")]
    histories = [a_word(OTHER, WHY, who, day=TODAY - 1) for who in ("ada", "bob", "cyd")]
    together = sum(weight for _, _, weight in in_force(precedents_of(*crowd)))
    assert together == pytest.approx(3.0)
    everybody = in_force(precedents_of(*crowd, *people, *histories))
    fingerprints = {principal_fingerprint(who) for who in ("ada", "bob", "cyd")}
    assert sum(weight for who, _, weight in everybody if who in fingerprints) == pytest.approx(3.0)
    assert sum(weight for who, _, weight in everybody if who not in fingerprints) == pytest.approx(3.0)


def test_a_crowd_of_new_names_says_a_day_what_three_known_people_may() -> None:
    """FBK-13, LRN-20: one question each is heard as if three people had said all of it among them."""
    known = ("ada", "bob", "cyd")
    questions = [f"question {number}" for number in range(600)]
    histories = [a_word(OTHER, WHY, who, day=TODAY - 1) for who in known]
    by_three = [a_word(ONE, question, known[at % 3]) for at, question in enumerate(questions)]
    by_many = [a_word(ONE, question, f"made up {at}") for at, question in enumerate(questions)]
    weights = [
        [weight for question in questions for _, _, weight in in_force(heard, question)]
        for heard in (precedents_of(*histories, *said) for said in (by_three, by_many))
    ]
    assert weights[1] == pytest.approx(weights[0])
    few = by_many[: round(3 * PRIOR.daily_words)]
    heard = precedents_of(*few)
    assert {weight for at in range(len(few)) for _, _, weight in in_force(heard, questions[at])} == {1.0}
    assert [weight for _, _, weight in in_force(precedents_of(*by_many, *by_three, *histories), WHY, OTHER)] == [
        pytest.approx(0.5 ** (1.0 / HALF_LIFE))
    ] * 3


def test_what_somebody_else_says_too_counts_in_full() -> None:
    """LRN-20: two who read many answers and agree are no flood."""
    questions = [f"question {number}" for number in range(round(4 * PRIOR.daily_words))]
    both = [a_word(ONE, question, who) for question in questions for who in ("ada", "bob")]
    contrary = [a_word(ONE, question, "cyd", good=False) for question in questions]
    held = in_force(precedents_of(*both, *contrary), "question 3")
    assert [weight for _, good, weight in held if good] == [1.0, 1.0]
    assert [weight for _, good, weight in held if not good] == [pytest.approx(0.25**PRIOR.flood_power)]
