"""ARC-8, EVA-3: signals can be switched off, and an answer keeps the heads of its channels."""

import pytest

from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from weft.domain.ranking import Channel, Signal
from weft.retrieval.answers import HEAD_DEPTH

FRUIT = MemoryGeneration({"a": ["red apple"], "b": ["red pear"], "c": ["green apple pie"], "d": ["plum"]})


TOLD = sorted(a_searcher(FRUIT).search(a_query("red apple")).results[0].signals)


@pytest.mark.parametrize("signal", TOLD)
def test_a_signal_that_is_switched_off_is_told_and_adds_nothing(signal: Signal) -> None:
    """ARC-8: its weight goes to the others."""
    best = a_searcher(FRUIT, without_signals=[signal.value]).search(a_query("red apple")).results[0]
    assert signal in best.signals
    added = {part.name: part.weight for part in best.contributions}
    assert signal.value not in added
    assert sum(added.values()) == pytest.approx(1.0)


def test_switching_nothing_off_changes_nothing() -> None:
    """ARC-8: bit for bit."""
    answers = [a_searcher(FRUIT, **changes).search(a_query("red apple")) for changes in ({}, {"without_signals": []})]
    assert answers[0].results == answers[1].results


def test_an_answer_keeps_the_best_of_each_channel() -> None:
    """EVA-3: hashes and scores in the channel's own order, no more than two pages of ten."""
    many = MemoryGeneration({f"d{number}": [f"red apple {number}"] for number in range(HEAD_DEPTH + 5)})
    answer = a_searcher(many).search(a_query("red apple", k=HEAD_DEPTH + 5))
    assert set(answer.heads) == {Channel.DENSE, Channel.LEXICAL}
    for channel, head in answer.heads.items():
        assert len(head) == HEAD_DEPTH < len(answer.results)
        assert [score for _, score in head] == sorted((score for _, score in head), reverse=True)
        found = [result for result in answer.results if channel in result.channels]
        ranks = {result.content_hash: result.channels[channel].rank for result in found}
        assert [ranks[content] for content, _ in head] == list(range(1, HEAD_DEPTH + 1))
