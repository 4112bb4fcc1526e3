"""Word: headings, paragraphs, lists, tables and code by their styles (ING-31)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import docx
from docx.opc.exceptions import PackageNotFoundError
from docx.table import Table
from docx.text.paragraph import Paragraph

from weft.ingestion.sources.formats.blocks import escaped, fence, heading, joined, table
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.office import facts_of, opened
from weft.ingestion.sources.formats.source import FormatError, Readings, Source, Written

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_MOST_BASES = 8
_HEADING = re.compile(r"heading (\d)")
_CODE = re.compile(r"code|preformatted|verbatim|source|listing|macro")
_PICTURES = (f"{_W}drawing", f"{_W}pict", f"{_W}object")
_MARKS = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}


def read(source: Source) -> Readings:
    """One document of Markdown."""
    opened(source.file).close()
    source.file.seek(0)
    try:
        document = docx.Document(source.file)
    except (PackageNotFoundError, KeyError, ValueError) as error:
        raise FormatError("unreadable_format", f"expected a Word document, found: {error}") from error
    title, authors, time = facts_of(document.core_properties)
    blocks = list(_blocks(document, source))
    named = next((text for kind, text in blocks if kind == "title"), None)
    yield Written(joined(_fenced(blocks)), title=title or named, authors=authors, time=time)


def _fenced(blocks: list[tuple[str, str]]) -> Iterator[str]:
    """Blocks; lines of code that follow each other in one fence, items of a list in one list."""
    run: list[str] = []
    kind = ""
    below = int(any(kind == "title" for kind, _ in blocks))  # a title is above all headings
    for own, text in [*blocks, ("", "")]:
        if run and (own != kind or own not in {"code", "list"}):
            yield fence("\n".join(run)) if kind == "code" else "\n".join(run)
            run = []
        kind = own
        if own in {"code", "list"}:
            run.append(text)
        elif text:
            rank = _HEADING.match(own)
            yield heading(text, 1 if rank is None else int(rank[1]) + below) if rank or own == "title" else text


def _blocks(document: Any, source: Source) -> Iterator[tuple[str, str]]:
    styles = {each.styleId: each for each in document.styles.element.style_lst}
    kinds: dict[str | None, str] = {}
    size = 0
    for block in document.iter_inner_content():
        if size > source.limit:
            source.dropped["blocks beyond the most text"] += 1
            continue
        if isinstance(block, Table):
            pair = _table(block)
        else:
            style = block._p.style  # python-docx looks each style up anew, which takes minutes for a book
            if style not in kinds:
                kinds[style] = _style(styles, style)
            pair = _paragraph(block, kinds[style], source)
        size += len(pair[1])
        if pair[1].strip() or pair[0] == "code":
            yield pair


def _style(styles: Mapping[str, Any], name: str | None) -> str:
    """What a style is called, or the first of those that it is based on whose name says something."""
    for _ in range(_MOST_BASES):
        style = styles.get(name or "")
        if style is None:
            return ""
        called = str(style.name_val or "").lower()
        if called == "title" or called.startswith("list") or _HEADING.match(called) or _CODE.search(called):
            return called
        name = style.basedOn.get(f"{_W}val") if style.basedOn is not None else None
    return ""


def _paragraph(paragraph: Paragraph, style: str, source: Source) -> tuple[str, str]:
    text = _text(paragraph._p, source)  # what was inserted and not accepted yet is text, too
    if style == "title" or _HEADING.match(style):
        return style, " ".join(plain(text).split())
    if _CODE.search(style):
        return "code", text.rstrip()
    words = plain(text)
    properties: Any = paragraph._p.pPr
    numbered = properties.numPr if properties is not None else None
    if words and (numbered is not None or style.startswith("list")):
        level = numbered.ilvl.val if numbered is not None and numbered.ilvl is not None else 0
        nested = re.search(r"(\d)$", style)
        level = level or (int(nested[1]) - 1 if nested else 0)
        indent = "  " * min(8, level)
        return "list", f"{indent}- " + words.replace("\n", f"\n{indent}  ")
    return "paragraph", escaped(words)


def _table(block: Table) -> tuple[str, str]:
    rows: Any = block._tbl.tr_lst  # python-docx's own cells take quadratic time
    return "table", table([[" ".join(_text(cell, None).split()) for cell in row.tc_lst] for row in rows])


def _text(element: Any, source: Source | None) -> str:
    """The text of an element as it stands when all changes are accepted, without what stands in for old programs."""
    parts: list[str] = []
    waiting = [element]
    while waiting:
        node = waiting.pop()
        if node.tag in {_FALLBACK, f"{_W}del", f"{_W}moveFrom"}:
            continue
        if node.tag in _PICTURES and source is not None:
            source.dropped["pictures"] += 1
        if node.tag == f"{_W}t":
            parts.append(node.text or "")
        elif node.tag in _MARKS:
            parts.append(_MARKS[node.tag])
        elif node.tag == f"{_W}p" and parts:
            parts.append("\n")
        waiting.extend(reversed(node))
    return "".join(parts)
