"""ING-33: what programs write for programs takes one short piece, and what people write is left as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ingestion import write
from weft.domain.documents import ContentType, Document, Rejection
from weft.ingestion.report import NOTES
from weft.ingestion.sources.files import FLOOD
from weft.ingestion.sources.sources import read_source
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).ingest
PACKAGE = '[[package]]\nname = "gannet"\nversion = "1.0"\n\n'
SCRIPT = "/*! Gannet 3.1 | MIT */" + "function a(b){return b+1}" * 400
MAPPED = '{"version":3,"mappings":"' + "AAAA," * 1_000 + '"}'
DRAWING = '<svg xmlns="x"><title>A gannet</title><path d="M0 0"/><text x="1">it <b>dives</b></text></svg>'
CERTIFICATE = "-----BEGIN CERTIFICATE-----\n" + f"{'MIIB' * 16}\n" * 80


def read(folder: Path, name: str, text: str) -> tuple[Document, list[Rejection]]:
    write(folder / name, text)
    found = list(read_source(folder, SETTINGS, domain=None))
    (document,) = (each for each in found if isinstance(each, Document))
    return document, [each for each in found if isinstance(each, Rejection)]


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("uv.lock", PACKAGE * 100, "uv.lock: lock file, 400 lines."),
        ("package-lock.json", '{\n  "name": "gannet",\n' * 200, "package-lock.json: lock file, 400 lines."),
        ("pnpm-lock.yaml", "gannet@1.0:\n  dev: true\n" * 200, "pnpm-lock.yaml: lock file, 400 lines."),
        ("gannet.js", SCRIPT, "gannet.js: minified, 1 line.\n/*! Gannet 3.1 | MIT */function a(b)"),
        ("gannet.js.map", MAPPED, "gannet.js.map: source map, 1 line."),
        ("gannet.svg", DRAWING, "gannet.svg: drawing, 1 line.\nA gannet\nit dives"),
        ("ca.crt", CERTIFICATE, "ca.crt: certificate, 81 lines."),
        ("points.json", "[" + "1.5,2.25," * 1_000 + "0]", "points.json: data, 1 line."),
    ],
)
def test_one_short_piece_stands_for_a_flood(tree: Path, name: str, text: str, shown: str) -> None:
    """ING-33: it names the file, is trusted as little as what is generated, and a note counts it."""
    document, (note,) = read(tree, name, text)
    assert document.text.startswith(shown)
    assert len(document.text) < 400
    assert document.trust_level == SETTINGS.trust.generated
    assert (note.reason, note.uri) == (FLOOD, document.uri)
    assert FLOOD in NOTES


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gannet.js", "function a(b) {\n  return b + 1;\n}\n" * 200),
        ("short.min.js", "var a=1;" * 10),
        ("lock.py", "def lock(name):\n    return name\n" * 200),
        ("file-lock.md", "Locks are held by one process at a time.\n" * 200),
        ("notes.txt", "Prose that nobody wrapped, in one long line after the other. " * 200),
        ("chat.json", '{"text": "prose of somebody, in one line of JSON"}, ' * 200),
        ("embedded.py", "def a():\n    return 1\n" * 60 + f'DATA = "{"A" * 6_000}"\n'),
        ("points.csv", "x,y\n" + "1.5,2.25\n" * 1_000),
    ],
)
def test_what_people_write_is_no_flood(tree: Path, name: str, text: str) -> None:
    """ING-33: whatever it is called, and however long its lines are."""
    write(tree / name, text)
    found = list(read_source(tree, SETTINGS, domain=None))
    assert [each for each in found if isinstance(each, Rejection)] == []
    assert sum(len(each.text) for each in found if isinstance(each, Document)) >= len(text) / 2


def test_a_name_says_what_a_text_is_only_where_it_is_long(tree: Path) -> None:
    """ING-33: a short lock file fills no page."""
    document, notes = read(tree, "uv.lock", PACKAGE)
    assert (document.content_type, document.text, notes) == (ContentType.CONFIGURATION, PACKAGE, [])


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["<text>", "<text", "<text x='1'>a", "<title><b", "<"])
def test_a_drawing_of_tags_without_end_costs_no_more_than_its_beginning(tree: Path, piece: str) -> None:
    """ING-3: megabytes of it, which a pattern that looks for the end of each would read again and again."""
    document, _ = read(tree, "hostile.svg", piece * (SETTINGS.max_file_bytes // len(piece)))
    assert document.text.startswith("hostile.svg: drawing")
