"""Filters: which contents of a generation documents let through, by what they declare or belong to (RET-4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from types import MappingProxyType

import numpy as np

from weft.domain.chunks import ChunkLevel
from weft.domain.errors import StoreError
from weft.indexes.chunk_store import ChunkStore, StoredDocument
from weft.indexes.rows import RowSet
from weft.learning.thinned import Thinned
from weft.retrieval.snapshot.ports import OpenGeneration

TIMES = frozenset({"since", "until"})
"""Filters whose value is a date or time, whatever documents declare."""

FOLDER = "folder"
"""Name under which a document's folder is a fact."""

COMMUNITY = "community"
"""Name under which a content's community in the graph is asked for, unless documents declare facts of that name."""


LEVEL, KIND = "level", "kind"
"""Names under which what a chunk is can be asked for (ING-39), unless documents declare facts of that name."""

OF_CONTENTS = frozenset({COMMUNITY, LEVEL, KIND})
"""Names of what is so of contents and not of documents."""

LEVELS = frozenset({*ChunkLevel, "0", "1", "2", "3"})
"""Levels that chunks have, by name and number."""

_KINDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        ChunkLevel.SECTION: frozenset({"section", "topic"}),
        ChunkLevel.CLASS: frozenset({"class", "struct", "interface", "trait", "enum", "union", "record"}),
        ChunkLevel.FUNCTION: frozenset({"function", "method"}),
    }
)
# What begins a document is its level 0, and parts of what stands by itself are level 3.
_NUMBERS: Mapping[str, str] = MappingProxyType({ChunkLevel.DOCUMENT: "0", ChunkLevel.BLOCK: "3"})


class RowFilter:
    """The contents of one generation that filters let through, worked out on first use of a filter."""

    def __init__(self, chunks: ChunkStore, communities: Callable[[], np.ndarray | None] = lambda: None) -> None:
        self._chunks = chunks
        self.communities = communities
        self._without_thinned = lru_cache(maxsize=2)(self._not_thinned)
        self._rows = lru_cache(maxsize=64)(self._passing)  # sets: a byte and a row number per content each

    def rows(self, filters: Mapping[str, str]) -> RowSet | None:
        """What may match; None where nothing is asked of documents."""
        return self._of(filters) if filters else None

    def without(self, thinned: Thinned) -> RowSet | None:
        """What searches of everything find: all but these contents (CON-5); None where none of them is here."""
        return self._without_thinned(thinned) if thinned else None

    def _not_thinned(self, thinned: Thinned) -> RowSet | None:
        rows = self._chunks.rows_of(sorted(thinned))
        mask = np.ones(len(self._chunks), dtype=bool)
        mask[rows[rows >= 0]] = False
        return None if mask.all() else RowSet(mask)

    def unmet(self, filters: Mapping[str, str]) -> tuple[str, ...]:
        """Why nothing passes filters, "name:value" each: those that no document has, or else all of them together."""
        named = {f"{name}:{value}": {name: value} for name, value in sorted(filters.items())}
        alone = tuple(stated for stated, one in named.items() if not len(self._of(one)))
        return alone or (" and ".join(named),)

    def _of(self, filters: Mapping[str, str]) -> RowSet:
        return self._rows(tuple(sorted(filters.items())))

    def _passing(self, filters: tuple[tuple[str, str], ...]) -> RowSet:
        wanted = dict(filters)
        asked = OF_CONTENTS & wanted.keys()
        declared = asked & declared_names(self._chunks.documents()) if asked else asked
        mask = self._chunks.mask(lambda facts: matches(facts, wanted) and declared <= facts.metadata.keys())
        for name in asked - declared:
            mask &= self._of_contents(name, wanted[name])
        if not mask.any():
            # What is no date is refused, also where no document is dated and none was compared with it.
            for name in sorted(TIMES & wanted.keys()):
                seconds(wanted[name])
        return RowSet(mask)

    def _of_contents(self, name: str, value: str) -> np.ndarray | bool:
        if name == LEVEL:
            return self._chunks.mask_of_kinds(partial(_is_of_level, value))
        if name == KIND:
            return self._chunks.mask_of_kinds(lambda kind, _: kind == value)
        communities = self.communities()
        return False if communities is None else np.asarray(communities.astype(str) == value)


def _is_of_level(wanted: str, kind: str, level: int) -> bool:
    return kind in _KINDS[wanted] if wanted in _KINDS else _NUMBERS.get(wanted, wanted) == str(level)


def matches(facts: StoredDocument, filters: Mapping[str, str]) -> bool:
    """Whether a document has everything asked for.

    What it declares under a name comes first, else what is known of every document; a folder holds what lies below.
    """
    return all(_holds(facts, name, wanted) for name, wanted in filters.items())


def _holds(facts: StoredDocument, name: str, wanted: str) -> bool:
    declared = facts.metadata.get(name)
    if name == FOLDER and declared is not None:
        return f"{declared}/".startswith(f"{wanted.rstrip('/')}/")
    if declared is None and name in OF_CONTENTS:
        return True  # unless documents declare one
    if declared is not None or name not in _OF_EVERY_DOCUMENT:
        return declared == wanted or (declared is not None and wanted in members(declared))
    return _OF_EVERY_DOCUMENT[name](facts, wanted)


@lru_cache(maxsize=4096)
def members(declared: str) -> tuple[str, ...]:
    """Members of a list that a document declares, in JSON; none of what is no list."""
    try:
        listed = json.loads(declared) if declared.startswith("[") else None
    except (ValueError, RecursionError):
        return ()
    return tuple(each if isinstance(each, str) else json.dumps(each, sort_keys=True) for each in listed or ())


@lru_cache(maxsize=64)
def seconds(date: str) -> float:
    """Seconds since the epoch of a time in ISO 8601, UTC where it names no zone; ValueError where it is none."""
    try:
        parsed = datetime.fromisoformat(date)
    except ValueError as error:
        raise ValueError(f"expected a date such as 2024-05-31 in a filter by time, found {date!r}") from error
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


_OF_EVERY_DOCUMENT: Mapping[str, Callable[[StoredDocument, str], bool]] = MappingProxyType(
    {
        "domain": lambda facts, wanted: facts.domain.value == wanted,
        "type": lambda facts, wanted: facts.content_type.value == wanted,
        "language": lambda facts, wanted: facts.language == wanted,
        "since": lambda facts, wanted: facts.modified_at is not None and facts.modified_at >= seconds(wanted),
        "until": lambda facts, wanted: facts.modified_at is not None and facts.modified_at < seconds(wanted),
    }
)


def is_time(value: str) -> bool:
    """Whether a filter by time understands a value.

    Examples:
        >>> is_time("2024-05-31"), is_time("yesterday")
        (True, False)
    """
    try:
        seconds(value)
    except ValueError:
        return False
    return True


def declared_names(documents: Iterable[StoredDocument]) -> frozenset[str]:
    """Names of all facts that documents declare."""
    return frozenset(name for document in documents for name in document.metadata)


def communities_of(generation: OpenGeneration) -> np.ndarray | None:
    """Number of each content's community; None where the generation was built without."""
    try:
        return generation.graph.communities()
    except StoreError:
        return None
