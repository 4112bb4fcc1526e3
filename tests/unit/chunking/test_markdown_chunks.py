"""ING-6: Markdown by headings."""

import pytest

from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import LINK_LIST, Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.links import LinkKind

SIZES = ChunkSizes(max_tokens=200, target_tokens=40, min_tokens=5, overlap_tokens=10)


def words(text: str) -> int:
    return len(text.split())


def a_page(text: str) -> Document:
    return Document(
        uri="tree/a.md", content_type=ContentType.MARKDOWN, domain=Domain.GENERAL, text=text, trust_level=70
    )


def chunks_of(text: str) -> list[Chunk]:
    return chunk_document(a_page(text), SIZES, words)


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


def test_front_matter_in_toml_belongs_to_the_title() -> None:
    """ING-6, ING-40: as that in YAML does; neither is shown."""
    title, *others = chunks_of(PAGE.replace("---\nowner: us\n---", '+++\nowner = "us"\n+++'))
    assert title.text == "# Manual\n\nWhat it is."
    assert len(others) == 3


def test_the_heading_path_is_part_of_the_text() -> None:
    """ING-6: what stands above, then the section with its own heading."""
    title, linux, mac, use = chunks_of(PAGE)
    assert title.text == "# Manual\n\nWhat it is."
    assert linux.text == "Manual\n## Install\n\n### Linux\n\nOne way."
    assert mac.text == "Manual > Install\n### Mac\n\nAnother way."
    assert use.text.startswith("Manual\n## Use\n\n```sh\n# not a heading\nrun\n```")
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


def test_a_section_on_the_deepest_level_runs_to_the_next_of_its_rank() -> None:
    """ING-6: level 3 is H3 and below: what stands deeper belongs to its H3 where the two fit together."""
    text = "# T\n\nA.\n\n### One\n\nB.\n\n#### Deep\n\nC.\n\n##### Deeper\n\nD.\n\n### Two\n\nE.\n"
    assert [(chunk.level, chunk.heading_path) for chunk in chunks_of(text)] == [
        (0, ("T",)),
        (3, ("T", "One")),
        (3, ("T", "Two")),
    ]
    long = text.replace("C.", "word " * 25 + "\n\n" + "word " * 10)
    assert [chunk.heading_path[-1] for chunk in chunks_of(long)] == ["T", "One", "Deep", "Deeper", "Two"]


def test_a_paragraph_above_its_limit_is_a_unit_of_its_own() -> None:
    """ING-6: on level 3, below its section, though the target would take both."""
    sizes = ChunkSizes(max_tokens=200, target_tokens=150, min_tokens=2, overlap_tokens=10, paragraph_tokens=50)
    text = "# T\n\nSome words first.\n\n" + "word " * 51 + "\n\nSome words after.\n\n" + "word " * 50
    chunks = chunk_document(a_page(text), sizes, words)
    assert [(chunk.level, chunk.kind) for chunk in chunks] == [(0, "section"), (3, "paragraph"), (3, "paragraphs")]
    assert {chunk.parent_id for chunk in chunks[1:]} == {chunks[0].chunk_id}
    assert chunks[1].text == "T\n" + ("word " * 51).strip()
    assert chunks[1].completeness == 1.0


@pytest.mark.parametrize("items", [10, 11])
def test_lists_have_a_limit_of_their_own(items: int) -> None:
    """ING-6: up to it a list is never cut, whatever the target; above it, between its items."""
    sizes = ChunkSizes(max_tokens=200, target_tokens=20, min_tokens=2, overlap_tokens=5, list_tokens=40)
    listed = "- three more words\n" * items  # four words an item: 40, 44
    chunks = chunk_document(a_page(f"# T\n\nSome words.\n\n{listed}\nSome more.\n"), sizes, words)
    assert any(listed.strip() in chunk.text for chunk in chunks) == (items == 10)
    assert all(chunk.text.endswith(("words", "words.", "more.")) for chunk in chunks)


def test_a_fence_in_a_long_list_stays_whole() -> None:
    """ING-6: an item above the maximum is cut between its blocks."""
    fence = "  ```sh\n  one\n\n  two\n  ```\n"
    item = "- " + "word " * 15 + f"\n\n{fence}\n" + "  " + "word " * 20 + "\n"
    sizes = ChunkSizes(max_tokens=30, target_tokens=25, min_tokens=2, overlap_tokens=5)
    chunks = chunk_document(a_page(f"# T\n\n{item * 3}"), sizes, words)
    assert sum(chunk.text.count(fence.strip()) for chunk in chunks) == 3


def test_links_lead_to_other_documents_and_to_places() -> None:
    """ING-6, ING-14: relative paths and anchors as the text gives them; nothing outside, nothing from code."""
    text = (
        "# T\n\n[a](other%20page.md#part), [b][ref], ![i](pic.png), <https://x.org>, [c](https://x.org/y), "
        "`[d](no.md)`.\n\n"
        '## Part\n\n- see [e](#t)\n\n<a href="../up.md">up</a>\n\n[ref]: ../third.md "Third"\n'
    )
    first, second = chunks_of(text)
    assert [link.target for link in first.links] == ["other page.md#part", "../third.md"]
    assert [link.target for link in second.links] == ["#t", "../up.md"]
    assert {(link.kind, link.declared) for link in (*first.links, *second.links)} == {(LinkKind.REFERENCES, False)}


def test_a_link_belongs_to_the_part_that_holds_it() -> None:
    """ING-14: also where one paragraph is one line, cut between its sentences."""
    text = "# T\n\n" + " ".join(f"Sentence with [link {n}](page{n}.md) and " + "word " * 20 + "end." for n in range(20))
    for chunk in chunks_of(text):
        held = [link.target for link in chunk.links]
        assert held == [f"page{n}.md" for n in range(20) if f"link {n} and" in chunk.text]


def test_headings_are_anchors_by_their_identifier_or_their_words() -> None:
    """ING-6: declared identifiers first, else the form that links to headings use; a second one is numbered."""
    text = (
        '# The `Main` Loop!\n\nA.\n\n## Part\n\nB.\n\n## Part\n\n<a id="here"></a>\n\nC.\n\n## Other {#own .x}\n\nD.\n'
    )
    assert [(chunk.anchor, chunk.attributes.get("anchors")) for chunk in chunks_of(text)] == [
        ("the-main-loop", None),
        ("part", None),
        ("part-1", "part-1 here"),
        ("own", None),
    ]


@pytest.mark.parametrize("before", range(0, 40, 4))
def test_an_equation_is_not_cut(before: int) -> None:
    """ING-6: not by the blank line in it, nor from the words that explain it."""
    equation = "It is\n\n$$\na = b\n\n+ c\n$$\n\nwhere a is one."
    text = f"# T\n\n{'word ' * before}end.\n\n{equation} And b is two.\n\n{'word ' * 30}\n"
    assert any(equation in chunk.text for chunk in chunks_of(text))


def test_what_is_shown_of_nothing_but_marks_belongs_to_what_stands_beside_it() -> None:
    """ING-40: targets of links at the end of a long section are no passage of their own."""
    definitions = "".join(f"[name{n}]: https://example.org/{n} 'a title of several words'\n" for n in range(20))
    chunks = chunks_of("# T\n\n" + "\n\n".join("word " * 18 + "end." for _ in range(6)) + f"\n\n{definitions}")
    assert len(chunks) > 2
    assert not any("example.org" in chunk.text for chunk in chunks)


def test_no_passage_begins_after_what_announces_it() -> None:
    """ING-6: a paragraph that ends in a colon stays with the code or the list that it is about."""
    steps = "".join(f"Paragraph {n} of a few words ends so:\n\n```sh\nrun {n}\n```\n\n" for n in range(12))
    _, *parts = chunks_of(f"# T\n\n{steps}")
    assert len(parts) >= 3
    assert all(part.text.startswith("T\nParagraph") for part in parts)


def test_a_list_of_links_is_told_as_one() -> None:
    """RET-13: a table of contents explains nothing; a list that explains what it links to does."""
    links = "".join(f"- [Error {number}](#error-{number})\n" for number in range(9))
    told = "".join(f"- [e{number}](#e{number}): it happens when number {number} is full\n" for number in range(9))
    chunks = chunks_of(f"# Errors\n\n{links}\n## Codes\n\nAll of them.\n\n## Told\n\n{told}")
    assert LINK_LIST in chunks[0].attributes
    assert not any(
        LINK_LIST in chunk.attributes for chunk in chunks if "Codes" in chunk.text or "happens" in chunk.text
    )


@pytest.mark.parametrize(
    ("opening", "indent", "closing"),
    [
        ('!!! note "Read"\n\n', "    ", ""),
        ('=== "Tab"\n\n', "    ", ""),
        ("````{note}\n", "", "````\n"),
        (":::note\n", "", ":::\n"),
        ("<Tab>\n", "    ", "</Tab>\n"),
    ],
    ids=["admonition", "tab", "directive", "container", "component"],
)
def test_what_stands_in_a_block_of_a_dialect_is_read_as_any_other_text(opening: str, indent: str, closing: str) -> None:
    """ING-6, ING-14, ING-40: links are found there, code is left alone, and a long one is cut between its blocks."""
    fence = "```sh\n[a](no.md)\n\n# no heading\n```\n\n"
    lines = ("See [it](yes.md).\n\n" + fence + "word " * 15 + "end.\n\n") * 3
    body = "".join(indent + line if line.strip() else line for line in lines.splitlines(keepends=True))
    sizes = ChunkSizes(max_tokens=40, target_tokens=30, min_tokens=2, overlap_tokens=5)
    chunks = chunk_document(a_page(f"# T\n\n{opening}{body}{closing}\nAfter.\n"), sizes, words)
    assert {link.target for chunk in chunks for link in chunk.links} == {"yes.md"}
    assert {name for chunk in chunks for name in chunk.heading_path} == {"T"}
    assert sum(chunk.text.count(indent + "[a](no.md)\n\n" + indent + "# no heading\n") for chunk in chunks) == 3
