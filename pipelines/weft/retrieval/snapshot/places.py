"""Where in a generation the contents are that people spoke of: by hash, or by document, heading or line (LRN-23)."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from weft.domain.chunks import Chunk
from weft.domain.errors import StoreError
from weft.indexes.chunk_store import ChunkStore
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.observe.precedents import Precedents

_LINES = re.compile(r"L(\d+)(?:-L?(\d+))?")
_NAMED = 5  # documents of one name that are listed
_HASH = re.compile("[0-9a-f]{64}")
_MARKS = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class LocatedPrecedents:
    """Where what was spoken of stands."""

    rows: Mapping[int, Sequence[int]]  # by number of the content in the precedents
    numbers: Mapping[int, Sequence[int]]  # the same the other way round
    # numbers of contents whose text was edited since: their rows are those of what it became (ARC-4)
    revised: frozenset[int] = frozenset()


class ContentLocator:
    """Finds what people spoke of in one generation; shared by threads."""

    def __init__(self, contents: ChunkStore) -> None:
        self._contents = contents
        self._placed: WeakKeyDictionary[Precedents, LocatedPrecedents] = WeakKeyDictionary()
        self._representatives: WeakKeyDictionary[ContentAliases, Mapping[int, int]] = WeakKeyDictionary()

    def of(self, precedents: Precedents, aliases: ContentAliases = NO_ALIASES) -> LocatedPrecedents:
        """Where the contents of all verdicts in force stand, and their aliases."""
        placed = self._placed.get(precedents)
        if placed is None:
            placed = self._placed[precedents] = self._find(precedents, aliases)
        return placed

    def representatives(self, aliases: ContentAliases) -> Mapping[int, int]:
        """Row of the representative by row of the alias, of those that are both here."""
        rows = self._representatives.get(aliases)
        if rows is None:
            own, leaders = (
                self._contents.rows_of(list(names)).tolist()
                for names in (aliases.representatives.keys(), aliases.representatives.values())
            )
            rows = {row: leader for row, leader in zip(own, leaders, strict=True) if row >= 0 and leader >= 0}
            self._representatives[aliases] = rows
        return rows

    def _find(self, precedents: Precedents, aliases: ContentAliases) -> LocatedPrecedents:
        numbers = sorted(set(precedents.verdicts.content.tolist()))
        names = [precedents.contents[number] for number in numbers]
        own, revised = self._contents.rows_of(names).tolist(), set[int]()
        rows: dict[int, Sequence[int]] = {}
        for number, name, row in zip(numbers, names, own, strict=True):
            if row < 0 and (became := self._contents.revisions_of(name)):
                revised.add(number)
                rows[number] = became
            else:
                rows[number] = (row,) if row >= 0 else self.rows_of_uri(name)
            if members := aliases.members(name):
                theirs = self._contents.rows_of(members).tolist()
                rows[number] = tuple(sorted({*rows[number], *theirs} - {-1}))
        back: defaultdict[int, list[int]] = defaultdict(list)
        for number, some in rows.items():
            for row in some:
                back[row].append(number)
        return LocatedPrecedents(rows, back, frozenset(revised))

    def rows_of_uri(self, uri: str) -> tuple[int, ...]:
        """Rows of a document's contents: all, or those under a heading or at a line that follow "#".

        Where the place is gone, those of what stood there last, or of what that became.
        """
        if _HASH.fullmatch(uri):
            return ()
        document, _, anchor = uri.partition("#")
        chunks = [chunk for chunk in self._contents.chunks_of_document(document) if is_at_anchor(chunk, anchor)]
        if chunks:
            return tuple(sorted({*self._contents.rows_of([chunk.content_hash for chunk in chunks]).tolist()} - {-1}))
        former = [
            each.content_hash
            for each in self._contents.former_places.of(document)
            if _is_at(anchor, each.heading, each.symbol, (each.start_line, each.end_line))
        ]
        here = self._contents.rows_of(former).tolist()
        became = [self._contents.revisions_of(name) for name, row in zip(former, here, strict=True) if row < 0]
        return tuple(sorted({*here, *(row for rows in became for row in rows)} - {-1}))


def is_at_anchor(chunk: Chunk, anchor: str) -> bool:
    """Whether a chunk stands under an anchor: "" for the whole document, "L12" or "L12-L20", a heading, a symbol."""
    heading = chunk.heading_path[-1] if chunk.heading_path else ""
    return anchor in chunk.symbols or _is_at(anchor, heading, "", (chunk.start_line, chunk.end_line))


def _is_at(anchor: str, heading: str, symbol: str, lines: tuple[int, int]) -> bool:
    if not anchor:
        return True
    if named := _LINES.fullmatch(anchor):
        first, last = int(named[1]), int(named[2] or named[1])
        return lines[0] <= last and first <= lines[1]
    return anchor == symbol or (bool(heading) and anchor_of(heading) == anchor)


def anchor_of(heading: str) -> str:
    """The anchor that renderers of Markdown give a heading."""
    return _MARKS.sub("", unicodedata.normalize("NFC", heading).strip().lower()).replace(" ", "-")


def place_of(name: str, uris: Sequence[str], places: ContentLocator) -> str:
    """The URI of what a person names: a document's URI, or the end of one, and a heading or line behind "#"."""
    path, mark, anchor = name.partition("#")
    tail = "/" + path.removeprefix("./").lstrip("/")
    full = Path(path).resolve().as_uri() if path else ""
    matching = [uri for uri in uris if uri in {path, full}] or [uri for uri in uris if f"/{uri}".endswith(tail)]
    if len(matching) != 1:
        shown = ", ".join(matching[:_NAMED])
        count = f"{len(matching)}: {shown}; name more of its path" if matching else "none; `weft search` shows URIs"
        raise StoreError(f"{name}: expected one document of this name, found {count}")
    uri = matching[0] + mark + anchor
    if not places.rows_of_uri(uri):
        raise StoreError(
            f"{name}: expected a heading, symbol or line (#L12) of {matching[0]}, found no {anchor!r} in it"
        )
    return uri
