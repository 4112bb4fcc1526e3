from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.retrieval_fakes import MemoryGeneration, a_place, a_query, a_searcher
from weft.domain.documents import ContentType, Domain
from weft.domain.ids import QueryId
from weft.ingestion.metadata.front_matter import front_matter
from weft.retrieval.answer.trace import understanding_line
from weft.retrieval.snapshot.filters import matches


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("site", True),
        ("site/docs", True),
        ("site/docs/", True),
        ("site/docs/guides", True),
        ("site/doc", False),
        ("site/docs/guides/more", False),
        ("docs", False),
        ("", False),
    ],
)
def test_a_folder_holds_all_that_lies_below_it(wanted: str, found: bool) -> None:
    """ING-2, RET-4: the hierarchy of folders is a path to filter by, name by name."""
    place = a_place("site/docs/guides/a.md", "Text.", metadata={"folder": "site/docs/guides", "team": "a/b"})
    assert matches(place.facts, {"folder": wanted}) is found
    assert matches(place.facts, {"team": "a"}) is False
    assert matches(a_place("a", "Text.").facts, {"folder": wanted}) is False


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"domain": "code"}, True),
        ({"domain": "academic"}, False),
        ({"type": "code"}, True),
        ({"type": "markdown"}, False),
        ({"language": "en"}, True),
        ({"since": "1970-01-02"}, True),
        ({"since": "1970-01-02T00:00:01+00:00"}, False),
        ({"until": "1970-01-02"}, False),
        ({"until": "1970-01-03", "domain": "code"}, True),
        ({"until": "1970-01-03", "domain": "history"}, False),
        ({"team": "a"}, False),
    ],
)
def test_facts_that_every_document_has_can_be_asked_for(filters: dict[str, str], found: bool) -> None:
    """RET-4: domain, type, language and date, all of those asked for at once."""
    facts = {"domain": Domain.CODE, "content_type": ContentType.CODE, "language": "en", "modified_at": 86_400.0}
    assert matches(a_place("a.py", "Text.", **facts).facts, filters) is found


def test_what_a_document_declares_comes_first() -> None:
    """RET-4: metadata of the same name means what its source says."""
    place = a_place("a", "Text.", metadata={"type": "ticket", "language": "python"}, language="en")
    assert matches(place.facts, {"type": "ticket", "language": "python"})
    assert not matches(place.facts, {"type": "text"})


FRONT = """---
title: 1.10
country: NO
zip: 01234
start: 12:30
release: 1.10
tags: [red, 1.10, {deep: yes}]
---
"""


@pytest.mark.parametrize("stated", ["country:NO", "zip:01234", "start:12:30", "release:1.10", "tags:red", "tags:1.10"])
def test_what_front_matter_says_is_asked_for_as_it_is_written(stated: str) -> None:
    """ING-40, RET-4: in the words of a query and as a filter; of a list each member, and the list as it is stored."""
    facts = front_matter(FRONT)
    assert facts is not None
    other = {"country": "SE", "zip": "668", "start": "750", "release": "1.1", "tags": '["1.1", "reds"]'}
    documents = {"norway": {"metadata": facts.metadata}, "sweden": {"metadata": other}}
    searcher = a_searcher(MemoryGeneration({name: [f"lantern {name}"] for name in documents}, documents))
    assert [result.uris for result in searcher.search(a_query(f"lantern {stated}")).results] == [("norway",)]
    name, _, value = stated.partition(":")
    found = searcher.search(a_query("lantern", filters={name: value}))
    assert [result.uris for result in found.results] == [("norway",)]
    place = a_place("a", "Text.", metadata=facts.metadata)
    assert matches(place.facts, {"tags": facts.metadata["tags"]})
    assert not any(matches(place.facts, {"tags": each}) for each in ("re", "deep", "[", "red, 1.10"))


def test_an_undated_document_is_neither_before_nor_after() -> None:
    """RET-4."""
    assert not any(matches(a_place("a", "Text.").facts, {name: "1970-01-02"}) for name in ("since", "until"))


@pytest.mark.parametrize("modified_at", [0.0, None])
def test_a_date_that_is_none_is_refused(modified_at: float | None) -> None:
    """RET-4: rather than finding nothing, whether or not documents are dated."""
    searcher = a_searcher(MemoryGeneration({"a": ["Text."]}, {"a": {"modified_at": modified_at}}))
    with pytest.raises(ValueError, match="yesterday"):
        searcher.search(a_query("text", filters={"since": "yesterday"}))


def test_of_a_batch_the_query_with_a_wrong_filter_is_named() -> None:
    """RET-4, RET-21: whoever asks many at once must not look for it."""
    searcher = a_searcher(MemoryGeneration({"a": ["Text."]}))
    wrong = replace(a_query("text", filters={"until": "soon"}), query_id=QueryId("q-17"))
    with pytest.raises(ValueError, match=r"query q-17: expected a date .* found 'soon'; none of its batch"):
        searcher.search_many([a_query("text"), wrong])


@pytest.mark.parametrize(
    ("text", "filters", "unmet"),
    [
        ("apple", {}, ()),
        ("apple", {"team": "a"}, ()),
        ("apple", {"id": "1"}, ()),  # too many values to be inferred from a text, though documents have it
        ("apple", {"taem": "a"}, ("taem:a",)),
        ("apple", {"team": "c", "id": "1"}, ("team:c",)),
        ("apple", {"tier": "x", "team": "c"}, ("team:c", "tier:x")),
        ("apple", {"since": "1970-01-03"}, ("since:1970-01-03",)),
        ("apple", {"team": "a", "id": "2"}, ("id:2 and team:a",)),
        ("apple team:b", {"id": "1"}, ("id:1 and team:b",)),
    ],
)
def test_filters_that_nothing_passes_are_told(text: str, filters: dict[str, str], unmet: tuple[str, ...]) -> None:
    """RET-4: they stay strict, and an empty answer says which of them no document has, or none has together."""
    facts = {
        uri: {"metadata": {"team": team, "id": number}, "modified_at": 86_400.0}
        for uri, team, number in (("one", "a", "1"), ("two", "b", "2"), ("three", "b", "3"))
    }
    generation = MemoryGeneration({uri: [f"apple {uri}"] for uri in facts}, facts)
    answer = a_searcher(generation).search(a_query(text, filters=filters))
    assert answer.understanding is not None
    assert answer.understanding.unmet == unmet
    assert bool(answer.results) is not bool(unmet)
    assert answer.to_dict()["understanding"]["unmet_filters"] == list(unmet)
    line = understanding_line(answer.understanding)
    assert all(f"no document has {each}: nothing passes" in line for each in unmet)
    assert ("nothing passes" in line) is bool(unmet)


def test_a_filter_does_not_starve_the_ranking() -> None:
    """RET-4: as many are found as without a filter, however many others are nearer to the query."""
    documents = {f"near{number}": [f"red apple {number}"] for number in range(40)}
    documents |= {f"far{number}": [f"apple pie of number {number}"] for number in range(6)}
    facts = {uri: {"metadata": {"team": uri[:3]}} for uri in documents}
    for channel in ("dense", "lexical"):
        searcher = a_searcher(MemoryGeneration(documents, facts), channels=[channel], depth=5)
        answer = searcher.search(a_query("red apple", filters={"team": "far"}))
        assert len(answer.results) == 5
        assert {result.uris[0][:3] for result in answer.results} == {"far"}


def test_queries_of_a_batch_keep_their_own_filters() -> None:
    """RET-4, RET-20."""
    facts = {uri: {"metadata": {"team": uri}} for uri in "abc"}
    searcher = a_searcher(MemoryGeneration({uri: [f"apple {uri}"] for uri in "abc"}, facts))
    asked = [{"team": "a"}, {}, {"team": "b"}, {"team": "b"}]
    answers = searcher.search_many([a_query("apple", filters=filters) for filters in asked])
    assert [sorted(result.uris[0] for result in answer.results) for answer in answers] == [
        ["a"],
        ["a", "b", "c"],
        ["b"],
        ["b"],
    ]
