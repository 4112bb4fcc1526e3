"""LRN-18: what `weft ask` says has moved when the same is asked again."""

from __future__ import annotations

from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher, having_said
from tests.support.words_spoken import a_word
from weft.retrieval.answer.changes import rank_changes

PAGES = MemoryGeneration({"cache.md": ["red apple pie", "pie apple red"], "index.md": ["red"]})
ASKED = a_query("red apple pie", principal="ada")


def test_another_passage_of_a_page_is_not_a_new_page() -> None:
    """LRN-18: who calls the first result wrong is shown another part of its page, which stood there before."""
    before = a_searcher(PAGES).search(ASKED)
    first = before.results[0]
    assert first.uris == ("cache.md",)
    wrong = a_word(first.content_hash, ASKED.text, "ada", good=False)
    said = rank_changes(before, having_said(a_searcher(PAGES), wrong).search(ASKED))
    assert "another passage of cache.md 1 → " in said
    assert "new" not in said


def test_what_was_nowhere_is_new() -> None:
    """LRN-23: a page that the first answer did not show."""
    short = a_query("red apple pie", k=1, principal="ada")
    before, right = a_searcher(PAGES).search(short), a_searcher(PAGES).search(ASKED).results[-1]
    said = rank_changes(
        before, having_said(a_searcher(PAGES), a_word(right.content_hash, ASKED.text, "ada")).search(short)
    )
    assert said.startswith(
        "moved: index.md new → 1; index.md is first: you called this right; before that it was second"
    )
