"""FBK-13: names are free, so those that nobody was told of before share what one may say, until they have a history."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.feedback_events import NOON, RULES, SETTINGS, explicit, impression, records, rules, shown
from tests.support.session_store import FACTS, Partition, phase
from weft.domain.documents import Domain
from weft.domain.events import AnyEvent
from weft.domain.ranking import Scope, Signal
from weft.feedback.fold.names import NEWCOMERS, NameKind, NameTracker
from weft.feedback.pipeline import consume
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, Evidence

DAY = 86_400_000
SCOPE = Scope(Domain.CODE)
SIGNALS = (Signal.VECTOR, Signal.LEXICAL, Signal.FRESHNESS)
DAILY = round(RULES.limits.principal_daily)


def forged(who: str, answers: int, *, ts: int = NOON, alone: bool = False) -> Iterator[AnyEvent]:
    """Forged answers in which what is fresh is praised, and what matches is blamed, in one principal's name."""
    facts = {"session_id": f"session of {who}", "principal": who, "ts": ts}
    if alone:
        yield phase("start", event_id=f"{who} {ts} start", **facts)
    for number in range(answers):
        query = f"{who} {ts} {number}"
        page = [
            shown(rank, signals={"freshness": fresh, "vector": 1.0 - fresh, "lexical": 1.0 - fresh})
            for rank, fresh in ((1, 0.55), (2, 0.45))
        ]
        yield impression(query, page, event_id=f"{query} shown", **facts)
        for rank, signal in ((1, 1.0), (2, -1.0)):
            yield explicit(signal, rank, query_id=query, event_id=f"{query} {rank}", **facts)
    if alone:
        yield phase("complete", event_id=f"{who} {ts} complete", **facts)


TOLD = rules(time__clock_step_s=10.0**6)
"""A quiet week moves the clock in one step."""


def feed(partition: Partition, events: Sequence[AnyEvent]) -> None:
    """One batch, whose records have the broker's times: those of the latest event so far."""
    first, latest = partition.report.next_offset, 0
    lain = []
    for record, event in zip(records(events), events, strict=True):
        latest = max(latest, event.ts)
        lain.append(record._replace(offset=first + record.offset, timestamp=latest, by_broker=True))
    if lain:
        consume(lain, FACTS, partition.state, TOLD)


def learned(folder: Path, events: Sequence[AnyEvent]) -> Evidence:
    partition = Partition(folder, TOLD)
    feed(partition, events)
    assert partition.report.applied == len(events)
    return partition.shared


def freshness(evidence: Evidence) -> float:
    beliefs = read_beliefs(SETTINGS.priors, evidence, now=(NOON + DAY) / 1000)
    return beliefs.weights(SCOPE, SIGNALS)[Signal.FRESHNESS].mean


def counted(evidence: Evidence) -> float:
    """Observations that move weights."""
    return sum(micro for key, micro in evidence.counts.items() if key.parameter == "relevance") / MICRO


def history() -> list[AnyEvent]:
    """Ten people, who came on the days before, one after the other."""
    return [
        event
        for day in range(-5, 0)
        for number in range(10)
        for event in forged(f"user {number}", 1, ts=NOON + day * DAY)
    ]


@pytest.mark.parametrize("alone", [False, True], ids=["at once", "merged"])
@pytest.mark.parametrize("before", [[], history()], ids=["a new store", "a store with a history"])
def test_two_hundred_invented_names_move_weights_no_more_than_three_people(
    tmp_path: Path, before: list[AnyEvent], alone: bool
) -> None:
    """FBK-13: with 1,800 forged impressions they had moved freshness in code from .096 to .623."""
    invented = [event for number in range(200) for event in forged(f"invented {number}", 9, alone=alone)]
    three = [event for number in range(3) for event in forged(f"user {number}", 9, alone=alone)]
    flooded, moved = (learned(tmp_path / name, [*before, *said]) for name, said in (("a", invented), ("b", three)))
    assert 0 < counted(flooded) - counted(learned(tmp_path / "c", before)) <= 3 * DAILY
    assert counted(flooded) <= counted(moved)
    assert freshness(flooded) <= freshness(moved) + 1e-12


def test_names_that_came_yesterday_have_a_history(tmp_path: Path) -> None:
    """FBK-13: whoever comes back speaks for itself; as many a day as are there already, so that crowds wait in line."""
    names = [f"user {number}" for number in range(9)]
    partition = Partition(tmp_path, TOLD)
    for day in range(4):
        feed(partition, [e for who in names for e in forged(who, 1, ts=NOON + day * DAY)])
    # Two at once; two from the next day on; four more, as many as are there by then; and the last one.
    speakers = [2, 4, 8, 9]
    drawn = partition.state._connection.execute("select day, payer from allowances").fetchall()
    latest = Counter(day for day, principal in drawn if principal != NEWCOMERS)
    today = NOON // DAY
    assert latest[today + 3] == speakers[3]
    assert latest[today + 2] == speakers[2]


def test_what_new_names_say_is_counted_beside_and_seen(tmp_path: Path) -> None:
    """LRN-3: what exceeds the shared allowance stays visible."""
    evidence = learned(tmp_path, [e for number in range(30) for e in forged(f"invented {number}", 2)])
    surplus = sum(micro for key, micro in evidence.counts.items() if key.parameter == "surplus.relevance") / MICRO
    assert counted(evidence) + surplus == 30 * 2 * 2
    assert counted(evidence) <= 3 * DAILY


def test_an_old_topic_replayed_moves_nothing(tmp_path: Path) -> None:
    """FBK-13: what was sent days ago is late, what was sent today was counted already."""
    partition = Partition(tmp_path, TOLD)
    old = history()
    today = [event for number in range(10) for event in forged(f"user {number}", 2)]
    feed(partition, [*old, *today])
    before = partition.shared
    feed(partition, [*old, *today])
    assert partition.shared == before


@settings(max_examples=examples(25), deadline=None)
@given(
    said=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 30)), min_size=1, max_size=40),
    cuts=st.sets(st.integers(1, 119), max_size=5),
)
def test_who_is_new_is_decided_by_the_log_alone(said: list[tuple[int, int]], cuts: set[int]) -> None:
    """ARC-3, FBK-13: a replay in other batches gives the same bits, over days on which names come and come back."""
    hour = DAY // 24
    events = [
        event
        for place, (who, hours) in enumerate(said)
        for event in forged(f"user {who}", 1, ts=NOON + (3 * place + hours) * hour)
    ]
    edges = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    with tempfile.TemporaryDirectory() as folder:
        whole, parts = (Partition(Path(folder) / name, TOLD) for name in ("whole", "parts"))
        feed(whole, events)
        for begin, end in pairwise(edges):
            feed(parts, events[begin:end])
        assert parts.shared == whole.shared
        assert rows(parts) == rows(whole)


def rows(partition: Partition) -> list[tuple[str, int]]:
    return partition.state._connection.execute("select principal, since from newcomers order by principal").fetchall()


@given(arrivals=st.lists(st.integers(0, 40), min_size=1, max_size=12), first=st.integers(1, 5))
def test_those_with_a_history_double_a_day_at_most(arrivals: list[int], first: int) -> None:
    """FBK-13: so many names as somebody makes up, each day's come to no more than there were, or than the first few."""
    names = NameTracker(RULES.limits.model_copy(update={"newcomers": first}))
    for day, count in enumerate(arrivals):
        names.today = day
        for number in range(count):
            names.principal(f"{day} {number}")
    total = names.counts.get(NameKind.PRINCIPAL, 0)
    there = total - len(names.since)
    assert there <= first
    for day in range(1, max(names.queue, default=0) + 1):
        assert names.queue[day] <= max(first, there)
        there += names.queue[day]
    assert there == total
