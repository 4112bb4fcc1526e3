"""LRN-23: what a person points at is found in whatever generation is searched: by hash, document, heading or line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.retrieval_fakes import MemoryGeneration, a_place
from tests.support.words_spoken import a_word, precedents_of
from weft.domain.chunks import Chunk
from weft.domain.ids import content_hash
from weft.indexes.former_places import FormerPlaces
from weft.retrieval.snapshot.places import ContentLocator, anchor_of, is_at_anchor

TEXTS = {"docs/a.md": ["set up", "back off"], "docs/b.md": ["tear down"]}


def a_chunk(**facts: object) -> Chunk:
    return replace(a_place("docs/a.md", "text").chunk, **facts)


@pytest.mark.parametrize(
    ("anchor", "stands"),
    [
        ("", True),
        ("back-off", True),
        ("Back off", False),
        ("retries", False),
        ("Store.get", True),
        ("L12", True),
        ("L20", True),
        ("L21", False),
        ("L1-L9", False),
        ("L1-L10", True),
        ("L20-40", True),
    ],
)
def test_a_chunk_stands_under_its_own_heading_symbol_and_lines(anchor: str, stands: bool) -> None:
    """LRN-23: an anchor as renderers of Markdown make it; lines where they overlap."""
    chunk = a_chunk(start_line=10, end_line=20, heading_path=("Retries", "Back off!"), symbol="Store.get")
    assert is_at_anchor(chunk, anchor) is stands


def test_anchors_keep_letters_of_every_language() -> None:
    """LRN-23."""
    assert anchor_of("Größe & Übersicht: `max_k`") == "größe--übersicht-max_k"


class Contents:
    """Some chunks, a row each."""

    def __init__(self, *chunks: Chunk) -> None:
        self._chunks = chunks
        self.former_places = FormerPlaces(None)

    def rows_of(self, hashes: list[str]) -> np.ndarray:
        rows = {str(chunk.content_hash): row for row, chunk in enumerate(self._chunks)}
        return np.array([rows.get(each, -1) for each in hashes], dtype=np.int64)

    def chunks_of_document(self, uri: str) -> list[Chunk]:
        return [chunk for chunk in self._chunks if chunk.uri == uri]


def test_a_place_is_read_anew_in_every_generation() -> None:
    """LRN-23, ARC-2: it holds when the text under it is edited; one that is gone is nowhere."""
    before = a_chunk(content_hash=content_hash("old"), heading_path=("Back off",))
    after = [a_chunk(content_hash=content_hash(each), heading_path=("Back off",)) for each in ("new", "newer")]
    uri = "docs/a.md#back-off"
    assert ContentLocator(Contents(before)).rows_of_uri(uri) == (0,)  # type: ignore[arg-type]
    assert ContentLocator(Contents(*after)).rows_of_uri(uri) == (0, 1)  # type: ignore[arg-type]
    assert ContentLocator(Contents(*after)).rows_of_uri("docs/a.md#gone") == ()  # type: ignore[arg-type]


def test_words_are_placed_by_hash_and_by_uri() -> None:
    """LRN-18, LRN-23: both name one content; a hash that is not here is no document of that name."""
    generation = MemoryGeneration(TEXTS)
    places = ContentLocator(generation.chunks)  # type: ignore[arg-type]
    gone, back_off = content_hash("gone"), content_hash("back off")
    said = precedents_of(*(a_word(each, "how?", "ada") for each in (back_off, "docs/a.md", "docs/c.md", gone)))
    placed = places.of(said)
    number = {name: at for at, name in enumerate(said.contents)}
    row, other = generation.row_of("back off"), generation.row_of("set up")
    assert placed.rows[number[back_off]] == (row,)
    assert placed.rows[number["docs/a.md"]] == tuple(sorted((row, other)))
    assert placed.rows[number["docs/c.md"]] == placed.rows[number[gone]] == ()
    assert sorted(placed.numbers[row]) == sorted((number[back_off], number["docs/a.md"]))
    assert places.of(said) is placed
