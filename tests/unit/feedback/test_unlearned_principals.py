"""LRN-17a: all that a principal said of contents, and in sessions that it started, is taken out again, exactly."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.feedback_events import NOON, explicit, impression, inclusion, rules, unlearned
from tests.support.feedback_publisher import MemoryPublisher
from tests.support.session_store import Partition, judged, phase
from weft.domain.events import AnyEvent
from weft.feedback.events.producer import FeedbackProducer, one_to_a_partition
from weft.feedback.fold.names import principal_fingerprint
from weft.feedback.fold.sessions import Phase
from weft.feedback.store.overlays import session_in
from weft.learning.evidence import Evidence
from weft.runtime.kafka.writer import partition_of

PEOPLE = ("ada", "bob", "cyd")
ROOM = rules(limits__newcomers=100, limits__principal_daily=100.0)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path / "store", ROOM)


def in_session(who: str, *, ended: bool = True) -> list[AnyEvent]:
    name = f"session of {who}"
    events = [phase("start", name, principal=who), *judged(name, principal=who)]
    return [*events, phase("complete", name, principal=who)] if ended else events


def outside(who: str, query: str = "shared") -> list[AnyEvent]:
    return [
        explicit(1.0, 1, query_id=query, event_id=f"{who} {query} praise", principal=who),
        inclusion(2, query_id=query, event_id=f"{who} {query} used", principal=who),
    ]


def of(evidence: Evidence, who: str) -> dict[object, int]:
    return {key: micro for key, micro in evidence.usage.items() if key.principal == principal_fingerprint(who)}


def test_what_a_principal_said_of_contents_is_gone_whether_or_not_it_started_sessions(partition: Partition) -> None:
    """LRN-17a: of shared answers, of its own, and in sessions, merged or open; others' words stay to the bit."""
    page = impression("shared", principal="ada")
    told = [page, *(event for who in PEOPLE for event in (*outside(who), *in_session(who)))]
    partition.feed(told)
    before = partition.shared
    assert of(before, "bob")
    partition.feed([unlearned("bob")])
    after = partition.shared
    assert of(after, "bob") == {}
    assert {who: of(after, who) for who in ("ada", "cyd")} == {who: of(before, who) for who in ("ada", "cyd")}


def test_sessions_that_a_principal_started_leave_as_if_they_had_never_been(
    partition: Partition, tmp_path: Path
) -> None:
    """LRN-17a, LRN-17: weights, too, where sessions sent `start`."""
    partition.feed([*in_session("ada"), *in_session("bob"), unlearned("bob")])
    others = Partition(tmp_path / "others", ROOM)
    others.feed(in_session("ada"))
    assert partition.shared == others.shared
    life = partition.state.read(session_in, "session of bob")
    assert life is not None
    assert life.phase is Phase.UNLEARNED


def test_an_open_session_and_what_waits_are_taken_back_too(partition: Partition) -> None:
    """LRN-17a: feedback that came before its impression is no longer joined."""
    early = explicit(query_id="late", event_id="early", principal="bob")
    partition.feed([*in_session("bob", ended=False), early, unlearned("bob")])
    partition.feed([impression("late", principal="ada"), phase("complete", "session of bob", principal="bob")])
    assert not partition.shared.usage
    assert partition.report.balanced
    assert (partition.report.waiting, partition.report.unjoined) == (0, 1)


def test_what_is_said_afterwards_counts(partition: Partition) -> None:
    """LRN-17a: nobody is silenced."""
    partition.feed([impression("shared"), *outside("bob"), unlearned("bob")], cuts=False)
    assert not of(partition.shared, "bob")
    partition.feed([explicit(query_id="shared", event_id="again", principal="bob")])
    assert sum(of(partition.shared, "bob").values()) == 1_000_000


def test_names_that_share_one_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """LRN-17a: beyond the limit of names, nobody's words are told apart, and nobody's are taken out."""
    partition = Partition(tmp_path, rules(limits__principals=1))
    partition.feed([impression("shared", principal="ada"), *outside("bob"), *outside("cyd")])
    before = partition.shared
    partition.feed([unlearned("bob")])
    assert partition.shared == before


deeds = st.lists(
    st.tuples(st.sampled_from(PEOPLE), st.sampled_from(["outside", "session", "open", "unlearn", "early"])), max_size=14
)


def told(said: Sequence[tuple[str, str]]) -> list[AnyEvent]:
    events: list[AnyEvent] = [impression("shared")]
    for place, (who, what) in enumerate(said):
        query = f"query {place}"
        if what == "unlearn":
            events.append(unlearned(who, event_id=f"unlearned {place}"))
        elif what == "early":
            events += [*outside(who, query), impression(query, event_id=f"shown {place}")]
        elif what == "outside":
            events += [impression(query, event_id=f"shown {place}"), *outside(who, query)]
        else:
            session = f"{who} {place}"
            events += [phase("start", session, principal=who), *judged(session, query=query, principal=who)]
            events += [phase("complete", session, principal=who)] if what == "session" else []
    return events


@settings(max_examples=examples(40), deadline=None)
@given(said=deeds, cuts=st.sets(st.integers(1, 79), max_size=6))
def test_where_batches_begin_changes_nothing(said: list[tuple[str, str]], cuts: set[int]) -> None:
    """ARC-3, LRN-17a: unlearning lies in the log like everything else, and a replay gives the same bits."""
    events = told(said)
    edges = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    with tempfile.TemporaryDirectory() as folder:
        whole, parts = (Partition(Path(folder) / name, ROOM) for name in ("whole", "parts"))
        whole.feed(events, cuts=False)
        for begin, end in pairwise(edges):
            parts.feed(events[begin:end], cuts=False)
        assert parts.shared == whole.shared
        assert parts.report == whole.report


@settings(max_examples=examples(25), deadline=None)
@given(said=deeds)
def test_nothing_of_a_principal_is_left(said: list[tuple[str, str]]) -> None:
    """LRN-17a: whatever it said, and others around it: its words are gone, theirs are those that they said."""
    with tempfile.TemporaryDirectory() as folder:
        whole, without = (Partition(Path(folder) / name, ROOM) for name in ("whole", "without"))
        whole.feed([*told(said), unlearned("bob")], cuts=False)
        without.feed(
            [event for event in told(said) if event.principal != "bob" or event.session_id == "s1"], cuts=False
        )
        without.feed([unlearned("bob")])
        assert whole.shared.usage == without.shared.usage


def test_one_event_reaches_every_partition() -> None:
    """LRN-17a: a principal speaks in all of them."""
    publisher = MemoryPublisher()
    FeedbackProducer(publisher, clock=lambda: NOON / 1000).unlearn("bob", partitions=7)
    assert [partition_of(key.decode(), 7) for key in publisher.keys] == list(range(7))
    assert len({*one_to_a_partition(4), *one_to_a_partition(4)}) == 8
