"""PowerPoint: a section for each slide, with its title, its text in order, its tables and its notes (ING-31)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pptx import Presentation
from pptx.exc import PackageNotFoundError

from weft.ingestion.sources.formats.blocks import anchor, escaped, heading, joined, table
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.office import facts_of, opened
from weft.ingestion.sources.formats.source import FormatError, Readings, Source, Written

_MOST_DEPTH = 16  # of groups in groups
_GROUP, _PICTURE = 6, 13
_UNSAID = {13, 14, 15, 16}  # placeholders of dates, footers, headers and numbers


def read(source: Source) -> Readings:
    """One document of Markdown."""
    opened(source.file).close()
    source.file.seek(0)
    try:
        deck = Presentation(source.file)
    except (PackageNotFoundError, KeyError, ValueError) as error:
        raise FormatError("unreadable_format", f"expected a presentation, found: {error}") from error
    title, authors, time = facts_of(deck.core_properties)
    blocks: list[str] = []
    first = None
    for number, slide in enumerate(deck.slides, start=1):
        if slide._element.get("show") == "0":
            source.dropped["hidden slides"] += 1
            continue
        top = slide.shapes.title
        name = " ".join(plain(top.text_frame.text).split()) if top is not None and top.has_text_frame else ""
        first = first or name
        body = [block for shape in slide.shapes if not _is(shape, top) for block in _blocks(shape, source, 0) if block]
        notes = plain(slide.notes_slide.notes_text_frame.text) if _has_notes(slide) else ""
        if name or body or notes:
            blocks += [anchor(f"slide-{number}"), heading(name or f"Slide {number}", 1), *body]
            blocks += [f"Notes: {escaped(notes)}"] if notes else []
    if not blocks:
        raise FormatError("no_text", "expected slides with text, found none")
    yield Written(joined(blocks), title=title or first or None, authors=authors, time=time)


def _is(shape: Any, other: Any) -> bool:
    return other is not None and shape.shape_id == other.shape_id


def _has_notes(slide: Any) -> bool:
    return slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None


def _blocks(shape: Any, source: Source, depth: int) -> Iterator[str]:
    kind = shape.shape_type
    if kind == _GROUP:
        for inner in shape.shapes if depth < _MOST_DEPTH else ():
            yield from _blocks(inner, source, depth + 1)
    elif getattr(shape, "has_table", False):
        yield table([[plain(cell.text) for cell in row.cells] for row in shape.table.rows])
    elif shape.has_text_frame:
        if not (shape.is_placeholder and shape.placeholder_format.type in _UNSAID):
            yield _text(shape.text_frame)
    elif kind == _PICTURE or getattr(shape, "has_chart", False):
        source.dropped["pictures and charts"] += 1


def _text(frame: Any) -> str:
    """Paragraphs; where there are several, or some are indented, as a list by their levels."""
    paragraphs = [(each.level, plain("".join(run.text for run in each.runs) or each.text)) for each in frame.paragraphs]
    paragraphs = [(level, text) for level, text in paragraphs if text]
    if len(paragraphs) < 2:
        return "\n".join(escaped(text) for _, text in paragraphs)
    return "\n".join(f"{'  ' * level}- " + text.replace("\n", " ").replace("\v", " ") for level, text in paragraphs)
