"""ING-11, ING-12: whatever the strategy and the budgets, every byte is covered and no chunk is above the limit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.chunking.chunker import chunk_document
from weft.chunking.units.hierarchy import REMAINDER, fitted, leading, trailing
from weft.chunking.units.parsed import ParsedUnit
from weft.chunking.units.splitting import ChunkSizes, Cuts, SizedText, TokenMeter, digest
from weft.domain.chunks import Chunk, Overflow, made_by, pairs_of
from weft.domain.documents import ContentType, Document, Domain

PIECES = st.sampled_from(
    [
        "# A title of four words\n\n",
        "## Another heading\n\n",
        "One sentence of prose. Another one follows it! Is this the third?\n\n",
        "A paragraph " + "that goes on and on " * 12 + "to its end.\n\n",
        "```py\nvalue = 1\n\nvalue = 2\n```\n\n",
        "- item one\n- item two\n\n",
        "| a | b |\n| - | - |\n| 1 | 2 |\n\n",
        "def large(value):\n" + "    value = combine(value, 7)\n" * 20 + "\n\n",
        "class Holder:\n    def small(self):\n        return 1\n\n\n",
        "w" * 90 + "\n",
        "漢字。\n\n",
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
SIZES = st.builds(
    ChunkSizes,
    max_tokens=st.sampled_from([40, 60]),
    target_tokens=st.sampled_from([24, 40]),
    min_tokens=st.just(5),
    overlap_tokens=st.just(6),
    context_before=st.sampled_from([None, 1, 3, 12]),
    context_after=st.sampled_from([0, 4, 10]),
    overflow=st.sampled_from(Overflow),
    learned=st.just("v000001"),
)
KINDS = st.sampled_from([ContentType.CODE, ContentType.MARKDOWN, ContentType.TEXT])


def words(text: str) -> int:
    return len(text.split())


def a_document(text: str, content_type: ContentType = ContentType.MARKDOWN) -> Document:
    language = "python" if content_type is ContentType.CODE else None
    return Document(
        uri="tree/a", content_type=content_type, domain=Domain.GENERAL, language=language, text=text, trust_level=70
    )


HEADS = ("| a | b |", "```py")


def cut(text: str, sizes: ChunkSizes, content_type: ContentType = ContentType.MARKDOWN) -> list[Chunk]:
    return chunk_document(a_document(text, content_type), sizes, words)


@given(TEXTS, SIZES, KINDS)
def test_every_byte_is_covered_and_no_chunk_is_above_the_maximum(
    text: str, sizes: ChunkSizes, content_type: ContentType
) -> None:
    """ING-11, ING-12, ING-13: for every strategy, and with context before and after."""
    chunks = cut(text, sizes, content_type)
    if not text.strip():
        assert not chunks
        return
    assert chunks[0].start_byte == 0
    assert all(right.start_byte <= left.end_byte for left, right in pairwise(chunks))
    assert max(chunk.end_byte for chunk in chunks) == len(text.encode())
    assert all(chunk.tokens <= sizes.max_tokens for chunk in chunks)
    assert chunks == cut(text, sizes, content_type)


@given(TEXTS, SIZES, KINDS)
def test_budgets_for_context_hold_and_are_told(text: str, sizes: ChunkSizes, content_type: ContentType) -> None:
    """ING-11: what stands before and after keeps within its budget, and the snapshot tells how much it is.

    The head of a table or a fence comes on top of it, within half of the target (ING-36).
    """
    source = text.encode()
    for chunk in cut(text, sizes, content_type):
        told = pairs_of(chunk.sizing)
        before, after = int(told["leading"]), int(told["trailing"])
        if sizes.context_before is not None:
            context = " ".join(chunk.text.split()[:before])
            assert before <= sizes.leading_budget + next((words(head) for head in HEADS if context.endswith(head)), 0)
        assert after <= sizes.trailing_budget
        if chunk.kind != REMAINDER:
            own = source[chunk.start_byte : chunk.end_byte].decode().strip()
            assert own in chunk.text
            assert words(chunk.text) == before + words(own) + after


@given(SIZES, st.booleans(), st.integers(0, 9), st.integers(0, 60))
def test_no_unit_is_cut_for_the_sake_of_a_context_above_its_budget(
    sizes: ChunkSizes, wide: bool, spare: int, context: int
) -> None:
    """ING-12: a context gives way to the unit that it stands before, and only where there is no room for both."""
    limit = sizes.max_tokens if wide else sizes.target_tokens
    length = limit - sizes.leading_budget - spare
    source = b"word " * length
    unit = ParsedUnit(start=0, end=len(source), path="unit", kind="unit", level=2, context=" ".join(["name"] * context))
    anywhere = partial(Cuts.between, 0, len(source), range(0, len(source), 5))
    (whole,) = fitted(SizedText(source.decode(), sizes, words), unit, anywhere, limit=limit)
    assert (whole.start, whole.end, whole.share, whole.split) == (0, len(source), 1.0, None)
    free = sizes.context_before is None and length + context <= limit
    assert words(whole.context) == (context if free else min(context, sizes.leading_budget))


@given(TEXTS, SIZES)
def test_text_that_is_cut_off_is_in_a_marked_part_with_a_digest(text: str, sizes: ChunkSizes) -> None:
    """ING-11: truncation leaves the bytes it does not keep to a part of kind "remainder", and makes no other loss."""
    chunks = cut(text, replace(sizes, context_after=0))
    kept = "\n".join(chunk.text for chunk in chunks)
    for chunk in chunks:
        if chunk.kind != REMAINDER:
            continue
        assert made_by(chunk).overflow is Overflow.TRUNCATE
        assert chunk.completeness < 1.0
        rest = text.encode()[chunk.start_byte : chunk.end_byte].decode()
        own = chunk.text.split("\n")[pairs_of(chunk.sizing)["leading"] != "0" :]
        assert all(line.strip() in rest for line in own)
    if sizes.overflow is not Overflow.TRUNCATE:
        assert all(chunk.kind != REMAINDER for chunk in chunks)
        assert set(text.split()) <= set(kept.split())


@pytest.mark.parametrize("overflow", Overflow)
def test_strategies_make_different_chunks_of_an_oversized_section(overflow: Overflow) -> None:
    """ING-11: blocks stay whole under recursive, windows are full under sentence, two chunks are left of truncate."""
    short, long = "Four words of prose. ", "A sentence that has ten words in it, no more. "
    text = "# Title\n\n" + "\n\n".join([short * 4 + long] * 6)
    chunks = cut(text, ChunkSizes(40, 40, 5, 6, overflow=overflow))
    paragraphs = [(short * 4 + long).strip()] * 6
    whole = sum(any(paragraph in chunk.text for chunk in chunks) for paragraph in paragraphs)
    if overflow is Overflow.RECURSIVE:
        assert (len(chunks), whole) == (6, 6)
    elif overflow is Overflow.SENTENCE:
        assert len(chunks) == 5  # 158 words in windows of 40, less what the heading takes of each
        assert min(chunk.tokens for chunk in chunks[:-1]) > 26
    else:
        assert [chunk.kind for chunk in chunks] == ["section", REMAINDER]


def test_no_sentence_cut_falls_into_a_fence_or_a_table() -> None:
    """ING-6, ING-11."""
    fence = "```py\nOne. Two. Three.\nFour. Five. Six.\n```"
    table = "| a. B. | c |\n| - | - |\n| One. Two. | Three. |"
    text = "# Title\n\n" + f"Some words. More words.\n\n{fence}\n\n{table}\n\n" * 5
    chunks = cut(text, ChunkSizes(40, 24, 5, 6, overflow=Overflow.SENTENCE))
    assert sum(chunk.text.count(fence) for chunk in chunks) == 5
    assert sum(chunk.text.count(table) for chunk in chunks) == 5


@pytest.mark.parametrize(
    ("context", "budget", "expected"),
    [
        ("class A:\n    class B:", 4, "class A:\n    class B:"),
        ("class A:\n    class B:", 2, "    class B:"),
        ("Guide > Setup > Linux", 3, "Setup > Linux"),
        ("Guide > Setup > Linux", 1, "Linux"),
        ("def f(first, second, third):", 2, "def f(first,"),
        ("def f(first, second):", 0, ""),
    ],
)
def test_what_is_nearest_to_the_unit_stays_in_its_context(context: str, budget: int, expected: str) -> None:
    """ING-12: outer lines and headings go first; of one signature the beginning stays."""
    assert leading(context, budget, TokenMeter(b"", words)) == expected


def test_trailing_context_is_a_whole_line_or_nothing() -> None:
    """ING-11."""
    meter = TokenMeter(b"", words)
    assert trailing("\n## The next part\n\nWords.", 4, meter) == "## The next part"
    assert trailing("## The next part\n\nWords.", 3, meter) == ""


def test_a_digest_says_what_is_said_most_in_its_own_order() -> None:
    """ING-11: the sentences with the most frequent words, none twice, within the budget."""
    text = b"Locks guard queues. Locks guard queues again. Threads wait for threads. Someone laughed."
    extract = digest(TokenMeter(text, words), 0, len(text), 9)
    assert extract.split("\n") == ["Locks guard queues.", "Threads wait for threads."]
    assert digest(TokenMeter(b"0 1 2 3 4 5 6 7 8 9", words), 0, 19, 5) == "0 1 2"


@pytest.mark.parametrize("language", ["latex", "markdown"])
def test_no_sentence_cut_falls_into_an_equation(language: str) -> None:
    """ING-7, ING-11: sentences are the default of papers, and equations stay whole under them."""
    equation = {
        "latex": "\\begin{equation}\na = b. C = d. E = f.\n\\end{equation}",
        "markdown": "$$\na = b. C = d. E = f.\n$$",
    }[language]
    heading = {"latex": "\\section{Method}\n\n", "markdown": "# Method\n\n"}[language]
    text = heading + f"Some words here. More words there.\n\n{equation}\n\nIt says so. It is so.\n\n" * 6
    document = Document(
        uri="tree/p", content_type=ContentType.PAPER, domain=Domain.ACADEMIC, language=language, text=text,
        trust_level=60,
    )  # fmt: skip
    chunks = chunk_document(document, ChunkSizes(40, 24, 5, 6, overflow=Overflow.SENTENCE), words)
    assert sum(chunk.text.count(equation) for chunk in chunks) == 6
