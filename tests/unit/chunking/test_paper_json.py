"""ING-7: papers in JSON are read as papers in Markdown."""

import pytest

from tests.support.papers import JSON
from weft.chunking.chunker import chunk_document
from weft.chunking.paper.json_layouts import paper_from_json
from weft.chunking.paper.paper import is_paper
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Domain


def test_the_layout_of_body_texts_and_entries() -> None:
    """ING-7: blocks of one section are one; what the text calls a reference is its key in the list."""
    assert paper_from_json(JSON) == (
        "# Counting Reeds in Moving Water\n\nAuthors: Ada M. Wader; Ben Hölt\n\n"
        "## Abstract\n\nWe count reeds from a boat.\n\n"
        "## Introduction\n\nReeds are hard to count [4].\n\nOthers stand still (Still, 2015).\n\n"
        "## Model\n\n\\# of reeds per metre.\n\n"
        "## References\n\n"
        "- [4] A Wader (2017). Counting what stands still in a marsh. Wetlands. doi:10.1000/marsh.17\n"
        "- [BIBREF4] Still (2015). Standing still for a very long time\n"
    )


def test_the_layout_of_nested_sections() -> None:
    """ING-7: headings by depth, paragraphs as they are, references as they are written."""
    paper = {
        "title": "Reeds",
        "authors": "A. Wader",
        "abstract": "Tall.",
        "sections": [
            {"heading": "Water", "paragraphs": ["Wet.", "Deep."], "subsections": [{"title": "Mud", "text": "Soft."}]},
        ],
        "references": ["[1] B. Hölt. Roots.", {"title": "Stems", "year": 2001}],
    }
    assert paper_from_json(paper) == (
        "# Reeds\n\nAuthors: A. Wader\n\n## Abstract\n\nTall.\n\n## Water\n\nWet.\n\nDeep.\n\n### Mud\n\nSoft.\n\n"
        "## References\n\n- [1] B. Hölt. Roots.\n- [2] (2001). Stems\n"
    )


def test_it_is_then_a_paper_whose_citations_lead_somewhere() -> None:
    """ING-7: from JSON to links."""
    text = paper_from_json(JSON) or ""
    assert is_paper(text, "a.md") == "markdown"
    document = Document(
        uri="a",
        content_type=ContentType.PAPER,
        domain=Domain.ACADEMIC,
        text=text,
        language="markdown",
        trust_level=60,
    )
    chunks = chunk_document(document, ChunkSizes(200, 100, 5, 10), lambda one: len(one.split()))
    intro = next(chunk for chunk in chunks if chunk.heading_path[-1] == "Introduction")
    assert [link.target for link in intro.links] == [
        "doi:10.1000/marsh.17",
        "Counting what stands still in a marsh",
        "Standing still for a very long time",
    ]


def deep(levels: int) -> object:
    value: object = "text"
    for _ in range(levels):
        value = {"title": "a", "abstract": "b", "sections": [{"heading": "c", "text": [value]}]}
    return value


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "text",
        {},
        {"title": "A setting"},
        {"title": "A page", "sections": [1, 2]},
        {"abstract": 3, "title": {"a": 1}},
        {"name": "pkg", "content": [{"type": "x"}]},
    ],
)
def test_other_values_are_no_papers(value: object) -> None:
    """ING-1: no abstract and no named sections with text."""
    assert not paper_from_json(value)


@pytest.mark.parametrize(
    "value",
    [
        {"title": "A", "abstract": "b", "sections": {"a": 1}, "references": 3, "authors": {"a": 1}},
        {
            "title": "A",
            "abstract": "b",
            "body_text": [None, 1, {"text": None}, {"cite_spans": 3}],
            "bib_entries": {"a": 3},
        },
        {
            "title": "A",
            "abstract": "b",
            "authors": [None, {"first": 3, "middle": 4}],
            "references": [None, {"doi": []}],
        },
        deep(90),
    ],
)
def test_wrong_types_inside_a_paper_are_passed_over(value: object) -> None:
    """ING-3: whatever a file holds."""
    text = paper_from_json(value)
    assert text is not None
    assert "## Abstract" in text
