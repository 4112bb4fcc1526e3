"""LRN-14, LRN-16, LRN-17: laws of sessions that no order and no neighbour may break."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.session_logs import (
    SESSIONS,
    Deed,
    Log,
    fed,
    found_in,
    limited,
    logs,
    require_unlearned,
    tight,
    told,
    unlearnings,
)
from tests.support.session_projects import read_at_random
from tests.support.session_store import Partition, alone, judged, phase
from weft.domain.events import AnyEvent
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.overlays import PENDING, SETTLED, sessions_in
from weft.learning.evidence import MICRO, Evidence
from weft.learning.parameters import SURPLUS

NAMES = ("ada", "bob", "cyd", "dan")
signals = st.lists(st.sampled_from([1.0, -1.0, 0.3, -0.7]), min_size=1, max_size=3)
histories = st.fixed_dictionaries(dict.fromkeys(NAMES, signals))


def said(name: str, values: Sequence[float]) -> Iterator[AnyEvent]:
    """What a session says between start and completion, less than its principal may."""
    for number, value in enumerate(values):
        yield from judged(name, value, rank=1 + number, query=f"{name}-{number}", principal=name)


def merged(folder: Path, said_by: dict[str, list[float]], order: Sequence[str]) -> Evidence:
    """All sessions side by side, completed in some order."""
    started = [phase("start", name, principal=name) for name in NAMES]
    spoken = [event for name, values in said_by.items() for event in said(name, values)]
    ended = [phase("complete", name, principal=name) for name in order]
    return alone(folder, [*started, *spoken, *ended])


@settings(max_examples=5, deadline=None)
@given(said_by=histories, order=st.permutations(NAMES), again=st.permutations(NAMES))
def test_the_order_of_independent_merges_is_irrelevant(
    said_by: dict[str, list[float]], order: list[str], again: list[str]
) -> None:
    """LRN-16: merging is addition; and completing everybody a second time changes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        once = merged(Path(folder, "a"), said_by, order)
        assert merged(Path(folder, "b"), said_by, again) == once
        twice = [phase("complete", name, event_id=f"{name} once more", principal=name) for name in order]
        partition = Partition(Path(folder, "a"))
        partition.feed(twice)
        assert partition.shared == once
        assert once == Evidence.sum(
            alone(Path(folder, name), list(said(name, values))) for name, values in said_by.items()
        )


@settings(max_examples=examples(30), deadline=None)
@given(
    log=logs,
    limits=tight,
    unlearned=unlearnings,
    cuts=st.sets(st.integers(1, 50), max_size=3),
)
def test_unlearning_equals_never_having_seen_it_beyond_allowances_too(
    log: Log, limits: FeedbackSettings, unlearned: dict[str, int], cuts: set[int]
) -> None:
    """LRN-17, LRN-3: bit for bit, in what all share and in every other session, however much their principals said.

    Any of the sessions, at any time, in any order; what one says once it was started again stays.
    """
    require_unlearned(log, limits, unlearned, cuts)


@settings(max_examples=12, deadline=None)
@given(log=logs, limits=tight, orders=st.tuples(st.permutations(SESSIONS), st.permutations(SESSIONS)))
def test_the_order_of_merges_is_irrelevant_beyond_allowances_too(
    log: Log, limits: FeedbackSettings, orders: tuple[list[str], list[str]]
) -> None:
    """LRN-16, LRN-3: which of a principal's sessions count does not depend on who completes first, or how often."""
    with tempfile.TemporaryDirectory() as folder:
        found = [
            fed(Path(folder, str(number)), limits, [*log, *((len(log), Deed(name, "complete")) for name in order)])
            for number, order in enumerate(orders)
        ]
        assert found_in(found[0]) == found_in(found[1])
        before = found_in(found[0])
        found[0].feed(told([(len(log) + 1, Deed(name, "complete")) for name in orders[1]]), cuts=False)
        assert found_in(found[0]) == before


@settings(max_examples=12, deadline=None)
@given(
    log=logs,
    limits=tight,
    unlearned=st.sets(st.sampled_from(SESSIONS)),
    cuts=st.sets(st.integers(1, 50), min_size=1, max_size=6),
    records=st.sampled_from([3, 12, 1_000]),
)
def test_where_batches_begin_changes_nothing_beyond_allowances(
    log: Log, limits: FeedbackSettings, unlearned: set[str], cuts: set[int], records: int
) -> None:
    """ARC-3, LRN-3: which parts count is decided when a batch ends, and forgotten sessions keep their places."""
    limits = limits.model_copy(update={"limits": limits.limits.model_copy(update={"session_records": records})})
    whole = [*log, *((len(log), Deed(name, "unlearn")) for name in sorted(unlearned))]
    with tempfile.TemporaryDirectory() as folder:
        fast, slow = fed(Path(folder, "a"), limits, whole), fed(Path(folder, "b"), limits, whole, cuts)
        assert found_in(fast) == found_in(slow)
        assert fast.report.dropped == slow.report.dropped


@settings(max_examples=examples(20), deadline=None)
@given(log=logs, daily=st.sampled_from([0.5, 1.0, 2.0, 3.5]))
def test_as_much_counts_of_a_principals_day_as_may(log: Log, daily: float) -> None:
    """FBK-11, LRN-20: all of it up to an allowance; at most that and one event, however many sessions.

    Verdicts and reviews have one each.
    """
    ends: Log = [(len(log), Deed(name, "complete")) for name in SESSIONS]
    counted, all_of_it = Counter[tuple[int, str, str]](), Counter[tuple[int, str, str]]()
    with tempfile.TemporaryDirectory() as folder:
        found = fed(Path(folder), limited(daily), [*log, *ends]).shared
    for key, micro in found.counts.items():
        # Masses of these two are what was drawn: every outcome has a score, every review a threshold.
        if (of := key.parameter.removeprefix(SURPLUS)) in {"relevance", "threshold"}:
            all_of_it[key.day, key.model, of] += micro
            counted[key.day, key.model, of] += micro * (not key.parameter.startswith(SURPLUS))
    for place, micro in all_of_it.items():
        rounded = 100  # a share of each mass is rounded down
        assert min(micro, daily * MICRO) - rounded <= counted[place] <= (daily + 1.0) * MICRO


TURNS = ("speak", "speak", "start", "resume", "suspend", "complete", "complete", "abandon", "unlearn")


@settings(max_examples=15, deadline=None)
@given(
    turns=st.lists(st.sampled_from(TURNS), min_size=3, max_size=12),
    cuts=st.sets(st.integers(1, 11), max_size=3),
)
def test_where_batches_begin_changes_nothing_for_a_session(turns: list[str], cuts: set[int]) -> None:
    """ARC-3, LRN-15: several lives of a session in one batch, or each phase in a batch of its own."""
    events: list[list[AnyEvent]] = [
        judged("ada", 1.0, query=f"q{number}") if turn == "speak" else [phase(turn, "ada", event_id=f"turn {number}")]
        for number, turn in enumerate(["start", *turns])
    ]
    edges = [0, *sorted(cuts), len(events)]
    with tempfile.TemporaryDirectory() as folder:
        slow, fast = Partition(Path(folder, "slow")), Partition(Path(folder, "fast"))
        slow.feed([event for some in events for event in some])
        for begin, end in pairwise(edges):
            if batch := [event for some in events[begin:end] for event in some]:
                fast.feed(batch, cuts=False)
        assert fast.shared == slow.shared
        for kind in (PENDING, SETTLED):
            assert fast.overlay("ada", kind) == slow.overlay("ada", kind)
        assert [fast.report.version, fast.report.dropped] == [slow.report.version, slow.report.dropped]
        assert fast.state.read(sessions_in) == slow.state.read(sessions_in)


def test_nothing_is_ever_read_across_sessions_or_projects(tmp_path: Path) -> None:
    """LRN-14: random operations over 50 sessions in each of 3 stores, 0 cross-reads; tests/crash has ten times more."""
    read_at_random(tmp_path, operations=1_000)
