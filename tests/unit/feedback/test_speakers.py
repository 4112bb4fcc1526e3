"""FBK-13: a verdict is counted to who says it, also on another's query, and draws on nobody else's allowance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.feedback_events import explicit, impression
from tests.support.session_store import Partition
from weft.feedback.fold.names import principal_fingerprint
from weft.learning.evidence import MICRO


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path / "store")


def by_principal(partition: Partition) -> dict[str, int]:
    """What each principal said of contents, in micro-units."""
    masses: dict[str, int] = {}
    for key, micro in partition.shared.usage.items():
        masses[key.principal] = masses.get(key.principal, 0) + micro
    return masses


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("apart", [False, True])
def test_a_verdict_on_a_shared_answer_is_its_speakers(partition: Partition, early: bool, apart: bool) -> None:
    """FBK-13: ada asked, bob calls a result right; his word may come first."""
    events = [impression(principal="ada"), explicit(principal="bob")]
    if early:
        events.reverse()
    for batch in [[event] for event in events] if apart else [events]:
        partition.feed(batch, cuts=False)
    assert by_principal(partition) == {principal_fingerprint("bob"): MICRO}


def test_nobody_uses_up_the_allowance_of_whom_an_answer_was_given_to(partition: Partition) -> None:
    """FBK-13: forty verdicts of mallory on ada's query leave ada all that ada may say that day."""
    flood = [explicit(-1.0, event_id=f"flood {number}", principal="mallory") for number in range(40)]
    partition.feed([impression(principal="ada"), *flood, explicit(principal="ada")], cuts=False)
    moved = {
        key.parameter: micro
        for key, micro in partition.shared.counts.items()
        if key.parameter.endswith("relevance") and key.bin.endswith(".good")
    }
    assert moved == {"relevance": MICRO}
