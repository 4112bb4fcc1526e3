"""RET-9: every fusion mode computes its formula and obeys the weights."""

from collections.abc import Sequence

import pytest

from tests.support.candidate_tables import a_hit, a_table, told
from weft.domain.ranking import Channel, ChannelHit
from weft.retrieval.ranking.batch import RankingBatch
from weft.retrieval.ranking.fusion import (
    reciprocal_rank_fusion,
    relative_score_fusion,
)

DENSE, LEXICAL = Channel.DENSE, Channel.LEXICAL
EQUAL = {DENSE: 1.0, LEXICAL: 1.0}


def candidates(dense: Sequence[tuple[str, float]], lexical: Sequence[tuple[str, float]]) -> RankingBatch:
    found: dict[str, dict[Channel, ChannelHit]] = {}
    for channel, hits in ((DENSE, dense), (LEXICAL, lexical)):
        for rank, (name, score) in enumerate(hits, start=1):
            found.setdefault(name, {})[channel] = ChannelHit(rank, score)
    return a_table(*(a_hit(name, channels) for name, channels in found.items()))


FOUND = candidates(dense=[("a", 0.9), ("b", 0.7), ("c", 0.5)], lexical=[("b", 12.0), ("d", 6.0)])


def scores(fused: RankingBatch) -> dict[str, float]:
    return {candidate.text: candidate.score for candidate in told(fused)}


def names(fused: RankingBatch) -> list[str]:
    return [candidate.text for candidate in told(fused)]


def test_reciprocal_rank_fusion_is_its_formula() -> None:
    """RET-9: Σ w / (k + rank)."""
    fused = reciprocal_rank_fusion(FOUND, {DENSE: 2.0, LEXICAL: 1.0}, k=60)
    assert scores(fused) == pytest.approx({"a": 2 / 61, "b": 2 / 62 + 1 / 61, "c": 2 / 63, "d": 1 / 62})
    assert names(fused) == ["b", "a", "c", "d"]


def test_relative_score_fusion_counts_from_the_floor() -> None:
    """RET-9: BM25's floor is 0, so its last hit is worth 6/12, not nothing; cosines count from the least one."""
    fused = relative_score_fusion(FOUND, EQUAL)
    assert scores(fused) == pytest.approx({"a": 1.0, "b": (0.7 - 0.5) / (0.9 - 0.5) + 12 / 12, "c": 0.0, "d": 6 / 12})


def test_a_single_hit_is_not_normalised_to_nothing() -> None:
    """RET-9."""
    (only,) = told(relative_score_fusion(candidates(dense=[("a", 0.4)], lexical=[]), EQUAL))
    assert only.score > 0.0


@pytest.mark.parametrize(
    "fuse",
    [
        lambda found, weights: reciprocal_rank_fusion(found, weights, k=60),
        relative_score_fusion,
    ],
)
def test_weights_are_obeyed_in_every_mode(fuse) -> None:
    """RET-9: all weight on one channel ranks its hits above everything it did not find."""
    assert names(fuse(FOUND, {DENSE: 1.0, LEXICAL: 0.0}))[:2] == ["a", "b"]
    assert names(fuse(FOUND, {DENSE: 0.0, LEXICAL: 1.0}))[:2] == ["b", "d"]
    with pytest.raises(ValueError, match="weight per channel"):
        fuse(FOUND, {DENSE: 1.0})


def test_ties_are_broken_by_content_hash() -> None:
    """RET-9, ARC-9."""
    tied = candidates(dense=[("z", 0.5)], lexical=[("a", 3.0)])
    assert names(reciprocal_rank_fusion(tied, EQUAL, k=60)) == ["a", "z"]
