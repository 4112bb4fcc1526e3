"""LES-8: lessons stand beside the results of a search, and move none of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.support.feedback_events import SETTINGS, lesson_added
from tests.support.lesson_words import believed
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from weft.domain.lesson import Conditions, Lesson, LessonSource
from weft.lessons.finding import meanings_of
from weft.retrieval.answer.lessons import LessonRetriever

SURE = Lesson(
    section="api",
    content="Run the migrations before starting the API",
    source=LessonSource.USER_CORRECTION,
    conditions=Conditions(words=("api", "migrations", "start")),
)
TRIAL = Lesson(section="api", content="Start the API with migrations on", source=LessonSource.OTHER)


def beside() -> LessonRetriever:
    weights = SETTINGS.priors.lessons.relevance
    return LessonRetriever(weights, most=5, duplicates=SETTINGS.lessons.duplicates)


def test_what_fits_the_question_is_shown_with_why() -> None:
    """LES-8, LES-3: nothing where nothing fits; what is on trial is drawn by the query's id, with its propensity."""
    beliefs, finds = believed([lesson_added(SURE), lesson_added(TRIAL)]), beside()
    shown = [finds.of(a_query("how do I start the api", query_id=str(n)), beliefs) for n in range(300)]
    assert {each[0].match.believed.lesson.id for each in shown} == {SURE.id}
    assert shown[0][0].why.startswith("relevance 0.07 (words 0.07) · P(good) 0.95")
    on_trial = [each[1] for each in shown if len(each) > 1]
    assert {each.match.believed.lesson.id for each in on_trial} == {TRIAL.id}
    assert {each.propensity for each in on_trial} == {beliefs.propensity(TRIAL.id)}
    expected = beliefs.propensity(TRIAL.id) * len(shown)
    assert abs(len(on_trial) - expected) < 4.0 * expected**0.5
    assert finds.of(a_query("how do I bake bread"), beliefs) == ()
    again = a_query("how do I start the api", query_id="17")
    assert finds.of(again, beliefs) == shown[17]


def test_lessons_are_found_by_meaning_and_embedded_once() -> None:
    """LES-8: a question without a word of the lesson; the addend says so, and a later snapshot embeds what is new."""
    axes = {text: axis for each, axis in ((SURE, [1.0, 0.0]), (TRIAL, [0.0, 1.0])) for text in meanings_of(each)}
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> np.ndarray:
        embedded.extend(texts)
        return np.array([axes[text] for text in texts], dtype=np.float32)

    weights = SETTINGS.priors.lessons.relevance
    finds, asked = (
        LessonRetriever(weights, most=5, duplicates=SETTINGS.lessons.duplicates, embed=embed),
        a_query("bring the backend up"),
    )
    vector = np.array([0.8, 0.6], dtype=np.float32)
    (shown,) = finds.of(asked, believed([lesson_added(SURE)]), vector)
    addend = f"{0.8 * weights.meaning:.2f}"
    assert shown.why.startswith(f"relevance {addend} (meaning {addend}) · P(good)")
    assert finds.of(asked, believed([lesson_added(SURE)])) == ()
    far = np.array([0.9 * weights.near, -1.0], dtype=np.float32)
    assert finds.of(asked, believed([lesson_added(SURE), lesson_added(TRIAL)]), far) == ()
    assert embedded == [*meanings_of(SURE), *meanings_of(TRIAL)]


def test_what_everyday_questions_are_as_near_to_is_not_shown() -> None:
    """LES-8: of ten everyday questions .85 are to show nothing, so that a question must be nearer than the second."""
    everyday = [f"everyday {number}" for number in range(11)]
    nearness = {text: 0.06 * number for number, text in enumerate(everyday)}  # 0 to .60

    def embed(texts: Sequence[str]) -> np.ndarray:
        cosines = [nearness.get(text, 1.0) for text in texts]
        return np.array([[each, (1.0 - each**2) ** 0.5] for each in cosines], dtype=np.float32)

    weights = SETTINGS.priors.lessons.relevance
    beliefs, asked = believed([lesson_added(SURE)]), a_query("bring the backend up")
    bound = 0.06 * weights.everyday * (len(everyday) - 1)  # the quantile of eleven at equal distances
    for shift in (-0.01, 0.01):
        cosine = bound + shift
        vector = np.array([cosine, (1.0 - cosine**2) ** 0.5], dtype=np.float32)
        finds = LessonRetriever(weights, most=5, duplicates=SETTINGS.lessons.duplicates, embed=embed, everyday=everyday)
        assert bool(finds.of(asked, beliefs, vector)) is (shift > 0.0)
        assert LessonRetriever(weights, most=5, duplicates=SETTINGS.lessons.duplicates, embed=embed).of(
            asked, beliefs, vector
        )


def test_a_search_embeds_a_few_new_texts_and_all_that_were_embedded_before() -> None:
    """LES-8: a process of one search meets every lesson, once earlier ones have embedded them."""
    lessons = [Lesson(section="a", content=f"Count to {n}", source=LessonSource.USER_CORRECTION) for n in range(60)]
    beliefs, asked = believed([lesson_added(each) for each in lessons]), a_query("bring the backend up")
    weights = SETTINGS.priors.lessons.relevance
    vector, kept = np.array([1.0, 0.0], dtype=np.float32), set[str]()
    asked_for: list[int] = []

    def embed(texts: Sequence[str]) -> np.ndarray:
        asked_for.append(len(texts))
        kept.update(texts)
        return np.tile(vector, (len(texts), 1))

    for _ in range(4):
        finds = LessonRetriever(
            weights,
            most=60,
            duplicates=SETTINGS.lessons.duplicates,
            embed=embed,
            stored=lambda texts: [each for each in texts if each in kept],
        )
        finds.of(asked, beliefs, vector)
    assert asked_for == [32, 64, 96, 120]


def test_results_are_the_same_with_lessons_and_without() -> None:
    """LES-8: rankings do not change, and an answer without lessons says nothing of them."""
    generation = MemoryGeneration({"a.md": ["start the api with make"], "b.md": ["red apple"]})
    plain = a_searcher(generation).search(a_query("start the api"))
    assert plain.lessons == ()
    assert "lessons" not in plain.to_dict()
