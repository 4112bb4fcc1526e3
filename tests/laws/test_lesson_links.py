"""LES-13: laws of what is said of pairs of lessons, that no order and no direction may break."""

from __future__ import annotations

import random
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.feedback_events import NOON, lesson_added, lesson_changed, lesson_outcome
from tests.support.lesson_words import believed
from weft.domain.events import LessonChange, LessonEvent
from weft.domain.lesson import Lesson, LessonResult, LessonSource
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.learning.lessons.rows import NIGHT

PEOPLE = ("ada", "bob", "cyd")
LESSONS = [
    Lesson(section="api", content=f"Do step {name} first", source=source)
    for name, source in zip("abcde", LessonSource, strict=False)
]
IDS = [each.id for each in LESSONS]
TOLD: list[LessonEvent] = [
    *map(lesson_added, LESSONS),
    *(
        lesson_outcome(each, result.value, principal=who, event_id=f"{each} {who}")
        for each, result, who in zip(IDS, [*LessonResult] * 2, PEOPLE * 2, strict=False)
    ),
]

words = st.lists(
    st.tuples(st.sampled_from(("alias", "apart")), st.permutations(IDS), st.sampled_from((*PEOPLE, NIGHT))), max_size=14
)


def said(drawn: list[tuple[str, list[str], str]]) -> list[LessonChange]:
    """Each word, later than those before it."""
    return [
        lesson_changed(op, one, other, principal=who, ts=NOON + at, event_id=f"link {at}")
        for at, (op, (one, other, *_), who) in enumerate(drawn)
    ]


def classes(beliefs: LessonBeliefs) -> dict[str, str]:
    return {belief.id: belief.representative for belief in beliefs.all()}


def net_masses(links: list[LessonChange]) -> dict[frozenset[str], int]:
    """Independent: people's last words on each pair, and the night's where none of them spoke."""
    last: dict[frozenset[str], dict[str, int]] = {}
    for link in links:  # in their order of time
        pair = frozenset({str(link.lesson_id), str(link.other)})
        last.setdefault(pair, {})[link.principal] = 1 if link.op == "alias" else -1
    people = {pair: {who: word for who, word in by.items() if who != NIGHT} for pair, by in last.items()}
    return {pair: sum((people[pair] or by).values()) for pair, by in last.items()}


def masses(beliefs: LessonBeliefs) -> list[tuple[object, ...]]:
    """What is believed, but for the days on which anything was said."""
    return [(each.id, each.p_good, each.lower, each.upper, each.status, each.counts) for each in beliefs.all()]


@settings(max_examples=examples(60), deadline=None)
@given(drawn=words, seed=st.integers(0, 2**32 - 1))
def test_no_order_of_words_makes_a_difference(drawn: list[tuple[str, list[str], str]], seed: int) -> None:
    """LES-13, LES-7: each is told by its own time."""
    links = said(drawn)
    shuffled: list[LessonEvent] = [*TOLD, *links]
    random.Random(seed).shuffle(shuffled)
    assert believed(shuffled).all() == believed([*TOLD, *links]).all()


@settings(max_examples=examples(60), deadline=None)
@given(drawn=words)
def test_what_is_kept_apart_is_two_and_a_pair_alone_is_one(drawn: list[tuple[str, list[str], str]]) -> None:
    """LES-13: by net mass, whichever lesson a word names first."""
    links = said(drawn)
    beliefs, net = believed([*TOLD, *links]), net_masses(links)
    stands = classes(beliefs)
    assert beliefs.counts.separate == {pair for pair, mass in net.items() if mass <= 0}
    for pair in beliefs.counts.separate:
        assert len({stands[each] for each in pair}) == 2
    if not beliefs.counts.separate:  # then nothing stands against a link
        assert all(len({stands[each] for each in pair}) == 1 for pair in net)
    assert all(stands[each] == each for each in set(stands.values()))


@settings(max_examples=examples(60), deadline=None)
@given(drawn=words)
def test_one_word_of_a_person_in_any_direction_splits_what_it_merged(drawn: list[tuple[str, list[str], str]]) -> None:
    """LES-13: to the bit, whatever nights say before or after."""
    merged = said([("alias", pair, who if who == NIGHT else "ada") for _, pair, who in drawn])
    splits = [
        lesson_changed("apart", one, other, principal="ada", ts=NOON + 1_000 + at, event_id=f"apart {at}")
        for at, (one, other) in enumerate(combinations(sorted(IDS, reverse=True), 2))
    ]
    again = [
        lesson_changed("alias", one, other, principal=NIGHT, ts=NOON + 2_000, event_id=f"again {one} {other}")
        for one, other in combinations(IDS, 2)
    ]
    assert masses(believed([*TOLD, *merged, *splits, *again])) == masses(believed(TOLD))
