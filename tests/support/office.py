"""PDF, Word, PowerPoint, Excel and EPUB files, written by code so that none is committed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_FONTS = {"F": "Helvetica", "B": "Helvetica-Bold", "M": "Courier"}


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text on a page, its left lower corner in points from the lower left corner of the page."""

    x: float
    y: float
    text: str
    size: float = 10.0
    font: str = "F"  # "B" is bold, "M" as wide for every letter


def pdf(
    pages: Sequence[Iterable[Text]], *, info: Mapping[str, str] | None = None, outline: Sequence[tuple[str, int]] = ()
) -> bytes:
    """A PDF of US letter pages; the outline leads from titles to pages, counted from 0."""
    objects: list[bytes] = [b"", b""]  # the catalogue and the tree of pages come last
    fonts = {}
    for key, name in _FONTS.items():
        objects.append(f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>".encode())
        fonts[key] = len(objects)
    named = " ".join(f"/{key} {number} 0 R" for key, number in fonts.items())
    kids = []
    for page in pages:
        lines = [f"BT /{t.font} {t.size} Tf {t.x} {t.y} Td ({_escaped(t.text)}) Tj ET" for t in page]
        content = "\n".join(lines).encode("cp1252", "replace")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R "
            f"/Resources << /Font << {named} >> >> >>".encode()
        )
        kids.append(len(objects))
    marks = len(objects) + 1
    for number, (title, page_number) in enumerate(outline):
        before = f"/Prev {marks + number - 1} 0 R " if number else ""
        after = f"/Next {marks + number + 1} 0 R " if number + 1 < len(outline) else ""
        parent = marks + len(outline)
        place = f"/Dest [{kids[page_number]} 0 R /Fit]"
        objects.append(f"<< /Title ({_escaped(title)}) /Parent {parent} 0 R {before}{after}{place} >>".encode("cp1252"))
    root = ""
    if outline:
        objects.append(f"<< /First {marks} 0 R /Last {marks + len(outline) - 1} 0 R /Count {len(outline)} >>".encode())
        root = f"/Outlines {len(objects)} 0 R"
    facts = " ".join(f"/{key} ({_escaped(value)})" for key, value in (info or {}).items())
    objects.append(f"<< {facts} >>".encode("cp1252"))
    objects[0] = f"<< /Type /Catalog /Pages 2 0 R {root} >>".encode()
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] >>".encode()
    return _assembled(objects, f"/Root 1 0 R /Info {len(objects)} 0 R")


def _assembled(objects: Sequence[bytes], trailer: str) -> bytes:
    sink = io.BytesIO(b"%PDF-1.4\n")
    sink.seek(0, io.SEEK_END)
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(sink.tell())
        sink.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    table = sink.tell()
    sink.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    sink.writelines(b"%010d 00000 n \n" % place for place in places)
    sink.write(f"trailer << /Size {len(objects) + 1} {trailer} >>\nstartxref\n{table}\n%%EOF\n".encode())
    return sink.getvalue()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def paragraphs(words: str, *, left: float, top: float, width: int, size: float = 10.0) -> list[Text]:
    """A text as lines of at most `width` characters, from the top down; a blank line parts paragraphs."""
    lines: list[Text] = []
    y = top
    for paragraph in words.split("\n\n"):
        line = ""
        for word in [*paragraph.split(), ""]:
            if not word or len(line) + len(word) > width:
                lines.append(Text(left, y, line.strip(), size))
                line, y = "", y - 1.2 * size
            line += f"{word} "
        y -= 0.8 * size
    return lines


def epub(
    chapters: Mapping[str, str], *, title: str = "", author: str = "", contents: Mapping[str, str] | None = None
) -> bytes:
    """A book of chapters: XHTML bodies by their file names, in order."""
    sink = io.BytesIO()
    items = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in chapters)
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    points = "".join(f'<li><a href="{name}">{label}</a></li>' for name, label in (contents or {}).items())
    nav = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><nav><ol>{points}</ol></nav></body></html>'
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title><dc:creator>{author}</dc:creator>'
        f'</metadata><manifest>{items}<item id="nav" href="nav.xhtml" properties="nav" '
        f'media-type="application/xhtml+xml"/></manifest><spine>{spine}</spine></package>'
    )
    container = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("OEBPS/book.opf", package)
        archive.writestr("OEBPS/nav.xhtml", nav)
        for name, body in chapters.items():
            page = f'<html xmlns="http://www.w3.org/1999/xhtml"><head/><body>{body}</body></html>'
            archive.writestr(f"OEBPS/{name}", page)
    return sink.getvalue()


def bomb(suffix: str, size: int = 2_000_000_000) -> bytes:
    """An archive of an office document that unpacks to `size` zero bytes."""
    inner = {"docx": "word/document.xml", "xlsx": "xl/workbook.xml", "pptx": "ppt/presentation.xml", "epub": "a.opf"}
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open(inner[suffix], "w", force_zip64=True) as file:
            for _ in range(size // 1_000_000):
                file.write(b" " * 1_000_000)
    return sink.getvalue()
