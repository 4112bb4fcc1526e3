"""FBK-11, LRN-3: who opens everything that a page shows says nothing of its order, and leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest

from tests.support.feedback_events import NOON, explicit, impression, rules, selection, shown
from tests.support.session_store import Partition, phase
from weft.cli.main import main
from weft.domain.events import AnyEvent, Impression, Selection
from weft.learning.evidence import Evidence

MINUTE_MS = 60_000
PAGE = impression(results=[shown(rank, value=rank / 10, score=1.0 - rank / 10) for rank in (1, 2, 3, 4)])


def opened(*ranks: int, apart_ms: int = MINUTE_MS, **changes: object) -> list[Selection]:
    """Results opened one after the other, by words that make triggers of those far down."""
    facts = {"terms": ("checkpoint",), **changes}
    who = facts.get("principal", "ada")
    return [
        selection(rank, event_id=f"{who} opened {rank}", ts=NOON + at * apart_ms, **facts)
        for at, rank in enumerate(ranks)
    ]


def learned(folder: Path, events: Sequence[AnyEvent], *, cuts: bool = True, **changes: object) -> Evidence:
    partition = Partition(folder, rules(**changes))
    partition.feed(events, cuts=cuts)
    found = partition.shared
    assert partition.state._connection.execute("select count(*) from evidence where micro = 0").fetchone() == (0,)
    partition.state.close()
    return found


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """What a page that was shown leaves by itself."""
    return learned(tmp_path_factory.mktemp("untouched"), [PAGE])


@pytest.mark.parametrize("cuts", [True, False])
def test_all_of_a_page_or_all_but_one_leaves_nothing_in_whatever_order(
    tmp_path: Path, untouched: Evidence, cuts: bool
) -> None:
    """FBK-11: top down, bottom up, and in any other order; exactly, wherever batches begin."""
    for number, ranks in enumerate([*permutations((1, 2, 3, 4)), (4, 2, 1), (2, 3, 4)]):
        assert learned(tmp_path / str(number), [PAGE, *opened(*ranks)], cuts=cuts) == untouched


def test_selections_that_came_before_their_page_are_told_alike(tmp_path: Path, untouched: Evidence) -> None:
    """FBK-4, FBK-11: they wait, and then leave nothing either."""
    assert learned(tmp_path, [*opened(4, 3, 2, 1), PAGE]) == untouched


def test_a_choice_counts_as_before(tmp_path: Path, untouched: Evidence) -> None:
    """FBK-10: two of four, one by one, and both of what a page of three shows first."""
    two = learned(tmp_path / "two", [PAGE, *opened(2, 4)])
    assert two.usage
    assert two != untouched
    three = impression(results=[shown(rank) for rank in (1, 2, 3)])
    assert learned(tmp_path / "three", [three, *opened(1, 2)]).usage
    assert not learned(tmp_path / "both", [impression(results=[shown(1), shown(2)]), *opened(1, 2)]).usage


def test_many_at_once_are_one_look(tmp_path: Path) -> None:
    """FBK-11: four of ten within two seconds leave nothing; over a minute they are choices."""
    page = impression(results=[shown(rank) for rank in range(1, 9)])
    assert not learned(tmp_path / "scanner", [page, *opened(1, 3, 5, 7, apart_ms=300)]).usage
    assert learned(tmp_path / "person", [page, *opened(1, 3, 5, 7, apart_ms=20_000)]).usage


def test_what_others_choose_afterwards_counts_as_if_nobody_had_swept(tmp_path: Path) -> None:
    """FBK-11: a link scanner does not use a page up."""
    scanner, person = opened(1, 2, 3, 4, apart_ms=10), opened(3, principal="grace")
    both = learned(tmp_path / "both", [PAGE, *scanner, *person])
    assert both == learned(tmp_path / "alone", [PAGE, *person])
    assert both.usage


def test_what_the_allowance_gave_is_given_back(tmp_path: Path) -> None:
    """LRN-3: a page that was swept takes nothing from what its principal says that day."""
    praise = explicit(1.0, 2, query_id="q2", event_id="praise")
    other = impression("q2", PAGE.results)
    swept = learned(tmp_path / "swept", [PAGE, *opened(1, 2, 3, 4), other, praise], limits__principal_daily=0.5)
    assert swept == learned(tmp_path / "plain", [PAGE, other, praise], limits__principal_daily=0.5)


def test_in_a_session_it_leaves_nothing_before_and_after_the_session_completes(
    tmp_path: Path, untouched: Evidence
) -> None:
    """LRN-14, LRN-16: whether it completes before the sweep, in the middle of it, or after it."""
    whole = opened(1, 2, 3, 4)
    for number, place in enumerate((0, 2, 4)):
        events = [phase("start", "s1", ts=NOON), PAGE, *whole[:place]]
        events += [phase("complete", "s1", ts=NOON + 10 * MINUTE_MS), *whole[place:]]
        assert learned(tmp_path / str(number), events) == untouched


def test_what_a_session_dropped_is_not_taken_back_again(tmp_path: Path) -> None:
    """LRN-15, LRN-17: of an abandoned or unlearned session that begins again, nothing is less than nothing."""
    first, second = opened(1, 2), opened(3, 4)
    for number, end in enumerate(("abandon", "unlearn")):
        page: Impression = PAGE
        events = [phase("start", "s1"), page, *first, phase(end, "s1"), phase("start", "s1", event_id="again")]
        events += [*second, phase("complete", "s1")]
        found = learned(tmp_path / str(number), events)
        assert not found.usage
        assert all(micro >= 0 for micro in found.counts.values())


def test_an_unlearned_principal_begins_anew(tmp_path: Path) -> None:
    """LRN-17: what was taken out by name is not taken back once more when a sweep is completed later."""
    first, second = opened(1, 2), opened(3, 4, apart_ms=2 * MINUTE_MS)
    unlearn = phase("unlearn_principal", "s2", event_id="unlearn")
    found = learned(tmp_path, [PAGE, *first, unlearn, *second])
    assert all(micro > 0 for micro in found.usage.values())
    assert {key.content_hash for key in found.usage if key.content_hash} >= {PAGE.results[2].content_hash}


def test_status_names_who_opens_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-12: by principal, and how many pages; who chooses is not named."""
    learned(tmp_path, [PAGE, *opened(1, 2, 3, 4, apart_ms=10), *opened(3, principal="grace")])
    for name, flags in (
        ("ada", ["opens all of a page, or much of it at once, which counts for nothing (pages: 1)"]),
        ("grace", []),
    ):
        assert main(["feedback", "status", "--store", str(tmp_path), "--json", "--principal", name]) == 0
        (found,) = json.loads(capsys.readouterr().out)["sources"]
        assert found["flags"] == flags
