"""RET-15, FBK-1: verdicts that were asked for, from the log to the evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.feedback_events import explicit, impression, shown
from tests.support.matching import match_key
from tests.support.session_store import Partition
from weft.domain.documents import Domain
from weft.domain.matching import MatchFeatures
from weft.learning.evidence import MICRO, EvidenceKey
from weft.learning.observe.matches import ASKED, MATCH

MATCHED = MatchFeatures(dense=0.62, lexical=0.33)


def told(partition: Partition) -> dict[EvidenceKey, int]:
    return {key: mass for key, mass in partition.shared.counts.items() if key.parameter in (MATCH, ASKED)}


@pytest.mark.parametrize("early", [False, True], ids=["after the impression", "before it"])
@pytest.mark.parametrize("cuts", [False, True], ids=["together", "one by one"])
def test_it_is_counted_apart_whichever_way_it_comes(tmp_path: Path, *, early: bool, cuts: bool) -> None:
    """RET-15: with the chance of the impression, which no producer states; of other results `asked` means nothing."""
    answer = impression(results=[shown(1, match=MATCHED, asked=0.02), shown(2, match=MATCHED)])
    verdicts = [
        explicit(1.0, 1, event_id="answered", asked=True),
        explicit(-1.0, 1, event_id="unasked"),
        explicit(-1.0, 2, event_id="nobody asked", asked=True),
    ]
    partition = Partition(tmp_path)
    partition.feed([*verdicts, answer] if early else [answer, *verdicts], cuts=cuts)
    day = answer.ts // 86_400_000
    facts = {"day": day, "domain": Domain.CODE, "match": MATCHED}
    assert told(partition) == {
        match_key(**facts, rank=1, good=True, asked=0.02): MICRO,
        match_key(**facts, rank=1, good=False): MICRO,
        match_key(**facts, rank=2, good=False): MICRO,
    }
