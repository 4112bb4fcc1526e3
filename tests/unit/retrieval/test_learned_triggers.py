"""RET-17: what was picked from far down is found by the words that led to it."""

from __future__ import annotations

import pytest

from tests.support.memory_graph import MemoryGraph
from tests.support.retrieval_fakes import EvenBeliefs, MemoryGeneration, a_query, a_searcher
from weft.domain.ids import ContentHash, content_hash
from weft.domain.ranking import Answer, Channel, Signal
from weft.feedback.events.trigger_terms import trigger_terms
from weft.indexes.graph.graph import EdgeKind
from weft.learning.observe.triggers import LearnedTrigger, LearnedTriggers
from weft.settings import load_settings

TEXTS = {"a": ["pages and quotas"], "b": ["yellow bananas"], "c": ["flush order"]}
PAGES = content_hash("pages and quotas")


def answered(
    text: str,
    *triggers: LearnedTrigger,
    generation: MemoryGeneration | None = None,
    depth: int = 1,
    **query: object,
) -> Answer:
    class Taught(EvenBeliefs):
        triggers = LearnedTriggers([])

    Taught.triggers = LearnedTriggers(triggers)
    searcher = a_searcher(generation or MemoryGeneration(TEXTS), depth=depth)
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
    assert trial.to_dict()["understanding"]["triggers_on_trial"] == {PAGES: "[learned:]disk"}


def test_words_that_stand_in_much_of_the_corpus_trigger_nothing() -> None:
    """RET-17: the domain's vocabulary; a name that few contents bear is none of it, though the graph knows it."""
    texts = {f"d{number}": [f"disk number {number}"] for number in range(4)} | {
        f"o{at}": [f"o{at}"] for at in range(36)
    }
    generation = MemoryGeneration({**TEXTS, **texts, "q": ["quota named once"]})
    generation.graph = MemoryGraph(44, (EdgeKind.MENTIONS, 0, "quota"), (EdgeKind.MENTIONS, 0, "disk"))
    assert len(generation.contents) == 44
    triggers = [learned(term) for term in ("disk", "quota", "full")]
    assert triggered(answered("disk quota full", *triggers, generation=generation)) == pytest.approx({"a": 3 / 3})
    common = MemoryGeneration({**TEXTS, **texts, "x": ["one more disk"]})
    assert triggered(answered("disk quota full", *triggers, generation=common)) == pytest.approx({"a": 2 / 3})


def test_words_that_a_query_was_expanded_by_trigger_nothing_and_teach_nothing() -> None:
    """RET-3, RET-17: triggers are matched with the query's own words, and these alone go with a selection."""
    sweet = {f"s{number}": [f"apple cinnamon {name}"] for number, name in enumerate(("pie", "tart", "jam"))}
    others = {f"o{number}": [f"stone {number}"] for number in range(30)}
    generation = MemoryGeneration({**TEXTS, **sweet, **others})
    answer = answered("which apple ? which tart ?", learned("cinnamon"), generation=generation, depth=9)
    assert answer.understanding is not None
    assert any("cinnamon" in variant.text for variant in answer.understanding.variants)
    assert triggered(answer) == {}
    taught = trigger_terms(answer.query.text, load_settings(environment={}).feedback.triggers)
    assert taught == ("apple", "tart")


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
