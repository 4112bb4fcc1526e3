"""RET-13, EVA-9: what stands alone among all contents is told of each, and weighed where meaning finds."""

from __future__ import annotations

import numpy as np
import pytest

from lab.ablation import features_of
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher, settings
from weft.domain.ranking import Answer, Signal

DOCUMENTS = {"hub": ["red apple"], "alone": ["red pear"], "other": ["green plum"]}


def asked(alone: dict[str, float] | None, **changes: object) -> Answer:
    """An answer over contents that stand so much alone, by their texts."""
    generation = MemoryGeneration(DOCUMENTS)
    if alone is not None:
        generation.isolation = np.array([alone[content.text] for content in generation.held], dtype=np.float32)
    return a_searcher(generation, **changes).search(a_query("red"))


TOLD = {"red apple": 0.25, "red pear": 0.75, "green plum": 0.5}


def test_of_two_that_match_alike_the_one_that_stands_alone_comes_first() -> None:
    """RET-13: what is near to everything answers nothing in particular."""
    answer = asked(TOLD)
    first, second = answer.results[:2]
    assert (first.uris, second.uris) == (("alone",), ("hub",))
    assert (first.signals[Signal.ISOLATION], second.signals[Signal.ISOLATION]) == (0.75, 0.25)
    turned = asked({**TOLD, "red apple": 0.75, "red pear": 0.25})
    assert turned.results[0].uris == ("hub",)


def test_it_adds_its_value_times_its_weight() -> None:
    """ARC-7, RET-18."""
    for result in asked(TOLD).results:
        (part,) = [part for part in result.contributions if part.name == Signal.ISOLATION.value]
        assert part.amount == part.value * part.weight == result.signals[Signal.ISOLATION] * part.weight


def test_a_generation_without_it_ranks_as_if_there_were_no_such_signal() -> None:
    """RET-13, ARC-8: older generations stay readable."""
    lacking, silent = asked(None), asked(TOLD, without_signals=["isolation"])
    assert all(Signal.ISOLATION not in result.signals for result in lacking.results)
    assert [result.contributions for result in lacking.results] == [result.contributions for result in silent.results]


def test_where_words_alone_find_it_has_no_weight() -> None:
    """RET-13: it makes up for a fault of finding by meaning."""
    alone, lacking = asked(TOLD, channels=["lexical"]), asked(None, channels=["lexical"])
    assert [result.contributions for result in alone.results] == [result.contributions for result in lacking.results]


@pytest.mark.parametrize("fusion", ["rrf", "rsf"])
def test_fusion_by_rank_or_score_ranks_by_itself(fusion: str) -> None:
    """ARC-8: the published baselines stay what they are."""
    on, off = asked(TOLD, fusion=fusion), asked(None, fusion=fusion)
    assert [result.contributions for result in on.results] == [result.contributions for result in off.results]


def test_an_ablation_finds_it() -> None:
    """EVA-9."""
    assert any("isolation" in str(each) for each in features_of(settings()))
