"""Word: headings, paragraphs, lists, tables and code by their styles (ING-31)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import docx
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml.parser import parse_xml

from weft.ingestion.sources.formats.blocks import escaped, fence, heading, joined, table
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.office import facts_of, opened
from weft.ingestion.sources.formats.source import FormatError, Readings, Source, Written

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TEXTS = (f"{_W}t", "{http://schemas.openxmlformats.org/officeDocument/2006/math}t")
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_ABSENT = (_FALLBACK, f"{_W}del", f"{_W}moveFrom")  # what changes took away, and what stands in for old programs
_NOTES = (f"{_W}footnoteReference", f"{_W}endnoteReference")
_MOST_BASES = 8
_HEADING = re.compile(r"heading (\d)")
_CONTENTS = re.compile(r"toc \w+|table of figures")
_CODE = re.compile(r"code|preformatted|verbatim|source|listing|macro")
_PICTURES = (f"{_W}drawing", f"{_W}pict", f"{_W}object")
_Notes = dict[tuple[str, str], str]  # by what refers to them, the element and its number; each is shown once
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
    notes = dict(_notes(document, ("footnote", "endnote")))
    kinds: dict[str | None, str] = {}
    size = 0
    for block in _within(document.element.body, f"{_W}p", f"{_W}tbl"):
        if size > source.limit:
            source.dropped["blocks beyond the most text"] += 1
            continue
        if block.tag == f"{_W}tbl":
            pairs = [_table(block, notes)]
        else:
            style = block.style  # python-docx looks each style up anew, which takes minutes for a book
            if style not in kinds:
                kinds[style] = _style(styles, style)
            pairs = [*_paragraph(block, kinds[style], source, notes)]
        size += sum(len(text) for _, text in pairs)
        yield from (pair for pair in pairs if pair[1].strip() or pair[0] == "code")
    if comments := [escaped(text) for _, text in _notes(document, ("comment",)) if text]:
        yield from [("heading 1", "Comments"), *(("paragraph", text) for text in comments)]


def _notes(document: Any, kinds: tuple[str, ...]) -> Iterator[tuple[tuple[str, str], str]]:
    """Notes of some kinds by what refers to them, each after its author if it names one."""
    for relation in document.part.rels.values():
        kind = relation.reltype.rpartition("/")[2].removesuffix("s")
        if kind in kinds and not relation.is_external:
            for note in parse_xml(relation.target_part.blob).iter(f"{_W}{kind}"):
                author, text = note.get(f"{_W}author"), " ".join(plain(_text(note, None, {})).split())
                shown = f"{author}: {text}" if author and text else text
                yield (f"{_W}{kind}Reference", note.get(f"{_W}id", "")), shown


def _within(element: Any, *tags: str) -> Iterator[Any]:
    """The outermost elements of some kinds in their order, also those in content controls and what else wraps them."""
    waiting = [*reversed(element)]
    while waiting:
        node = waiting.pop()
        if node.tag in tags:
            yield node
        elif node.tag not in _ABSENT:
            waiting.extend(reversed(node))


def _style(styles: Mapping[str, Any], name: str | None) -> str:
    """What a style is called, or the first of those that it is based on whose name says something."""
    for _ in range(_MOST_BASES):
        style = styles.get(name or "")
        if style is None:
            return ""
        called = str(style.name_val or "").lower()
        if called == "title" or called.startswith("list") or any(kind.match(called) for kind in (_HEADING, _CONTENTS)):
            return called
        if _CODE.search(called):
            return called
        name = style.basedOn.get(f"{_W}val") if style.basedOn is not None else None
    return ""


def _paragraph(paragraph: Any, style: str, source: Source, notes: _Notes) -> Iterator[tuple[str, str]]:
    if _CONTENTS.match(style):
        source.dropped["lines of contents"] += 1
        return
    if style == "title" or _HEADING.match(style):
        yield style, " ".join(plain(_text(paragraph, source, {})).split())
        for note in paragraph.iter(*_NOTES):
            yield "paragraph", escaped(notes.pop((note.tag, note.get(f"{_W}id")), ""))
        return
    text = _text(paragraph, source, notes)  # what was inserted and not accepted yet is text, too
    words = plain(text)
    properties: Any = paragraph.pPr
    numbered = properties.numPr if properties is not None else None
    if _CODE.search(style):
        yield "code", text.rstrip()
    elif words and (numbered is not None or style.startswith("list")):
        level = numbered.ilvl.val if numbered is not None and numbered.ilvl is not None else 0
        nested = re.search(r"(\d)$", style)
        level = level or (int(nested[1]) - 1 if nested else 0)
        indent = "  " * min(8, level)
        yield "list", f"{indent}- " + words.replace("\n", f"\n{indent}  ")
    else:
        yield "paragraph", escaped(words)


def _table(block: Any, notes: _Notes) -> tuple[str, str]:
    rows = ([*_within(row, f"{_W}tc")] for row in _within(block, f"{_W}tr"))
    return "table", table([[" ".join(_text(cell, None, notes).split()) for cell in row] for row in rows])


def _text(element: Any, source: Source | None, notes: _Notes) -> str:
    """The text of an element as it stands when all changes are accepted, with notes where it refers to them."""
    parts: list[str] = []
    waiting = [element]
    while waiting:
        node = waiting.pop()
        if node.tag in _ABSENT:
            continue
        if node.tag in _PICTURES and source is not None:
            source.dropped["pictures"] += 1
        if node.tag in _TEXTS:
            parts.append(node.text or "")
        elif node.tag in _MARKS:
            parts.append(_MARKS[node.tag])
        elif node.tag == f"{_W}p" and parts:
            parts.append("\n")
        elif node.tag in _NOTES and (note := notes.pop((node.tag, node.get(f"{_W}id")), "")):
            parts.append(f" ({note})")
        waiting.extend(reversed(node))
    return "".join(parts)
