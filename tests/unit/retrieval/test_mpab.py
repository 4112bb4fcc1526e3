"""RET-11: chunks collapse into documents, and say so in the score."""

import math

import numpy as np
import pytest

from tests.support.candidate_tables import AHit, a_hit, a_table, told
from weft.domain.ranking import Channel, ChannelHit
from weft.retrieval.ranking.final_score import collapse_documents, separate_chunks


def scored(name: str, score: float, *uris: str) -> AHit:
    return a_hit(name, {Channel.DENSE: ChannelHit(1, score)}, *uris, score=score)


def test_further_chunks_speak_for_the_best_one() -> None:
    """RET-11: S_max + 0.3 · Σ S_rest / √N, the best chunk is the one returned."""
    found = a_table(scored("x", 0.5, "d"), scored("y", 0.8, "d"), scored("z", 0.2, "d"))
    (only,) = told(collapse_documents(found, factor=0.3, lifted=np.zeros(len(found))))
    assert only.text == "y"
    assert only.score == pytest.approx(0.8 + 0.3 * (0.5 + 0.2) / math.sqrt(3))
    assert math.fsum(part.amount for part in only.contributions) == only.score


def test_a_single_chunk_passes_unchanged() -> None:
    """RET-11: N = 1."""
    found = a_table(scored("x", 0.5, "d"))
    (only,) = told(collapse_documents(found, factor=0.3, lifted=np.zeros(len(found))))
    assert only.contributions == told(found)[0].contributions


def test_a_content_of_several_documents_is_one_result_that_names_them_all() -> None:
    """ARC-4: and the document with more support comes first."""
    found = a_table(scored("same", 0.8, "d1", "d2"), scored("more", 0.5, "d2"))
    (only,) = told(collapse_documents(found, factor=0.3, lifted=np.zeros(len(found))))
    assert only.uris == ("d2", "d1")
    assert only.score == pytest.approx(0.8 + 0.3 * 0.5 / math.sqrt(2))


def test_chunks_can_stand_for_themselves() -> None:
    """RET-11: off by configuration (ARC-8)."""
    found = a_table(scored("x", 0.5, "d"), scored("y", 0.8, "d", "e"))
    assert [item.uris for item in told(separate_chunks(found))] == [("d", "e"), ("d",)]
