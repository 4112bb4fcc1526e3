"""Texts in small text indexes, to be found by words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from weft.domain.documents import ContentType
from weft.indexes.settings import LexicalSettings
from weft.indexes.text.build import lexical_document, write_shard
from weft.indexes.text.lexical import LexicalIndex, open_lexical
from weft.settings import load_settings

Find = Callable[..., list[str]]
FILLER = [
    "The river was low that summer, and we walked along its bank until the evening.",
    "A meeting of the committee was moved to the next week because of the weather.",
    "def helper(value):\n    return value + 1",
    "She bought bread, cheese, apples and a bottle of wine for the journey.",
]


def words(listed: str) -> list[str]:
    return listed.split()


def entries(listed: str) -> list[str]:
    return listed.split(", ")


def pairs(listed: str) -> list[tuple[str, str]]:
    return [(one, other) for one, other in map(str.split, entries(listed))]


def settings() -> LexicalSettings:
    return load_settings(environment={}).index.lexical


class Shelf:
    """Texts in an index of their own; each set of texts is indexed once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[tuple[str, ...], LexicalIndex] = {}

    def __call__(self, texts: Sequence[str], query: str, *, kind: ContentType = ContentType.TEXT) -> list[str]:
        """Texts that a query finds, best first, with some others beside them."""
        held = (*FILLER, *texts)
        return [held[row] for row, _ in self.index_of(texts, kind=kind).search(query, len(held))]

    def index_of(self, texts: Sequence[str], *, kind: ContentType = ContentType.TEXT) -> LexicalIndex:
        """The index of texts, with some others beside them."""
        held = (*FILLER, *texts)
        if (kind, *held) not in self._open:
            self._open[kind, *held] = self._written(held, kind)
        return self._open[kind, *held]

    def _written(self, held: Sequence[str], kind: ContentType) -> LexicalIndex:
        folder = self._folder / str(len(self._open))
        facts = {"title": None, "content_type": kind, "triggers": ()}
        chunks = ({"text": text, "sequence": 0, "uri": "shelf", "defines": (), "parent_id": None} for text in held)
        write_shard(folder, ((row, lexical_document(chunk, facts)) for row, chunk in enumerate(chunks)), settings())
        return open_lexical([folder], settings(), rows=len(held))

    def close(self) -> None:
        for index in self._open.values():
            index.close()
