"""Laws of chunking prose: Markdown, reStructuredText, papers and plain text (ING-6, ING-7, ING-10, ING-12, ING-13)."""

import os
import re
import sysconfig
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.support.papers import LATEX, MARKDOWN
from tests.support.shown import shown
from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.settings import load_settings

SMALL = ChunkSizes(max_tokens=40, target_tokens=24, min_tokens=5, overlap_tokens=6, list_tokens=12, paragraph_tokens=20)
LARGE = ChunkSizes(max_tokens=400, target_tokens=300, min_tokens=30, overlap_tokens=50, list_tokens=200)
PACKAGES = Path(sysconfig.get_paths()["purelib"])
LATEX_FRAGMENTS = st.sampled_from(
    [
        *(
            "\\section{One}\n",
            "\\subsection*{Two}\\label{a}\n",
            "\\title{T}\n",
            "\\author{A \\and B}\n",
            "\\begin{document}\n",
        ),
        *("\\begin{equation}\nx\n\n", "\\end{equation}\n", "$$", "\\[", "\\]", "where it is so. And more. "),
        *("\\begin{theorem}\n", "\\end{theorem}\n", "\\begin{itemize}\n", "\\item one. Two.\n", "\\end{itemize}\n"),
        *("\\begin{figure}\n", "\\caption{C. D.}\n", "\\end{figure}\n", "\\begin{verbatim}\n", "\\end{verbatim}\n"),
        *("\\cite{k,l}", "\\ref{a}", "\\begin{thebibliography}{9}\n", "\\bibitem{k} A. B. C d e f.\n"),
        *("% comment\n", "\\%", "{", "}", "\\", "\\\\[2pt]", "\n\n", " ", "é", "漢字。", "Words of prose. And more! "),
        *("w" * 50, "a b c d e f g h i j k l m n o p\n" * 3, "\r\n", "\\end{document}"),
    ]
)
RST_FRAGMENTS = st.sampled_from(
    [
        *(
            "Title\n=====\n",
            "---\n",
            "Part\n----\n",
            "=====\nOver\n=====\n",
            ".. _label:\n",
            ".. note::\n",
            "   deep. Er.\n",
        ),
        *("- item\n", "  more\n", "1. one\n", ":field: value\n", "So::\n\n", "    literal\n", "+--+--+\n", "| a|b |\n"),
        *(
            "=== ===\n",
            "a   b\n",
            ">>> x\n",
            "| line\n",
            "term\n",
            ".. code::\n\n",
            ".. [1] Note. More.\n",
            "[1]_ ",
            "x_ ",
        ),
        *(":ref:`a <b>`", "`a`_", "``b``", "\n", "\n", "\t", "\r\n", "Words of prose. And more! ", "漢字。", "w" * 50),
    ]
)


def words(text: str) -> int:
    return len(text.split())


def words_and_signs(text: str) -> int:
    """As encoders count, so that what shows without its marks is never longer: `a<br/>b` has six tokens, `a b` two."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def a_document(text: str, content_type: ContentType, language: str | None = None) -> Document:
    return Document(
        uri="tree/file",
        content_type=content_type,
        domain=Domain.GENERAL,
        text=text,
        language=language,
        trust_level=70,
    )


DOCUMENTS = st.one_of(
    st.lists(LATEX_FRAGMENTS, max_size=25).map(lambda parts: a_document("".join(parts), ContentType.PAPER, "latex")),
    st.lists(RST_FRAGMENTS, max_size=25).map(lambda parts: a_document("".join(parts), ContentType.RST)),
)


def check_laws(document: Document, chunks: list[Chunk], sizes: ChunkSizes) -> None:
    source = document.text.encode()
    covered = 0
    for chunk in chunks:
        assert chunk.start_byte <= covered, "every byte is in a chunk"
        covered = max(covered, chunk.end_byte)
        assert chunk.tokens <= sizes.max_tokens
        assert chunk.text.endswith(shown(document, chunk))
        assert 0 < chunk.completeness <= 1
        assert chunk.level in range(4)
    assert covered == len(source) or not source.strip()
    ids = [chunk.chunk_id for chunk in chunks]
    assert len(set(ids)) == len(ids)
    assert all(chunk.parent_id is None or chunk.parent_id in ids[: chunk.sequence] for chunk in chunks)


@given(DOCUMENTS, st.sampled_from([SMALL, LARGE]))
def test_structure_however_broken_covers_the_document(document: Document, sizes: ChunkSizes) -> None:
    """ING-6, ING-7, ING-12, ING-13: every byte in a chunk, none above the maximum, parents first, twice the same."""
    chunks = chunk_document(document, sizes, words)
    check_laws(document, chunks, sizes)
    assert chunk_document(document, sizes, words) == chunks


NAMES = st.lists(st.sampled_from([f"name {number}" for number in range(12)]), min_size=1, max_size=6, unique=True)


def an_rst_section(name: str) -> str:
    return f".. _{name}:\n\nAbout {name}\n--------------\n\nWords on {name}::\n\n    literal\n\n"


def a_latex_section(name: str) -> str:
    return f"\\section{{About {name}}}\\label{{{name}}}\nWords on {name} \\cite{{{name}}}.\n\n\\[ x \\]\n\n"


def a_paper_section(name: str) -> str:
    return f"## About {name}\n\nWords on {name} [1].\n\n**Theorem 1.** It is so.\n\n"


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (an_rst_section, ("", ContentType.RST, None)),
        (a_latex_section, ("\\title{T}\n\\begin{document}\n\\maketitle\n\n", ContentType.PAPER, "latex")),
        (a_paper_section, ("# T\n\n## Abstract\n\nSays.\n\n", ContentType.PAPER, "markdown")),
    ],
)
@given(names=NAMES, at=st.integers(0, 6))
def test_identities_survive_edits_elsewhere(build, kind, names: list[str], at: int) -> None:
    """ING-13: a section put anywhere between the others leaves their ids and hashes as they are."""
    front, content_type, language = kind
    before = [build(name) for name in names]
    after = [*before[:at], build("another"), *before[at:]]
    ids = [
        {
            (chunk.chunk_id, chunk.content_hash)
            for chunk in chunk_document(a_document(front + "".join(sections), content_type, language), LARGE, words)
        }
        for sections in (before, after)
    ]
    assert ids[0] < ids[1]


BLOCKS = {
    "directive": (".. code-block:: py\n\n   one. Two.\n\n   three\n", ContentType.RST, None),
    "literal": ("    one. Two.\n\n    three\n", ContentType.RST, None),
    "table": ("+---+---+\n| a | b |\n+---+---+\n| c | d |\n+---+---+\n", ContentType.RST, None),
    "equation": (
        "So it is\n\\begin{equation}\n a = b.\n\n c\n\\end{equation}\nwhere a is one.",
        ContentType.PAPER,
        "latex",
    ),
    "figure": ("\\begin{figure}\n x. Y\n\n\\caption{Z. A.}\n\\end{figure}\n", ContentType.PAPER, "latex"),
    "theorem": ("\\begin{lemma}\n x. Y.\n\n Z.\n\\end{lemma}\n", ContentType.PAPER, "latex"),
    "proof": ("*Proof.* Let it be. Then so.\n\nAnd so on. □", ContentType.PAPER, "markdown"),
    "caption": ("Table 2: What. And why.\n\n| a | b |\n| - | - |\n| c | d |\n", ContentType.PAPER, "markdown"),
}


@pytest.mark.parametrize("name", BLOCKS)
@given(before=st.integers(0, 20), after=st.integers(0, 20), filler=st.sampled_from(["Some words. ", "Some words.\n\n"]))
def test_no_special_unit_is_cut(name: str, before: int, after: int, filler: str) -> None:
    """ING-6, ING-7: whatever surrounds it, and though its section is above the target."""
    block, content_type, language = BLOCKS[name]
    text = filler * before + "\n\nSo it is::\n\n" + block + "\n\n" + filler * after
    chunks = chunk_document(a_document(text, content_type, language), SMALL, words)
    assert any(block.strip() in chunk.text for chunk in chunks), [chunk.text for chunk in chunks]


SENTENCES = st.lists(st.integers(1, 90), min_size=1, max_size=40)


@pytest.mark.parametrize(
    "sizes",
    [
        ChunkSizes(max_tokens=64, target_tokens=64, min_tokens=20, overlap_tokens=16),
        ChunkSizes(max_tokens=200, target_tokens=64, min_tokens=20, overlap_tokens=0),
        ChunkSizes(max_tokens=64, target_tokens=64, min_tokens=32, overlap_tokens=31),
    ],
)
@given(lengths=SENTENCES, end=st.sampled_from([" ", "\n", "\n\n"]))
def test_no_window_of_text_is_below_the_minimum(sizes: ChunkSizes, lengths: list[int], end: str) -> None:
    """ING-10: except where the text itself is; and windows that fit are of whole sentences."""
    text = end.join(" ".join(["Word", *["word"] * (length - 1)]) + "." for length in lengths)
    chunks = chunk_document(a_document(text, ContentType.TEXT), sizes, words)
    assert all(min(sizes.min_tokens, words(text)) <= chunk.tokens <= sizes.max_tokens for chunk in chunks)
    assert all(right.start_byte <= left.end_byte for left, right in pairwise(chunks))
    if max(lengths) <= sizes.target_tokens - sizes.min_tokens:
        assert all(chunk.text.startswith("Word") and chunk.text.endswith(".") for chunk in chunks)


@given(st.integers(60, 400), st.integers(1, 8))
def test_neighbouring_windows_of_text_share_the_overlap(sentences: int, length: int) -> None:
    """ING-10: target 512 with 64 overlap, as near as whole sentences come to it."""
    sizes = ChunkSizes(max_tokens=8192, target_tokens=512, min_tokens=50, overlap_tokens=64)
    text = " ".join(f"S{number}" + " word" * (length - 1) + "." for number in range(sentences))
    chunks = chunk_document(a_document(text, ContentType.TEXT), sizes, words)
    for left, right in pairwise(chunks[:-1]):
        shared = left.text[left.text.index(right.text.split(" ", 1)[0]) :]
        assert 64 - length < words(shared) <= 64
        assert 512 - length < left.tokens <= 512


@pytest.mark.parametrize("domain", Domain)
@given(length=st.integers(1, 14), lines=st.integers(200, 400))
def test_lines_of_what_cannot_be_cut_otherwise_overlap(domain: Domain, length: int, lines: int) -> None:
    """ING-12: at last at lines, with 50 to 100 tokens that both parts hold."""
    overlap = load_settings(environment={}).chunking.overlap_tokens[domain]
    sizes = ChunkSizes(max_tokens=8192, target_tokens=512, min_tokens=50, overlap_tokens=overlap).capped(254)
    fence = "".join(f"line{number}" + " word" * (length - 1) + "\n" for number in range(lines))
    chunks = chunk_document(a_document(f"# T\n\n```\n{fence}```\n", ContentType.MARKDOWN), sizes, words)
    for left, right in pairwise(chunks[:-1]):
        shared = left.text[left.text.rindex(right.text.split("\n")[2].split(" ")[0] + (" " if length > 1 else "\n")) :]
        assert 50 <= words(shared) <= 100
        assert right.text.startswith("T\n```\n")


@pytest.fixture(scope="module")
def real() -> list[Document]:
    """Pages that come with the installed packages."""
    kinds = {".md": ContentType.MARKDOWN, ".rst": ContentType.RST}
    paths = sorted(
        Path(folder, name) for folder, _, names in os.walk(PACKAGES) for name in names if name.endswith((".md", ".rst"))
    )
    return [a_document(path.read_text(encoding="utf-8", errors="replace"), kinds[path.suffix]) for path in paths]


@pytest.mark.parametrize("sizes", [LARGE, LARGE.capped(100)], ids=["whole", "capped"])
def test_the_laws_hold_on_real_pages(real: list[Document], sizes: ChunkSizes) -> None:
    """ING-6, ING-12, ING-13: the Markdown and reStructuredText of the installed packages."""
    for document in real:
        check_laws(document, chunk_document(document, sizes, words_and_signs), sizes)


def test_no_fence_and_no_table_of_a_real_page_is_cut(real: list[Document]) -> None:
    """ING-6: checked against the tokens of the Markdown parser; those that fit beside their headings' path."""
    uncut = 0
    for document in real:
        if document.content_type is not ContentType.MARKDOWN:
            continue
        chunks = chunk_document(document, LARGE, words)
        lines = document.text.splitlines()
        for token in MarkdownIt("commonmark").enable("table").parse(document.text):
            if token.type not in {"fence", "table_open"} or token.level or token.map is None:
                continue
            first, last = token.map
            if words("\n".join(lines[first:last])) <= LARGE.max_tokens - LARGE.target_tokens // 2:
                starts = {chunk.start_line for chunk in chunks}
                assert not starts & set(range(first + 2, last + 1)), (document.text[:80], first)
                uncut += 1
    assert uncut > 50


@pytest.mark.parametrize(("text", "language"), [(LATEX, "latex"), (MARKDOWN, "markdown")])
@given(
    st.builds(ChunkSizes, st.integers(60, 90), st.integers(20, 60), st.integers(0, 20), st.integers(0, 19)),
    st.integers(0, 3000),
)
def test_the_laws_hold_on_papers_wherever_they_end(text: str, language: str, sizes: ChunkSizes, end: int) -> None:
    """ING-7, ING-12, ING-13: a paper cut off in the middle is still covered."""
    document = a_document(text[:end], ContentType.PAPER, language)
    check_laws(document, chunk_document(document, sizes, words), sizes)
