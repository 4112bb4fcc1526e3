"""RET-11, RET-13: which page stands first, which of its passages is shown, and what signals that say nothing add."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.candidate_tables import AHit, a_context, a_hit, a_table, asked_with, told
from tests.support.retrieval_fakes import MemoryGeneration, a_place, a_query, a_searcher, settings
from weft.domain.documents import ContentType, Domain
from weft.domain.ranking import Answer, Channel, ChannelHit, Signal, WeightBelief
from weft.retrieval.answers import Candidate
from weft.retrieval.ranking.context import SignalWeight, SignalWeights
from weft.retrieval.ranking.final_score import NEUTRAL, PASSAGE, Headings, in_units, with_neutral_terms
from weft.retrieval.ranking.fusion import weighed


def a_passage(name: str, score: float, uri: str = "page", *heading_path: str) -> AHit:
    """A chunk of a page under some headings."""
    place = a_place(uri, name)
    place = replace(place, chunk=replace(place.chunk, heading_path=heading_path))
    return a_hit(name, {Channel.DENSE: ChannelHit(1, score)}, places=(place,), score=score)


def pages(*hits: AHit, question: str = "", **changes: object) -> list[Candidate]:
    """Pages as they are ranked, with the passage that is shown of each."""
    table = a_table(*hits, context=a_context(a_query(question)))
    named = Headings(table.occurrences.store).named(table.contexts)
    return told(in_units(table, settings(**changes), np.zeros(len(table)), named))


OVERVIEW = [a_passage("o0", 0.6, "overview"), *(a_passage(f"o{at}", 0.3, "overview") for at in range(1, 9))]


def test_a_page_of_one_section_that_answers_stands_before_an_overview_that_merely_mentions() -> None:
    """RET-11: many chunks that match a little do not add up to one that matches."""
    hits = [*OVERVIEW, a_passage("answer", 0.7, "one section")]
    assert [page.uris for page in pages(*hits)] == [("one section",), ("overview",)]
    # With the plain sum the overview would stand first.
    assert [page.uris for page in pages(*hits, mpab_floor=0.0)] == [("overview",), ("one section",)]


def test_what_further_chunks_add_is_what_they_match_above_the_floor() -> None:
    """RET-11: S_max + factor · Σ max(0, S_rest − floor · S_max) / √N, and the contributions say so."""
    (page,) = pages(a_passage("a", 0.8), a_passage("b", 0.5), a_passage("c", 0.2), mpab_factor=0.4, mpab_floor=0.5)
    assert page.score == pytest.approx(0.8 + 0.4 * (0.5 - 0.4) / math.sqrt(3))
    assert math.fsum(part.amount for part in page.contributions) == page.score


TOOL = (
    a_passage("standalone", 0.80, "install", "Installing", "Standalone installer"),
    a_passage("uninstall", 0.72, "install", "Installing", "Uninstalling"),
    a_passage("other", 0.78, "tools", "Tools"),
)


def test_the_passage_under_the_heading_that_is_asked_for_is_shown() -> None:
    """RET-11: of passages that match about alike."""
    first, _ = pages(*TOOL, question="how do I uninstall the tool")
    assert (first.text, first.occurrence.chunk.heading_path) == ("uninstall", ("Installing", "Uninstalling"))
    first, _ = pages(*TOOL, question="how do I uninstall the tool", passage_headings=0.0)
    assert first.text == "standalone"
    # What matches much less is not shown for its heading.
    weak = a_passage("weak", 0.2, "install", "Installing", "Uninstalling")
    first, *_ = pages(TOOL[0], weak, question="how do I uninstall the tool")
    assert first.text == "standalone"


def test_who_asks_by_a_heading_alone_is_shown_its_own_section() -> None:
    """RET-11: sections in it name the heading as well, and more."""
    own = a_passage("own", 0.74, "loading", "Loading", "Lazy loading")
    inner = a_passage("inner", 0.80, "loading", "Loading", "Lazy loading", "Preventing it by raising")
    for question, shown in (("Loading lazy loading", "own"), ("lazy loading and how to prevent it", "inner")):
        (page,) = pages(own, inner, question=question)
        assert page.text == shown


def test_which_passage_is_shown_changes_no_page_s_score() -> None:
    """RET-11, ARC-7: the page stands where all its chunks put it, and a contribution says what the best one gives."""
    shown, plain = pages(*TOOL, question="uninstall the tool"), pages(*TOOL)
    assert [page.uris for page in shown] == [page.uris for page in plain]
    assert [page.score for page in shown] == pytest.approx([page.score for page in plain])
    (behind,) = [part.amount for part in shown[0].contributions if part.name == PASSAGE]
    assert behind == pytest.approx(0.80 - 0.72)
    assert math.fsum(part.amount for part in shown[0].contributions) == shown[0].score


def test_synonyms_and_endings_name_the_same() -> None:
    """RET-11: as near questions have it (LRN-19)."""
    hits = [a_passage("a", 0.5, "p", "Loading"), a_passage("b", 0.45, "p", "Removing caches")]
    assert pages(*hits, question="delete the cache")[0].text == "b"


def test_other_fusions_show_what_they_ranked_first() -> None:
    """ARC-8: headings count where weights are learned."""
    assert pages(*TOOL, question="uninstall the tool", fusion="rrf")[0].text == "standalone"


NOTES = "docs/changelog.md"
GUIDE = "docs/guide.md"
PAGES = {NOTES: ["red apple tree"], GUIDE: ["red apple house"], "docs/other.md": ["green plum"]}
MARKDOWN = {uri: {"content_type": ContentType.MARKDOWN} for uri in PAGES}


def asked(text: str, **changes: object) -> Answer:
    return a_searcher(MemoryGeneration(PAGES, MARKDOWN), **changes).search(a_query(text))


def test_release_notes_stand_behind_what_says_how_things_are() -> None:
    """RET-13: they name everything; the contribution says what they lose."""
    quality = settings().quality.model_dump()
    quality["aside_loses"] = 0.0
    assert asked("red apple tree", quality=quality).results[0].uris == (NOTES,)
    answer = asked("red apple tree")
    assert [result.uris[0] for result in answer.results[:2]] == [GUIDE, NOTES]
    (lost,) = [part for part in answer.results[1].contributions if part.name == "release_notes"]
    assert lost.weight == -settings().quality.aside_loses
    assert math.fsum(part.amount for part in answer.results[1].contributions) == answer.results[1].score


@pytest.mark.parametrize("question", ["which version red apple tree", "what changed red apple tree"])
def test_a_question_for_changes_finds_the_changelog(question: str) -> None:
    """RET-13: where changes or versions are asked for, release notes lose nothing."""
    answer = asked(question)
    assert answer.results[0].uris == (NOTES,)
    assert "release_notes" not in {part.name for result in answer.results for part in result.contributions}


def test_release_notes_that_alone_answer_are_still_first() -> None:
    """RET-13: a prior, no filter."""
    assert asked("tree").results[0].uris == (NOTES,)


def evenly(weights: dict[Domain, dict[Signal, float]]) -> SignalWeights:
    belief = WeightBelief(0.0, 0.0, 1.0, 1.0, "prior")
    return lambda domain: {signal: SignalWeight(value, belief) for signal, value in weights[domain].items()}


QUALITY = [Signal.FRESHNESS, Signal.TRUST]
SHARES = st.fixed_dictionaries(dict.fromkeys(QUALITY, st.floats(0.0, 0.5)))


@given(
    weights=st.fixed_dictionaries(dict.fromkeys(Domain, SHARES)),
    says_nothing=st.floats(0.0, 1.0),
    fresher=st.floats(0.0, 0.3),
)
def test_a_signal_that_says_nothing_adds_the_same_in_every_domain(
    weights: dict[Domain, dict[Signal, float]], says_nothing: float, fresher: float
) -> None:
    """RET-13, RET-14: what is the same for all candidates decides nothing between domains; what differs is weighed."""
    hits = [
        replace(a_hit(domain.value, {}), places=(a_place(domain.value, domain.value, domain=domain),), score=0.5)
        for domain in Domain
    ]
    table = a_table(*hits)
    fresh = np.full(len(table), says_nothing * 0.7)
    fresh[0] += fresher
    told_signals = table.with_signals({Signal.FRESHNESS: fresh, Signal.TRUST: np.full(len(table), says_nothing)})
    alike = with_neutral_terms(weighed(asked_with(told_signals, evenly(weights)), QUALITY), QUALITY)
    first, *others = told(alike)
    amounts = [each.score - 0.5 for each in others]
    assert amounts == pytest.approx([amounts[0]] * len(amounts))
    own = weights[first.occurrence.domain][Signal.FRESHNESS]
    assert first.score - 0.5 == pytest.approx(amounts[0] + own * fresher)


def test_one_domain_adds_nothing_to_even_out() -> None:
    """RET-14, ARC-8: answers from one domain are what they were."""
    answer = asked("red apple")
    assert NEUTRAL not in {part.name for result in answer.results for part in result.contributions}
