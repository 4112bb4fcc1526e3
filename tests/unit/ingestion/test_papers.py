"""ING-1, ING-7: papers among the files of a tree."""

import json
from pathlib import Path

import pytest

from tests.support.papers import JSON, LATEX, MARKDOWN
from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Domain
from weft.ingestion.sources.files import kind_of
from weft.ingestion.sources.sources import read_source
from weft.settings import load_settings

NUMBERED = {**JSON, "doi": "10.1000/reeds.5", "arxiv_id": "2001.01234"}
FILES = {"a.tex": LATEX, "b.md": MARKDOWN, "c.json": json.dumps(NUMBERED)}
TITLE = "Counting Reeds in Moving Water"


@pytest.fixture
def papers(tmp_path: Path) -> dict[str, Document]:
    """The papers of a folder by the name of their file, read as a source is."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    results = read_source(tmp_path, load_settings(environment={}).ingest, domain=None)
    return {one.uri.rpartition("/")[2]: one for one in results if isinstance(one, Document)}


@pytest.mark.parametrize(("name", "language"), [("a.tex", "latex"), ("b.md", "markdown"), ("c.json", "json")])
def test_papers_are_told_by_their_content(name: str, language: str) -> None:
    """ING-1: Markdown, LaTeX or JSON with an abstract and sections."""
    kind = kind_of(name, FILES[name])
    assert (kind.content_type, kind.domain, kind.language) == (ContentType.PAPER, Domain.ACADEMIC, language)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", '{"abstract": 1}'), ("a.json", '{"abstract": '), ("a.md", "# A\n\n## Abstract\n\nNo references.\n")],
)
def test_other_files_are_none(name: str, text: str) -> None:
    """ING-1: an abstract alone does not make a paper."""
    assert kind_of(name, text).content_type is not ContentType.PAPER


def test_a_paper_has_the_title_by_which_others_cite_it(papers: dict[str, Document]) -> None:
    """ING-7: title, authors and numbers as the paper itself says."""
    assert {one.title for one in papers.values()} == {TITLE}
    assert papers["a.tex"].authors == ("Ada Wader", "Ben Hölt")
    assert papers["c.json"].authors == ("Ada M. Wader", "Ben Hölt")
    assert {name: papers["c.json"].metadata[name] for name in ("doi", "arxiv")} == {
        "doi": "10.1000/reeds.5",
        "arxiv": "2001.01234",
    }


def test_every_notation_is_cut_as_a_paper(papers: dict[str, Document]) -> None:
    """ING-7: title on level 0, sections on level 1."""
    for document in papers.values():
        chunks = chunk_document(document, ChunkSizes(200, 100, 5, 10), lambda text: len(text.split()))
        levels = {chunk.heading_path[-1].lstrip("12. "): chunk.level for chunk in chunks if chunk.level < 3}
        assert (levels[TITLE], levels["Introduction"], levels["Model"]) == (0, 1, 1)


def test_a_book_of_several_files_is_one(tmp_path: Path) -> None:
    """ING-35: what a file takes in, directly or through others, stands under its title; what none takes in does not."""
    files = {
        "main.tex": "\\documentclass{book}\n\\title{On Birds}\n\\begin{document}\n\\input{chapters/intro}\n",
        "chapters/intro.tex": "\\chapter{Introduction}\nBirds fly.\n\\include{chapters/deep.tex}\n% \\input{other}\n",
        "chapters/deep.tex": "\\section{Nests}\nNests are round.\n",
        "other.tex": "\\section{Left out}\nOf another time.\n",
    }
    (tmp_path / "chapters").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    read = read_source(tmp_path, load_settings(environment={}).ingest, domain=None)
    documents = {one.uri.rpartition("/")[2]: one for one in read if isinstance(one, Document)}
    assert {one.content_type for one in documents.values()} == {ContentType.PAPER}
    sizes = ChunkSizes(max_tokens=60, target_tokens=40, min_tokens=5, overlap_tokens=0)
    paths = {
        name: chunk_document(document, sizes, lambda text: len(text.split()))[0].heading_path
        for name, document in documents.items()
    }
    assert paths == {
        "main.tex": ("On Birds",),
        "intro.tex": ("On Birds", "Introduction"),
        "deep.tex": ("On Birds", "Nests"),
        "other.tex": ("Left out",),
    }
