"""ING-30, ING-31: notebooks, PDF, Office and books become Markdown that the chunkers here cut."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import docx
import pptx
import pytest
import xlsxwriter
from docx.enum.style import WD_STYLE_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml.parser import parse_xml
from hypothesis import given, settings
from hypothesis import strategies as st
from pptx.util import Inches

from tests.support.office import Text, bomb, epub, paragraphs, pdf
from weft.chunking.chunker import chunk_document, title_of
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain, Rejection
from weft.ingestion.sources.formats import registry
from weft.ingestion.sources.formats.blocks import escaped, fence, joined, table
from weft.ingestion.sources.sources import read_source
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).ingest
SIZES = ChunkSizes(max_tokens=120, target_tokens=60, min_tokens=5, overlap_tokens=8)
HERONS = "Grey herons hunt alone in shallow water near the shore. A heron that stands still is hardly seen by its prey."
STORKS = "Storks walk over meadows and catch frogs and mice in the grass. They breed on roofs and come back each year."


def words(text: str) -> int:
    return len(text.split())


def read(tmp_path: Path, name: str, data: bytes) -> tuple[Document | None, list[Rejection]]:
    (tmp_path / name).write_bytes(data)
    results = list(read_source(tmp_path / name, SETTINGS, domain=None))
    documents = [each for each in results if isinstance(each, Document)]
    assert len(documents) <= 1
    return documents[0] if documents else None, [each for each in results if isinstance(each, Rejection)]


def read_well(tmp_path: Path, name: str, data: bytes) -> Document:
    document, _ = read(tmp_path, name, data)
    assert document is not None
    return document


def chunks_of(document: Document) -> list[Chunk]:
    chunks = chunk_document(document, SIZES, words)
    covered = 0
    for chunk in chunks:
        assert chunk.start_byte <= covered, "ING-13: every byte is in a chunk"
        covered = max(covered, chunk.end_byte)
        assert chunk.tokens <= SIZES.max_tokens
    assert covered == len(document.text.encode())
    assert [each.chunk_id for each in chunks] == [each.chunk_id for each in chunk_document(document, SIZES, words)]
    return chunks


def holding(chunks: Sequence[Chunk], words: str) -> Chunk:
    return next(chunk for chunk in chunks if words in chunk.text)


def two_columns() -> bytes:
    """A journal of three pages in two columns, the lines of both mixed in the file."""
    pages = []
    for number in range(3):
        top = 640 if number == 0 else 720
        page = [Text(72, 750, "Journal of Wading Birds, vol. 7", 8), Text(300, 30, str(number + 11), 8)]
        if number == 0:
            page += [Text(120, 700, "How Herons and Storks Hunt", 18, "B")]
        page += [Text(60, top, f"{number + 1}. Herons", 12, "B"), Text(320, top, f"{number + 1}.1 Storks", 12, "B")]
        page += paragraphs(f"{HERONS} " * 3, left=60, top=top - 16, width=48)
        page += paragraphs(f"{STORKS} " * 3, left=320, top=top - 16, width=48)
        pages.append(sorted(page, key=lambda text: (-text.y, text.x)))
    return pdf(pages, info={"Title": "Microsoft Word - x.doc", "Author": "A. Ibis", "ModDate": "D:20240102030405Z"})


def test_a_pdf_in_two_columns_is_read_column_by_column(tmp_path: Path) -> None:
    """ING-31: headings by size, pages as anchors; what each page repeats is left out, and told."""
    document, (note,) = read(tmp_path, "birds.pdf", two_columns())
    assert document is not None
    assert f"{HERONS} " * 2 in document.text
    assert f"{STORKS} " * 2 in document.text
    assert "Journal" not in document.text
    assert note.detail == "headers, footers and page numbers: 6"
    headings = [line for line in document.text.splitlines() if line.startswith("#")]
    assert headings[:3] == ["# How Herons and Storks Hunt", "## 1. Herons", "## 1.1 Storks"]
    assert (document.title, document.authors) == ("How Herons and Storks Hunt", ("A. Ibis",))
    assert document.modified_at == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
    chunks = chunks_of(document)
    assert holding(chunks, "breed on roofs").heading_path == ("How Herons and Storks Hunt", "1.1 Storks")
    anchors = " ".join(f"{chunk.anchor} {chunk.attributes.get('anchors', '')}" for chunk in chunks)
    assert {"page-1", "page-2", "page-3"} <= set(anchors.split())
    assert not any("ANCHOR" in chunk.text for chunk in chunks)


def test_a_pdf_has_lists_code_tables_and_whole_words(tmp_path: Path) -> None:
    """ING-31: words that were parted at the ends of lines are whole; an outline tells headings of any size."""
    page = [
        Text(72, 720, "Manual", 20, "B"),
        Text(72, 690, "The pump must be primed before it is started for the instal-"),
        Text(72, 678, "lation to be ready."),
        Text(72, 640, "Starting", 10),
        Text(72, 610, "• Press the green button."),
        Text(72, 596, "• Wait for ten seconds."),
        Text(72, 560, "def start(pump):", 10, "M"),
        Text(96, 548, "pump.run()", 10, "M"),
        *(Text(x, 500, text) for x, text in ((72, "Part"), (200, "Number"), (300, "Price"))),
        *(Text(x, 486, text) for x, text in ((72, "Seal"), (200, "A-17"), (300, "3.50"))),
    ]
    document = read_well(tmp_path, "m.pdf", pdf([page], outline=[("Manual", 0), ("Starting", 0)]))
    assert document.text == (
        "<!-- ANCHOR:page-1 -->\n\n# Manual\n\n"
        "The pump must be primed before it is started for the installation to be ready.\n\n"
        "# Starting\n\n- Press the green button.\n- Wait for ten seconds.\n\n"
        "```\ndef start(pump):\n    pump.run()\n```\n\n"
        "| Part | Number | Price |\n| --- | --- | --- |\n| Seal | A-17 | 3.50 |\n"
    )


def test_running_heads_with_numbers_and_contents_are_left_out(tmp_path: Path) -> None:
    """ING-31: a number that counts with the pages is theirs, whatever stands beside it."""
    pages = [
        [
            Text(72, 750, f"Chapter {number // 3}: Birds {number + 5}", 9),
            *paragraphs(f"Page {number} says this. {HERONS}", left=72, top=700, width=80),
        ]
        for number in range(6)
    ]
    pages[0].append(Text(72, 500, "2.1 Naming . . . . . . . . . . . . . 3"))
    document, (note,) = read(tmp_path, "b.pdf", pdf(pages))
    assert document is not None
    assert "Chapter" not in document.text
    assert "Naming" not in document.text
    assert all(f"Page {number} says this." in document.text for number in range(6))
    assert note.detail == "headers, footers and page numbers: 6, lines of contents: 1"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("scan.pdf", pdf([[], []]), "no_text"),
        ("cut.pdf", two_columns()[:900], "unreadable_format"),
        ("loop.pdf", pdf([[Text(9, 9, "x")]]).replace(b"/Kids [7 0 R]", b"/Kids [2 0 R]"), "unreadable_format"),
        ("a.docx", b"PK\x03\x04" + b"\0" * 40, "unreadable_format"),
        ("a.xlsx", bomb("docx", 1_000_000), "unreadable_format"),
        ("a.pptx", bomb("epub", 1_000_000), "unreadable_format"),
        ("a.epub", bomb("docx", 1_000_000), "unreadable_format"),
        ("bomb.docx", bomb("docx", 100_000_000), "too_large"),
        ("bomb.xlsx", bomb("xlsx", 100_000_000), "too_large"),
        ("bomb.pptx", bomb("pptx", 100_000_000), "too_large"),
        ("bomb.epub", bomb("epub", 100_000_000), "too_large"),
        ("deep.ipynb", b'{"cells":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "unreadable_format"),
        ("empty.ipynb", b'{"cells": [], "nbformat": 4}', "blank"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    """ING-3, ING-31: pictures without text, bombs, loops and damage are rejected, and stop nothing."""
    document, rejections = read(tmp_path, name, data)
    assert (document, [each.reason for each in rejections]) == (None, [reason])


def a_word_document() -> bytes:
    document = docx.Document()
    document.core_properties.author = "Ann Ibis"
    document.core_properties.modified = datetime(2024, 5, 6, tzinfo=UTC)
    document.add_heading("Pump manual", 0)
    document.add_heading("Starting", 1)
    document.add_paragraph("Press the green button.")
    document.add_paragraph("one", style="List Bullet")
    document.add_paragraph("two", style="List Bullet 2")
    rows = document.add_table(2, 2)
    for (row, column), text in {(0, 0): "Part", (0, 1): "Price", (1, 0): "Seal|A", (1, 1): "3.50"}.items():
        rows.cell(row, column).text = text
    document.add_heading("Stopping", 2)
    document.add_paragraph("# is no heading")
    for line in ("x = 1", "y = 2"):
        document.add_paragraph(line, style="macro")
    sink = io.BytesIO()
    document.save(sink)
    return sink.getvalue()


def test_word_keeps_headings_lists_tables_and_code(tmp_path: Path) -> None:
    """ING-31: by their styles; what looks like Markdown in a paragraph is none."""
    document = read_well(tmp_path, "m.docx", a_word_document())
    assert document.text == (
        "# Pump manual\n\n## Starting\n\nPress the green button.\n\n- one\n  - two\n\n"
        "| Part | Price |\n| --- | --- |\n| Seal\\|A | 3.50 |\n\n"
        "### Stopping\n\n\\# is no heading\n\n```\nx = 1\ny = 2\n```\n"
    )
    assert (document.title, document.authors) == ("Pump manual", ("Ann Ibis",))
    assert document.modified_at == datetime(2024, 5, 6, tzinfo=UTC).timestamp()
    assert holding(chunks_of(document), "y = 2").heading_path == ("Pump manual", "Starting", "Stopping")


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
OF_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def controlled(inner: str) -> str:
    return f"<w:sdt {W}><w:sdtPr><w:text/></w:sdtPr><w:sdtContent>{inner}</w:sdtContent></w:sdt>"


def said(text: str, more: str = "") -> str:
    return f"<w:p {W} {M}><w:r><w:t>{text}</w:t></w:r>{more}</w:p>"


def noted(kind: str) -> str:
    return f'<w:r><w:{kind}Reference w:id="1"/></w:r>'


def a_lease() -> bytes:
    document = docx.Document()
    document.styles.add_style("toc 1", WD_STYLE_TYPE.PARAGRAPH)
    document.add_paragraph("The lease\t1", style="toc 1")
    heading = document.add_heading("The lease", 1)
    heading._p.append(parse_xml(noted("endnote").replace("<w:r>", f"<w:r {W}>")))
    body = document.element.body
    cells = f"<w:tc>{said('Rent')}</w:tc>" + controlled(f"<w:tc>{said('940')}</w:tc>")
    row = controlled(f"<w:tr>{cells}</w:tr>")
    for inner in (
        said("It is paid", f"{noted('footnote')}{noted('footnote')}<m:oMath><m:r><m:t> a+b</m:t></m:r></m:oMath>"),
        controlled(said("Harbour Homes is the landlord.") + controlled(f"<w:tbl>{row}</w:tbl>")),
    ):
        body.insert(len(body) - 1, parse_xml(inner))
    document.add_comment(document.add_paragraph("The end.").runs[0], "Is that so?", author="Ann")
    for kind in ("footnote", "endnote"):
        xml = f'<w:{kind}s {W}><w:{kind} w:id="0"/><w:{kind} w:id="1">{said(f"By the {kind}.")}</w:{kind}></w:{kind}s>'
        part = Part(PackURI(f"/word/{kind}s.xml"), "application/xml", xml.encode(), document.part.package)
        document.part.relate_to(part, f"{OF_OFFICE}/{kind}s")
    sink = io.BytesIO()
    document.save(sink)
    return sink.getvalue()


def test_word_keeps_what_stands_in_controls_notes_equations_and_comments(tmp_path: Path) -> None:
    """ING-31: notes once where they are referred to, below a heading; comments at the end; no table of contents."""
    document, (note,) = read(tmp_path, "l.docx", a_lease())
    assert document is not None
    assert document.text == (
        "# The lease\n\nBy the endnote.\n\nIt is paid (By the footnote.) a+b\n\nHarbour Homes is the landlord.\n\n"
        "| Rent | 940 |\n| --- | --- |\n\nThe end.\n\n# Comments\n\nAnn: Is that so?\n"
    )
    assert note.detail == "lines of contents: 1"


def test_a_slide_is_a_section_with_its_notes(tmp_path: Path) -> None:
    """ING-31: titles, levels of lists, tables, groups; hidden slides are left out, and told."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "The pump"
    frame = slide.placeholders[1].text_frame
    frame.text = "It moves water"
    frame.add_paragraph().text = "and air"
    frame.paragraphs[1].level = 1
    slide.notes_slide.notes_text_frame.text = "Say that it is loud."
    second = deck.slides.add_slide(deck.slide_layouts[5])
    second.shapes.title.text = "Prices"
    cells = second.shapes.add_table(2, 2, 0, 0, Inches(2), Inches(2)).table
    for (row, column), text in {(0, 0): "Part", (0, 1): "Price", (1, 0): "Seal", (1, 1): "3.50"}.items():
        cells.cell(row, column).text = text
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "Secret"
    hidden._element.set("show", "0")
    sink = io.BytesIO()
    deck.save(sink)
    document, (note,) = read(tmp_path, "p.pptx", sink.getvalue())
    assert document is not None
    assert document.text == (
        "<!-- ANCHOR:slide-1 -->\n\n# The pump\n\n- It moves water\n  - and air\n\nNotes: Say that it is loud.\n\n"
        "<!-- ANCHOR:slide-2 -->\n\n# Prices\n\n| Part | Price |\n| --- | --- |\n| Seal | 3.50 |\n"
    )
    assert (document.title, note.detail) == ("The pump", "hidden slides: 1")
    assert "slide-2" in str(
        holding(chunks_of(document), "Seal").attributes | {"a": holding(chunks_of(document), "Seal").anchor}
    )


def test_a_sheet_is_a_table_whose_pieces_repeat_its_head(tmp_path: Path) -> None:
    """ING-31, ING-36: dates and whole numbers as people write them; a line above the head is text."""
    sink = io.BytesIO()
    with xlsxwriter.Workbook(sink) as book:
        sheet = book.add_worksheet("Stock")
        sheet.write(0, 0, "Stock of the mill")
        sheet.write_row(2, 0, ["Part", "Price", "Day"])
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        for row in range(3, 60):
            sheet.write_row(row, 0, [f"part {row}", row * 2.0 if row % 2 else row / 4])
            sheet.write_datetime(row, 2, datetime(2024, 1, row % 28 + 1), day)
        sheet.write_blank(90_000, 5, None, day)
        book.add_worksheet("Empty")
        book.add_worksheet("Hidden").write(0, 0, "secret")
        book.worksheets()[2].hide()
    document, (note,) = read(tmp_path, "stock.xlsx", sink.getvalue())
    assert document is not None
    assert document.text.startswith(
        "# stock\n\n<!-- ANCHOR:sheet-1 -->\n\n## Stock\n\nStock of the mill\n\n"
        "| Part | Price | Day |\n| --- | --- | --- |\n| part 3 | 6 | 2024-01-04 |\n| part 4 | 1 | 2024-01-05 |\n"
    )
    assert "secret" not in document.text
    assert note.detail == "hidden sheets and charts: 1"
    pieces = [chunk for chunk in chunks_of(document) if "| part" in chunk.text]
    assert len(pieces) > 2
    assert all("| Part | Price | Day |" in chunk.text for chunk in pieces)


def test_a_second_table_of_a_sheet_has_its_own_head(tmp_path: Path) -> None:
    """ING-31, ING-36: after blank rows, with the line above it; rows of values, or one alone, go on with the table."""
    rows = [["Part", "Price"], ["seal", 2], [], ["North"], ["valve", 3], [], ["Sum", "n/a"], [], ["Who mends what"], []]
    rows += [["Name", "Town"], ["Ada", "Rye"], ["Bo", "Deal"]]
    sink = io.BytesIO()
    with xlsxwriter.Workbook(sink) as book:
        sheet = book.add_worksheet("Stock")
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
    document = read_well(tmp_path, "stock.xlsx", sink.getvalue())
    assert document.text.endswith(
        "| Part | Price |\n| --- | --- |\n| seal | 2 |\n| North |  |\n| valve | 3 |\n| Sum | n/a |\n\n"
        "Who mends what\n\n| Name | Town |\n| --- | --- |\n| Ada | Rye |\n| Bo | Deal |\n"
    )


def test_a_book_is_its_chapters_in_order(tmp_path: Path) -> None:
    """ING-31: the spine orders them, and the contents name those that have no heading."""
    chapters = {
        "b.xhtml": "<h1>The shore</h1><p>A <b>heron</b> stands still.</p><script>no()</script>"
        "<pre><code class='language-python'>x = 1\ny</code></pre>",
        "a.xhtml": "<p>Storks.</p><ul><li>one<ul><li>two</li></ul></li></ul>"
        "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table><img src='x' alt='A nest'/>",
    }
    data = epub(chapters, title="Birds &amp; water", author="A. Ibis", contents={"a.xhtml": "The meadow"})
    document = read_well(tmp_path, "b.epub", data)
    assert document.text == (
        "<!-- ANCHOR:chapter-1 -->\n\n# The shore\n\nA heron stands still.\n\n```python\nx = 1\ny\n```\n\n"
        "<!-- ANCHOR:chapter-2 -->\n\n# The meadow\n\nStorks.\n\n- one\n  - two\n\n"
        "| A | B |\n| --- | --- |\n| 1 | 2 |\n\nA nest\n"
    )
    assert (document.title, document.authors) == ("Birds & water", ("A. Ibis",))
    assert holding(chunks_of(document), "y\n").heading_path == ("The shore",)


def test_a_notebook_is_markdown_with_its_code(tmp_path: Path) -> None:
    """ING-30: cells in order beneath their headings, what code put out as short text, pictures never."""
    path = Path(__file__).resolve().parents[2] / "support/corpus/exports/tides.ipynb"
    document, (note,) = read(tmp_path, "tides.ipynb", path.read_bytes())
    assert document is not None
    chunks = chunks_of(document)
    assert (document.content_type, document.domain) == (ContentType.MARKDOWN, Domain.CODE)
    assert title_of(document, chunks) == "Tides of the estuary"
    assert holding(chunks, "def spring(moon)").heading_path == ("Tides of the estuary", "Spring tides")
    assert "```text\n3.75\n" in document.text
    assert "NameError: name 'neap' is not defined" in document.text
    assert "iVBOR" not in document.text
    assert "row 399" not in document.text
    assert note.detail == "ends of outputs: 1, pictures: 2"


def test_of_a_progress_bar_the_last_state_is_shown(tmp_path: Path) -> None:
    """ING-30: so that it pushes out no result."""
    bar = [*(f"\r{n:3}%|{'#' * 40}" for n in range(100)), "\r100% done\n", "accuracy .87\r\n"]
    outputs = [{"output_type": "stream", "name": "stdout", "text": bar}]
    book = {"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "source": "fit()", "outputs": outputs}]}
    assert "```text\n100% done\naccuracy .87\n```" in read_well(tmp_path, "a.ipynb", json.dumps(book).encode()).text


@pytest.mark.parametrize(
    ("cell", "title"),
    [
        (
            {"cell_type": "raw", "source": ["---\n", "title: Mass of penguins\n", "format: html\n", "---"]},
            "Mass of penguins",
        ),
        ({"cell_type": "markdown", "source": "---\ntitle: Mass of penguins\n---\nText."}, "Mass of penguins"),
        (
            {"cell_type": "markdown", "source": "<h1 style='color:blue'>Who <b>survived</b></h1>\nBy Ann."},
            "Who survived",
        ),
        ({"cell_type": "raw", "source": "---\ntitle: [\n---"}, "Data"),
    ],
)
def test_a_notebook_is_called_by_front_matter_or_a_heading_in_tags(
    tmp_path: Path, cell: dict[str, object], title: str
) -> None:
    """ING-30, ING-37: else by its first heading."""
    book = {"nbformat": 4, "metadata": {}, "cells": [cell, {"cell_type": "markdown", "source": "## Data\n\nMany."}]}
    document = read_well(tmp_path, "a.ipynb", json.dumps(book).encode())
    assert title_of(document, chunks_of(document)) == title


def test_a_long_cell_is_cut_between_its_definitions(tmp_path: Path) -> None:
    """ING-30: each stands in a fence of its own, in the notebook's language."""
    code = "\n\n".join(f"fn wade_{n}() {{\n" + "    step();\n" * 8 + "}" for n in range(8)).replace("fn ", "function ")
    facts = {"language_info": {"name": "javascript"}}
    book = {"nbformat": 4, "metadata": facts, "cells": [{"cell_type": "code", "source": code, "outputs": []}]}
    document = read_well(tmp_path, "long.ipynb", json.dumps(book).encode())
    assert document.text.count("```javascript\nfunction wade_") == 8
    assert document.text.replace("```javascript\n", "").replace("\n```", "").strip() == code


@pytest.mark.timeout(60)
def test_a_notebook_of_ten_thousand_cells_is_read(tmp_path: Path) -> None:
    """ING-3: at a length that grows with the cells."""
    cells = [{"cell_type": "markdown", "source": f"# Cell {n}"} for n in range(10_000)]
    document = read_well(tmp_path, "many.ipynb", json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}).encode())
    assert document.text.count("# Cell") == 10_000


def test_a_missing_library_is_named_and_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-8a: files of these kinds are rejected with the name of the extra, all others are read."""

    def missing(name: str) -> None:
        raise ModuleNotFoundError(name="pypdfium2")

    monkeypatch.setattr(registry, "import_module", missing)
    document, (rejection,) = read(tmp_path, "a.pdf", pdf([[Text(72, 700, "Hello there, reader.")]]))
    assert (document, rejection.reason) == (None, "missing_extra")
    assert "weft-retrieval[formats]" in rejection.detail


BLOCKS = st.lists(
    st.one_of(
        st.text("ab# -`|\n>", max_size=30).map(escaped),
        st.text("ab `\n", max_size=30).map(lambda code: fence(code, "python")),
        st.lists(st.lists(st.text("a|b\n", max_size=6), max_size=3), max_size=4).map(table),
        st.sampled_from(["- a", "# Head", "<!-- ANCHOR:page-1 -->"]),
    ),
    max_size=8,
)


@settings(max_examples=60)
@given(BLOCKS)
def test_whatever_blocks_are_written_is_cut_within_the_limits(blocks: list[str]) -> None:
    """ING-13: every byte in some piece, stable ids, the encoder's limit."""
    text = joined(blocks)
    document = Document(uri="a", content_type=ContentType.MARKDOWN, domain=Domain.GENERAL, text=text, trust_level=70)
    if text.strip():
        chunks_of(document)
