"""ING-16: what the bundled recogniser is trained on."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from lab.entities.labels import CANONICAL, COLLAPSED, PARAPHRASES, SOURCES, collapse
from lab.entities.sampling import Packed, Packing, Sampler, inventory, judged
from lab.entities.sentences import Sentence, resplit, templated

NAMES = {"person": ["Ada Lovelace"], "organization": ["ACME"], "location": ["London"]}


def a_sentence(source: str, *labels: str) -> Sentence:
    """One word a label, and a word without one."""
    words = tuple(f"word{index}" for index in range(len(labels) + 1))
    return Sentence(words, tuple((index, index, label) for index, label in enumerate(labels)), source)


CORPUS = {
    "wikigold": [a_sentence("wikigold", "person", "location", "organization")] * 3,
    "somesci": [a_sentence("somesci", "software", "software developer", "software version")] * 3,
    "bc5cdr": [a_sentence("bc5cdr", "disease", "chemical")] * 3,
}


def drawn(seed: int, packing: Packing, count: int = 40) -> list[Packed]:
    sampler = Sampler(CORPUS, packing, Random(seed))
    return [sampler.draw() for _ in range(count)]


def test_only_sources_with_an_open_licence_take_part() -> None:
    """ING-16: the checkpoint ships under a permissive licence."""
    assert not SOURCES.keys() & {"pile_ner", "aptner", "few_tk", "mit_movie", "mit_restaurant"}


def test_every_label_collapses_onto_one_of_ours_and_ours_onto_themselves() -> None:
    """ING-16."""
    assert set(COLLAPSED.values()) <= set(CANONICAL)
    assert PARAPHRASES.keys() <= set(CANONICAL)
    assert [collapse(label) for label in ("politician", "software library", "protein")] == ["person", "software", None]


@given(st.integers())
def test_spans_lie_in_their_text_and_every_span_is_under_an_offered_label(seed: int) -> None:
    """ING-16."""
    for text in drawn(seed, Packing(), count=5):
        assert all(0 <= first <= last < len(text.words) for first, last, _ in text.spans)
        assert {label for *_, label in text.spans} <= set(text.labels)
        assert len(set(text.labels)) == len(text.labels) > 0


def test_in_its_own_view_a_source_is_offered_its_own_labels_only() -> None:
    """ING-16: another source's label may be present in the text without being annotated."""
    for text in drawn(1, Packing(canonical=0.0)):
        assert any(set(text.labels) <= set(inventory(sentences)) for sentences in CORPUS.values())


def test_in_our_view_only_labels_that_every_source_can_be_judged_by_are_offered() -> None:
    """ING-16: science texts name places that nobody marked, so "location" is no negative there."""
    packing = Packing(canonical=1.0, mixed=1.0, paraphrase=0.0, merged=0.0)
    science = judged("somesci", inventory(CORPUS["somesci"]))
    assert "location" not in science
    assert {"software", "organization"} <= science
    mixed = [text for text in drawn(2, packing) if any(label == "software" for *_, label in text.spans)]
    assert mixed
    assert all("location" not in text.labels for text in mixed)


def test_equal_seeds_draw_equal_texts() -> None:
    """ING-16: a training run can be repeated."""
    assert drawn(3, Packing()) == drawn(3, Packing())


@given(st.lists(st.sampled_from(["Node.js", "U.S.", "a-b", "(", "x"]), min_size=1, max_size=8), st.data())
def test_resplitting_keeps_what_a_span_covers(words: list[str], data: st.DataObject) -> None:
    """ING-16: training sees the words that inference sees."""
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    sentence = resplit(words, [(first, last, "label")], "wikigold")
    for a, b, _ in sentence.spans:
        assert "".join(sentence.words[a : b + 1]) == "".join(words[first : last + 1])


def test_pronouns_and_bare_signs_are_no_names() -> None:
    """ING-16: some sources annotate coreferent pronouns, or the sign before a user's name."""
    spans = [(0, 0, "person"), (1, 1, "person"), (2, 2, "person")]
    assert resplit(["him", "@", "Ada"], spans, "re3d").spans == ((2, 2, "person"),)


def test_templates_are_filled_with_names_and_marked() -> None:
    """ING-16."""
    sentences = templated(NAMES, 200, Random(4))
    people = {
        " ".join(sentence.words[a : b + 1]).lower()
        for sentence in sentences
        for a, b, label in sentence.spans
        if label == "person"
    }
    assert people == {"ada lovelace"}
    assert all(0 <= a <= b < len(s.words) for s in sentences for a, b, _ in s.spans)
