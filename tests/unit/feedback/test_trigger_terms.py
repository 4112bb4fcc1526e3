"""RET-17: what a selection from far down teaches, and what it cannot."""

from __future__ import annotations

import dataclasses

import pytest

from tests.support.answers import a_query
from tests.support.feedback_events import HASHES, SETTINGS, impression, selection, shown
from tests.support.feedback_publisher import MemoryPublisher
from weft.domain.events import Selection
from weft.feedback.events.producer import FeedbackProducer
from weft.feedback.events.trigger_terms import learnable, trigger_terms
from weft.feedback.fold.credit import chosen_place, learned_terms

RULES = SETTINGS.feedback.triggers


def test_the_longest_words_that_say_something_are_taken() -> None:
    """RET-17: up to three, none of the stop list, which holds more than a hundred."""
    assert trigger_terms("where is the write-ahead checkpoint flushed to a disk", RULES) == (
        "checkpoint",
        "flushed",
        "write",
    )
    assert trigger_terms("how is it used?", RULES) == ()
    assert len(RULES.stop) > 100
    assert all(isinstance(word, str) and word == word.casefold() for word in RULES.stop)


def test_what_no_query_would_say_alone_is_not_learnable() -> None:
    """RET-17: nor what no word is, whoever sends it."""
    sent = ["flush", "flush", "of", "the", "x" * 41, "", "two words", "<script>", "1234", "disk"]
    assert learnable(sent, RULES) == ["flush", "disk"]


@pytest.mark.parametrize(("rank", "expected"), [(1, None), (3, None), (4, ("flush",))])
def test_the_producer_sends_words_with_selections_from_far_down(rank: int, expected: tuple[str, ...] | None) -> None:
    """RET-17: beyond the third; without rules it sends none."""
    query = dataclasses.replace(a_query(), text="flush")
    for triggers, terms in ((RULES, expected), (None, None)):
        publisher = MemoryPublisher()
        FeedbackProducer(publisher, triggers=triggers).selection(query, HASHES[rank], rank)
        (event,) = publisher.events
        assert isinstance(event, Selection)
        assert event.terms == terms


SHOWN = impression(results=[shown(rank) for rank in range(1, 6)])


def noted(picked: Selection) -> tuple[str, ...]:
    return learned_terms(picked, SHOWN.results[chosen_place(picked, SHOWN)], SHOWN, RULES)


def test_the_updater_notes_the_words_of_a_result_that_stood_far_down() -> None:
    """RET-17: by the rank that the impression says, whatever the event does."""
    low = selection(5, terms=("checkpoint", "flush"))
    assert noted(low) == ("checkpoint", "flush")
    assert noted(selection(2, terms=("checkpoint",))) == ()
    assert noted(selection(5)) == ()


def test_the_updater_relies_on_no_producers_choice_of_words() -> None:
    """RET-17: too many, too common and no words at all are left out."""
    greedy = selection(5, terms=("the", "two words", "one", "alpha", "beta", "gamma", "delta"))
    assert noted(greedy) == ("alpha", "beta", "gamma")
