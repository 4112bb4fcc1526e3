"""Heads of long tables and of code, told by lines: what names the columns, what opens code (ING-36, ING-40)."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

from weft.chunking.units.parsed import Head
from weft.chunking.units.splitting import decoded

GRID = re.compile(rb"\+[-=:+]{2,}\+$")
"""A rule of a table that is drawn."""

HEADER_END = re.compile(rb"\+[=:+]{2,}\+$")
"""The one below its header."""

_LONGEST = 65_536  # bytes of a record of CSV: longer ones come of a quotation mark that nothing closes
_MOST_ROWS = 5  # lines of a header: where more stand above a rule it is no header's
_PIPES = re.compile(rb"\|[-+:=| \t]{3,}$")
_BARE = re.compile(rb":?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+$|-{2,}(?:[ \t]+-{2,})+$")  # between pipes, below columns
_FENCE = re.compile(rb"(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
_ORG_CODE = re.compile(rb"#\+begin_(?:src|example|export)\b", re.IGNORECASE)
_ATTRIBUTES = re.compile(rb"\[[^\]]*\]$")
_SOURCE = re.compile(rb"\[(?:source\b|,[ \t]*\w|%[^\],]*,[ \t]*\w|listing|.*\blanguage=)")
_DELIMITER = re.compile(rb"(?:-{4,}|\.{4,})$")
_COLUMNS = re.compile(rb"\bcols=\"?([^\"\]]*)")
_TIMES = re.compile(rb"(\d{1,3})\*")
_CELL = re.compile(rb"(?<!\\)\|")
_SEPARATED = re.compile(rb"\bformat=\"?(?:csv|tsv|dsv)")
_OPTION = re.compile(rb":?(header|header-rows):\s*(.*)$")
_ANY_OPTION = re.compile(rb":[\w-]{1,40}:")
_BULLETS = (b"*", b"-", b"+")


class Line(NamedTuple):
    """A line of a source, and what it says without the blanks around it."""

    start: int
    end: int
    text: bytes
    indent: int = 0


class _Region(NamedTuple):
    """A table or a block of code, by lines: of its head, the first of the rest, the one after it."""

    head: Sequence[int]
    first: int
    after: int


Reader = Callable[["_Lines", int], "_Region | None"]
"""What begins at a line, if anything does."""


class _Lines:
    """Lines of a span of a source."""

    def __init__(self, source: bytes, start: int, end: int) -> None:
        self.lines = lines_of(source, start, end)
        self.texts = [line.text for line in self.lines]
        self._absent: set[bytes] = set()  # what closes something, and comes no more

    def closing(self, at: int, key: bytes, closes: Callable[[bytes], bool]) -> int | None:
        """The line that closes what the one before `at` opened; a hostile text is not read to its end for each."""
        region = None
        if key not in self._absent:
            region = next((line for line in range(at, len(self.texts)) if closes(self.texts[line])), None)
        if region is None:
            self._absent.add(key)
        return region

    def reach(self, at: int, holds: Callable[[bytes], bool]) -> int:
        """The first line from `at` on whose text is otherwise."""
        return next((line for line in range(at, len(self.texts)) if not holds(self.texts[line])), len(self.texts))


def lines_of(source: bytes, start: int, end: int) -> list[Line]:
    """The lines of a span."""
    lines, at = [], start
    for line in source[start:end].splitlines(keepends=True):
        text = line.strip()
        lines.append(Line(at, at + len(line), text, len(line) - len(line.lstrip()) if text else 0))
        at += len(line)
    return lines


def outermost(heads: Iterable[Head]) -> list[Head]:
    """Heads in order, without those inside another's."""
    outer: list[Head] = []
    for head in sorted(heads, key=lambda head: (head.start, -head.end)):
        if not outer or outer[-1].end <= head.start:
            outer.append(head)
    return outer


def heads_of_lines(
    source: bytes, start: int = 0, end: int | None = None, readers: Sequence[Reader] | None = None
) -> list[Head]:
    """Heads of tables and blocks of code in a span, as Org, AsciiDoc, Markdown and plain text have them, in order."""
    lines = _Lines(source, start, len(source) if end is None else end)
    heads: list[Head] = []
    at = 0
    while at < len(lines.texts):
        region = next(filter(None, (read(lines, at) for read in readers or ALL)), None) if lines.texts[at] else None
        if region is not None and region.head and region.first < region.after:
            text = "\n".join(decoded(lines.texts[line]) for line in region.head)
            heads.append(Head(lines.lines[region.first].start, lines.lines[region.after - 1].end, text))
        at = max(at + 1, region.after if region else 0)
    return heads


def _drawn(lines: _Lines, at: int) -> _Region | None:
    """A grid; the header of one that a database prints ends at its second rule."""
    if not GRID.match(lines.texts[at]):
        return None
    after = lines.reach(at, lambda text: text[:1] in {b"+", b"|"})
    rules = [line for line in range(at + 1, after) if GRID.match(lines.texts[line])]
    below = next((line for line in rules if HEADER_END.match(lines.texts[line])), None)
    if below is None and len(rules) in {1, 2} and [*rules, after][1] - rules[0] > 2:
        below = rules[0]
    if below is None:
        return _Region((), after, after)
    head = [line for line in range(at + 1, below) if not GRID.match(lines.texts[line])]
    return _Region(head[:_MOST_ROWS], below + 1, after)


def _piped(lines: _Lines, at: int) -> _Region | None:
    """Rows between pipes: those above the first rule that has any are the header."""
    if not lines.texts[at].startswith(b"|") or lines.texts[at].startswith(b"|==="):
        return None
    after = lines.reach(at, lambda text: text.startswith(b"|"))
    head: list[int] = []
    for line in range(at, after):
        if not _PIPES.match(lines.texts[line]):
            head.append(line)
        elif head:
            return _Region(head if len(head) <= _MOST_ROWS else (), line + 1, after)
    return _Region((), after, after)


def _ruled(lines: _Lines, at: int) -> _Region | None:
    """Columns without pipes around them, above a rule."""
    if at + 1 == len(lines.texts) or not _BARE.match(lines.texts[at + 1]):
        return None
    return _Region((at,), at + 2, lines.reach(at + 2, bool))


def _fenced(lines: _Lines, at: int) -> _Region | None:
    match = _FENCE.match(lines.texts[at])
    if match is None:
        return None
    fence, info = match["fence"], match["info"].strip()
    closing = lines.closing(at + 1, fence, lambda text: text.startswith(fence) and not text.strip(fence[:1]))
    return None if closing is None else _Region((at,) if info else (), at + 1, closing)


def _org_code(lines: _Lines, at: int) -> _Region | None:
    if not _ORG_CODE.match(lines.texts[at]):
        return None
    closing = lines.closing(at + 1, b"#+end_", lambda text: text.lower().startswith(b"#+end_"))
    return None if closing is None else _Region((at,), at + 1, closing)


def _above(lines: _Lines, at: int) -> Iterator[int]:
    """Lines with attributes right above a block of AsciiDoc, between which its title may stand."""
    for line in range(at - 1, max(at - 4, -1), -1):
        if _ATTRIBUTES.match(lines.texts[line]):
            yield line
        elif not lines.texts[line].startswith(b"."):
            return


def _asciidoc_code(lines: _Lines, at: int) -> _Region | None:
    if not _DELIMITER.match(lines.texts[at]):
        return None
    head = next((line for line in _above(lines, at) if _SOURCE.match(lines.texts[line])), None)
    if head is None:
        return None
    delimiter = lines.texts[at]
    closing = lines.closing(at + 1, delimiter, lambda text: text == delimiter)
    return None if closing is None else _Region((head,), at + 1, closing)


def _asciidoc_table(lines: _Lines, at: int) -> _Region | None:
    """The cells of its first row, which may stand on several lines."""
    delimiter = lines.texts[at]
    if delimiter not in {b"|===", b",===", b":==="}:
        return None
    closing = lines.closing(at + 1, delimiter, lambda text: text == delimiter)
    first = None if closing is None else lines.reach(at + 1, lambda text: not text)
    if closing is None or first is None or first >= closing:
        return None
    attributes = b" ".join(lines.texts[line] for line in _above(lines, at))
    last = first + 1
    if delimiter == b"|===" and not _SEPARATED.search(attributes):
        cells, columns = _cells(lines.texts[first]), _columns(attributes)
        while cells < columns and last < closing and lines.texts[last] and last - first < _MOST_ROWS * 4:
            cells += _cells(lines.texts[last])
            last += 1
    return _Region(range(first, last), last, closing)


def _cells(text: bytes) -> int:
    return len(_CELL.findall(text))


def _columns(attributes: bytes) -> int:
    """How many columns an attribute of AsciiDoc states; 0 where none does."""
    match = _COLUMNS.search(attributes)
    stated = match[1].split(b",") if match else []
    return sum(int(times[1]) if (times := _TIMES.match(each.strip())) else 1 for each in stated if each.strip())


TABLES: Sequence[Reader] = (_drawn, _piped, _ruled)
"""Tables alone, as Markdown has them."""

ALL: Sequence[Reader] = (_drawn, _piped, _ruled, _fenced, _org_code, _asciidoc_code, _asciidoc_table)


def listed_head(lines: Sequence[Line], first: int, body: int, after: int) -> _Region | None:
    """The head of a table that a directive holds as a list of rows, or as CSV; None where none is named."""
    options = {match[1]: (at, match[2]) for at in range(first, body) if (match := _OPTION.match(lines[at].text))}
    while body < after and not lines[body].text:
        body += 1
    if b"header" in options:
        at = options[b"header"][0]
        last = at + 1
        while last < body and lines[last].text and not _ANY_OPTION.match(lines[last].text):
            last += 1
        return _Region(range(at, last), body, after)
    if b"header-rows" not in options or body >= after:
        return None
    stated = options[b"header-rows"][1]
    starts = list(_rows(lines, body, after))
    rows = int(stated) if stated.isdigit() and 0 < int(stated) < len(starts) else 1
    rest = starts[rows] if rows < len(starts) else after
    return _Region(range(body, rest), rest, after)


def _rows(lines: Sequence[Line], body: int, after: int) -> Iterator[int]:
    """Where rows begin: items of the outer list, or lines of CSV, in whose quotes lines may end."""
    top = lines[body]
    listed = top.text[:1] in _BULLETS and top.text[1:].lstrip()[:1] in (*_BULLETS, b"")
    quotes = 0
    for at in range(body, after):
        line = lines[at]
        if listed:
            if line.text[:1] == top.text[:1] and line.indent == top.indent:
                yield at
        else:
            if line.text and quotes % 2 == 0:
                yield at
            quotes += line.text.count(b'"')


def options_end(lines: Sequence[Line], first: int, after: int) -> int:
    """Where the options of a directive in a fence end: names between colons, or YAML between dashes."""
    at = first
    if at < after and lines[at].text == b"---":
        closing = next((line for line in range(at + 1, after) if lines[line].text == b"---"), None)
        return at if closing is None else closing + 1
    while at < after and _ANY_OPTION.match(lines[at].text):
        at += 1
        while at < after and lines[at].text and lines[at].indent > lines[first].indent:
            at += 1
    return at


class CsvRecord(NamedTuple):
    """A record of CSV, on one line or several, and how many cells it has up to its last filled one."""

    start: int
    end: int
    cells: int


def csv_records(source: bytes, separators: str) -> list[CsvRecord]:
    r"""Records of CSV by the separator that gives most of them as many cells.

    Examples:
        >>> csv_records(b'Birds\n"a\nb";c\n1;2\n', ",;")
        [CsvRecord(start=0, end=6, cells=1), CsvRecord(start=6, end=14, cells=2), CsvRecord(start=14, end=18, cells=2)]
    """
    beginning = source[: source.rfind(b"\n", 0, _LONGEST) + 1] or source[:_LONGEST]
    uniform = {each: _uniformity(_records(beginning, each)) for each in separators}
    return _records(source, max(uniform, key=lambda each: uniform[each]))


def csv_columns(records: Sequence[CsvRecord], source: bytes) -> list[Head]:
    r"""The first record that has as many cells as most, or one less: it names the columns, not what stands above it.

    Examples:
        >>> [head.text for head in csv_columns(csv_records(b'Birds\n"a\nb",c\n1,2\n', ","), b'Birds\n"a\nb",c\n1,2\n')]
        ['"a\nb",c']
        >>> [head.text for head in csv_columns(csv_records(b'x,y\na,1,2\nb,3,4\n', ","), b'x,y\na,1,2\nb,3,4\n')]
        ['x,y']
    """
    most = _most_cells(records)
    least = max(2, most - 1) if most > 1 else most  # rows may have names above which nothing stands, as R writes them
    start, end, _ = next((each for each in records if each.cells >= least), CsvRecord(0, 0, 0))
    return [Head(end, len(source), decoded(source[start:end].strip()))] if 0 < end - start <= _LONGEST else []


def _records(source: bytes, separator: str) -> list[CsvRecord]:
    """Records; lines where a quotation mark opens what is too long for a cell."""
    rows = source.splitlines(keepends=True)
    ends = [0, *accumulate(map(len, rows))]
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
        reader = csv.reader(map(decoded, rows), delimiter=separator, quoting=quoting)
        records, first = [], 0
        with suppress(csv.Error):
            for row in reader:
                filled = next((count for count in range(len(row), 0, -1) if row[count - 1].strip()), 0)
                records.append(CsvRecord(ends[first], ends[reader.line_num], filled))
                first = reader.line_num
            if quoting == csv.QUOTE_NONE or all(end - start <= _LONGEST for start, end, _ in records):
                return records
    return []


def _most_cells(records: Sequence[CsvRecord]) -> int:
    """How many cells most records have."""
    counted = Counter(each.cells for each in records if each.cells)
    return max(counted, key=lambda cells: counted[cells], default=0)


def _uniformity(records: Sequence[CsvRecord]) -> float:
    """The share of records with as many cells as most; of single cells none."""
    most = _most_cells(records)
    return sum(each.cells == most for each in records) / len(records) if most > 1 else 0.0
