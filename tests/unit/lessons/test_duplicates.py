"""LES-13: whether two lessons are one."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from tests.support.lessons import a_lesson, labelled, lines_of, settings
from weft.app.lessons.hearing import lesson_vectors
from weft.domain.lesson import Lesson
from weft.lessons.duplicates import DuplicateIndex, compare_lessons
from weft.wording.comparison import Comparison, TextRelation
from weft.wording.text import Text


def compared(one: Lesson, other: Lesson) -> Comparison:
    forth, back = (compare_lessons(*both, settings().lessons.duplicates) for both in ((one, other), (other, one)))
    assert forth.relation == back.relation
    return forth


def relation(one: str, other: str) -> TextRelation:
    return compared(a_lesson(one), a_lesson(other)).relation


def test_no_opposite_is_merged_and_most_paraphrases_are_recognised() -> None:
    """LES-13: 0 opposites, 0 other lessons merged; 7 in 10 paraphrases merged or proposed, on pairs not chosen by."""
    counts: Counter[tuple[str, TextRelation]] = Counter()
    for pair in labelled("pairs", held_out=True):
        counts[pair["label"], relation(pair["left"], pair["right"])] += 1
    assert sum(count for (label, _), count in counts.items() if label == "opposite") >= 25
    assert counts["opposite", TextRelation.SAME] == counts["different", TextRelation.SAME] == 0
    paraphrases = sum(count for (label, _), count in counts.items() if label == "same")
    assert counts["same", TextRelation.SAME] + counts["same", TextRelation.PROPOSED] >= 0.7 * paraphrases


def test_no_pair_of_either_half_is_merged_wrongly() -> None:
    """LES-13: safety is asked of every pair."""
    pairs = [*labelled("pairs", held_out=True), *labelled("pairs", held_out=False), *lines_of("fresh_pairs")]
    assert len(pairs) >= 280
    merged = [pair for pair in pairs if relation(pair["left"], pair["right"]) is TextRelation.SAME]
    assert {pair["label"] for pair in merged} == {"same"}


PASSIVES = [
    ("Send the digest at noon", "The digest must be sent at noon"),
    ("Reject parcels without a label", "Parcels without a label must be rejected"),
    ("Prefer events over polling", "Events are to be preferred over polling"),
    ("Write logs to stderr", "Logs should be written to stderr"),
]


@pytest.mark.parametrize(("one", "other"), PASSIVES)
def test_what_is_to_be_done_is_what_is_asked_for(one: str, other: str) -> None:
    """LES-13: in the passive, with forms that no ending tells; "without" denies what stands before the verb alone."""
    assert relation(one, other) is TextRelation.SAME


CONFLICTS = [
    ("Always squash commits", "Never squash commits"),
    ("Run the migrations before starting the API", "Start the API before running the migrations"),
    ("After a restart, warm the cache", "Before a restart, warm the cache"),
    ("Retry at most 3 times", "Retry at most 30 times"),
    ("Use UUIDs rather than integers as keys", "Use integers rather than UUIDs as keys"),
    ("Install the hooks", "Uninstall the hooks"),
    ("Wait 10 seconds before a retry", "Wait 10 minutes before a retry"),
    ("Ask for two approvals of a release", "Ask for three approvals of a release"),
    ("Push with --force to review branches", "Push with --force-with-lease to review branches"),
    ("Accept orders without a postcode", "Reject orders without a postcode"),
    ("Copy data from staging to production", "Copy data from production to staging"),
    ("Do check the signature", "Don't check the signature"),
]


@pytest.mark.parametrize(("one", "other"), CONFLICTS)
def test_opposites_are_conflicts(one: str, other: str) -> None:
    """LES-13: always and never, before and after, 3 and 30."""
    assert relation(one, other) is TextRelation.OPPOSITE


def test_what_states_an_order_is_not_merged_with_what_states_none() -> None:
    """LES-13: else two that contradict one another could be one through it."""
    first, second = (a_lesson(f"Run the migrations {word} starting the API") for word in ("before", "after"))
    neither = a_lesson("Run the migrations when starting the API")
    assert compared(first, second).relation is TextRelation.OPPOSITE
    for each in (first, second):
        assert compared(each, neither).relation is not TextRelation.SAME


def test_conditions_that_exclude_each_other_keep_lessons_apart_until_a_person_says_so() -> None:
    """LES-13: one text for two tools may be meant twice."""
    one, other = (a_lesson("Quote every path", tools=(tool,)) for tool in ("Bash", "Edit"))
    assert compared(one, other).relation is TextRelation.PROPOSED
    assert compared(one, a_lesson("Every path is to be quoted", section="other")).relation is TextRelation.SAME


ASKED = [
    ("Run all tests before pushing", "Run some tests before pushing"),
    ("Use caching in production", "Use caching only in production"),
    ("You must use the VPN", "You may use the VPN"),
    ("Log in before running the script", "Log out before running the script"),
    ("Copy from A to B", "Copy from B to A"),
    ("Commit often, push rarely", "Push often, commit rarely"),
    ("Set the timeout to 5 seconds", "Set the timeout to 5 minutes"),
    ("Use one worker", "Use two workers"),
    ("Close the ticket when the fix is merged", "Close the ticket unless the fix is merged"),
]


@pytest.mark.parametrize(("one", "other"), ASKED)
def test_a_small_word_that_changes_what_is_said_keeps_lessons_apart(one: str, other: str) -> None:
    """LES-13: merged without asking is only what cannot mean another thing."""
    assert relation(one, other) is not TextRelation.SAME


def test_the_index_finds_what_comparing_everything_finds() -> None:
    """LES-13: of a third of the labelled lessons, whichever comes first; not pairs that share two opposites alone."""
    pairs = [*labelled("pairs", held_out=False), *labelled("pairs", held_out=True)][::3]  # a ninth of all comparisons
    every = [a_lesson(pair[side]) for pair in pairs for side in ("left", "right")]
    lessons = sorted({each.id: each for each in every}.values(), key=lambda lesson: lesson.id)
    index = DuplicateIndex(settings().lessons.duplicates)
    for each in lessons:
        index.add(each)
    expected, parsed = {}, {each.id: Text(each.content) for each in lessons}
    for one, other in combinations(lessons, 2):
        left, right = parsed[one.id], parsed[other.id]
        comparison = compared(one, other)
        opposed = comparison.shared * (len(left.content) + len(right.content)) / 2 - len(left.content & right.content)
        if comparison.relation is not TextRelation.OTHER and opposed < 1.5:
            expected[frozenset({one.id, other.id})] = comparison.relation
    assert len(expected) > len(lessons) // 4
    found = {frozenset({one.id, other.id}): each.relation for one, other, each in index.pairs()}
    assert found == expected
    of_each = {frozenset({one.id, other.id}): each.relation for one in lessons for other, each in index.compared(one)}
    assert of_each == expected


REARRANGED = [
    ("Check the client certificate on the server", "Check the server certificate on the client"),
    ("Use Redis for sessions and Postgres for jobs", "Use Postgres for sessions and Redis for jobs"),
    ("Read from the replica and write to the primary", "Write to the replica and read from the primary"),
    ("Log errors as warnings", "Log warnings as errors"),
    ("Map old ids onto new ids", "Map new ids onto old ids"),
    ("Replace mocks with fakes", "Replace fakes with mocks"),
    ("Use the staging key in tests, the live key in demos", "Use the live key in tests, the staging key in demos"),
    ("Admins approve what editors write", "Editors approve what admins write"),
    ("Run the smoke tests every deploy", "Run the smoke tests every other deploy"),
    ("Only admins may delete records", "Admins may only delete records"),
]


@pytest.mark.parametrize(("one", "other"), REARRANGED)
def test_the_same_words_in_another_order_are_not_merged_without_asking(one: str, other: str) -> None:
    """LES-13: they may say the opposite."""
    assert relation(one, other) is not TextRelation.SAME
    assert relation(one, one) is relation(other, other) is TextRelation.SAME


OPPOSED = [
    ("Keep secrets out of Docker images", "Keep secrets in Docker images"),
    ("Allow anonymous uploads", "Block anonymous uploads"),
    ("Make the field nullable", "Make the field non-nullable"),
    ("Run jobs on weekdays", "Run jobs on weekends"),
    ("Run migrations manually", "Run migrations automatically"),
    ("Use optimistic locking", "Use pessimistic locking"),
    ("Keep the feature flag after the launch", "Get rid of the feature flag after the launch"),
]


@pytest.mark.parametrize(("one", "other"), OPPOSED)
def test_opposites_of_everyday_are_conflicts(one: str, other: str) -> None:
    """LES-13."""
    assert relation(one, other) is TextRelation.OPPOSITE


def test_a_reason_names_words_as_they_are_written() -> None:
    """LES-13: whoever reviews a pair reads words, and no stems."""
    one, other = (a_lesson(f"{word} squash commits") for word in ("Always", "Never"))
    assert compared(one, other).why == "opposites: always and never"


def test_never_without_is_always_with() -> None:
    """LES-13: of two denials nothing is left to deny."""
    plan = "Never deploy without a rollback plan"
    assert relation(plan, "Always deploy with a rollback plan") is TextRelation.SAME
    assert relation(plan, "Deploy without a rollback plan") is TextRelation.OPPOSITE
    assert relation(plan, "Never deploy with a rollback plan") is TextRelation.OPPOSITE
    asking = "Ask the user before deleting any branch"
    assert relation(asking, "Don't delete a branch without asking the user") is TextRelation.PROPOSED


BESIDE = [
    ("Set the read timeout to 5 seconds", "Set the write timeout to 5 seconds"),
    ("Set the min pool size in config.toml", "Set the max pool size in config.toml"),
    ("Log the version on startup", "Log the version on shutdown"),
]


@pytest.mark.parametrize(("one", "other"), BESIDE)
def test_what_both_can_be_followed_is_no_conflict(one: str, other: str) -> None:
    """LES-13: each is about another thing."""
    assert relation(one, other) is TextRelation.OTHER


def test_other_quotation_marks_are_for_a_person() -> None:
    """LES-13: an advice on code may be about them."""
    assert relation("Answer with 'yes'", 'Answer with "yes"') is TextRelation.PROPOSED


def test_what_says_the_same_in_other_words_is_put_before_a_person() -> None:
    """LES-13: half of 120 pairs that share few words, no unrelated one; opposites are never merged."""
    embed = lesson_vectors(settings())
    assert embed is not None
    counts: Counter[tuple[str, TextRelation]] = Counter()
    pairs = lines_of("other_words")
    for pair in pairs:
        index = DuplicateIndex(settings().lessons.duplicates, embed)
        for side in ("a", "b"):
            index.add(a_lesson(pair[side]))
        counts[pair["label"], next((each.relation for _, _, each in index.pairs()), TextRelation.OTHER)] += 1
    labels = Counter(pair["label"] for pair in pairs)
    merged = {label: counts[label, TextRelation.SAME] / labels[label] for label in labels}
    proposed = {label: counts[label, TextRelation.PROPOSED] / labels[label] for label in labels}
    assert merged["same"] + proposed["same"] >= 0.5
    assert counts["same", TextRelation.OPPOSITE] <= 0.03 * labels["same"]
    assert merged["opposite"] == merged["related"] == merged["unrelated"] == 0.0
    assert proposed["unrelated"] <= 0.03


def test_a_lesson_is_compared_by_meaning_with_its_nearest_alone() -> None:
    """LES-13: of a subject with many lessons a person is not asked about all pairs."""
    index = DuplicateIndex(settings().lessons.duplicates, lambda texts: np.ones((len(texts), 4), np.float32) / 2)
    for text in (
        "Sign commits",
        "Water the plants",
        "Ask Maria first",
        "Pin numpy",
        "Round prices up",
        "Close the gate",
    ):
        index.add(a_lesson(text))
    asked = Counter(lesson.id for lesson, _, _ in index.pairs())
    assert max(asked.values()) == 3
