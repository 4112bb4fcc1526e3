"""LES-2, LES-4: beliefs about lessons, against the formulas of docs/lessons.md written down with `math` and dicts."""

from __future__ import annotations

import math
import random
from collections import defaultdict

import pytest
from scipy.optimize import brentq
from scipy.stats import beta

from tests.support.feedback_events import NOON, SETTINGS, lesson_added, lesson_outcome
from tests.support.lesson_words import DAY_MS, believed
from weft.domain.events import LessonEvent
from weft.domain.lesson import Lesson, LessonPriority, LessonResult, LessonSource, LessonStatus

PRIOR = SETTINGS.priors.lessons
GOOD = {"success", "confirmation"}
PEOPLE = ("ada", "bob", "cyd", "dan", "eve")
Told = list[tuple[str, str, str, int, float]]  # lesson, outcome, who, days ago, weight


def logit(p: float) -> float:
    return math.log(p / (1.0 - p))


def logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def counted(told: Told) -> dict[str, list[float]]:
    """Of each lesson what counts for and against: of one person on one day at most `daily`, faded."""
    given: dict[tuple[str, str, int], int] = defaultdict(int)
    for lesson, _, who, ago, _ in told:
        given[lesson, who, ago] += 1
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for lesson, outcome, who, ago, weight in told:
        share = min(1.0, PRIOR.daily / given[lesson, who, ago])
        sums[lesson][outcome not in GOOD] += share * weight * 2.0 ** (-ago / PRIOR.half_life_days)
    return sums


def first_confidence(lesson: Lesson, lessons: list[Lesson], sums: dict[str, list[float]]) -> float:
    """The prior mean of a lesson: of its source, as all other lessons have it."""
    of_source: dict[str, list[float]] = {source: [0.0, 0.0] for source in LessonSource}
    for other in lessons:
        good, bad = sums[other.id] if other.id != lesson.id else (0.0, 0.0)
        share = PRIOR.per_lesson / (PRIOR.per_lesson + good + bad)
        of_source[other.source][0] += share * good
        of_source[other.source][1] += share * (good + bad)
    whole: dict[str, float] = defaultdict(float)
    for other in lessons:
        good, bad = sums[other.id]
        whole[other.source] += (good + bad) * PRIOR.per_lesson / (PRIOR.per_lesson + good + bad)
    root = {source: PRIOR.source_strength / (PRIOR.source_strength + whole[source]) for source in of_source}

    def slope(shift: float) -> float:
        stated = {source: logistic(logit(PRIOR.sources[source]) + shift) for source in of_source}
        total = sum(root[source] * (good - n * stated[source]) for source, (good, n) in of_source.items())
        return total - shift / PRIOR.root_spread**2

    shift = brentq(slope, -10.0, 10.0)
    good, n = of_source[lesson.source]
    stated = logistic(logit(PRIOR.sources[lesson.source]) + shift)
    mean = (PRIOR.source_strength * stated + good) / (PRIOR.source_strength + n)
    if lesson.priority is LessonPriority.CRITICAL:
        mean = min(PRIOR.highest, PRIOR.critical * mean)
    return min(PRIOR.highest, max(PRIOR.lowest, mean))


@pytest.mark.parametrize("seed", range(12))
def test_beliefs_are_those_of_the_formulas(seed: int) -> None:
    """LES-2, LES-3, LES-4: P(good), first confidence, and which lessons fail, of random histories."""
    rng = random.Random(seed)
    lessons = [
        Lesson(
            section="s",
            content=f"Do {number}",
            source=rng.choice(list(LessonSource)),
            priority=rng.choice(list(LessonPriority)),
        )
        for number in range(8)
    ]
    rates = {lesson.id: rng.random() for lesson in lessons}
    told: Told = []
    events: list[LessonEvent] = [lesson_added(lesson) for lesson in lessons]
    for number in range(rng.choice((10, 60, 200))):
        lesson, who, ago = rng.choice(lessons).id, rng.choice(PEOPLE), rng.randrange(40)
        origin = rng.choice(("report", "detection", "silence"))
        good = rng.random() < rates[lesson]
        outcome = rng.choice(sorted(GOOD)) if good else rng.choice(("failure", "contradiction"))
        told.append((lesson, outcome, who, ago, PRIOR.weights[origin]))
        facts = {"principal": who, "ts": NOON - ago * DAY_MS + number, "event_id": f"{number}", "origin": origin}
        events.append(lesson_outcome(lesson, LessonResult(outcome), **facts))
    # Whoever was there on one day alone counts as a newcomer, of whom three are heard: all were there on two.
    for who in PEOPLE:
        for ago in (50, 51):
            told.append((lessons[0].id, "success", who, ago, 1.0))
            facts = {"principal": who, "ts": NOON - ago * DAY_MS, "event_id": f"{who} {ago}"}
            events.append(lesson_outcome(lessons[0].id, "success", **facts))
    beliefs, sums = believed(events), counted(told)
    for lesson in lessons:
        belief = beliefs.of(lesson.id)
        assert belief is not None
        mean, (good, bad) = first_confidence(lesson, lessons, sums), sums[lesson.id]
        assert belief.prior == pytest.approx(mean, abs=2e-3)  # one step of Newton's method leaves so much
        a, b = PRIOR.strength * belief.prior + good, PRIOR.strength * (1.0 - belief.prior) + bad
        assert belief.p_good == pytest.approx(a / (a + b), abs=1e-5)
        fails = bad > 0 and beta.cdf(0.5, a, b + (PRIOR.failures - 1.0) * bad) >= PRIOR.retired
        assert (belief.status is LessonStatus.RETIRED) == fails
        low, high = beta.interval(SETTINGS.priors.interval.level, a, b)
        assert (belief.lower, belief.upper) == pytest.approx((min(low, a / (a + b)), max(high, a / (a + b))), abs=1e-4)
