"""EVA-11: every alarm rings where its failure is, and is silent where it is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.support.logged_queries import a_logged, a_result, an_outcome
from tests.support.retrieval_fakes import NOW
from weft.evaluation.log.alarms import ALARMS, MINIMUM, Alarm, AlarmInput, alarms, wilson
from weft.evaluation.measures.memory import ItemFacts
from weft.evaluation.queries.reader import LoggedQuery

HOUR = 3600.0
N = 100
FRESH, OLD = ItemFacts(modified_at=NOW - HOUR), ItemFacts(modified_at=NOW - 1000 * HOUR)


def healthy(number: int) -> LoggedQuery:
    """Two channels, of which words single out one content; it is shown first, and liked."""
    own = f"own {number}"
    results = [a_result(own, 0.9, rank=1), a_result(f"next {number}", 0.5, rank=2)]
    heads = {"lexical": [(own, 9.0), (f"next {number}", 3.0)], "dense": [(f"next {number}", 0.8), (own, 0.7)]}
    return a_logged(number, results, heads=heads, outcomes=[an_outcome(own)], at=NOW + number)


def unseen_word(number: int) -> LoggedQuery:
    """What the words single out is not shown."""
    return a_logged(number, [a_result(f"x{number}")], heads={"lexical": [("named", 9.0), ("other", 1.0)]})


def first_by_what_came_of_it(number: int) -> LoggedQuery:
    used = a_result(f"used {number}", 0.6, parts={"vector": 0.2, "content": 0.4})
    return a_logged(number, [used, a_result(f"x{number}", 0.5, rank=2)])


def new_is_left_out(number: int) -> LoggedQuery:
    new, old = f"new {number}", f"old {number}"
    return a_logged(number, [a_result(old)], heads={"dense": [(new, 0.9), (old, 0.8)]})


def another_kind(number: int) -> LoggedQuery:
    """Half of the log asks for one thing, the other half for something else."""
    intent = "debug" if number >= N // 2 else "*"
    return a_logged(number, [a_result(f"x{number}")], intent=intent, at=NOW + number)


def one_channel(number: int) -> LoggedQuery:
    return a_logged(number, [a_result(f"x{number}", channels={"lexical": 1})], failed=["dense"])


def the_same_hub(number: int) -> LoggedQuery:
    return a_logged(number, [a_result("hub"), a_result(f"x{number}", rank=2)])


def by_trigger_alone(number: int) -> LoggedQuery:
    results = [a_result("wanted"), a_result(f"x{number}", rank=2, channels={"triggers": 1})]
    return a_logged(number, results, outcomes=[an_outcome("wanted")])


FAILURES: dict[str, Callable[[int], LoggedQuery]] = {
    "keyword_blindness": unseen_word,
    "popularity_loop": first_by_what_came_of_it,
    "cold_start": new_is_left_out,
    "context_drift": another_kind,
    "channel_collapse": one_channel,
    "hub_domination": the_same_hub,
    "trigger_pollution": by_trigger_alone,
}


def watched(queries: Sequence[LoggedQuery]) -> AlarmInput:
    items = {f"new {n}": FRESH for n in range(N)} | {f"old {n}": OLD for n in range(N)}
    items |= {f"own {n}": FRESH if n % 2 else OLD for n in range(N)}
    return AlarmInput(list(reversed(queries)), items)


def rung(name: str, queries: Sequence[LoggedQuery]) -> Alarm:
    return ALARMS[name](watched(queries))


def test_there_is_an_alarm_for_every_failure_mode() -> None:
    """EVA-11."""
    assert set(ALARMS) == set(FAILURES)


@pytest.mark.parametrize("name", FAILURES)
def test_an_alarm_rings_where_its_failure_is(name: str) -> None:
    """EVA-11: and says what to look at."""
    alarm = rung(name, [FAILURES[name](number) for number in range(N)])
    assert alarm.ringing
    assert alarm.n >= MINIMUM
    assert alarm.says != "within its bound"


@pytest.mark.parametrize("name", FAILURES)
def test_no_alarm_rings_for_a_healthy_search(name: str) -> None:
    """EVA-11: where there is evidence, it lies within the bound; of triggers there is none."""
    alarm = rung(name, [healthy(number) for number in range(N)])
    assert not alarm.ringing
    if name != "trigger_pollution":
        assert alarm.n >= MINIMUM


@pytest.mark.parametrize("name", FAILURES)
def test_a_few_bad_queries_are_no_alarm(name: str) -> None:
    """EVA-11, EVA-10: ten queries cannot tell a failure from chance."""
    alarm = rung(name, [FAILURES[name](number) for number in range(10)])
    assert not alarm.ringing
    assert "too few" in alarm.says


def test_a_young_store_cannot_tell_how_what_is_new_fares() -> None:
    """EVA-11: four old files beside hundreds of new ones are no measure, however often they are asked for."""

    def asked(number: int) -> LoggedQuery:
        old = f"old {number % 4}"
        return a_logged(number, [a_result(old)], heads={"dense": [(f"new {number}", 0.9), (old, 0.8)]})

    alarm = rung("cold_start", [asked(number) for number in range(N)])
    assert not alarm.ringing
    assert alarm.says == "too few contents to tell: 100 new and 4 old"


def test_what_is_usual_is_not_known_better_than_it_is() -> None:
    """EVA-11: 26 of 31 old ones were shown, which may be 67 % but for chance; 28 % of new ones may be half of that."""

    def asked(number: int) -> LoggedQuery:
        new, old = f"new {number}", f"old {number % 31}"
        shown = ([old] if number % 31 < 26 and number < 31 else []) + ([new] if number % 25 < 7 else [])
        heads = {"dense": [(new, 0.9), (old, 0.8)] if number < 31 else [(new, 0.9)]}
        return a_logged(number, [a_result(each, rank=rank) for rank, each in enumerate(shown, start=1)], heads=heads)

    alarm = rung("cold_start", [asked(number) for number in range(N)])
    assert alarm.value == pytest.approx(0.28)
    assert 0.5 * wilson(26, 31, 0.95)[0] < alarm.high < alarm.bound == pytest.approx(0.5 * 26 / 31)
    assert not alarm.ringing


def test_what_was_touched_after_it_was_asked_for_is_neither_old_nor_new() -> None:
    """EVA-11: its time when it was asked for is not known any more."""
    queries = [replace(new_is_left_out(number), at=NOW - 2000 * HOUR) for number in range(N)]
    assert rung("cold_start", queries).says == "too few contents to tell: 0 new and 0 old"


def test_triggers_that_find_what_is_wanted_do_not_ring() -> None:
    """EVA-11: found by triggers alone, and liked as often as anything else."""
    queries = [
        a_logged(
            number,
            [a_result("wanted", channels={"triggers": 1}), a_result(f"x{number}", rank=2)],
            outcomes=[an_outcome("wanted")],
        )
        for number in range(N)
    ]
    alarm = rung("trigger_pollution", queries)
    assert (alarm.ringing, alarm.value, alarm.n) == (False, 1.0, N)


def test_one_query_asked_by_everyone_is_no_hub() -> None:
    """EVA-11: equal texts count once."""
    assert not rung("hub_domination", [a_logged(n, [a_result("hub")], text="the same") for n in range(N)]).ringing


def test_of_two_hubs_every_process_names_the_same() -> None:
    """EVA-11, ARC-9: the hashes of strings, by which sets are in order, differ from process to process."""
    names = [f"hub {number}" for number in range(20)]
    results = [a_result(name, rank=rank) for rank, name in enumerate(names[:10], start=1)]
    alarm = rung("hub_domination", [a_logged(number, results) for number in range(N)])
    assert f"content {min(names[:10])} is" in alarm.says


def test_a_lost_channel_is_named() -> None:
    """EVA-11, RET-7."""
    assert "dense 100 times" in rung("channel_collapse", [one_channel(n) for n in range(N)]).says


def test_a_channel_that_only_ranks_hides_no_collapse() -> None:
    """EVA-2, EVA-11: whoever ranks what one channel found is no second channel, here and for triggers."""

    def ranked_too(number: int) -> LoggedQuery:
        return a_logged(number, [a_result(f"x{number}", channels={"lexical": 1, "degree": 1})])

    def triggered(number: int) -> LoggedQuery:
        results = [a_result("wanted"), a_result(f"x{number}", rank=2, channels={"triggers": 1, "degree": 1})]
        return a_logged(number, results, outcomes=[an_outcome("wanted")])

    assert rung("channel_collapse", [ranked_too(n) for n in range(N)]).ringing
    assert rung("trigger_pollution", [triggered(n) for n in range(N)]).ringing


def test_what_rings_comes_first_and_an_empty_log_rings_nothing() -> None:
    """EVA-11."""
    found = alarms(watched([one_channel(n) for n in range(N)]))
    assert len(found) == len(ALARMS)
    ringing = [alarm.ringing for alarm in found]
    assert ringing == sorted(ringing, reverse=True)
    assert any(ringing)
    assert not any(alarm.ringing for alarm in alarms(AlarmInput([], {})))
