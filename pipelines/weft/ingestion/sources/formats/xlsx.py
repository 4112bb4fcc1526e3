"""Excel: a section for each sheet, its rows as a table whose head every piece repeats (ING-31, ING-36)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from typing import Any

import openpyxl
from openpyxl.utils.exceptions import InvalidFileException

from weft.ingestion.sources.formats.blocks import anchor, escaped, heading, joined, table
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.office import facts_of, opened
from weft.ingestion.sources.formats.source import FormatError, Readings, Source, Written

_MOST_CELLS = 200_000  # of a file: rows, and quarters of cells, blank ones too: what openpyxl reads in four seconds
_MOST_COLUMNS = 256


def read(source: Source) -> Readings:
    """One document of Markdown."""
    opened(source.file).close()
    source.file.seek(0)
    try:
        book = openpyxl.load_workbook(source.file, read_only=True, data_only=True, keep_links=False)
    except (InvalidFileException, KeyError, ValueError) as error:
        raise FormatError("unreadable_format", f"expected a workbook, found: {error}") from error
    title, authors, time_of = facts_of(book.properties)
    blocks: list[str] = []
    left, room = _MOST_CELLS, source.limit
    for number, sheet in enumerate(book.worksheets, start=1):
        if sheet.sheet_state != "visible":
            source.dropped["hidden sheets"] += 1
            continue
        rows: list[list[str]] = []
        sheet.reset_dimensions()  # what a file says of its size may be a million empty rows
        for row in sheet.iter_rows(values_only=True):
            left -= 1 + len(row) // 4
            if left < 0 or room < 0:
                source.dropped["rows beyond the most cells"] += 1
                break
            cells = _cells(row)
            room -= sum(map(len, cells))
            if cells:
                rows.append(cells)
        if rows:
            blocks += [anchor(f"sheet-{number}"), heading(plain(sheet.title), 2), *_written(rows)]
    if not blocks:
        raise FormatError("no_text", "expected sheets with values, found none")
    name = title or source.stem
    yield Written(joined([heading(name, 1), *blocks]), title=name, authors=authors, time=time_of)


def _written(rows: Sequence[list[str]]) -> Iterator[str]:
    """Lines of one value above the head as text; from the first row of several on, a table."""
    width = max(map(len, rows))
    head = 0
    while head < len(rows) - 1 and width > 1 and sum(map(bool, rows[head])) < 2:
        yield escaped(" ".join(filter(None, rows[head])))
        head += 1
    yield table(rows[head:])


def _cells(row: Sequence[Any]) -> list[str]:
    cells = [_cell(value) for value in row[:_MOST_COLUMNS]]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.10g}"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "seconds")
    if isinstance(value, date | time):
        return value.isoformat()
    return plain(str(value))
