"""LES-2, LES-3, LES-4: what is believed of lessons, and what may be done with them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.feedback_events import (
    LESSON,
    NOON,
    SETTINGS,
    injection,
    lesson_added,
    lesson_changed,
    lesson_outcome,
)
from tests.support.lesson_words import DAY_MS, TODAY, believed, evidence_of
from weft.domain.events import LessonChange, LessonEvent
from weft.domain.lesson import Conditions, Lesson, LessonPriority, LessonResult, LessonSource, LessonStatus
from weft.learning.lessons.beliefs import LessonBelief, LessonBeliefs
from weft.learning.lessons.measures import success_measures
from weft.learning.lessons.rows import NIGHT

PRIOR = SETTINGS.priors.lessons


def a_lesson(source: LessonSource = LessonSource.OTHER, priority: LessonPriority = LessonPriority.MEDIUM) -> Lesson:
    return Lesson(section="api", content=f"Do as {source} {priority} says", source=source, priority=priority)


def of(beliefs: LessonBeliefs, lesson_id: str = LESSON.id) -> LessonBelief:
    belief = beliefs.of(lesson_id)
    assert belief is not None
    return belief


def outcomes(
    result: str, who: Sequence[str], lesson: Lesson = LESSON, *, days_ago: int = 0, **facts: str
) -> list[LessonEvent]:
    return [
        lesson_outcome(
            lesson.id,
            result,
            principal=name,
            event_id=f"{result} {name} {at}",
            ts=NOON - days_ago * DAY_MS + at,
            **facts,
        )
        for at, name in enumerate(who)
    ]


PEOPLE = ("ada", "bob", "cleo")


@pytest.mark.parametrize("source", LessonSource)
def test_the_first_confidence_is_that_of_the_source(source: LessonSource) -> None:
    """LES-2: worth about four outcomes, and learned together with that of other sources."""
    belief = of(believed([lesson_added(a_lesson(source))]), a_lesson(source).id)
    assert belief.p_good == pytest.approx(max(PRIOR.lowest, PRIOR.sources[source]))
    assert belief.observations == 0.0


def test_a_mistake_that_is_made_again_is_a_better_lesson() -> None:
    """LES-2: a twentieth for each repetition beyond the first, three at most."""
    lesson = a_lesson(LessonSource.REPEATED_MISTAKE)
    means = [
        of(believed([lesson_added(lesson, event_id=str(n)) for n in range(times)]), lesson.id).p_good
        for times in range(1, 7)
    ]
    assert means == pytest.approx([0.75, 0.80, 0.85, 0.90, 0.90, 0.90])


def test_what_is_critical_is_surer_and_what_people_disagree_about_less_sure() -> None:
    """LES-2: ×1.05 up to .95, and ×.85."""
    critical = a_lesson(LessonSource.KNOWLEDGE_BLOCK, LessonPriority.CRITICAL)
    assert of(believed([lesson_added(critical)]), critical.id).prior == pytest.approx(0.945)
    split = [lesson_added(), *outcomes("confirmation", ["ada"], origin="person")]
    split += outcomes("contradiction", ["bob"], origin="person")
    assert of(believed(split)).prior == pytest.approx(0.95 * 0.85)


def test_a_source_whose_lessons_fail_is_believed_less_and_all_others_a_little_less() -> None:
    """LES-2: whether corrections hold .95 is learned; what came of a lesson is no reason to have expected it."""
    failed: list[LessonEvent] = []
    for number in range(20):
        lesson = Lesson(section="api", content=f"Try {number}", source=LessonSource.USER_CORRECTION)
        failed += [lesson_added(lesson), *outcomes("failure", PEOPLE, lesson)]
    beliefs = believed([*failed, lesson_added(), lesson_added(a_lesson(LessonSource.KNOWLEDGE_BLOCK))])
    assert of(beliefs).prior < 0.8
    assert of(beliefs).prior < beliefs.sources[LessonSource.KNOWLEDGE_BLOCK] - 0.2 < 0.7
    alone = [lesson_added(), *outcomes("failure", PEOPLE)]
    assert of(believed(alone)).prior == pytest.approx(0.95)


def test_a_word_on_a_lesson_is_one_outcome_of_its_source() -> None:
    """LES-2, LES-4: people who contradict four corrections of a new store are still corrected at once."""
    disputed: list[LessonEvent] = []
    for number in range(4):
        lesson = Lesson(section="api", content=f"Try {number}", source=LessonSource.USER_CORRECTION)
        disputed += [lesson_added(lesson), *outcomes("contradiction", ["bob"], lesson, origin="person")]
    beliefs = believed([*disputed, lesson_added()])
    assert of(beliefs).status is LessonStatus.ACTIVE
    reported = [event for event in disputed if isinstance(event, LessonChange)]
    for event in list(reported):
        assert event.lesson is not None
        lesson = Lesson(section="api", content=event.lesson.content, source=LessonSource.USER_CORRECTION)
        reported += outcomes("contradiction", ["bob"], lesson)
    assert of(beliefs).prior == of(believed([*reported, lesson_added()])).prior


def test_recent_outcomes_weigh_more() -> None:
    """LES-4: half as much after a half-life."""
    fresh = of(believed([lesson_added(), *outcomes("failure", PEOPLE)]))
    aged = of(believed([lesson_added(), *outcomes("failure", PEOPLE, days_ago=round(PRIOR.half_life_days))]))
    assert (fresh.observations, aged.observations) == (3.0, 1.5)
    assert fresh.p_good < aged.p_good < fresh.prior


def test_silence_is_no_success() -> None:
    """LES-4: that the known mistake was not made again counts a tenth."""
    quiet = of(believed([lesson_added(), *outcomes("success", PEOPLE, origin="silence")]))
    assert quiet.observations == pytest.approx(0.3)


def test_a_persons_contradiction_retires_at_once_and_their_validation_restores() -> None:
    """LES-3, LES-4: a person's last word outranks detection, and says so."""
    praised = [lesson_added(), *outcomes("success", PEOPLE)]
    against = outcomes("contradiction", ["dora"], origin="person", why="no longer")
    retired = of(believed([*praised, *against]))
    assert (retired.status, retired.reason) == (LessonStatus.RETIRED, "a person's word: contradiction")
    assert not believed([*praised, *against]).injectable()
    again = lesson_outcome(LESSON.id, "confirmation", principal="dora", origin="person", ts=NOON + 9, event_id="again")
    restored = of(believed([*praised, *against, again]))
    assert restored.status is LessonStatus.ACTIVE
    assert restored.counts[LessonResult.CONTRADICTION] == 0  # taken back


def test_more_people_outvote_one() -> None:
    """LES-3: who stands against a lesson alone retires it no more once others stand for it."""
    events = [lesson_added(), *outcomes("contradiction", ["dora"], origin="person")]
    events += outcomes("confirmation", ["ada", "bob"], origin="person")
    assert of(believed(events)).status is not LessonStatus.RETIRED


def test_retiring_and_restoring_leave_what_came_of_a_lesson() -> None:
    """LES-3: they say what may be done with it, and nothing of how good it was."""
    tried = [lesson_added(), *outcomes("success", PEOPLE)]
    before = of(believed(tried))
    retired = of(believed([*tried, lesson_changed("retire", LESSON.id)]))
    restored = of(
        believed([*tried, lesson_changed("retire", LESSON.id), lesson_changed("restore", LESSON.id, ts=NOON + 1)])
    )
    assert (retired.status, retired.p_good) == (LessonStatus.RETIRED, before.p_good)
    assert (restored.status, restored.p_good) == (before.status, before.p_good)


def test_a_lesson_that_fails_is_retired_by_its_outcomes() -> None:
    """LES-3: within five failures of different people, and a lesson that mostly helps is not."""
    people = [f"p{number}" for number in range(20)]
    spread = {days: outcomes("failure", people[days : days + 1], days_ago=days) for days in range(8)}
    statuses = [
        of(believed([lesson_added(), *(event for day in range(n) for event in spread[day])])).status for n in range(8)
    ]
    assert LessonStatus.RETIRED not in statuses[:4]
    assert statuses[5] is LessonStatus.RETIRED
    good = [event for day in range(4) for event in outcomes("success", PEOPLE, days_ago=day)]
    good += outcomes("failure", PEOPLE, days_ago=4)
    assert of(believed([lesson_added(), *good])).status is LessonStatus.ACTIVE


def test_one_principal_moves_a_lesson_less_than_three() -> None:
    """LES-4, LRN-20: a thousand events of a day count as two, whoever else speaks."""
    flood = of(believed([lesson_added(), *outcomes("failure", ["mallory"] * 1_000)]))
    honest = of(believed([lesson_added(), *outcomes("failure", PEOPLE)]))
    assert honest.p_good < flood.p_good < flood.prior
    assert flood.observations == PRIOR.daily


@pytest.mark.parametrize("source", LessonSource)
@pytest.mark.parametrize("apart", [0, 1, 3], ids=["one day", "days in a row", "a week"])
def test_three_failures_of_a_lone_user_retire_a_lesson(source: LessonSource, apart: int) -> None:
    """LES-3, LRN-20: nobody else is there to say so, or to be protected; what helps as often stays."""
    lesson, said = a_lesson(source), "ada"
    told: list[LessonEvent] = [lesson_added(lesson, principal=said)]
    failed = [
        lesson_outcome(lesson.id, "failure", principal=said, event_id=f"f{n}", ts=NOON - apart * n * DAY_MS)
        for n in range(3)
    ]
    belief = of(believed([*told, *failed]), lesson.id)
    assert belief.status is LessonStatus.RETIRED
    assert belief.reason.startswith("it fails")
    helped = [lesson_outcome(lesson.id, "success", principal=said, event_id=f"s{n}") for n in range(3)]
    assert of(believed([*told, *failed, *helped]), lesson.id).status is not LessonStatus.RETIRED
    if source is LessonSource.USER_CORRECTION:
        assert of(believed([*told, *failed[:2]]), lesson.id).status is not LessonStatus.RETIRED
        others = lesson_added(a_lesson(LessonSource.OTHER, LessonPriority.LOW), principal="bob")
        assert of(believed([*told, others, *failed]), lesson.id).status is not LessonStatus.RETIRED


def test_urgent_lessons_are_active_from_a_lower_bound_on() -> None:
    """LES-3: what is critical or high is used sooner."""
    plain, urgent = (
        a_lesson(LessonSource.REPEATED_MISTAKE),
        a_lesson(LessonSource.REPEATED_MISTAKE, LessonPriority.HIGH),
    )
    beliefs = believed([lesson_added(plain), lesson_added(urgent)])
    assert of(beliefs, plain.id).status is LessonStatus.NEEDS_VALIDATION
    assert of(beliefs, urgent.id).status is LessonStatus.ACTIVE


def test_lessons_on_trial_have_the_chance_that_they_are_as_good_as_active_ones() -> None:
    """LES-3: Thompson sampling, whose propensity is known; active ones are always shown, dormant and retired never."""
    trial, bad = a_lesson(), a_lesson(LessonSource.SUGGESTION)
    beliefs = believed([lesson_added(), lesson_added(trial), lesson_added(bad), *outcomes("failure", PEOPLE, bad)])
    draws = beliefs.believed_share(trial.id)
    assert beliefs.propensity(LESSON.id) == 1.0
    low, _ = draws.interval(1.0 - 2.0 * beliefs.propensity(trial.id))
    assert 0.0 < beliefs.propensity(trial.id) < 0.5
    assert draws.a + draws.b - draws.observations == pytest.approx(PRIOR.strength)
    assert beliefs.propensity(bad.id) == 0.0
    assert low < PRIOR.active
    assert {each.lesson.id for each in beliefs.injectable()} == {LESSON.id, trial.id}


def test_a_revision_inherits_half_of_its_parents_belief_and_takes_its_place() -> None:
    """LES-7: and the parent is back where the revision was retired."""
    better = Lesson(
        section="api", content="Run the migrations, then start the API", source=LessonSource.USER_CORRECTION
    )
    told = [lesson_added(), *outcomes("failure", PEOPLE), lesson_added(better, op="revise", lesson_id=LESSON.id)]
    beliefs = believed(told)
    parent = of(beliefs)
    assert (parent.status, parent.reason) == (LessonStatus.RETIRED, f"revised by {better.id}")
    fresh = beliefs.sources[LessonSource.USER_CORRECTION]
    assert of(beliefs, better.id).prior == pytest.approx((fresh + parent.p_good) / 2, abs=0.02)
    without = believed([*told, lesson_changed("retire", better.id)])
    assert of(without).status is not LessonStatus.RETIRED


def test_merged_lessons_are_believed_together_and_split_bit_for_bit() -> None:
    """LES-13: the last word of each on a pair counts, so that "apart" is remembered."""
    twin = Lesson(section="api", content="Migrate before you start the API", source=LessonSource.SUGGESTION)
    told = [lesson_added(), lesson_added(twin), *outcomes("success", PEOPLE), *outcomes("failure", PEOPLE[:1], twin)]
    apart = believed(told)
    merged = believed([*told, lesson_changed("alias", twin.id, LESSON.id, principal=NIGHT)])
    split = believed(
        [
            *told,
            lesson_changed("alias", twin.id, LESSON.id, principal=NIGHT),
            lesson_changed("apart", twin.id, LESSON.id, principal="ada", ts=NOON + 1),
            lesson_changed("alias", twin.id, LESSON.id, principal=NIGHT, ts=NOON + DAY_MS // 4, event_id="again"),
        ]
    )
    assert of(merged, twin.id).p_good == of(merged).p_good
    assert of(merged, twin.id).representative == LESSON.id
    assert [each.lesson.id for each in merged.injectable()] == [LESSON.id]
    for each in (LESSON.id, twin.id):
        assert of(split, each).p_good == of(apart, each).p_good
        assert of(split, each).representative == each


def test_links_in_a_circle_are_one_class() -> None:
    """LES-13: whoever points where, nothing is lost."""
    a, b, c = (Lesson(section="s", content=f"Do {name}") for name in "abc")
    links = [lesson_changed("alias", x.id, y.id) for x, y in ((a, b), (b, c), (c, a))]
    beliefs = believed([*map(lesson_added, (a, b, c)), *links])
    assert len({of(beliefs, each.id).representative for each in (a, b, c)}) == 1
    assert len(beliefs.injectable()) == 1


def test_what_was_stamped_on_an_injection_is_set_against_what_came_of_it() -> None:
    """LES-11: by injection and lesson; nothing that nobody judged is among it."""
    events = [lesson_added(), injection(LESSON.id, p_good=0.9), injection(LESSON.id, injection_id="i-2", p_good=0.7)]
    beliefs = believed([*events, *outcomes("failure", ["ada"], injection_id="i-1")])
    assert beliefs.calibration() == [(0.9, False)]
    assert of(beliefs).injected == 2


def test_measures_of_success_count_what_came_of_lessons() -> None:
    """LES-11: of three lessons, one good, one bad, one that nobody tried; by hand."""
    bad, new = Lesson(section="s", content="Do x"), Lesson(section="s", content="Do y")
    events: list[LessonEvent] = [lesson_added(each) for each in (LESSON, bad, new)]
    events += [injection(LESSON.id, p_good=0.95), injection(bad.id, injection_id="i-2", p_good=0.6)]
    events += outcomes("success", ["ada"], injection_id="i-1")
    events += [
        lesson_outcome(bad.id, "failure", principal=who, event_id=f"bad {who}", injection_id="i-2")
        for who in ("ada", "bob", "cyd")
    ]
    assert success_measures(believed(events), active=PRIOR.active) == pytest.approx(
        {
            "lessons": 3,
            "outcomes": 4,
            "injections": 2,
            "learned_at_once": 1 / 3,
            "retired_within_7_days": 0.0,
            "needing_review": 1 / 2,
            "bad_retired": 1.0,
            "usefulness": (1 - 0.5 * 3) / 4,
            "updates_per_lesson": 4 / 3,
            "deviation_by_band": (abs(0.95 - 1.0) + abs(0.6 - 0.0)) / 2,
        }
    )
    assert success_measures(believed([]), active=PRIOR.active) == {"lessons": 0, "outcomes": 0, "injections": 0}


def test_the_history_says_when_by_whom_and_why() -> None:
    """LES-10: in order, from the conversation that it was said in."""
    events = [*outcomes("contradiction", ["bob"], origin="person", why="it is managed now"), lesson_added(ts=NOON - 5)]
    first, second = believed(events).history(LESSON.id)
    assert (first.what, first.by, first.source) == ("add", "ada", "user_correction")
    assert (second.what, second.by, second.why, second.session) == ("contradiction", "bob", "it is managed now", "s1")


def test_both_lessons_of_a_link_and_of_a_revision_tell_of_it() -> None:
    """LES-10, LES-13: whichever was named first, split again, and of a parent by whom it was revised."""
    other, child = a_lesson(), a_lesson(LessonSource.SUGGESTION)
    events = [
        lesson_added(ts=NOON),
        lesson_added(other, ts=NOON + 1),
        lesson_changed("alias", LESSON.id, other.id, ts=NOON + 2),
        lesson_changed("apart", other.id, LESSON.id, ts=NOON + 3),
        lesson_added(child, op="revise", lesson_id=other.id, ts=NOON + 4),
        lesson_added(ts=NOON + 5, event_id="again"),
    ]
    beliefs = believed(events)
    links = [("alias", LESSON.id), ("apart", other.id)]
    assert [(note.what, note.lesson) for note in beliefs.history(LESSON.id)] == [
        ("add", LESSON.id),
        *links,
        ("add", LESSON.id),
    ]
    assert [(note.what, note.lesson) for note in beliefs.history(other.id)] == [
        ("add", other.id),
        *links,
        ("revise", child.id),
    ]
    assert [note.what for note in beliefs.history(child.id)] == ["revise"]


def test_the_words_that_most_used_are_the_text() -> None:
    """LES-7: same text, same id; of kind and priority what most said."""
    urgent = Lesson(section=LESSON.section, content=LESSON.content, priority=LessonPriority.HIGH)
    told = [lesson_added(urgent, event_id=str(n)) for n in range(2)]
    text = believed([lesson_added(), *told]).lesson(LESSON.id)
    assert text is not None
    assert (text.priority, text.source) == (LessonPriority.HIGH, LessonSource.USER_CORRECTION)


def test_what_is_of_tomorrow_counts_tomorrow() -> None:
    """LRN-2: beliefs of a day are what was known then."""
    assert believed([lesson_added()], today=TODAY - 1).ids == []


def test_evidence_of_parts_adds_up_in_any_order() -> None:
    """ARC-1: to the bit."""
    events = [lesson_added(), *outcomes("success", PEOPLE), *outcomes("failure", PEOPLE[:2], days_ago=3)]
    parts = [evidence_of([event]) for event in events]
    forth, back = (believed(type(parts[0]).sum(some)) for some in (parts, parts[::-1]))
    assert forth.all() == back.all()


def test_conditions_are_part_of_what_a_lesson_is() -> None:
    """LES-7: under other conditions it is another lesson, with evidence of its own."""
    other = Lesson(section=LESSON.section, content=LESSON.content, conditions=Conditions(tools=("Bash",)))
    assert set(believed([lesson_added(), lesson_added(other)]).ids) == {LESSON.id, other.id}


def test_an_outcome_counts_as_much_as_it_is_sure_and_is_taken_back_exactly() -> None:
    """LES-4, LES-5: in whole micro-units; it retires nothing at once, as a person's word does."""
    added = [lesson_added(LESSON)]
    kept = evidence_of(added)
    said = lesson_outcome(LESSON.id, "contradiction", principal="bob", origin="detection", sure=0.872, ts=NOON + 1)
    whole = evidence_of([*added, said])
    (micro,) = (count for key, count in whole.usage.items() if key.bin == "lesson.contradiction:detection")
    assert micro == 872_000
    heard = of(believed(whole))
    assert heard.observations == pytest.approx(0.872)
    assert heard.counts[LessonResult.CONTRADICTION] == 1
    assert heard.status is not LessonStatus.RETIRED
    assert of(believed(kept)).p_good > heard.p_good
    assert whole - evidence_of([said]) == kept
    typed = lesson_outcome(LESSON.id, "contradiction", principal="bob", origin="person", ts=NOON + 1)
    assert of(believed([*added, typed])).status is LessonStatus.RETIRED
