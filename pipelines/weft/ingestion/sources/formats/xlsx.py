"""Workbooks: a section for each sheet, its rows as a table whose head every piece repeats (ING-31, ING-36)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from itertools import groupby
from typing import Any

from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

from weft.ingestion.sources.formats.blocks import anchor, escaped, heading, joined, table
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.office import opened
from weft.ingestion.sources.formats.source import FormatError, Readings, Source, Written

_MOST_CELLS = 4_000_000  # of a sheet, blank ones too: what fits into memory
_MOST_COLUMNS = 256

_Row = tuple[list[str], bool]  # cells, and whether they are words alone


def read(source: Source) -> Readings:
    """One document of Markdown."""
    if source.file.read(2) == b"PK":
        opened(source.file).close()
    source.file.seek(0)
    try:
        book = CalamineWorkbook.from_filelike(source.file)
    except (CalamineError, OSError, ValueError) as error:
        reason = "encrypted" if "password" in str(error).lower() else "unreadable_format"
        raise FormatError(reason, f"expected a workbook without a password, found: {error}") from error
    blocks: list[str] = []
    room = source.limit
    for number, facts in enumerate(book.sheets_metadata, start=1):
        if facts.typ != SheetTypeEnum.WorkSheet or facts.visible != SheetVisibleEnum.Visible:
            source.dropped["hidden sheets and charts"] += 1
            continue
        sheet = book.get_sheet_by_name(facts.name)
        if sheet.total_height * sheet.total_width > _MOST_CELLS:
            source.dropped["sheets of too many cells"] += 1
            continue
        rows: list[_Row] = []
        for values in sheet.iter_rows():
            cells = _cells(values)
            room -= sum(map(len, cells)) + 3 * len(cells)
            if room >= 0:
                rows.append((cells, all(isinstance(value, str) for value in values)))
            source.dropped["rows beyond the most text"] += room < 0 and bool(cells)
        if written := [block for rows_of_one in _tables(rows) for block in _written(rows_of_one)]:
            blocks += [anchor(f"sheet-{number}"), heading(plain(facts.name), 2), *written]
    if not blocks:
        raise FormatError("no_text", "expected sheets with values, found none")
    yield Written(joined([heading(source.stem, 1), *blocks]), title=source.stem)


def _tables(rows: Iterable[_Row]) -> Iterator[list[list[str]]]:
    """Tables with the lines above their heads: one ends at a blank row, where the next begins with a head of words."""
    of_one: list[list[str]] = []
    lines: list[list[str]] = []
    for filled, group in groupby(rows, key=lambda row: bool(row[0])):
        part = list(group) if filled else []
        lines += [cells for cells, _ in part]
        worded = [words for cells, words in part if sum(map(bool, cells)) > 1]
        if of_one and len(worded) > 1 and worded[0]:
            yield of_one
            of_one = []
        if worded:
            of_one, lines = of_one + lines, []
    if of_one or lines:
        yield of_one + lines


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
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.10g}"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "seconds")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    return plain(str(value))
