"""PDF: text by page in reading order, headings by size or outline, what every page repeats left out (ING-31)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from ctypes import c_double, c_int, create_string_buffer
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, pairwise
from statistics import median

import pypdfium2 as pdfium
from pypdfium2 import raw

from weft.ingestion.sources.formats.blocks import anchor, escaped, fence, heading, joined, table
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.source import FormatError, Readings, Source, Written

_CAREFULLY = 600_000  # characters whose places on the page are looked at: some 250 pages
_MOST = 1_600_000  # characters that are read at all: what PDFium reads in the time that a file has
_WORD = re.compile(r"[^\s\ufffe]+\ufffe?|\ufffe")
_LEADER = re.compile(r"(?:\.\s?){4,}\s*[\divxlc]*\s*$")  # of a table of contents
_FULL_STOP = (".", "!", "?", ":", ";", "。")
_PAGE_NUMBER = re.compile(
    r"(?i)(?:page|seite|p\.)?\s*[-–—]?\s*(?:\d{1,4}|[ivxlc]{1,7})\s*[-–—]?(?:\s*(?:of|/|von|de)\s*\d{1,4})?"
)
_DIGITS = re.compile(r"\d+")
_BULLET = re.compile(r"[•▪◦‣●○■–·∙]\s+")
_NUMBERED = re.compile(r"(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?|[A-Z]\.|[IVX]{1,5}\.)\s+\S")
_MONO = re.compile(r"mono|courier|consol|typewriter|cm(?:sl|it)?tt|menlo|inconsolata", re.IGNORECASE)
_BOLD = re.compile(r"bold|black|heavy|semibold|demi|cmbx|-B\b", re.IGNORECASE)
_NO_TITLE = re.compile(
    r"(?i)untitled|microsoft word|.*\.(?:docx?|tex|dvi|indd|pptx?|pdf|qxd)\s*$|^[\W\d_]*$|slide 1|powerpoint"
)
_LONGEST_HEADING = 200
_REPEATED = 0.5  # share of the pages on which a line at their edge stands, from which on it is no text
_EDGE_LINES = 2
_EDGE = 0.09  # of a page's height at its top and its bottom, where such lines stand


_Box = tuple[float, float, float, float]  # left, right, bottom, top, in points


@dataclass(frozen=True, slots=True)
class _Run:
    """Characters that follow each other on a line, without a gap that parts columns."""

    text: str
    left: float
    right: float
    bottom: float
    top: float
    size: float
    bold: bool = False
    mono: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    runs: tuple[_Run, ...]
    page: int
    column: int = 0  # lines of different columns are never of one paragraph unless it runs on

    @property
    def text(self) -> str:
        return " ".join(run.text.strip() for run in self.runs)

    @property
    def size(self) -> float:
        return max(self.runs, key=lambda run: len(run.text)).size


@dataclass(slots=True)
class _Layout:
    """What is the same all over a document."""

    body: float  # the size of most of its text
    ranks: dict[float, int]  # of larger sizes
    outline: dict[tuple[int, str], int] = field(default_factory=dict)  # rank by page and title
    repeated: set[str] = field(default_factory=set)
    offset: int | None = None  # of the numbers that pages bear


def read(source: Source) -> Readings:
    """One document of Markdown; a page begins with its anchor."""
    try:
        document = pdfium.PdfDocument(source.file)
    except pdfium.PdfiumError as error:
        reason = "encrypted" if "password" in str(error).lower() else "unreadable_format"
        raise FormatError(reason, f"expected a PDF that opens without a password, found: {error}") from error
    pages: list[list[_Line]] = []
    edges: list[tuple[float, float]] = []  # below and above which a line is at the edge of its page
    length = careful = 0
    for number in range(len(document)):
        if length > min(_MOST, source.limit):
            source.dropped["pages beyond the most text"] = len(document) - number
            break
        page = document[number]
        text = page.get_textpage()
        runs = list(_runs(text) if careful < _CAREFULLY else _quick(text, page.get_height()))
        careful += text.count_chars()
        width, height = page.get_size()
        pages.append(_in_order(runs, width, number))
        edges.append((_EDGE * height, (1.0 - _EDGE) * height))
        length += sum(len(run.text) for run in runs)
        text.close()
        page.close()
    if length < 2 * len(pages) and length < 40:
        raise FormatError("no_text", f"expected a PDF with text, found {len(document)} pages of pictures")
    at_edges = [_at_edge(page, *edge) for page, edge in zip(pages, edges, strict=True)]
    layout = _layout(pages, at_edges, document)
    lines = [
        line
        for page, edge in zip(pages, at_edges, strict=True)
        for line in _without_edges(page, edge if len(pages) > 1 else (), layout, source.dropped)
    ]
    blocks = list(_blocks(lines, layout))
    if not any(re.search(r"\w", block) for block in blocks[1:]):
        raise FormatError("no_text", f"expected a PDF with text, found {len(document)} pages of pictures")
    facts = {key: plain(value) for key, value in document.get_metadata_dict(skip_empty=True).items()}
    yield Written(
        joined(blocks),
        title=_title(facts.get("Title"), blocks),
        authors=tuple(filter(None, (facts.get("Author", "").strip(),))),
        time=_time(facts.get("ModDate") or facts.get("CreationDate")),
        facts={"pages": str(len(document))},
    )


def _runs(text: pdfium.PdfTextPage) -> Iterator[_Run]:
    """Runs of a page in the order of the file, parted at ends of lines and at gaps wider than words have."""
    left, right, bottom, top = c_double(), c_double(), c_double(), c_double()

    def box_of(index: int) -> _Box:
        raw.FPDFText_GetCharBox(text.raw, index, left, right, bottom, top)
        return left.value, right.value, bottom.value, top.value

    run: list[str] = []
    box: _Box = (0.0, 0.0, 0.0, 0.0)
    first = 0
    for match in _WORD.finditer(_characters(text)):
        word = match[0].replace("\ufffe", "-")  # a hyphen at the end of a line, as PDFium marks it
        one, two = box_of(match.start()), box_of(match.start() + len(match[0].rstrip("\ufffe")) - 1)
        here = (one[0], two[1], min(one[2], two[2]), max(one[3], two[3]))
        if run and not _goes_on(box, here):
            yield _run(text, run, box, first)
            run = []
        if run:
            box = (min(box[0], here[0]), max(box[1], here[1]), min(box[2], here[2]), max(box[3], here[3]))
        else:
            box, first = here, match.start()
        run.append(word)
    if run:
        yield _run(text, run, box, first)


def _goes_on(box: _Box, here: _Box) -> bool:
    """Whether a word stands on the line of those before it, right of them, and near."""
    height = max(box[3] - box[2], here[3] - here[2], 1.0)
    overlap = min(box[3], here[3]) - max(box[2], here[2])
    gap = here[0] - box[1]
    return overlap > 0.3 * min(box[3] - box[2], here[3] - here[2]) and -height < gap < 1.6 * height


def _run(text: pdfium.PdfTextPage, run: Sequence[str], box: _Box, first: int) -> _Run:
    buffer, flags = create_string_buffer(128), c_int()
    raw.FPDFText_GetFontInfo(text.raw, first, buffer, 128, flags)
    name = buffer.value.decode("utf-8", "replace")
    size = round(raw.FPDFText_GetFontSize(text.raw, first) * 2) / 2
    height = box[3] - box[2]
    if size < 2.0:  # of fonts that a matrix enlarges
        size = round(height * 2) / 2
    bold = bool(_BOLD.search(name)) or raw.FPDFText_GetFontWeight(text.raw, first) >= 600
    return _Run(" ".join(run), *box, size, bold, bool(flags.value & 1) or bool(_MONO.search(name)))


def _characters(text: pdfium.PdfTextPage) -> str:
    count = text.count_chars()
    whole = text.get_text_range() if count else ""
    if len(whole) == count:
        return whole
    codes = (raw.FPDFText_GetUnicode(text.raw, index) for index in range(count))
    return "".join(chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else " " for code in codes)


def _quick(text: pdfium.PdfTextPage, height: float) -> Iterator[_Run]:
    """Lines as the file has them, one below the other: for the rest of a very long document."""
    for number, line in enumerate(text.get_text_range().splitlines()):
        if line.strip():
            yield _Run(
                line.strip().replace("\ufffe", "-"), 0.0, 1.0, height - 12.0 * number, height - 12.0 * number + 9, 0.0
            )


def _in_order(runs: Sequence[_Run], width: float, page: int) -> list[_Line]:
    """Lines of a page as they are read: bands from top to bottom, in a band of two columns the left one first."""
    runs = [run for run in runs if run.text]
    gutter = _gutter(runs, width)
    ordered = sorted(runs, key=lambda run: -(run.top + run.bottom))
    if gutter is None:
        return [_Line(tuple(line), page) for line in _lines(ordered)]
    lines: list[_Line] = []
    for across, band in groupby(ordered, key=lambda run: run.left < gutter - 2 and run.right > gutter + 2):
        runs_of = list(band)
        sides = (
            [runs_of]
            if across
            else [[r for r in runs_of if r.right <= gutter + 2], [r for r in runs_of if r.right > gutter + 2]]
        )
        for column, side in enumerate(sides):
            lines += [_Line(tuple(line), page, 0 if across else column + 1) for line in _lines(side)]
    return lines


def _gutter(runs: Sequence[_Run], width: float) -> float | None:
    """Where a page of two columns is white from top to bottom, but for what stands across both."""
    wide = [run for run in runs if run.right - run.left > 0.22 * width]
    best: tuple[float, float] | None = None
    for step in range(35, 66):
        at = width * step / 100
        left = sum(run.right <= at for run in wide)
        right = sum(run.left >= at for run in wide)
        across = sum(run.left < at < run.right for run in runs)
        if min(left, right) >= 4 and across <= 0.25 * (left + right):
            score = min(left, right) - 3.0 * across - abs(step - 50) / 100
            best = max(best or (score, at), (score, at))
    return best[1] if best else None


def _lines(runs: Iterable[_Run]) -> Iterator[list[_Run]]:
    """Runs from top to bottom, those of one height together from left to right."""
    line: list[_Run] = []
    for run in runs:
        height = max(run.top - run.bottom, 1.0)
        middle = (run.top + run.bottom) / 2
        if line and abs(middle - (line[0].top + line[0].bottom) / 2) > 0.5 * max(height, line[0].top - line[0].bottom):
            yield sorted(line, key=lambda one: one.left)
            line = []
        line.append(run)
    if line:
        yield sorted(line, key=lambda one: one.left)


def _layout(
    pages: Sequence[Sequence[_Line]], at_edges: Sequence[Sequence[_Line]], document: pdfium.PdfDocument
) -> _Layout:
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[line.size] += len(line.text)
    body = max(sizes, key=lambda size: (sizes[size], -size), default=10.0)
    total = sum(sizes.values())
    larger = sorted((size for size in sizes if size >= 1.12 * body and sizes[size] < 0.25 * total), reverse=True)
    # Sizes that hardly differ are of one rank.
    ranks: dict[float, int] = {}
    for size in larger:
        above = min(ranks, default=None)
        ranks[size] = 1 if above is None else ranks[above] + (size < 0.94 * above)
    edges = Counter(mark for edge in at_edges for mark in {_mark(line, body) for line in edge})
    offsets = Counter(
        offset for edge in at_edges for offset in {n - line.page for line in edge for n in _numbers(line)}
    )
    often = max(2, _REPEATED * len(pages))
    repeated = {mark for mark, count in edges.items() if count >= max(3, often)}
    offset = next((offset for offset, count in offsets.most_common(1) if count >= often), None)
    return _Layout(body, ranks, _outline(document), repeated, offset)


def _outline(document: pdfium.PdfDocument) -> dict[tuple[int, str], int]:
    ranks: dict[tuple[int, str], int] = {}
    try:
        for mark in document.get_toc(max_depth=6):
            place = mark.get_dest()
            page = place.get_index() if place is not None else None
            title = _folded(mark.get_title())
            if page is not None and title:
                ranks.setdefault((page, title), mark.level + 1)
            if len(ranks) > 5_000:
                break
    except (pdfium.PdfiumError, ValueError, RecursionError):
        return ranks
    return ranks


def _folded(text: str) -> str:
    return re.sub(r"[\W_]+", "", re.sub(r"^\s*(?:\d+\.)*\d*\s+", "", text)).casefold()


def _at_edge(page: Sequence[_Line], low: float, high: float) -> Sequence[_Line]:
    """The first and the last lines of a page, as far as they stand in its margins."""
    by_height = sorted(page, key=lambda line: -line.runs[0].top)
    first, last = by_height[:_EDGE_LINES], by_height[_EDGE_LINES:][-_EDGE_LINES:]
    return [line for line in (*first, *last) if line.runs[0].top < low or line.runs[0].bottom > high]


def _mark(line: _Line, body: float) -> str:
    """What is the same in a line at the edge of many pages; numbers of what is larger than the text are chapters'."""
    text = " ".join(line.text.split()).casefold()
    return text if line.size > body else _DIGITS.sub("#", text)


def _numbers(line: _Line) -> set[int]:
    """The numbers at the ends of a line that may be its page's."""
    text = line.text.strip()
    return {
        int(each)
        for pattern in (r"\A\D{0,6}?(\d{1,4})\b", r"\b(\d{1,4})\W{0,3}\Z")
        for each in re.findall(pattern, text)
    }


def _without_edges(
    page: Sequence[_Line], edge: Sequence[_Line], layout: _Layout, dropped: Counter[str]
) -> Iterator[_Line]:
    for line in page:
        at_edge = any(line is each for each in edge)
        number = _PAGE_NUMBER.fullmatch(line.text.strip()) is not None or (
            layout.offset is not None and len(line.text) < 100 and layout.offset + line.page in _numbers(line)
        )
        if at_edge and ((number and line.size <= layout.body) or _mark(line, layout.body) in layout.repeated):
            dropped["headers, footers and page numbers"] += 1
        elif _LEADER.search(line.text):
            dropped["lines of contents"] += 1
        else:
            yield line


def _blocks(lines: Sequence[_Line], layout: _Layout) -> Iterator[str]:
    """Blocks of Markdown, each page's first after its anchor."""
    page = -1
    for group in _paragraphs(lines, layout):
        if group[0].page != page:
            page = group[0].page
            yield anchor(f"page-{page + 1}")
        yield from filter(None, _block(group, layout))


def _block(group: Sequence[_Line], layout: _Layout) -> Iterator[str]:
    rank = _rank(group, layout)
    if rank is not None:
        yield heading(_joined(group), rank)
    elif all(run.mono for line in group for run in line.runs):
        left = min(line.runs[0].left for line in group)
        yield fence("\n".join(" " * _indent(line.runs[0], left) + line.text for line in group))
    elif _is_table(group):
        yield table([[run.text for run in line.runs] for line in group])
    else:
        text = _joined(group)
        yield f"- {text[match.end() :]}" if (match := _BULLET.match(text)) else escaped(text)


def _indent(run: _Run, left: float) -> int:
    return min(40, round((run.left - left) / max(1.0, (run.right - run.left) / max(1, len(run.text)))))


def _is_table(group: Sequence[_Line]) -> bool:
    widths = {len(line.runs) for line in group}
    return len(group) >= 2 and len(widths) == 1 and widths.pop() >= 2


def _rank(group: Sequence[_Line], layout: _Layout) -> int | None:
    """The rank of a heading; None of any other block."""
    text = _joined(group)
    if len(text) > _LONGEST_HEADING or not re.search(r"[^\W\d_]", text):
        return None
    stated = layout.outline.get((group[0].page, _folded(text)))
    if stated is not None:
        return stated
    size = group[0].size
    if size in layout.ranks and len(group) <= 3:
        return layout.ranks[size]
    deepest = max(layout.ranks.values(), default=0)
    bold = all(run.bold for line in group for run in line.runs)
    if bold and len(group) == 1 and len(text) <= 90 and not text.endswith((".", ",", ";")) and size >= layout.body:
        return min(6, deepest + 1 + (text.count(".") if _NUMBERED.match(text) and size == layout.body else 0) // 2)
    return None


def _paragraphs(lines: Sequence[_Line], layout: _Layout) -> Iterator[list[_Line]]:
    gaps = defaultdict(list)
    for one, two in pairwise(lines):
        if (one.page, one.column) == (two.page, two.column):
            gaps[one.size].append(one.runs[0].bottom - two.runs[0].bottom)
    usual = {
        size: median(each for each in of_size if each > 0)
        for size, of_size in gaps.items()
        if any(g > 0 for g in of_size)
    }
    group: list[_Line] = []
    for line in lines:
        if group and not _together(group, line, usual.get(line.size, 1.2 * line.size), layout):
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _together(group: Sequence[_Line], line: _Line, usual: float, layout: _Layout) -> bool:
    last = group[-1]
    first, run = last.runs[0], line.runs[0]
    if (last.size, first.mono, len(last.runs) > 1) != (line.size, run.mono, len(line.runs) > 1):
        return False
    if _BULLET.match(line.text) or (layout.outline and (line.page, _folded(line.text)) in layout.outline):
        return False
    if last.size == layout.body and first.bold != run.bold and (len(group) == 1 or run.bold):
        return all(each.bold == first.bold for each in last.runs) is False
    if (last.page, last.column) != (line.page, line.column):
        return not last.text.rstrip().endswith(_FULL_STOP) and line.text[:1].islower()
    gap = first.bottom - run.bottom
    if not 0 < gap <= (2.2 if run.mono else 1.35) * max(usual, 0.9 * (first.top - first.bottom)):
        return False
    indented = run.left > first.left + 0.8 * max(line.size, 6.0) and len(line.runs) == 1
    return run.mono or not (indented and last.text.rstrip().endswith(_FULL_STOP))


def _joined(group: Sequence[_Line]) -> str:
    """Lines as one, words that were parted at their ends whole again."""
    parts: list[str] = []
    for line in group:
        words = plain(line.text)
        last = parts[-1] if parts else ""
        if (last.endswith("-") and last[-2:-1].isalpha() and words[:1].islower()) or last.endswith("\u00ad"):
            parts[-1] = last[:-1] + words
        elif words:
            parts.append(words)
    return " ".join(parts)


def _title(stated: str | None, blocks: Sequence[str]) -> str | None:
    if stated and len(stated.strip()) > 3 and not _NO_TITLE.match(stated.strip()):
        return " ".join(stated.split())
    headings = [block for block in blocks[:40] if re.match(r"#{1,6} ", block)]
    best = min(headings, key=lambda block: len(block) - len(block.lstrip("#")), default=None)
    return best.lstrip("# ") if best else None


def _time(stated: str | None) -> float | None:
    match = re.match(r"(?:D:)?(\d{14})", stated or "")
    try:
        return datetime.strptime(f"{match[1]}+0000", "%Y%m%d%H%M%S%z").timestamp() if match else None
    except ValueError:
        return None
