"""LRN-5, LRN-14: what a session believes beside what all believe, from the files that updaters publish."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.feedback_events import NOON, SETTINGS, explicit, impression, rules, shown
from tests.support.session_store import Partition, phase
from weft.catalog.overlays import MOMENTS_KEY, metadata_of
from weft.domain.documents import Domain
from weft.domain.events import AnyEvent
from weft.domain.ids import SessionId, VersionName
from weft.domain.ranking import Scope, Signal, WeightBelief
from weft.learning.beliefs import read_beliefs
from weft.learning.parts import Part
from weft.retrieval.snapshot.snapshot import ListedSessions, ReadingCache

PRIORS = SETTINGS.priors
SCOPE = Scope(Domain.CODE, "m", "a")
ROOM = rules(limits__principal_daily=20.0, limits__newcomers=100)
"""Everybody may say all that they say here, the first day, too."""


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path / "store", ROOM)


def no_parts(version: VersionName | None) -> tuple[VersionName, Mapping[str, Part]]:
    return version or VersionName("priors"), {}


def said(session_id: str, *, vector: float, answers: int = 10, **changes: object) -> list[AnyEvent]:
    """A session whose good results are as high in that signal, and whose bad ones are as low."""
    events: list[AnyEvent] = []
    for number in range(answers):
        query, who = f"{session_id}-{number}", {"session_id": session_id, "principal": session_id, **changes}
        good, bad = (
            shown(rank, signals={"vector": value, "lexical": 0.5}) for rank, value in ((1, vector), (2, 1.0 - vector))
        )
        events.append(impression(query, [good, bad], event_id=f"{query}-shown", model="m", agent="a", **who))
        for rank, signal in ((1, 1.0), (2, -1.0)):
            events.append(explicit(signal, rank, query_id=query, event_id=f"{query}-{rank}", **who))
    return events


def weights(partition: Partition, session_id: str | None = None) -> Mapping[Signal, WeightBelief]:
    """What a search of that session weighs by, or what all do."""
    catalog = partition.catalog
    cache = ReadingCache(catalog, PRIORS, no_parts, held=8)
    reading = ListedSessions(catalog.live.listing(), cache).of(SessionId(session_id)) if session_id else None
    shared = read_beliefs(PRIORS, catalog.live.evidence(), now=NOON / 1000)
    return (shared if reading is None else reading.beliefs).weights(SCOPE, tuple(Signal))


def started(partition: Partition, *sessions: str) -> None:
    partition.feed([phase("start", name, principal=name) for name in sessions])
    partition.publish()


def test_an_unseen_session_believes_what_its_agent_does(partition: Partition) -> None:
    """LRN-5, LRN-14: to the bit, until it has evidence of its own."""
    partition.feed(said("before", vector=0.7))
    partition.publish()
    started(partition, "new", "speaking")
    assert weights(partition, "new") == weights(partition)
    partition.feed(said("speaking", vector=0.95))
    partition.publish()
    assert weights(partition, "new") == weights(partition) != weights(partition, "speaking")


def test_a_session_hears_its_own_evidence_more_than_all_do_after_the_merge(partition: Partition) -> None:
    """LRN-5, LRN-14: others hear nothing before it."""
    partition.feed([event for name in ("one", "two", "three") for event in said(name, vector=0.6)])
    partition.publish()
    started(partition, "mine", "other")
    before = weights(partition)
    partition.feed(said("mine", vector=0.98))
    partition.publish()
    own = weights(partition, "mine")
    assert weights(partition) == weights(partition, "other") == before
    partition.feed([phase("complete", "mine", principal="mine")])
    partition.publish()
    merged = weights(partition)
    vector = Signal.VECTOR
    assert own[vector].mean > merged[vector].mean > before[vector].mean
    assert weights(partition, "other") == before  # its fork is from before the merge


def test_a_session_reads_all_that_it_said_itself(tmp_path: Path) -> None:
    """LRN-20, LRN-14: allowances protect others, and nobody else reads it; once merged, they do."""
    found = []
    for name, settings in (("tight", rules(limits__principal_daily=2.0)), ("room", ROOM)):
        partition = Partition(tmp_path / name, settings)
        partition.feed([event for who in ("one", "two", "three") for event in said(who, vector=0.6, answers=1)])
        started(partition, "mine")
        partition.feed(said("mine", vector=0.98, answers=8))
        partition.publish()
        own = weights(partition, "mine")
        partition.feed([phase("complete", "mine", principal="mine")])
        partition.publish()
        found.append((own, weights(partition)))
    (own, merged), (own_with_room, merged_with_room) = found
    assert own == own_with_room
    assert merged != merged_with_room


def test_sessions_that_differed_much_let_the_next_one_hear_itself(tmp_path: Path) -> None:
    """LRN-5: κ of sessions comes from those that completed before, and the level that informs a belief is named.

    Unlearning them takes that out again, too.
    """

    def own(name: str, rates: tuple[float, ...], *, unlearned: bool = False) -> Mapping[Signal, WeightBelief]:
        partition = Partition(tmp_path / name, ROOM)
        names = [f"past{number}" for number in range(len(rates))]
        partition.feed([phase("start", each, principal=each) for each in names])
        for each, rate in zip(names, rates, strict=True):
            partition.feed([*said(each, vector=rate), phase("complete", each, principal=each)], cuts=False)
        if unlearned:
            partition.feed([phase("unlearn", each, principal=each) for each in names])
        partition.publish()
        started(partition, "mine")
        partition.feed(said("mine", vector=0.98))
        partition.publish()
        return weights(partition, "mine")

    alike, differing = own("alike", (0.6,) * 12), own("differing", (0.3, 0.9) * 6)
    vector = Signal.VECTOR
    assert differing[vector].level == "session"
    assert differing[vector].n_effective != alike[vector].n_effective
    assert own("unlearned", (0.3, 0.9) * 6, unlearned=True) == own("never", ())


def test_what_is_known_of_sessions_travels_with_the_snapshot(partition: Partition) -> None:
    """LRN-5: so that a base holds it, whatever completes later."""
    partition.feed([phase("start", "a", principal="a"), *said("a", vector=0.9), phase("complete", "a", principal="a")])
    partition.publish()
    started(partition, "mine")
    base = partition.catalog.live.listing().find(SessionId("mine"))
    assert base is not None
    first = partition.catalog.bases.read(base.base).moments
    partition.feed([phase("start", "b", principal="b"), *said("b", vector=0.1), phase("complete", "b", principal="b")])
    partition.publish()
    (snapshot,) = partition.catalog.live.snapshots()
    assert metadata_of(snapshot)[MOMENTS_KEY] != b"{}"
    partition.catalog.bases._held.clear()
    again = partition.catalog.bases.read(base.base).moments
    assert [each.tolist() for each in first.correlation()] == [each.tolist() for each in again.correlation()]
