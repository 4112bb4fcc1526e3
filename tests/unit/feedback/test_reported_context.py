"""FBK-1: who shares what comes of an answer, once somebody has said what its context held."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.feedback_events import HASHES, RULES, explicit, impression, inclusion, reference, retrieval, success
from tests.support.session_store import Partition
from weft.domain.event_fields import Event
from weft.domain.ids import question_fingerprint
from weft.feedback.fold.names import principal_fingerprint
from weft.learning.evidence import MICRO
from weft.learning.parameters import INCLUSION, NEGATIVE, POSITIVE, RETRIEVAL

CREDIT = RULES.credit
RANKS = {HASHES[rank]: rank for rank in range(1, 10)}
SHARED = [
    (success(), CREDIT.success),
    (explicit(1.0, None), CREDIT.explicit),
    (reference(response="as the manual says"), CREDIT.referenced),
]
"""Outcomes of a whole answer, and what they weigh together."""


def earned(partition: Partition, bin_: str = POSITIVE) -> Mapping[int, float]:
    """Masses of one kind by the rank that a content was shown at, in observations."""
    return {RANKS[key.content_hash]: mass / MICRO for key, mass in partition.shared.usage.items() if key.bin == bin_}


@pytest.fixture(params=[True, False], ids=["a batch each", "one batch"])
def cuts(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize(("outcome", "weight"), SHARED, ids=lambda each: type(each).__name__)
def test_outcomes_are_shared_by_what_was_included_alone(
    tmp_path: Path, outcome: Event, weight: float, cuts: bool
) -> None:
    """FBK-1: two of four were put into the context, by two events."""
    partition = Partition(tmp_path)
    partition.feed([impression(), inclusion(2), inclusion(3, event_id="more"), outcome], cuts=cuts)
    each = CREDIT.included + weight / 2
    assert earned(partition) == {2: pytest.approx(each), 3: pytest.approx(each)}
    assert earned(partition, INCLUSION) == {2: 1.0, 3: 1.0}


@pytest.mark.parametrize(("outcome", "weight"), SHARED, ids=lambda each: type(each).__name__)
def test_what_was_left_out_earns_nothing_and_loses(tmp_path: Path, outcome: Event, weight: float, cuts: bool) -> None:
    """FBK-1, FBK-12: the others share it, without having been named."""
    partition = Partition(tmp_path)
    partition.feed([impression(), retrieval(1, 4), outcome], cuts=cuts)
    assert earned(partition) == {2: pytest.approx(weight / 2), 3: pytest.approx(weight / 2)}
    assert earned(partition, NEGATIVE) == {1: CREDIT.retrieved, 4: CREDIT.retrieved}


def test_outcomes_that_came_before_are_shared_as_was_known_then(tmp_path: Path, cuts: bool) -> None:
    """FBK-1, ARC-3: later outcomes, in the log's order."""
    partition = Partition(tmp_path)
    partition.feed([impression(), success(), inclusion(1), success(event_id="again")], cuts=cuts)
    quarter = CREDIT.success / 4
    assert earned(partition) == {
        1: pytest.approx(quarter + CREDIT.included + CREDIT.success),
        **dict.fromkeys((2, 3, 4), pytest.approx(quarter)),
    }


def test_what_was_found_and_never_shown_may_be_named(tmp_path: Path, cuts: bool) -> None:
    """FBK-1: it is bad under the question, as far as `retrieved` says; without signals no weight hears of it."""
    partition = Partition(tmp_path / "store")
    shown = impression()
    assert shown.query_hash is not None
    partition.feed([shown, retrieval(9, 9, 1)], cuts=cuts)
    assert (partition.report.applied, partition.report.dead_lettered) == (2, 0)
    assert earned(partition, RETRIEVAL) == {1: 1.0, 9: 1.0}
    assert earned(partition, NEGATIVE) == {1: CREDIT.retrieved, 9: CREDIT.retrieved}
    questions = {key.question for key in partition.shared.usage if key.bin == NEGATIVE}
    assert questions == {question_fingerprint(shown.query_hash)}
    assert {key.principal for key in partition.shared.usage} == {principal_fingerprint("ada")}
    alone = Partition(tmp_path / "alone")
    alone.feed([shown, retrieval(1)])
    assert partition.shared.counts == alone.shared.counts


def test_with_everything_left_out_nobody_is_to_share(tmp_path: Path, cuts: bool) -> None:
    """FBK-1: the answer was made from something else; that is no fault of whoever says so."""
    partition = Partition(tmp_path)
    partition.feed([impression(), retrieval(1, 2, 3, 4), success(), reference(response="so")], cuts=cuts)
    assert (partition.report.applied, partition.report.dead_lettered) == (4, 0)
    assert earned(partition) == {}
