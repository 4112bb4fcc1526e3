"""ING-7: papers in LaTeX and in Markdown."""

import pytest

from tests.support.papers import LATEX, MARKDOWN
from weft.chunking.chunker import chunk_document
from weft.chunking.paper.citations import BibliographyEntry, title_in
from weft.chunking.paper.paper import is_paper
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.links import LinkKind

SIZES = ChunkSizes(max_tokens=60, target_tokens=60, min_tokens=5, overlap_tokens=10, list_tokens=60)
TITLE = "Counting Reeds in Moving Water"


def words(text: str) -> int:
    return len(text.split())


def chunks_of(text: str, language: str, sizes: ChunkSizes = SIZES) -> list[Chunk]:
    document = Document(
        uri="tree/a",
        content_type=ContentType.PAPER,
        domain=Domain.ACADEMIC,
        text=text,
        language=language,
        trust_level=60,
    )
    return chunk_document(document, sizes, words)


def by_path(chunks: list[Chunk]) -> dict[str, Chunk]:
    """The head of each section by its own heading."""
    return {chunk.heading_path[-1]: chunk for chunk in reversed(chunks) if chunk.level < 3}


@pytest.mark.parametrize(
    ("text", "language", "prefix"), [(LATEX, "latex", ("", "")), (MARKDOWN, "markdown", ("2. ", "2.1 "))]
)
def test_levels_are_title_section_subsection_and_special_unit(
    text: str, language: str, prefix: tuple[str, str]
) -> None:
    """ING-7: 0 title, authors and abstract, 1 section, 2 subsection, 3 what stands apart in a long section."""
    chunks = chunks_of(text, language, ChunkSizes(max_tokens=60, target_tokens=40, min_tokens=5, overlap_tokens=10))
    heads = by_path(chunks)
    title, model, boats = heads[TITLE], heads[f"{prefix[0]}Model"], heads[f"{prefix[1]}Boats"]
    assert [chunk.level for chunk in (title, model, boats)] == [0, 1, 2]
    assert "Ada Wader" in title.text
    assert "unbiased, though the water moves" in title.text
    assert boats.heading_path == (TITLE, f"{prefix[0]}Model", f"{prefix[1]}Boats")
    assert (boats.parent_id, model.parent_id) == (model.chunk_id, title.chunk_id)
    special = {chunk.kind: chunk for chunk in chunks if chunk.level == 3}
    assert {"theorem", "proof", "figure", "algorithm"} <= set(special)
    assert special["theorem"].parent_id == model.chunk_id
    assert special["theorem"].text.startswith(f"{TITLE} > {prefix[0]}Model\n")


SPECIAL_LATEX = (
    ("\\begin{equation}", "length of the bank."),
    ("The rate of reeds per metre", "\\end{equation}"),
    ("\\begin{thm}", "\\end{thm}"),
    ("\\begin{proof}", "\\end{proof}"),
    ("\\begin{figure}", "\\end{figure}"),
    ("\\begin{algorithm}", "\\end{algorithm}"),
    ("\\begin{verbatim}", "\\end{verbatim}"),
)
SPECIAL_MARKDOWN = (
    ("The rate of reeds per metre", "length of the bank."),
    ("**Theorem 1", "unbiased."),
    ("*Proof.*", "□"),
    ("Table 1: Boats", "| punt | 6 |"),
    ("![The boat]", "on the left."),
    ("**Algorithm 1.**", "look right"),
)


@pytest.mark.parametrize("target", [45, 60, 100, 2000])
@pytest.mark.parametrize(
    ("text", "language", "units"), [(LATEX, "latex", SPECIAL_LATEX), (MARKDOWN, "markdown", SPECIAL_MARKDOWN)]
)
def test_special_units_are_never_cut(text: str, language: str, units: tuple[tuple[str, str], ...], target: int) -> None:
    """ING-7: an equation with its explanation, a figure or table with its caption, algorithms, theorems, proofs."""
    sizes = ChunkSizes(max_tokens=max(target, 80), target_tokens=target, min_tokens=5, overlap_tokens=10)
    chunks = chunks_of(text, language, sizes)
    for first, last in units:
        start = text.index(first)
        unit = text[start : text.index(last, start) + len(last)]
        assert any(unit.replace("](boat.png)", "").replace("![", "") in chunk.text for chunk in chunks), unit


@pytest.mark.parametrize(
    ("text", "language", "intro"), [(LATEX, "latex", "Introduction"), (MARKDOWN, "markdown", "1. Introduction")]
)
def test_citations_stay_and_lead_to_what_the_bibliography_gives(text: str, language: str, intro: str) -> None:
    """ING-7: markers in the text, the reference beside the chunk, links by DOI, arXiv identifier and title."""
    chunk = by_path(chunks_of(text, language, ChunkSizes(200, 100, 5, 10)))[intro]
    assert "\\cite{wader2017count,holt2019}" in chunk.text or "[1, 2]" in chunk.text
    cited = [link.target for link in chunk.links if link.kind is LinkKind.CITES]
    assert {
        "doi:10.1000/marsh.17",
        "Counting what stands still in a marsh",
        "arxiv:1901.01234",
        "Reeds and their many roots",
    } <= set(cited)
    notes = {name: text for name, text in chunk.attributes.items() if name.startswith("cite:")}
    assert notes["cite:wader2017count" if language == "latex" else "cite:1"].startswith(
        "A. Wader and B. Hölt. Counting"
    )


def test_a_key_without_an_entry_is_cited_as_it_is() -> None:
    """ING-7: the bibliography may stand in another file."""
    links = by_path(chunks_of(LATEX, "latex", ChunkSizes(200, 100, 5, 10)))["Introduction"].links
    assert "still" in [link.target for link in links if link.kind is LinkKind.CITES]


def test_author_and_year_find_their_reference() -> None:
    """ING-7: "(Still et al., 2015)" cites the entry of that author and year."""
    links = by_path(chunks_of(MARKDOWN, "markdown", ChunkSizes(200, 100, 5, 10)))["1. Introduction"].links
    assert "Standing still for a very long time" in [link.target for link in links]


def test_labels_are_anchors_and_references_lead_to_them() -> None:
    """ING-6, ING-14: within one source."""
    chunks = chunks_of(LATEX, "latex", ChunkSizes(200, 100, 5, 10))
    intro = by_path(chunks)["Introduction"]
    assert by_path(chunks)["Model"].anchor == "sec:model"
    assert "#sec:model" in [link.target for link in intro.links if link.kind is LinkKind.REFERENCES]


def test_comments_and_verbatim_text_hold_no_structure() -> None:
    """ING-7: they stay in the text."""
    chunks = chunks_of(LATEX, "latex")
    titles = {title for chunk in chunks for title in chunk.heading_path}
    assert titles == {TITLE, "Introduction", "Model", "Boats", "Conclusion", "References"}
    assert any("% \\section{Not a section}" in chunk.text for chunk in chunks)


def test_the_title_knows_its_authors() -> None:
    """ING-7: commands and thanks left out."""
    assert by_path(chunks_of(LATEX, "latex"))[TITLE].attributes["authors"] == "Ada Wader; Ben Hölt"


@pytest.mark.parametrize(
    "broken",
    [
        "\\begin{document}\\section{A}\n\\begin{equation} x\n\\section{B}\nText.\n",
        "\\section{A}\n\\end{theorem} \\end{document}\n\\section{B}\n\\begin{itemize}\\item a",
        "\\section{A}\n$$ x \n\nText.\n\n\\[ y\n\\section{B} z",
        "\\section{A}\n\\begin{figure}\n\\begin{table}\n\\end{figure}\n\\section{B}\n\\begin{verbatim}",
        "\\section{A\n\n\\section{B}\n}}}{{{",
    ],
)
def test_broken_latex_loses_structure_and_no_text(broken: str) -> None:
    """ING-7: what is left open ends with its section."""
    chunks = chunks_of(broken, "latex")
    assert chunks[-1].heading_path[-1].startswith("B")
    assert (chunks[0].start_byte, chunks[-1].end_byte) == (0, len(broken))


@pytest.mark.parametrize(
    ("text", "name", "language"),
    [
        (LATEX, "a.tex", "latex"),
        (LATEX, "a", "latex"),
        (MARKDOWN, "a.md", "markdown"),
        (MARKDOWN.replace("## Abstract", "**Abstract.**"), "a.md", "markdown"),
        (MARKDOWN.replace("## References", "## Other"), "a.md", None),
        ("\\newcommand{\\a}{b}\n", "macros.tex", None),
        ("About `\\documentclass` in prose.\n", "a.md", None),
        (LATEX, "a.py", None),
    ],
)
def test_papers_are_told_by_content(text: str, name: str, language: str | None) -> None:
    """ING-1: a class in LaTeX, an abstract and references in Markdown."""
    assert is_paper(text, name) == language


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('A. Wader, "Reeds and their many roots," Marsh, 2019.', "Reeds and their many roots"),
        ("Wader, A., & Hölt, B. (2019). Reeds and their many roots. Marsh, 4(2), 1-9.", "Reeds and their many roots"),
        ("Ada Wader and Ben Hölt. 2019. Reeds and their many roots. In Marshes.", "Reeds and their many roots"),
        ("A. Wader and B. Hölt. Reeds and their many roots. In Proc. of Marshes, 2019.", "Reeds and their many roots"),
        ("Personal communication, 2019. doi:10.1000/a.b", None),
    ],
)
def test_the_title_of_a_reference_is_found(text: str, title: str | None) -> None:
    """ING-7: in the styles that journals use."""
    assert title_in(text) == title


def test_a_reference_without_identifiers_is_found_by_its_key() -> None:
    """ING-7: nothing else is known of it."""
    assert BibliographyEntry("still", "Personal communication.").targets == ("still",)
