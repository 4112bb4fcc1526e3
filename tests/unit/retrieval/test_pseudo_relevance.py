"""RET-9, EVA-9: the first candidates of a query speak for what is like them, and that is one signal among others."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.ablation import features_of
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher, settings
from weft.domain.ranking import Answer, Signal
from weft.retrieval.ranking.signals import similarity_to_top
from weft.retrieval.settings import PseudoRelevanceSettings

# Both of the last two share one word with "red apple pie"; the first of them shares others with what comes first.
DOCUMENTS = {
    "first": ["red apple pie baked with butter"],
    "second": ["red apple tart baked with butter"],
    "like": ["pie baked with butter"],
    "unlike": ["pie charts drawn badly"],
}
ON = settings().pseudo_relevance.model_dump() | {"first": 2, "temperature": 0.5, "sharpness": 2.0}
OFF = ON | {"first": 0}
SPEAK = PseudoRelevanceSettings.model_validate(ON)


def asked(how: dict[str, object], **changes: object) -> Answer:
    generation = MemoryGeneration(DOCUMENTS)
    return a_searcher(generation, pseudo_relevance=how, **changes).search(a_query("red apple pie"))


def told(answer: Answer) -> dict[str, float]:
    return {result.uris[0]: result.signals[Signal.PSEUDO_RELEVANCE] for result in answer.results}


def by_hand(vectors: np.ndarray, scores: Sequence[float], one: int) -> float:
    """The mean over the first ones but `one`, written out."""
    first = sorted(range(len(scores)), key=lambda each: (-scores[each], each))[: SPEAK.first]
    others = [each for each in first if each != one]
    weights = [np.exp((scores[each] - scores[first[0]]) / SPEAK.temperature) for each in others]
    likeness = [max(0.0, float(vectors[one] @ vectors[each])) ** SPEAK.sharpness for each in others]
    return float(np.dot(weights, likeness) / sum(weights))


@given(st.integers(2, 8), st.integers(0, 10_000))
def test_each_is_compared_with_the_first_ones_but_itself(count: int, seed: int) -> None:
    """RET-9: what is among them tells nothing of itself; of equal scores the first counts."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = rng.integers(0, 4, size=count) / 4.0
    found = similarity_to_top(vectors, scores, SPEAK)
    assert found.tolist() == pytest.approx([by_hand(vectors, scores.tolist(), one) for one in range(count)], abs=1e-6)


def test_without_company_nothing_is_known() -> None:
    """RET-13: one candidate alone is like nobody, and its signal is 0."""
    assert np.isnan(similarity_to_top(np.eye(1, dtype=np.float32), np.ones(1), SPEAK)).all()
    (only,) = a_searcher(MemoryGeneration({"a": ["red"]})).search(a_query("red")).results
    assert only.signals[Signal.PSEUDO_RELEVANCE] == 0.0


def test_it_tells_apart_what_shares_as_much_with_the_query() -> None:
    """RET-9: of two texts with one of the query's words, the one like the first results stands higher for it."""
    values = told(asked(ON))
    assert values["like"] > values["unlike"] == 0.0
    assert max(values.values()) == 1.0


def test_it_does_not_depend_on_what_was_learned() -> None:
    """ARC-7, LRN-4: other weights move no value of it, so that scores are linear in the weights."""
    assert told(asked(ON)) == told(asked(ON, without_signals=["lexical", "vector"]))


def test_it_adds_its_value_times_its_weight() -> None:
    """ARC-7, RET-18."""
    for result in asked(ON).results:
        (part,) = [part for part in result.contributions if part.name == Signal.PSEUDO_RELEVANCE.value]
        assert part.value == result.signals[Signal.PSEUDO_RELEVANCE]
        assert part.amount == part.value * part.weight


def test_switched_off_it_is_neither_told_nor_weighed() -> None:
    """ARC-8: scores are those of an answer that weighs all other signals alone."""
    off, silent = asked(OFF), asked(ON, without_signals=["pseudo_relevance"])
    assert all(Signal.PSEUDO_RELEVANCE not in result.signals for result in off.results)
    assert [result.contributions for result in off.results] == [result.contributions for result in silent.results]
    assert [result.uris for result in off.results] == [result.uris for result in silent.results]


def test_without_vectors_it_is_silent() -> None:
    """RET-13: what the lexical channel finds alone is compared with nothing."""
    assert asked(ON, channels=["lexical"]).results == asked(OFF, channels=["lexical"]).results


def test_words_may_be_silent() -> None:
    """RET-9: then the cosine alone says what comes first."""
    values = told(asked(ON, channels=["dense"]))
    assert values["like"] > values["unlike"]


@pytest.mark.parametrize("fusion", ["rrf", "rsf"])
def test_fusion_by_rank_or_score_ranks_by_itself(fusion: str) -> None:
    """ARC-8: the published baselines stay what they are."""
    on, off = (asked(how, fusion=fusion) for how in (ON, OFF))
    assert [result.contributions for result in on.results] == [result.contributions for result in off.results]


def test_an_ablation_finds_it() -> None:
    """EVA-9."""
    assert any("pseudo_relevance" in str(each) for each in features_of(settings()))
