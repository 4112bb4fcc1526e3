"""CON-2: whether two texts that lie near each other say the same."""

from __future__ import annotations

import random

import pytest

from tests.support.lessons import lines_of
from tests.support.near_duplicates import denied, noticed, renumbered, reordered
from weft.consolidation.steps.duplicates import word_lists
from weft.quality.statements import Statements
from weft.settings import load_settings

_SETTINGS = load_settings(environment={})
_RULES = _SETTINGS.consolidation.duplicates
LISTS = word_lists(_SETTINGS)
TEXT = (
    "The scheduler retries a failed task 3 times before it gives up. Set --max-retries to change that. Paris servers "
    "always keep the queue in memory. The cache is enabled by default. Workers that were started by hand are listed in "
    "the console, with the machine that they run on and the time since their last sign of life."
)


def same(other: str) -> bool:
    one_way, back = (
        Statements(one, LISTS).repeats(Statements(another, LISTS), _RULES.least_overlap)
        for one, another in ((TEXT, other), (other, TEXT))
    )
    assert one_way == back
    return one_way


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("3 times", "5 times"),
        ("always keep", "never keep"),
        ("gives up", "does not give up"),
        ("is enabled", "isn't enabled"),
        ("enabled", "disabled"),
        ("Paris", "London"),
        ("--max-retries", "--max-jobs"),
        ("before it", "after it"),
        ("failed task 3 times before it gives up", "task gives up before it failed 3 times"),
        ("by default.", "by default. Do not use it."),
        ("3 times", "three times"),
        ("always keep", "always keep, if they can,"),
        ("by default.", "by default, unless told otherwise."),
    ],
)
def test_one_word_makes_another_statement(ours: str, theirs: str) -> None:
    """CON-2: numbers, negations, absolutes, opposites, names, flags and order words must agree."""
    assert ours in TEXT
    assert not same(TEXT.replace(ours, theirs))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("by default", "by default now"), ("a failed", "some failed"), ("that they run on", "they run on"), ("  ", "\n")],
)
def test_other_small_words_say_the_same(ours: str, theirs: str) -> None:
    """CON-2: small words may differ, and be missing."""
    assert same(TEXT.replace(ours, theirs))


def test_sentences_may_stand_in_another_order_and_a_notice_before_them() -> None:
    """CON-2: order within a sentence is part of what it says, order of sentences is not; nor is what one has alone."""
    rng = random.Random(0)
    assert all(same(str(reordered(TEXT, rng))) for _ in range(5))
    assert same(noticed(TEXT))


def test_planted_opposites_are_told_apart() -> None:
    """CON-2: wherever a verb is denied or a number is another one."""
    rng = random.Random(0)
    assert not any(same(str(change(TEXT, rng))) for _ in range(10) for change in (denied, renumbered))


AROUND = (
    "The service reads its configuration from the file in the home directory when it starts and reports what it found. "
    "{} Whoever changes a setting restarts the service, since nothing is read again while it runs."
)


@pytest.mark.parametrize(
    "pair",
    [
        ("The client retries and the server drops requests.", "The server retries and the client drops requests."),
        ("Version 2 is supported; version 3 is not.", "Version 3 is supported; version 2 is not."),
        ("Timeouts increase with every retry.", "Timeouts decrease with every retry."),
        ("Logs are kept for a week.", "Logs are kept for a month."),
        ("The job runs hourly.", "The job runs daily."),
        ("The method is synchronous.", "The method is asynchronous."),
        ("The hook runs on the main thread.", "The hook runs off the main thread."),
        ("Old files are included in the backup.", "Old files are excluded from the backup."),
        ("Messages are delivered at least once.", "Messages are delivered at most once."),
        ("The call returns null when nothing is found.", "The call raises when nothing is found."),
        ("Access is read-only.", "Access is read-write."),
        ("Results are inclusive of the end date.", "Results are exclusive of the end date."),
        ("Half of the budget is spent on tests.", "Double the budget is spent on tests."),
        ("Use `git rebase` to update the branch.", "Use `git merge` to update the branch."),
    ],
)
def test_one_sentence_of_many_may_say_the_opposite(pair: tuple[str, str]) -> None:
    """CON-2: opposites, units, and words that have changed places, however much else both texts share."""
    one, other = (Statements(AROUND.format(sentence), LISTS) for sentence in pair)
    assert not one.repeats(other, _RULES.least_overlap)
    assert not other.repeats(one, _RULES.least_overlap)


def test_labelled_pairs_of_opposites_are_two_within_a_longer_text() -> None:
    """CON-2: by what denies, numbers, order and opposites; one plain word for another is no more than noise is."""
    pairs = [each for each in (*lines_of("pairs"), *lines_of("fresh_pairs")) if each["label"] == "opposite"]
    assert len(pairs) >= 180
    texts = [[Statements(AROUND.format(f"{pair[side]}."), LISTS) for side in ("left", "right")] for pair in pairs]
    merged = [pair["left"] for pair, (one, other) in zip(pairs, texts, strict=True) if one.repeats(other, 0.0)]
    assert set(merged) <= {each["left"] for each in lines_of("fresh_pairs")}
    assert len(merged) <= 14


def test_a_clause_may_move_within_its_sentence() -> None:
    """CON-2: what moves as a whole has changed places with nothing."""
    one, other = (
        Statements(AROUND.format(sentence), LISTS)
        for sentence in ("When a run fails the owner gets a note.", "The owner gets a note when a run fails.")
    )
    assert one.repeats(other, _RULES.least_overlap)
