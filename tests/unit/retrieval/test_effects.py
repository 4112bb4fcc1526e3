"""LRN-18, LRN-23: what people called contents, through whole searches: where results stand, and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.support.examples import examples
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher, having_said
from tests.support.retrieval_fakes import settings as retrieval_settings
from tests.support.words_spoken import a_word, an_outcome, by_many
from weft.domain.ranking import Answer, Channel, RankedResult
from weft.domain.reasons import CONTENT, OWN, QUESTION, PastVerdicts
from weft.learning.evidence import Evidence
from weft.retrieval.searcher import Searcher

FRUIT = MemoryGeneration(
    {f"d{n}": [f"{' '.join(['red apple pie tart cake jam'][0].split()[: n + 1])}"] for n in range(6)}
)
QUESTION_ASKED = "red apple pie tart cake jam"
PEOPLE = ("ada", "bob", "cleo", "dan")
STRANGER = "eve"


def ask(*said: Evidence, by: str = STRANGER, text: str = QUESTION_ASKED, **tuned: object) -> Answer:
    return with_verdict_request(*said, **tuned).search(a_query(text, principal=by))


def with_verdict_request(*said: Evidence, **tuned: object) -> Searcher:
    return having_said(a_searcher(FRUIT, **tuned), *said)


def rank_of(content: str, answer: Answer) -> int:
    return next(each.rank for each in answer.results if each.content_hash == content)


def result_of(content: str, answer: Answer) -> RankedResult:
    return answer.results[rank_of(content, answer) - 1]


PLAIN = ask()
ORDER = [each.content_hash for each in PLAIN.results]
LAST, FIRST = ORDER[-1], ORDER[0]


def as_told(answer: Answer) -> Sequence[object]:
    return [structs.asdict(each) for each in answer.results]


def test_where_nothing_is_known_the_ranking_is_the_same_to_the_bit() -> None:
    """LRN-18, ARC-8: nor where the effects are switched off, or what was said is of contents that are gone."""
    assert as_told(ask(a_word("f" * 64, QUESTION_ASKED, "ada"), a_word("e" * 64, "why?", "bob"))) == as_told(PLAIN)
    said = by_many(PEOPLE, LAST, QUESTION_ASKED)
    off = with_verdict_request(said, effects=False).search(a_query(QUESTION_ASKED, principal=STRANGER))
    assert as_told(off) == as_told(PLAIN)
    assert as_told(ask(said)) != as_told(PLAIN)


TWINS = {**retrieval_settings().diversity.model_dump(), "duplicate_cosine": 1.1}
"""Near-duplicates stay."""

words = st.lists(
    st.builds(
        a_word,
        st.sampled_from(ORDER),
        st.sampled_from([QUESTION_ASKED, "why?", "jam cake tart pie apple red"]),
        st.sampled_from([*PEOPLE, STRANGER]),
        good=st.booleans(),
        share=st.sampled_from([0.2, 0.7, None]),
    ),
    max_size=12,
)


@settings(max_examples=examples(40), deadline=None)
@given(words)
def test_scores_are_the_sum_of_their_contributions(said: list[Evidence]) -> None:
    """RET-18, LRN-18: signals, content, question and own word, each told; the order is that of the scores."""
    answer = ask(*said)
    scores = [each.score for each in answer.results]
    assert scores == sorted(scores, reverse=True)
    for result in answer.results:
        assert result.score == pytest.approx(math.fsum(part.amount for part in result.contributions), abs=1e-12)
        for part in result.contributions:
            if part.name in {CONTENT, QUESTION} and part.belief is not None:
                assert part.belief.low < part.belief.mean < part.belief.high
                assert part.belief.level == part.name


@pytest.mark.parametrize(("people", "first"), [(1, False), (2, True), (3, True)])
def test_what_people_call_right_stands_first_for_others(people: int, first: bool) -> None:
    """LRN-18: three who say so of the last result bring it first for somebody who asks the same."""
    answer = ask(by_many(PEOPLE[:people], LAST, QUESTION_ASKED, share=0.3))
    assert rank_of(LAST, answer) < len(ORDER)
    if first:
        assert rank_of(LAST, answer) == 1
    past = result_of(LAST, answer).past
    assert past is not None
    assert (past.right, past.wrong, past.own, past.rank_before) == (people, 0, None, len(ORDER))


ORCHARD = MemoryGeneration(
    {
        # Each second document says the same in another order, and is a near-duplicate; and all have parts.
        f"d{n}": [" ".join(words[:: 1 if n % 2 else -1]), " ".join(words[: 1 + n // 4])]
        for n in range(12)
        for words in [QUESTION_ASKED.split()[: 1 + n // 2]]
    }
)


@settings(max_examples=examples(30), deadline=None)
@given(st.sampled_from(["document", "chunk"]), st.integers(0, 9), st.sampled_from([3, 10]), st.booleans())
def test_the_place_before_is_the_one_that_was_seen(unit: str, place: int, k: int, good: bool) -> None:
    """RET-18, LRN-18: near-duplicates and further parts of documents, which no page shows, are no places on it."""
    asked = a_query(QUESTION_ASKED, k=k, principal=STRANGER)
    seen = a_searcher(ORCHARD, unit=unit).search(asked).results
    assert len(seen) < len(a_searcher(ORCHARD, unit=unit, diversity=TWINS).search(asked).results) or k == 3
    result = seen[place % len(seen)]
    said = by_many(PEOPLE[:3], result.content_hash, QUESTION_ASKED, good=good)
    again = having_said(a_searcher(ORCHARD, unit=unit), said).search(asked).results
    past = {each.content_hash: each.past for each in again}.get(result.content_hash)
    assert good <= (past is not None)
    assert past is None or past.rank_before == result.rank


def test_what_people_call_wrong_falls_with_each_of_them() -> None:
    """LRN-18: here, where one result holds every word that is asked for and the next ones ever fewer."""
    said = [by_many(PEOPLE[:people], FIRST, QUESTION_ASKED, good=False, share=1.0) for people in (1, 2, 3, 4)]
    ranks = [rank_of(FIRST, ask(each)) for each in said]
    assert ranks == sorted(ranks)
    assert ranks[0] > 1
    assert ranks[2] >= 3


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2), st.integers(0, 4), st.sampled_from([0.05, 0.5, 0.95, None]), st.sampled_from(ORDER))
def test_a_majority_against_never_lifts(right: int, more: int, share: float | None, content: str) -> None:
    """LRN-18: two against one leave a result no higher than it was, whatever was expected of it."""
    said = [a_word(content, QUESTION_ASKED, f"for {n}", share=share) for n in range(right)]
    said += [a_word(content, QUESTION_ASKED, f"against {n}", good=False, share=share) for n in range(right + more)]
    answer = ask(*said)
    assert result_of(content, answer).score <= result_of(content, PLAIN).score
    assert rank_of(content, answer) >= rank_of(content, PLAIN)


@pytest.mark.parametrize("against", range(4))
def test_ones_own_word_holds_for_oneself(against: int) -> None:
    """LRN-18: what one called right is first, what one called wrong below the third, whatever others say."""
    others = by_many(PEOPLE[:against], LAST, QUESTION_ASKED, good=False) if against else Evidence()
    mine = a_word(LAST, QUESTION_ASKED, STRANGER)
    own = ask(others, mine)
    assert rank_of(LAST, own) == 1
    assert result_of(LAST, own).past is not None
    assert result_of(LAST, own).past.own is True  # type: ignore[union-attr]
    assert OWN in {part.name for part in result_of(LAST, own).contributions}
    praised = by_many(PEOPLE[:against], FIRST, QUESTION_ASKED) if against else Evidence()
    assert rank_of(FIRST, ask(praised, a_word(FIRST, QUESTION_ASKED, STRANGER, good=False))) > 3


def test_what_one_called_wrong_does_not_return_to_stand_for_others_words() -> None:
    """LRN-18, RET-18: three call it right, the asker wrong: a page of three does not show it."""
    said = by_many(PEOPLE[:3], FIRST, QUESTION_ASKED), a_word(FIRST, QUESTION_ASKED, STRANGER, good=False)
    answer = with_verdict_request(*said).search(a_query(QUESTION_ASKED, k=3, principal=STRANGER))
    assert len(answer.results) == 3
    assert FIRST not in {each.content_hash for each in answer.results}


def test_ones_own_word_is_nobody_elses() -> None:
    """LRN-18: nor is there one of who has no name."""
    mine = a_word(LAST, QUESTION_ASKED, "ada")
    for other in (STRANGER, "anonymous", ""):
        answer = ask(mine, a_word(LAST, QUESTION_ASKED, "anonymous", good=False), by=other)
        assert OWN not in {part.name for each in answer.results for part in each.contributions}
    assert rank_of(LAST, ask(mine, by="ada")) == 1


def test_ones_own_last_word_holds() -> None:
    """LRN-18: whoever changes their mind is believed."""
    minds = [a_word(LAST, QUESTION_ASKED, STRANGER, good=good, ms=ms) for ms, good in ((1, True), (2, False))]
    assert rank_of(LAST, ask(*minds)) > 3


@pytest.mark.parametrize("last", [True, False])
def test_the_last_word_on_a_page_or_a_part_of_it_holds(last: bool) -> None:
    """LRN-18, LRN-23: a result praised by a click on it, and its page called wrong by name, or the other way round."""
    said = (
        a_word(LAST, QUESTION_ASKED, STRANGER, good=not last, ms=1),
        a_word(result_of(LAST, PLAIN).uris[0], QUESTION_ASKED, STRANGER, good=last, ms=2),
    )
    mine, others = ask(*said), ask(*said, by="ada")
    past = [
        next((each.past for each in answer.results if each.content_hash == LAST), None) for answer in (mine, others)
    ]
    assert [each and (each.right, each.wrong, each.own) for each in past] == [
        (int(last), int(not last), last),
        (int(last), int(not last), None),
    ]
    assert (rank_of(LAST, mine) == 1) == last


def test_clicks_are_nobodys_word() -> None:
    """RET-18: who opened a result called it nothing."""
    past = result_of(LAST, ask(an_outcome(LAST, QUESTION_ASKED, "ada", 0.4))).past
    assert past == PastVerdicts(rank_before=len(ORDER))


def test_near_questions_count_less_and_look_alikes_not_at_all() -> None:
    """LRN-19: for somebody who asks it in another order of words; what asks for something else leaves all as it is."""
    said = by_many(PEOPLE[:3], LAST, QUESTION_ASKED, share=0.3)
    same, near = ask(said), ask(said, text="the jam cake tart, pie apple red")
    assert rank_of(LAST, near) == 1
    amounts = [
        next(part.amount for part in result_of(LAST, each).contributions if part.name == QUESTION)
        for each in (same, near)
    ]
    assert amounts[0] / 2 < amounts[1] < amounts[0]
    past = result_of(LAST, near).past
    assert past == PastVerdicts(near_right=3, nearest=QUESTION_ASKED, rank_before=past.rank_before if past else None)
    plain = ask(text=f"{QUESTION_ASKED} without sugar")
    assert as_told(ask(said, text=f"{QUESTION_ASKED} without sugar"))[0] == as_told(plain)[0]


def test_what_was_right_for_other_questions_gains_little() -> None:
    """LRN-18: next to nothing beside what three say under this question; it fades into the priors' variance."""
    elsewhere = ask(by_many(PEOPLE[:3], LAST, "why?", share=0.3))
    (part,) = [part for part in result_of(LAST, elsewhere).contributions if part.name == CONTENT]
    assert 0.0 < part.amount < 0.1
    assert result_of(LAST, elsewhere).past is None


def test_what_was_called_right_is_found_where_no_channel_finds_it() -> None:
    """LRN-23: a channel of its own looks past questions up, under the filters of the query; silent without any."""
    said = by_many(PEOPLE[:3], LAST, QUESTION_ASKED, share=None)
    answer = ask(said, channels=["lexical"], depth=2)
    found = result_of(LAST, answer)
    assert found.rank == 1
    assert set(found.channels) == {Channel.ANSWERED}
    assert found.past is not None
    assert found.past.rank_before is None
    assert LAST not in {each.content_hash for each in ask(channels=["lexical"], depth=2).results}
    against = by_many(PEOPLE[:3], LAST, QUESTION_ASKED, good=False, share=None)
    assert Channel.ANSWERED not in {way for each in ask(against).results for way in each.channels}


def test_an_answer_tells_what_came_of_its_results() -> None:
    """RET-18, LRN-18: to clients in words and numbers, and to updaters as precedent, a half where it says nothing."""
    answer = ask(by_many(PEOPLE[:3], LAST, QUESTION_ASKED, share=0.3))
    told = {each["content_hash"]: each for each in answer.to_dict()["results"]}
    assert told[LAST]["why"].startswith("three people called this right for this question; before that it was sixth")
    assert told[LAST]["past"]["right"] == 3
    assert told[FIRST]["past"] is None
    precedent = result_of(LAST, answer).precedent
    assert precedent is not None
    assert 0.9 < precedent <= 1.0
    assert {each.precedent for each in PLAIN.results} == {None}
