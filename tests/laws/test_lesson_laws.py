"""LES-7, LES-13, LRN-17: laws of evidence about lessons that no order and no neighbour may break."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.feedback_events import NOON, unlearned
from tests.support.lesson_fold import lesson_event
from tests.support.lesson_words import believed
from tests.support.session_store import Partition, phase
from weft.domain.events import AnyEvent
from weft.feedback.events.codec import decode
from weft.learning.evidence import Evidence

WHO = {"s1": "ada", "s2": "bob", "s3": "cyd"}
seeds = st.integers(0, 2**32 - 1)


def sayings(seed: int, session_id: str, most: int = 12) -> list[AnyEvent]:
    """What a session says of a few lessons, and what came of them."""
    rng = random.Random(f"{seed} {session_id}")
    facts = {"session_id": session_id, "principal": WHO[session_id]}
    events = [
        {**facts, **lesson_event(rng), "event_id": f"{session_id}-{at}", "ts": NOON + at * 1_000}
        for at in range(rng.randint(1, most))
    ]
    return [decode(json.dumps(event).encode(), max_bytes=100_000) for event in events]


def shared(events: Sequence[AnyEvent], *, cuts: bool = True) -> Evidence:
    """What all share after a log, read an event at a time or at once."""
    with tempfile.TemporaryDirectory() as folder:
        partition = Partition(Path(folder))
        partition.feed(events, cuts=cuts)
        evidence = partition.shared
        partition.state.close()
        return evidence


def merged_session(seed: int, name: str) -> list[AnyEvent]:
    who = {"principal": WHO[name]}
    return [phase("start", name, **who), *sayings(seed, name), phase("complete", name, **who)]


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_unlearning_a_session_leaves_what_a_log_without_it_leaves(seed: int) -> None:
    """LRN-17, LES-7: bit for bit, its texts included, and so is every belief."""
    rest = [*merged_session(seed, "s1"), *sayings(seed, "s2")]
    told = [*rest, *merged_session(seed, "s3"), phase("unlearn", "s3", principal=WHO["s3"])]
    without, after = shared(rest), shared(told)
    assert after == without
    assert believed(after).all() == believed(without).all()


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_unlearning_a_principal_takes_its_lessons_and_their_texts(seed: int) -> None:
    """LRN-17a: whatever it said in sessions that never started, too."""
    told = [*sayings(seed, "s1"), *sayings(seed, "s2"), unlearned(WHO["s2"])]
    after = shared(told)
    assert after.usage == shared(sayings(seed, "s1")).usage
    assert WHO["s2"] not in str(list(after.usage))


@settings(max_examples=15, deadline=None)
@given(seed=seeds, order=st.permutations(sorted(WHO)))
def test_no_order_of_sessions_and_no_cut_of_batches_makes_a_difference(seed: int, order: list[str]) -> None:
    """LES-7, FBK-5: sums of integers, and of each person the last word by its time."""
    forth = shared([event for name in sorted(WHO) for event in sayings(seed, name)])
    other = shared([event for name in order for event in sayings(seed, name)], cuts=False)
    assert forth == other
    assert believed(forth).all() == believed(other).all()


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_partitions_add_up(seed: int) -> None:
    """LES-7: a hundred may add the same lesson in as many partitions; it is one, said so often."""
    apart = [shared(sayings(seed, name)) for name in sorted(WHO)]
    assert Evidence.sum(apart) == shared([event for name in sorted(WHO) for event in sayings(seed, name)])


@settings(max_examples=examples(30), deadline=None)
@given(seed=seeds)
def test_every_belief_is_within_its_interval_and_every_injected_one_has_a_chance(seed: int) -> None:
    """LES-3: whatever was said."""
    beliefs = believed(shared([event for name in sorted(WHO) for event in sayings(seed, name)]))
    for belief in beliefs.all():
        assert 0.0 <= belief.lower <= belief.p_good <= belief.upper <= 1.0
        assert belief.reason
    shown = beliefs.injectable()
    assert all(0.0 < beliefs.propensity(each.lesson.id) <= 1.0 for each in shown)
    assert len({each.lesson.id for each in shown}) == len(shown)
