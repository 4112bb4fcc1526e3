"""LES-9: lessons as an agent reads them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.support.lessons import a_lesson, believed, labelled, settings
from weft.domain.lesson import LessonResult
from weft.domain.lesson_match import BelievedLesson
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import load_token_counter
from weft.lessons.prompt import estimated_tokens, line_of, prompt_form

contents = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), min_size=1, max_size=80).filter(
    lambda text: any(map(str.isalnum, text))
)
lessons = st.lists(
    st.builds(
        lambda content, section, good, bad: believed(
            a_lesson(content, section=section), counts={LessonResult.SUCCESS: good, LessonResult.FAILURE: bad}
        ),
        contents,
        st.sampled_from(["git", "testing", "api"]),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    max_size=12,
    unique_by=lambda each: each.lesson.id,
)


@given(lessons=lessons, budget=st.integers(0, 300))
def test_the_budget_is_never_exceeded_and_the_form_is_deterministic(lessons: list[BelievedLesson], budget: int) -> None:
    """LES-9: counted over the whole text, headings included."""
    form = prompt_form(lessons, budget=budget, count_tokens=estimated_tokens)
    assert form.tokens == estimated_tokens(form.text) <= budget
    assert form == prompt_form(lessons, budget=budget, count_tokens=estimated_tokens)
    shown = [each for each in lessons if each.lesson.id in form.shown]
    assert [each.lesson.id for each in shown] == list(form.shown)
    assert all(line_of(each) in form.text for each in shown)


def test_sections_come_in_the_order_of_their_best_and_marks_say_what_came_of_lessons() -> None:
    """LES-9."""
    good = believed(a_lesson("Sign commits", section="git"), counts={LessonResult.SUCCESS: 3, LessonResult.FAILURE: 1})
    new = believed(a_lesson("Seed the random numbers", section="testing"))
    bad = believed(a_lesson("Rebase shared branches", section="git"), counts={LessonResult.CONTRADICTION: 2})
    form = prompt_form([good, new, bad], budget=1000, count_tokens=estimated_tokens)
    assert form.text.splitlines() == [
        "## git",
        f"✓ [{good.lesson.id}] Sign commits (+3/−1)",
        f"✗ [{bad.lesson.id}] Rebase shared branches (+0/−2)",
        "## testing",
        f"○ [{new.lesson.id}] Seed the random numbers (+0/−0)",
    ]
    assert form.shown == (good.lesson.id, new.lesson.id, bad.lesson.id)


def test_a_lesson_too_long_for_what_is_left_makes_room_for_a_shorter_one() -> None:
    """LES-9."""
    long = believed(a_lesson(" ".join(["word"] * 80)))
    short = believed(a_lesson("Sign commits"))
    assert prompt_form([long, short], budget=60, count_tokens=estimated_tokens).shown == (short.lesson.id,)


def encoder_tokens() -> EmbeddingSettings:
    return settings().embedding


def test_the_form_has_three_fifths_of_the_tokens_of_json_at_most() -> None:
    """LES-9: the same lessons and counts, by the tokens of the bundled encoder, and by the estimate."""
    every = [believed(a_lesson(pair["left"], section="work")) for pair in labelled("pairs", held_out=True)]
    form = prompt_form(every, budget=10**6, count_tokens=estimated_tokens)
    assert len(form.shown) == len(every)
    as_json = json.dumps(
        [
            each.lesson.as_fields() | {"p_good": each.p_good, "status": each.status, "helpful": 0, "harmful": 0}
            for each in every
        ]
    )
    for count_tokens in (load_token_counter(encoder_tokens()), estimated_tokens):
        assert count_tokens(form.text) <= 0.6 * count_tokens(as_json)
