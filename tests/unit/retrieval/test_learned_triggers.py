"""RET-17: what was picked from far down is found by the words that led to it."""

from __future__ import annotations

import pytest

from pipelines.domain.ids import ContentHash, content_hash
from pipelines.domain.ranking import Answer, Channel, Signal
from pipelines.indexes.graph.graph import EdgeKind
from pipelines.learning.observe.triggers import LearnedTrigger, LearnedTriggers
from pipelines.retrieval.answer.trace import answer_as_json
from tests.support.retrieval_fakes import EvenBeliefs, MemoryGeneration, MemoryGraph, a_query, a_searcher

TEXTS = {"a": ["pages and quotas"], "b": ["yellow bananas"], "c": ["flush order"]}
PAGES = content_hash("pages and quotas")


def answered(
    text: str, *triggers: LearnedTrigger, generation: MemoryGeneration | None = None, **query: object
) -> Answer:
    class Taught(EvenBeliefs):
        triggers = LearnedTriggers([])

    Taught.triggers = LearnedTriggers(triggers)
    searcher = a_searcher(generation or MemoryGeneration(TEXTS), depth=1)
    object.__setattr__(searcher.snapshot, "beliefs", Taught())
    return searcher.search(a_query(text, **query))


def learned(term: str, content: ContentHash = PAGES, *, on_trial: bool = False) -> LearnedTrigger:
    return LearnedTrigger(term, content, 1.0, on_trial)


def triggered(answer: Answer) -> dict[str, float]:
    return {
        result.uris[0]: result.channels[Channel.TRIGGERS].score
        for result in answer.results
        if Channel.TRIGGERS in result.channels
    }


def test_a_learned_word_finds_its_content() -> None:
    """RET-17: by the share of the query's words that are its triggers."""
    found = answered("disk full flush", learned("disk"), learned("full"), learned("other"))
    assert triggered(found) == pytest.approx({"a": 2 / 3})
    best = next(result for result in found.results if result.uris == ("a",))
    assert best.signals[Signal.TRIGGER] == pytest.approx(2 / 3)
    assert triggered(answered("flush", learned("disk"))) == {}


def test_a_trigger_on_trial_is_told_and_changes_nothing() -> None:
    """RET-17: the shadow period logs without effect."""
    trial, none = answered("disk flush", learned("disk", on_trial=True)), answered("disk flush")
    assert trial.results == none.results
    assert trial.understanding is not None
    assert trial.understanding.shadowed == {PAGES: "[learned:]disk"}
    assert answer_as_json(trial)["understanding"]["triggers_on_trial"] == {PAGES: "[learned:]disk"}


def test_names_that_the_generation_knows_trigger_nothing() -> None:
    """RET-17: what was learned never comes from the vocabulary of the domain."""
    generation = MemoryGeneration(TEXTS)
    generation.graph = MemoryGraph(3, (EdgeKind.MENTIONS, 0, "Disk"))
    assert triggered(answered("disk flush", learned("disk"), generation=generation)) == {}


def test_a_content_that_is_gone_or_filtered_out_is_not_found() -> None:
    """RET-17, RET-4."""
    facts = {name: {"metadata": {"team": name}} for name in TEXTS}
    generation = MemoryGeneration(TEXTS, facts)
    assert triggered(answered("disk", learned("disk", content_hash("gone")))) == {}
    assert triggered(answered("disk", learned("disk"), generation=generation, filters={"team": "b"})) == {}
    assert triggered(answered("disk", learned("disk"), generation=generation, filters={"team": "a"})) == {"a": 1.0}


def test_declared_and_learned_triggers_of_one_content_do_not_add_up() -> None:
    """RET-17: the stronger one counts."""
    generation = MemoryGeneration(TEXTS, {"a": {"triggers": ("disk full",)}})
    assert triggered(answered("disk full", learned("disk"), generation=generation)) == {"a": 1.0}
