"""RET-18, LRN-18: why a result stands where it does, in words."""

from __future__ import annotations

import pytest
from msgspec import structs
from rich.console import Console

from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from weft.domain.ranking import (
    Channel,
    ChannelHit,
    Contribution,
    RankedResult,
    Signal,
)
from weft.domain.reasons import (
    CONTENT,
    MOST,
    OWN,
    QUESTION,
    NewcomerVerdicts,
    PastVerdicts,
    because,
    difference,
    reason,
    reasons,
    sentence_of,
)
from weft.retrieval.answer.trace import explained

PAGE = a_searcher(MemoryGeneration({"a": ["red apple"], "b": ["red pear"], "c": ["plum"]})).search(a_query("red apple"))
BOTH = {Channel.DENSE: ChannelHit(1, 0.9), Channel.LEXICAL: ChannelHit(2, 4.0)}


def result(past: PastVerdicts | None, channels: dict[Channel, ChannelHit] = BOTH) -> RankedResult:
    return structs.replace(PAGE.results[0], past=past, channels=channels)


@pytest.mark.parametrize(
    ("past", "sentence"),
    [
        (
            PastVerdicts(right=3, rank_before=4),
            "three people called this right for this question; before that it was fourth, by meaning and by words",
        ),
        (
            PastVerdicts(right=1, own=True, rank_before=2),
            "you called this right; before that it was second, by meaning and by words",
        ),
        (
            PastVerdicts(right=3, own=True, rank_before=30),
            "you called this right; two people called this right too for this question; before that it was at place 30,"
            " by meaning and by words",
        ),
        (
            PastVerdicts(right=1, wrong=2, own=False, rank_before=1),
            "you called this wrong; one person called this right for this question; one person called this wrong too"
            " for this question; before that it was first, by meaning and by words",
        ),
        (
            PastVerdicts(near_right=2, near_wrong=1, nearest="how to eat", rank_before=3),
            "two people called this right for “how to eat”; one person called this wrong for “how to eat”; before that"
            " it was third, by meaning and by words",
        ),
        (
            PastVerdicts(near_right=12, rank_before=3),
            "12 people called this right for a near question; before that it was third, by meaning and by words",
        ),
        (
            PastVerdicts(right=5, rank_before=19, new=NewcomerVerdicts(200, 0, 0, 0, counts_as=3)),
            "five people called this right for this question; 200 new names called this right for this question,"
            " counted as three people at most; before that it was at place 19, by meaning and by words",
        ),
        (
            PastVerdicts(nearest="how to eat", rank_before=2, new=NewcomerVerdicts(0, 1, 1_000, 2, counts_as=6)),
            "one new name called this wrong for this question and 1,000 new names called this right for “how to eat”"
            " and two new names called this wrong for “how to eat”, counted as six people at most; before that it was"
            " second, by meaning and by words",
        ),
        (
            PastVerdicts(own=True, right=1, rank_before=2, new=NewcomerVerdicts(1, 0, 0, 0, counts_as=0)),
            "you called this right; one new name called this right for this question, which hardly counts; before that"
            " it was second, by meaning and by words",
        ),
        (
            PastVerdicts(right=3, rank_before=2, edited=3),
            "three people called this right for this question (before its text was edited); before that it was second,"
            " by meaning and by words",
        ),
        (
            PastVerdicts(right=2, near_right=1, rank_before=2, edited=1),
            "two people called this right for this question; one person called this right for a near question (one of"
            " them before its text was edited); before that it was second, by meaning and by words",
        ),
        (
            PastVerdicts(rank_before=2),
            "clicks and answers speak of it; before that it was second, by meaning and by words",
        ),
    ],
)
def test_a_result_says_whose_word_put_it_there(past: PastVerdicts, sentence: str) -> None:
    """LRN-18, FBK-13: how many people, new names apart, under which question, where it stood before, what finds it."""
    assert reason(result(past)) == sentence


def test_what_nothing_else_finds_says_so() -> None:
    """LRN-23."""
    answered = {Channel.ANSWERED: ChannelHit(1, 3.0)}
    assert reason(result(PastVerdicts(right=2), answered)).endswith("for this question; nothing else finds it")


def test_without_a_word_the_signals_speak() -> None:
    """RET-18: at most three, what adds most first."""
    said = reasons(result(None))
    assert 0 < len(said) <= MOST
    assert reason(result(None)) == "; ".join(said)
    best = max(PAGE.results[0].contributions, key=lambda part: part.amount)
    assert said[0] == sentence_of(best.name)
    assert reasons(result(PastVerdicts(right=1, rank_before=2)))[1:] == said[: MOST - 1]


@pytest.mark.parametrize("name", [*Signal, QUESTION, OWN])
def test_every_contribution_has_a_sentence(name: str) -> None:
    """RET-18: none is told by its bare name."""
    assert " " in sentence_of(name)
    assert sentence_of(name) != name.replace("_", " ")


def test_two_results_differ_by_their_contributions() -> None:
    """RET-18: the greatest first, and all together by what sets their scores apart."""
    one, other = PAGE.results[0], PAGE.results[-1]
    apart = difference(one, other)
    assert sum(amount for _, amount in apart) == pytest.approx(one.score - other.score)
    sizes = [abs(amount) for _, amount in apart]
    assert sizes == sorted(sizes, reverse=True)
    assert difference(other, one) == [(name, -amount) for name, amount in apart]


def with_effect(rank: int, name: str, amount: float) -> RankedResult:
    result = PAGE.results[rank - 1]
    return structs.replace(result, contributions=(*result.contributions, Contribution(name, amount, 1.0, amount)))


def test_what_sets_two_apart_is_told_of_the_one_that_was_spoken_of() -> None:
    """RET-18: blame of the second is no praise of the first."""
    plain, blamed, praised = PAGE.results[0], with_effect(2, QUESTION, -0.3), with_effect(2, QUESTION, 0.3)
    assert because(plain, blamed, QUESTION) == "2: people called it wrong for this question"
    assert because(praised, plain, QUESTION) == "2: people called it right for this question"
    assert because(plain, with_effect(2, CONTENT, -0.1), CONTENT) == "2: it was wrong for other questions"
    assert because(with_effect(1, OWN, 0.5), PAGE.results[1], OWN) == "1: you called it right"


@pytest.mark.parametrize(("amount", "shown"), [(-1e-7, False), (-0.01, True)])
def test_what_hardly_counts_is_no_line_of_an_explanation(amount: float, shown: bool) -> None:
    """RET-18, FBK-13: "content -0.0000" told nobody anything; what adds up to the score as it is printed stays."""
    console = Console(width=120)
    with console.capture() as printed:
        console.print(explained(with_effect(1, CONTENT, amount)))
    assert (CONTENT in printed.get()) is shown
    assert "-0.0000" not in printed.get()


def test_a_result_says_why_it_stands_here() -> None:
    """RET-18: in one sentence, the same that is printed, in JSON, too."""
    first = PAGE.results[0]
    assert first.why == reason(first) == first.to_dict()["why"]
    assert "it holds the question's words" in first.why
