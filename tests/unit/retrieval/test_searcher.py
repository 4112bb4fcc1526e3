"""RET-7, RET-8, RET-14, ARC-2: a search from query to answer, over a generation in memory."""

import time
from dataclasses import replace

import pytest

from tests.support.retrieval_fakes import (
    NOW,
    FailingIndex,
    MemoryGeneration,
    MemorySource,
    WordIndex,
    a_query,
    a_searcher,
    settings,
)
from weft.domain.documents import Domain
from weft.domain.errors import StoreError
from weft.domain.ranking import AnswerToken, Channel, Signal
from weft.domain.signatures import SigningKey
from weft.retrieval.searcher import Searcher

DOCUMENTS = {
    "notes.md": ["a checkpoint is written after each commit", "locks are held briefly"],
    "store.py": ["def write checkpoint to disk", "def read a page"],
    "copy.md": ["locks are held briefly"],
    "other.txt": ["bananas are yellow"],
}
HOUR = 3600.0


def test_the_same_content_found_twice_is_one_candidate_that_names_its_channels() -> None:
    """RET-8."""
    answer = a_searcher(MemoryGeneration(DOCUMENTS), unit="chunk").search(a_query("how is a checkpoint written"))
    hashes = [result.content_hash for result in answer.results]
    assert len(hashes) == len(set(hashes))
    assert set(answer.results[0].channels) == {Channel.DENSE, Channel.LEXICAL}
    assert answer.results[0].text == "a checkpoint is written after each commit"


def test_a_text_in_two_documents_is_one_result_that_names_both() -> None:
    """ARC-4."""
    answer = a_searcher(MemoryGeneration(DOCUMENTS)).search(a_query("locks held briefly"))
    assert set(answer.results[0].uris) == {"copy.md", "notes.md"}


@pytest.mark.parametrize(("delay_s", "reason"), [(0.0, "OSError: the index is gone"), (2.0, "no answer within")])
def test_a_channel_that_fails_or_is_late_is_left_out_and_named(delay_s: float, reason: str) -> None:
    """RET-7."""
    generation = MemoryGeneration(DOCUMENTS)
    generation.lexical = FailingIndex(delay_s)
    answer = a_searcher(generation, budget_ms={"searching": 1000, "following": 5000}).search(a_query("checkpoint"))
    assert reason in answer.failed_channels["lexical"]
    assert answer.results
    assert all(set(result.channels) == {Channel.DENSE} for result in answer.results)
    # Without the channel its similarity has no weight: the others share it.
    assert "lexical" not in {part.name for part in answer.results[0].contributions}


def test_opening_loads_what_a_channel_loads_on_first_use() -> None:
    """RET-7: a model or an index that takes longer to load than a search may is not left out of the first one."""

    class Cold(WordIndex):
        loaded = False

        def search_many(self, *args):
            if not self.loaded:
                time.sleep(1.0)  # longer than the budget below
                self.loaded = True
            return super().search_many(*args)

    generation = MemoryGeneration(DOCUMENTS)
    generation.lexical = Cold([item.text for item in generation.held])
    answer = a_searcher(generation, budget_ms={"searching": 800, "following": 5000}).search(a_query("checkpoint"))
    assert answer.failed_channels == {}


@pytest.mark.parametrize(("complete", "expected"), [(True, [True, False]), (False, [False, False])])
def test_a_known_similarity_does_not_count_as_none(complete: bool, expected: list[bool]) -> None:
    """RET-14: what only the lexical channel ranked has its cosine all the same; off by configuration (ARC-8)."""
    asked = "red blue green"
    # Dense prefers the short texts; the long ones hold all words, the second among more others.
    texts = ["red blue", "red", f"{asked} {' '.join('abcdefghi')}", f"{asked} {' '.join('abcdefghijklmnopqrst')}"]
    generation = MemoryGeneration({f"d{number}": [text] for number, text in enumerate(texts)})
    answer = a_searcher(generation, depth=2, complete_scores=complete).search(a_query(asked))
    of = {result.uris[0]: result for result in answer.results}
    assert [Channel.DENSE in of[uri].channels for uri in ("d2", "d3")] == [False, False]
    assert [of[uri].signals[Signal.VECTOR] > 0.0 for uri in ("d2", "d3")] == expected


def test_a_filter_leaves_other_documents_out() -> None:
    """RET-4: also where the same text stands in a document that fits and in one that does not."""
    facts = {"notes.md": {"metadata": {"team": "a"}}, "copy.md": {"metadata": {"team": "b"}}}
    searcher = a_searcher(MemoryGeneration(DOCUMENTS, facts))
    answer = searcher.search(a_query("locks held briefly", filters={"team": "b"}))
    assert [result.uris for result in answer.results] == [("copy.md",)]


def test_exploration_draws_by_the_query_id() -> None:
    """ARC-9: the same query draws the same weights; another query id draws others."""
    searcher = a_searcher(MemoryGeneration(DOCUMENTS))
    first, same = (searcher.search(a_query("checkpoint", explore=True)) for _ in range(2))
    assert first.results == same.results
    weights = {part.name: part.weight for part in first.results[0].contributions}
    expected = {part.name: part.belief.mean for part in first.results[0].contributions if part.belief}
    assert weights != expected


def test_a_fresher_document_ranks_above_an_equal_one() -> None:
    """RET-14: quality signals take part in the learned score."""
    documents = {"old.md": ["one two three x"], "new.md": ["one two three y"]}
    facts = {"old.md": {"modified_at": NOW - 1000 * HOUR}, "new.md": {"modified_at": NOW - HOUR}}
    answer = a_searcher(MemoryGeneration(documents, facts)).search(a_query("one two three"))
    assert [result.uris[0] for result in answer.results] == ["new.md", "old.md"]
    assert answer.results[0].signals[Signal.FRESHNESS] == pytest.approx(2 ** (-1 / 24))


def test_the_query_chooses_whose_weights_rank() -> None:
    """RET-14: a named domain's weights for all, else each candidate's own."""
    asked = []

    class Remembering(type(a_searcher(MemoryGeneration(DOCUMENTS)).snapshot.beliefs)):  # type: ignore[misc]
        def weights(self, scope, active):
            asked.append(scope.domain)
            return super().weights(scope, active)

    facts = {"store.py": {"domain": Domain.CODE}}
    for domain, expected in ((None, {Domain.CODE, Domain.GENERAL}), (Domain.ACADEMIC, {Domain.ACADEMIC})):
        asked.clear()
        source = MemorySource(MemoryGeneration(DOCUMENTS, facts))
        taken = source.take(None)
        object.__setattr__(taken, "beliefs", Remembering())
        source.take = lambda previous, taken=taken: taken  # type: ignore[method-assign]
        searcher = Searcher(source, taken.generation.encoder, settings(), clock=lambda: NOW)  # type: ignore[attr-defined]
        searcher.search(a_query("checkpoint", domain=domain))
        assert set(asked) == expected


def test_an_answer_gives_out_what_its_feedback_needs_to_whoever_asked() -> None:
    """FBK-13: one token names query, session and asker, in Python and in JSON; where a key is set, it is signed."""
    key, source = SigningKey("a key that only services and updaters share"), MemorySource(MemoryGeneration(DOCUMENTS))
    query = replace(a_query("checkpoint"), session_id="s1", principal="ada")
    with Searcher(source, MemoryGeneration(DOCUMENTS).encoder, settings(), clock=lambda: NOW, key=key) as searcher:
        answer = searcher.search(query)
    proof = key.query_token(query.query_id, "ada")
    assert AnswerToken.read(answer.token) == AnswerToken("s1", query.query_id, "ada", token=proof)
    assert answer.session_token == key.session_token("s1", "ada")
    document = answer.to_dict()
    assert (document["token"], document["session_token"]) == (answer.token, answer.session_token)
    unsigned = a_searcher(MemoryGeneration(DOCUMENTS)).search(query)
    assert AnswerToken.read(unsigned.token) == AnswerToken("s1", query.query_id, "ada")
    assert (unsigned.to_dict()["token"], "session_token" in unsigned.to_dict()) == (unsigned.token, False)
    assert unsigned.results == answer.results


def test_hostile_queries_never_raise() -> None:
    """RET-21."""
    searcher = a_searcher(MemoryGeneration(DOCUMENTS))
    for text in ("", "   ", "\ud800", "\x00\x01", 'AND OR NOT ( [ *:* " ~', "x " * 100_000, "ﷺ" * 10_000):
        answer = searcher.search(a_query(text))
        assert len(answer.query.text) == len(text)
    assert answer.truncated


def test_what_is_published_is_seen_after_the_refresh_interval_and_not_within_a_request() -> None:
    """ARC-2, FBK-7."""
    source = MemorySource(MemoryGeneration(DOCUMENTS), MemoryGeneration({"new.md": ["checkpoint"]}))
    now = [0.0]
    searcher = Searcher(source, MemoryGeneration(DOCUMENTS).encoder, settings(refresh_s=1.0), clock=lambda: now[0])
    assert searcher.search(a_query("checkpoint")).generation == "gen-0"
    source.version = 1
    now[0] = 0.5
    assert searcher.search(a_query("checkpoint")).generation == "gen-0"
    now[0] = 1.5
    assert searcher.search(a_query("checkpoint")).generation == "gen-1"


@pytest.mark.parametrize("error", [StoreError("damaged"), OSError("stale file handle")])
def test_a_store_that_is_out_of_reach_for_a_while_costs_no_search(error: Exception) -> None:
    """ARC-2: what is held was verified; it answers until something whole can be read again."""

    class OutOfReach(MemorySource):
        reason: Exception | None = None

        def token(self):
            if self.reason is not None:
                raise self.reason
            return super().token()

    source = OutOfReach(MemoryGeneration(DOCUMENTS), MemoryGeneration({"new.md": ["checkpoint"]}))
    now = [0.0]
    searcher = Searcher(source, MemoryGeneration(DOCUMENTS).encoder, settings(refresh_s=1.0), clock=lambda: now[0])
    source.version, source.reason, now[0] = 1, error, 2.0
    assert searcher.search(a_query("checkpoint")).generation == "gen-0"
    source.reason, now[0] = None, 4.0
    assert searcher.search(a_query("checkpoint")).generation == "gen-1"
