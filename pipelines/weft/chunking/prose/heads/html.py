"""Heads of tables and of blocks of code in HTML, wherever it stands: in a page, a list, a cell, Markdown (ING-36)."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

from weft.chunking.prose.heads.lines import outermost
from weft.chunking.units.parsed import Head
from weft.chunking.units.splitting import decoded

_INLINE_NAMES = (
    "a abbr acronym b bdi bdo big button cite code data del dfn em font i img input ins kbd label mark picture q s "
    "samp small source span strike strong sub sup time tt u var wbr"
)
INLINE = frozenset(_INLINE_NAMES.split())
"""Elements that stand in a line of text."""

_TAG = re.compile(r"<[!/]?([A-Za-z][\w:-]{0,60})?[^<>]*>")
_CLASS = re.compile(r"\bclass\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_NAMED = re.compile(r"\b(?:data-)?lang(?:uage)?\s*=\s*[\"']?([\w+#-]+)", re.IGNORECASE)
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-(?:source-)?|brush:\s*)([\w+#]+)|^(?:hljs|highlight)\s+(?!highlight)([\w+#]+)(?!\S)"
)
_NO_LANGUAGE = frozenset({"default", "none", "text", "plaintext", "en"})
_WRAPPERS = frozenset({"div", "figure", "section"})
_MOST_ROWS = 4  # of a header


@dataclass(slots=True)
class _Table:
    """A table that is open."""

    header: list[str] = field(default_factory=list)
    row: int | None = None  # where its row begins, while one is open
    rest: int = 0  # where what stands below its header begins
    complete: bool = False  # whether a row came that is none of the header
    in_head: bool = False


class HtmlHeads:
    """Reads tags in the order of a source."""

    def __init__(self, source: bytes) -> None:
        self.fences: list[tuple[int, str]] = []
        self._all: list[Head] = []
        self._source = source
        self._tables: list[_Table] = []
        self._wrapped: str | None = None
        self._code: int | None = None
        self._language: str | None = None

    @property
    def heads(self) -> list[Head]:
        """Heads in order."""
        return outermost(self._all)

    def read(self, name: str, start: int, end: int, *, closes: bool) -> None:
        """Read a tag of that span."""
        if self._code is not None:
            self._in_code(name, start, end, closes=closes)
        elif name == "pre" and not closes:
            self._code, self._language = start, language_of(decoded(self._source[start:end]), own=True) or self._wrapped
        elif name in _WRAPPERS:
            named = None if closes else language_of(decoded(self._source[start:end]), own=False)
            self._wrapped = None if closes else named or self._wrapped
        elif name == "table" and not closes:
            self._tables.append(_Table())
        elif self._tables:
            self._in_table(self._tables[-1], name, start, end, closes=closes)

    def _in_code(self, name: str, start: int, end: int, *, closes: bool) -> None:
        if name == "pre" and closes and self._code is not None:
            first = self._source.find(b"\n", self._code, start) + 1
            fence = f"```{self._language or ''}"
            self.fences += [(self._code, fence), (start, "```")]
            self._all += [Head(first, end, fence)] if first else []
            self._code = self._wrapped = None
        elif not closes and self._language is None:
            self._language = language_of(decoded(self._source[start:end]), own=True)

    def _in_table(self, table: _Table, name: str, start: int, end: int, *, closes: bool) -> None:
        if name in {"tr", "thead", "tbody", "tfoot", "table"}:
            at = end if name == "tr" and closes else start
            self._end_row(table, at)
            if name == "tr" and not closes:
                table.row = start
            table.in_head = (name == "thead" and not closes) or (name == "tr" and table.in_head)
        if name == "table":
            self._tables.pop()
            if table.header and table.rest < end:
                self._all.append(Head(table.rest, end, "\n".join(table.header)))

    def _end_row(self, table: _Table, at: int) -> None:
        if table.row is None:
            return
        row = decoded(self._source[table.row : at])
        table.row = None
        names = "<th" in row.lower() and (not table.header or "<td" not in row.lower())
        if table.complete or not (table.in_head or names) or len(table.header) == _MOST_ROWS:
            table.complete = True
        elif shown := shown_text(row):
            table.header.append(shown)
            table.rest = at


def shown_text(markup: str) -> str:
    """What some HTML says, in one line.

    Examples:
        >>> shown_text("<tr><th>A<b>B</b></th><th>C &amp; D</th></tr>")
        'AB C & D'
    """
    words = _TAG.sub(lambda tag: "" if (tag[1] or "").lower() in INLINE else " ", markup)
    return " ".join(html.unescape(words).split())


def language_of(tag: str, *, own: bool) -> str | None:
    """The language of code that a tag names.

    Examples:
        >>> language_of('<div class="highlight highlight-source-python">', own=False)
        'python'
    """
    named = _NAMED.search(tag) if own else None
    if named is not None and named[1].lower() not in _NO_LANGUAGE:
        return named[1]
    classes = _CLASS.search(tag)
    stated = next(filter(None, classes.groups()), "") if classes else ""
    names = (one or other for one, other in _LANGUAGE.findall(stated))
    return next((name for name in names if name not in _NO_LANGUAGE), None)
