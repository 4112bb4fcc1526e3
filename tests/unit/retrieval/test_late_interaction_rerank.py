"""RET-10: the best candidates are compared with the query token by token, and that is one signal among others."""

import pytest

from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher, settings
from weft.domain.ranking import Answer, Signal

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon"]
# Documents share ever fewer words with the query "alpha beta gamma delta epsilon".
DOCUMENTS = {f"d{count}": [" ".join([*WORDS[:count], f"only{count}"])] for count in range(1, 6)}
ON = settings().rerank.model_dump() | {"late_interaction": True, "depth": 3, "span": 0.4}
OFF = ON | {"late_interaction": False}


def asked(generation: MemoryGeneration, rerank: dict[str, object], **changes: object) -> Answer:
    return a_searcher(generation, rerank=rerank, **changes).search(a_query(" ".join(WORDS)))


def test_only_the_best_by_fused_score_are_told_and_scored() -> None:
    """RET-10: the first `depth`; for the others the signal is absent, and adds nothing."""
    answer = asked(MemoryGeneration(DOCUMENTS), ON)
    told = [Signal.LATE_INTERACTION in result.signals for result in answer.results]
    assert told == [True, True, True, False, False]
    for result in answer.results:
        added = [part for part in result.contributions if part.name == "late_interaction"]
        assert len(added) == (1 if Signal.LATE_INTERACTION in result.signals else 0)


def test_the_mean_of_best_matches_decides_its_value() -> None:
    """RET-10: 5, 4 and 3 of 5 words are found again: .2 and .4 behind the best, of a span of .4."""
    answer = asked(MemoryGeneration(DOCUMENTS), ON)
    values = [result.signals[Signal.LATE_INTERACTION] for result in answer.results[:3]]
    assert values == pytest.approx([1.0, 0.5, 0.0], abs=1e-3)


def test_it_moves_what_other_signals_cannot_tell_apart() -> None:
    """RET-10: a text that holds each word of the query once more than another wins by its tokens alone."""
    answer = asked(
        MemoryGeneration({"a": ["alpha beta"], "b": ["alpha alpha"], "c": ["gamma"]}), ON, channels=["dense"]
    )
    by_uri = {result.uris[0]: result for result in answer.results}
    assert by_uri["a"].signals[Signal.LATE_INTERACTION] > by_uri["b"].signals[Signal.LATE_INTERACTION]


def test_switched_off_nothing_is_left_of_it() -> None:
    """ARC-8: bit for bit the answer of a generation that never had tokens, asked without it."""
    without = MemoryGeneration(DOCUMENTS)
    without.keeps_tokens = False
    off, never = asked(MemoryGeneration(DOCUMENTS), OFF), asked(without, OFF)
    assert off.results == never.results
    assert not off.failed_channels
    assert all(Signal.LATE_INTERACTION not in result.signals for result in off.results)


def test_a_generation_without_tokens_is_answered_from_and_named() -> None:
    """RET-10: never an error; the results are those without the signal."""
    without = MemoryGeneration(DOCUMENTS)
    without.keeps_tokens = False
    answer = asked(without, ON)
    assert "token" in answer.failed_channels["late_interaction"]
    assert answer.results == asked(without, OFF).results


def test_without_the_dense_channel_it_is_not_told_and_not_missed() -> None:
    """RET-10, RET-2: the query's tokens come from the dense channel's forward pass; who wants none loses nothing."""
    answer = asked(MemoryGeneration(DOCUMENTS), ON, channels=["lexical"])
    assert not answer.failed_channels
    assert all(Signal.LATE_INTERACTION not in result.signals for result in answer.results)


def test_where_the_dense_channel_fails_it_is_named_too() -> None:
    """RET-7, RET-10."""
    generation = MemoryGeneration(DOCUMENTS)
    searcher = a_searcher(generation, rerank=ON)
    generation.encoder.encode_tokens = failing  # type: ignore[method-assign]
    answer = searcher.search(a_query(" ".join(WORDS)))
    assert "the model is gone" in answer.failed_channels["dense"]
    assert "dense channel was left out" in answer.failed_channels["late_interaction"]
    assert answer.results


def failing(*_: object) -> None:
    raise OSError("the model is gone")


@pytest.mark.parametrize("fusion", ["rrf", "rsf"])
def test_fusion_by_rank_or_score_ranks_by_itself(fusion: str) -> None:
    """RET-10, ARC-8: outside learned ranking the signal is told, and the published baselines stay what they are."""
    on, off = (asked(MemoryGeneration(DOCUMENTS), rerank, fusion=fusion) for rerank in (ON, OFF))
    assert [result.contributions for result in on.results] == [result.contributions for result in off.results]
    assert Signal.LATE_INTERACTION in on.results[0].signals


def test_a_query_without_words_is_answered() -> None:
    """RET-21: no token of the query, no match, no error."""
    answer = a_searcher(MemoryGeneration(DOCUMENTS), rerank=ON).search(a_query("  "))
    assert answer.to_dict()["failed_channels"] == {}
