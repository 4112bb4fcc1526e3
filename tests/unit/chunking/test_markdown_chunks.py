"""ING-6: Markdown by headings."""

from pipelines.chunking import ChunkSizes, chunk_document
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import ContentType, Document, Domain

SIZES = ChunkSizes(max_tokens=200, target_tokens=40, min_tokens=5, overlap_tokens=10)


def words(text: str) -> int:
    return len(text.split())


def chunks_of(text: str) -> list[Chunk]:
    document = Document(
        uri="tree/a.md", content_type=ContentType.MARKDOWN, domain=Domain.GENERAL, text=text, trust_level=70
    )
    return chunk_document(document, SIZES, words)


PAGE = """---
owner: us
---
# Manual

What it is.

## Install

### Linux

One way.

### Mac {#mac}

Another way.

<!-- ANCHOR:use -->
## Use

```sh
# not a heading
run
```

> # a quoted heading
"""


def test_sections_have_their_levels_and_paths() -> None:
    """ING-6: 0 front matter and title, 2 H2, 3 H3; a heading without a text of its own joins what follows it."""
    assert [(chunk.level, chunk.heading_path, chunk.anchor) for chunk in chunks_of(PAGE)] == [
        (0, ("Manual",), "manual"),
        (2, ("Manual", "Install", "Linux"), "install"),
        (3, ("Manual", "Install", "Mac"), "mac"),
        (2, ("Manual", "Use"), "use"),
    ]


def test_the_heading_path_is_part_of_the_text() -> None:
    """ING-6: what stands above, then the section with its own heading."""
    title, linux, mac, use = chunks_of(PAGE)
    assert title.text == "---\nowner: us\n---\n# Manual\n\nWhat it is."
    assert linux.text == "Manual\n## Install\n\n### Linux\n\nOne way."
    assert mac.text == "Manual > Install\n### Mac {#mac}\n\nAnother way."
    assert use.text.startswith("Manual\n<!-- ANCHOR:use -->\n## Use\n\n```sh\n# not a heading\nrun\n```")
    assert {chunk.parent_id for chunk in (linux, mac, use)} == {title.chunk_id}


def test_several_titles_are_on_level_1() -> None:
    """ING-6: 1 H1; what stands before them is the document's own chunk."""
    chunks = chunks_of("Before.\n\n# One\n\nA.\n\n# Two\n\nB.\n")
    assert [(chunk.level, chunk.kind) for chunk in chunks] == [(0, "preamble"), (1, "section"), (1, "section")]


def test_a_long_section_is_cut_between_blocks_under_its_path() -> None:
    """ING-6, ING-12: paragraphs are kept whole, parts carry the path and the parent's id."""
    paragraphs = [f"Paragraph {n} " + "word " * 15 + "end." for n in range(8)]
    title, *parts = chunks_of("# T\n\n" + "\n\n".join(paragraphs) + "\n")
    assert len(parts) >= 3
    for part in parts:
        assert part.text.startswith("T\nParagraph")
        assert part.text.endswith("end.")
        assert (part.level, part.parent_id, part.tokens <= SIZES.target_tokens) == (3, title.chunk_id, True)


def test_a_list_above_the_target_is_cut_between_its_items() -> None:
    """ING-6: lists stay whole up to their limit; above it, items do."""
    chunks = chunks_of("# T\n\n" + "".join(f"- item {n}\n  goes on and on\n" for n in range(20)))
    assert len(chunks) > 2
    assert all(chunk.text.splitlines()[-1] == "  goes on and on" for chunk in chunks)


def test_a_paragraph_above_the_maximum_is_cut_between_sentences() -> None:
    """ING-12: then at sentences."""
    chunks = chunks_of("# T\n\n" + "This is one sentence of seven words. " * 60 + "\n")
    assert len(chunks) > 5
    assert all(chunk.text.rstrip().endswith("words.") for chunk in chunks)


def test_lone_carriage_returns_end_lines_as_the_parser_says() -> None:
    """ING-13: offsets follow the parser's idea of a line, whatever ends it."""
    chunks = chunks_of("# One\r\rA.\r\r# Two\r\n\r\nB.")
    assert [chunk.text for chunk in chunks] == ["# One\r\rA.", "# Two\r\n\r\nB."]
