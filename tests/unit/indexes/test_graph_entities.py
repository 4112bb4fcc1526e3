"""ING-17: entities are nodes, mentions are edges, and aliases of one entity are merged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.graphs import a_file, a_graph, graph_settings, mentioned
from tests.support.parts import a_document
from weft.domain.chunks import Mention
from weft.domain.ids import content_hash
from weft.indexes.graph.aliases import Key, Name, doubtful, entity_key, merged
from weft.indexes.graph.graph import Direction, EdgeKind

SETTINGS = graph_settings()


def together(*names: tuple[str, str], cosine: float = -1.0) -> set[frozenset[str]]:
    """Names that are one entity, in groups of more than one."""
    roots = merged([Name(key, 1) for key in names], doubtful(names) if cosine >= 0.5 else (), longest=9)
    groups: dict[Key, set[str]] = {}
    for key, root in roots.items():
        groups.setdefault(root, set()).add(key[1])
    return {frozenset(group) for group in groups.values() if len(group) > 1}


@pytest.mark.parametrize("name", ["C++", "C#", "C", "...", "_", "'s"])
def test_names_made_of_signs_keep_a_key_of_their_own(name: str) -> None:
    """ING-17: no name has an empty key, and languages that differ in a sign stay apart."""
    others = {"C++", "C#", "C"} - {name}
    assert entity_key(name)
    assert entity_key(name) not in {entity_key(other) for other in others}


@given(st.text(min_size=1).filter(str.strip))
def test_a_key_is_its_own_key(name: str) -> None:
    """ING-17: normalising twice changes nothing."""
    assert entity_key(entity_key(name)) == entity_key(name)


def test_blanks_and_legal_forms_do_not_tell_names_apart() -> None:
    """ING-17: "Open AI" and "OpenAI Inc" are one organization; the label tells persons from it."""
    assert together(("organization", "open ai"), ("organization", "openai inc"), ("person", "openai")) == {
        frozenset({"open ai", "openai inc"})
    }


def test_initials_need_like_surroundings_and_one_meaning() -> None:
    """ING-17: precision first: an abbreviation is merged only where nothing else could be meant by it."""
    long, other, short = (("concept", text) for text in ("natural language processing", "new light picture", "nlp"))
    assert together(long, short, cosine=0.9) == {frozenset({"natural language processing", "nlp"})}
    assert together(long, short, cosine=0.1) == set()
    assert together(long, other, short, cosine=0.9) == set()


def test_versions_and_languages_with_signs_stay_apart() -> None:
    """ING-17: numbers and signs mean something."""
    versions = [("software", entity_key(f"library {number}")) for number in ("1.12", "11.2", "1.1.2")]
    names = [("software", text) for text in ("python 2", "python 3", "c", "c++", "c#", "java", "javascript")]
    assert together(*versions, cosine=1.0) == set()
    assert together(*names, cosine=1.0) == set()


def test_mentions_lead_from_contents_to_entities_and_back(tmp_path: Path) -> None:
    """ING-17: `source=auto`, strength 0.5, kept from confidence 0.7; spellings are aliases of one node."""
    text, other = "Ada wrote to Babbage", "ADA answered"
    files = [a_document("t/a.txt", text), a_document("t/b.txt", other)]
    faint = (content_hash(other), Mention(4, 12, "answered", "person", 0.69))
    found = [*mentioned(text, ("person", "Ada"), ("person", "Babbage")), *mentioned(other, ("person", "ADA")), faint]
    graph = a_graph(tmp_path, files, mentions=found)
    (ada,) = graph.find("ada")
    assert (ada.label, ada.name, ada.aliases, ada.mentions) == ("person", "ADA", ("ADA", "Ada"), 2)
    assert graph.contents_of(ada.node) == sorted([content_hash(text), content_hash(other)])
    assert graph.find("answered") == []
    (edge,) = graph.neighbours(content_hash(other), [EdgeKind.MENTIONS])
    assert (edge.node, edge.content, edge.confidence, edge.strength, edge.declared) == (ada.node, None, 0.9, 0.5, False)


def test_symbols_that_code_defines_are_entities_too(tmp_path: Path) -> None:
    """ING-16: code symbols come from the parse."""
    files = [a_file("t/a.py", {"symbol": "Store", "defines": ("Store", "size")}, "Store.get")]
    graph = a_graph(tmp_path, files)
    assert [one.name for name in ("Store", "Store.size", "Store.get") for one in graph.find(name)] == [
        "Store", "Store.size", "Store.get",
    ]  # fmt: skip


def test_called_by_is_the_same_edge_read_backwards(tmp_path: Path) -> None:
    """ING-14: calls and called by."""
    files = [a_file("t/a.py", {"symbol": "main", "references": ("load",)}, "load")]
    graph = a_graph(tmp_path, files)
    main, load = (chunk.content_hash for chunk in files[0][1])
    (out,) = graph.neighbours(main, [EdgeKind.REFERENCES])
    (back,) = graph.neighbours(load, [EdgeKind.REFERENCES], Direction.IN)
    assert (out.content, back.content) == (load, main)
    assert (out.here, out.there) == (back.there, back.here)
    assert graph.neighbours(load, [EdgeKind.REFERENCES]) == []
    assert graph.neighbours(content_hash("unknown"), list(EdgeKind)) == []


def test_similar_contents_are_linked_across_documents_only(tmp_path: Path) -> None:
    """ING-14: the nearest others above a cosine; neighbours in one document say nothing."""
    files = [a_document("t/a.txt", "one", "two"), a_document("t/b.txt", "three", "four")]
    near = {"one": [1.0, 0.0], "two": [1.0, 0.0], "three": [0.9, 0.435889894], "four": [0.0, 1.0]}
    hashes = {content_hash(text): text for text in near}
    stored = np.array([near[hashes[one]] for one in sorted(hashes)], dtype=np.float16)
    graph = a_graph(tmp_path, files, vectors=stored)
    found = {
        (hashes[one], hashes[edge.content])
        for one in hashes
        for edge in graph.neighbours(one, [EdgeKind.SIMILAR])
        if edge.content
    }
    assert SETTINGS.similar_from < 0.9
    assert found == {("one", "three"), ("three", "one"), ("two", "three"), ("three", "two")}
