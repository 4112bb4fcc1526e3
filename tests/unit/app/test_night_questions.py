"""EVA-4, CON-8: what the questions that a night asks are worth where it takes contents for one, or for outdated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from weft.app.questions import QuestionSet, current, improvements_of
from weft.consolidation.improvement import QuestionSource
from weft.domain.ids import ContentHash, QueryId
from weft.domain.ranking import Query, ScoredResult, ScoredResults
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.settings import load_settings

RULES = load_settings(environment={}).evaluation


def content(name: str) -> ContentHash:
    """A content by the letter that its hash repeats."""
    return ContentHash(name * 64)


def scored_results(names: str) -> ScoredResults:
    """A result list of contents by their letters, best first."""
    return tuple(ScoredResult(content(name), (f"{name}.md",), 1.0 - at / 100) for at, name in enumerate(names))


def asking(qrels: Mapping[str, Mapping[str, int]]) -> QuestionSet:
    """Questions by their ids, and grades by letter."""
    graded = {name: {str(content(letter)): grade for letter, grade in own.items()} for name, own in qrels.items()}
    return QuestionSet(QuestionSource.OWN, [Query(text=name, query_id=QueryId(name)) for name in qrels], graded)


def change(questions: QuestionSet, before: Sequence[str], after: Sequence[str], aliases: ContentAliases) -> float:
    """How much nDCG@10 changes, on average over the questions."""
    sides = [[scored_results(names) for names in side] for side in (before, after)]
    (measured,) = improvements_of(questions, sides, RULES, measures=["ndcg_at_10"], aliases=aliases)
    return measured.change.mean


def test_an_answer_is_right_by_whichever_of_its_near_duplicates_it_is_given() -> None:
    """CON-2, CON-8: a copy that gives way to its original takes no right answer with it, and adds none."""
    questions = asking({"one": {"b": 3}, "two": {"a": 3}})
    aliases = ContentAliases({content("b"): content("a")})
    before, after = ["cba", "cab"], ["cad", "cad"]
    assert change(questions, before, after, aliases) == pytest.approx(0.0)
    assert change(questions, before, after, NO_ALIASES) < -0.2


def test_an_original_that_gains_is_seen() -> None:
    """CON-8: contents that count as one do so on both sides, each once, where the first of them stands."""
    questions = asking({"one": {"a": 3, "b": 1}})
    aliases = ContentAliases({content("b"): content("a")})
    assert change(questions, ["dcba"], ["adc"], aliases) == pytest.approx(1.0 - 0.5)


def test_what_only_an_outdated_page_answers_is_not_asked() -> None:
    """CON-4, CON-8: a night is not blamed for putting what is superseded behind what supersedes it."""
    questions = asking({"old": {"a": 3}, "new": {"b": 3}, "both": {"a": 3, "b": 2}, "none": {"a": 3, "b": 0}})
    some = current(questions, {content("a")})
    assert [query.query_id for query in some.queries] == list(some.qrels) == ["new", "both"]
    assert some.qrels["both"] == questions.qrels["both"]
    assert current(questions, set()) == questions
