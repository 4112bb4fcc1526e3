"""ARC-3, FBK-5: laws of turning a log into evidence, on any traffic, however it is cut."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.feedback_events import NOON, RULES, WEIGHTS, reports_daily, rules
from tests.support.feedback_fold import fold_log
from tests.support.feedback_traffic import traffic
from tests.support.folded_evidence import digest_of_stores
from tests.support.many_sessions import events_of
from weft.feedback.pipeline import consume
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.report import PartitionReport
from weft.feedback.store.state import PartitionState
from weft.runtime.kafka.log import LogFacts, Record

FACTS = LogFacts("weft.feedback", "one", 1)
seeds = st.integers(0, 2**32)


def records_of(seed: int, size: int, **who: int) -> list[Record]:
    made = traffic(random.Random(seed), size, until_ms=NOON, duplicates=0.2, garbage=0.1, foreign=0.2, **who)
    return [Record(0, offset, NOON + offset, key, value) for offset, (key, value) in enumerate(made)]


def consumed(batches: Sequence[Sequence[Record]], told: FeedbackSettings = RULES) -> tuple[PartitionReport, str]:
    """The report and the digest of a store that read these batches, one transaction each."""
    with tempfile.TemporaryDirectory() as folder:
        state = PartitionState(Path(folder), 0, told)
        state.claim(FACTS, log_start=0)
        for batch in batches:
            consume(batch, FACTS, state, told)
        report = state.report()
        state.close()
        return report, digest_of_stores([Path(folder)])


@settings(max_examples=8, deadline=None)
@given(seed=seeds, cuts=st.sets(st.integers(1, 79), max_size=6))
def test_where_batches_begin_changes_nothing(seed: int, cuts: set[int]) -> None:
    """ARC-3: the state is a function of the log."""
    records = records_of(seed, 80)
    edges = [0, *sorted(cuts), len(records)]
    parts = [records[begin:end] for begin, end in pairwise(edges)]
    assert consumed(parts) == consumed([records])


@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_an_independent_reading_comes_to_the_same(seed: int) -> None:
    """FBK-5: the same masses, to the micro-unit, and the same fates; and every record has one."""
    records = records_of(seed, 80)
    report, digest = consumed([records])
    expected = fold_log([[record.value for record in records]], weights=WEIGHTS)
    assert digest == expected.digest()
    assert report.balanced
    fates = {"applied": report.applied, "duplicate": report.duplicate, "dead_lettered": report.dead_lettered}
    assert {name: count for name, count in fates.items() if count} == dict(expected.fates)


def test_verdicts_that_are_alike_count_one_by_one() -> None:
    """FBK-5: what is summed once for many of them is what each adds, with an allowance that is used up in between."""
    values = [value for _, value in events_of(120, sessions=2, asked_again=0.5)]
    records = [Record(0, offset, NOON, b"", value) for offset, value in enumerate(values)]
    together, digest = consumed([records])
    assert together.applied == len(records)
    assert consumed([[record] for record in records]) == (together, digest)


@settings(max_examples=8, deadline=None)
@given(seed=seeds, cuts=st.sets(st.integers(1, 299), max_size=6), daily=st.sampled_from([1.0, 4.0, 12.0]))
def test_an_independent_reading_of_crowded_allowances_comes_to_the_same(
    seed: int, cuts: set[int], daily: float
) -> None:
    """LRN-3, LRN-17: few principals in few sessions, started, merged and unlearned again and again."""
    records = records_of(seed, 300, sessions=5, users=3)
    edges = [0, *sorted(cuts), len(records)]
    limits = {"principal_daily": daily, "reports_daily": reports_daily(1.0)}
    told = rules(**{f"limits__{name}": value for name, value in limits.items()})
    _, digest = consumed([records[begin:end] for begin, end in pairwise(edges)], told)
    expected = fold_log([[record.value for record in records]], weights=WEIGHTS | limits)
    assert digest == expected.digest()
