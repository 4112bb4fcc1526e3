"""ING-5: Python by tree-sitter."""

from dataclasses import replace

import pytest

from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain

# Pieces as they are before the small ones are joined: these are a few words long.
SIZES = ChunkSizes(max_tokens=400, target_tokens=100, min_tokens=0, overlap_tokens=10)


def words(text: str) -> int:
    return len(text.split())


def chunks_of(text: str, sizes: ChunkSizes = SIZES) -> list[Chunk]:
    document = Document(
        uri="tree/a.py",
        content_type=ContentType.CODE,
        domain=Domain.CODE,
        text=text,
        language="python",
        trust_level=100,
    )
    return chunk_document(document, sizes, words)


MODULE = '''#!/usr/bin/env python
"""About shelves."""

import os
from books import Book as B, page

LIMIT = 3


# Holds books.
@final
class Shelf(Base):
    """A shelf."""

    size: int = LIMIT

    # Takes one.
    @property
    def first(self) -> B:
        """The first book."""
        return page.open(self.books[0]).read()

    second = first

    class Row:
        def width(self): ...


async def build(count: int,
                *, wide: bool = False) -> Shelf:
    return Shelf(count)


if __name__ == "__main__":
    build(3)
'''


def test_the_units_of_a_module_have_their_levels_and_names() -> None:
    """ING-5: 0 preamble, 1 classes and constants, 2 functions and methods."""
    assert [(chunk.level, chunk.kind, chunk.symbol) for chunk in chunks_of(MODULE)] == [
        (0, "preamble", None),
        (1, "constants", None),
        (1, "class", "Shelf"),
        (2, "method", "Shelf.first"),
        (2, "fields", None),
        (2, "class", "Shelf.Row"),
        (3, "method", "Shelf.Row.width"),
        (2, "function", "build"),
        (1, "code", None),
    ]


def test_comments_and_decorators_belong_to_what_they_precede() -> None:
    """ING-5: a chunk holds its leading comments, the full signature and the complete body."""
    shelf, first = chunks_of(MODULE)[2:4]
    assert shelf.text.startswith("# Holds books.\n@final\nclass Shelf(Base):")
    assert shelf.text.endswith("size: int = LIMIT")
    assert first.text.startswith("class Shelf(Base):\n    # Takes one.\n    @property\n    def first")
    assert first.text.endswith("return page.open(self.books[0]).read()")


def test_members_are_bundled_under_their_class() -> None:
    """ING-5, ING-13: fields and methods of one type share a parent and know their neighbours."""
    chunks = chunks_of(MODULE)
    shelf, first, second, row, width = chunks[2:7]
    assert [member.parent_id for member in (first, second, row)] == [shelf.chunk_id] * 3
    assert (first.next_id, second.next_id, row.next_id) == (second.chunk_id, row.chunk_id, None)
    assert width.parent_id == row.chunk_id
    assert shelf.parent_id == chunks[0].chunk_id


def test_signatures_and_names_are_read_from_the_tree() -> None:
    """ING-13: signature, symbols defined and referenced."""
    preamble, constants, shelf, first, *_, build, _ = chunks_of(MODULE)
    assert preamble.references == ("os", "books.Book", "books.page")
    assert constants.defines == ("LIMIT",)
    assert (shelf.defines, shelf.references) == (("Shelf", "size"), ("final", "Base"))
    assert first.references == ("property", "page.open", "read")
    assert build.signature == "async def build(count: int, *, wide: bool = False) -> Shelf"


def test_the_same_symbol_twice_has_two_identities() -> None:
    """ING-13: overloads, and definitions in the branches of an `if` that is too long for one piece."""
    branches = "if a:\n    x = 1\n    def f(): return 1\nelse:\n    def f(): return 2\n\n"
    tight = replace(SIZES, max_tokens=10, target_tokens=10, overlap_tokens=0)
    chunks = chunks_of(branches + "@overload\ndef g(): ...\ndef g(): ...\n", sizes=tight)
    assert [chunk.symbol for chunk in chunks] == [None, "f", "f", "g", "g"]
    assert len({chunk.chunk_id for chunk in chunks}) == 5
    assert chunks[0].text == "if a:\n    x = 1"
    assert chunks[2].text == "else:\n    def f(): return 2"


@pytest.mark.parametrize(
    ("guard", "branch"),
    [("try:", "except ImportError:"), ("if sys.version_info >= (3, 12):", "else:")],
)
def test_a_guard_around_definitions_that_fits_is_one_piece(guard: str, branch: str) -> None:
    """ING-32: it defines the names of all its branches, and imports in it end no preamble."""
    function = 'def dumps(value):\n        """Writes."""\n        return json.dumps(value)\n'
    text = f"import sys\n\n{guard}\n    import fast\n\n    {function}{branch}\n    _fast = None\n\n    {function}"
    text += "\n    class Late:\n        limit = 3\n\nLIMIT = 3\n"
    text += f"\ntry:\n    class A:\n        def f(self): pass\n{branch}\n    pass\n"
    preamble, whole, limit, *opened = chunks_of(text)
    assert preamble.text == "import sys"
    assert whole.text.startswith(guard)
    assert (whole.kind, whole.symbol) == ("function", "dumps")
    assert set(whole.defines) == {"dumps", "_fast", "Late"}
    assert whole.attributes["joined"] == "Late"
    assert limit.text == "LIMIT = 3"
    assert [chunk.symbol for chunk in opened] == ["A", "A.f", None]


def test_a_long_function_is_cut_between_statements_under_its_signature() -> None:
    """ING-12: parts keep the parent's id and carry its signature; no statement is cut."""
    body = "".join(f"    value_{n} = call(\n        {n}, two, three,\n    )\n" for n in range(150))
    head, *parts = chunks_of(f"class A:\n    pass\n\n\ndef long(a):\n    '''Says.'''\n{body}    return a\n")[1:]
    assert (head.level, head.kind, head.symbol) == (2, "function", "long")
    assert {(part.level, part.kind, part.parent_id) for part in parts} == {(3, "block", head.chunk_id)}
    for part in parts:
        assert part.text.startswith("def long(a):\n    ")
        assert part.tokens <= SIZES.target_tokens
        assert part.text.count("call(") == part.text.count(")\n    value") + 1 or part.text.endswith("return a")
    assert sum(chunk.completeness for chunk in (head, *parts)) == pytest.approx(1.0)


def test_a_loop_that_is_too_long_is_opened() -> None:
    """ING-12: the next semantic level inside a statement is its own body."""
    body = "".join(f"            call(value, {n})\n" for n in range(300))
    chunks = chunks_of(f"def long(a):\n    for b in a:\n        if b:\n{body}        else:\n            stop()\n")
    assert len(chunks) > 5
    assert all(chunk.tokens <= SIZES.target_tokens for chunk in chunks)
    assert sum(chunk.text.count("call(value, ") for chunk in chunks) == 300


def test_a_file_with_syntax_errors_is_cut_and_says_how_clean_it_is() -> None:
    """ING-5: what could be understood keeps its units; parse_quality is the share outside error nodes."""
    chunks = chunks_of("def good():\n    return 1\n\n\ndef bad(:\n    return ((\n\n\ndef fine():\n    return 2\n")
    good = next(chunk for chunk in chunks if chunk.symbol == "good")
    assert good.parse_quality == 1.0
    assert min(chunk.parse_quality for chunk in chunks) < 1.0
    assert "return 2" in chunks[-1].text


@pytest.mark.parametrize("text", ["", "\n\n", "   \n\t\n"])
def test_a_blank_file_has_no_chunks(text: str) -> None:
    """ING-13."""
    assert chunks_of(text) == []


@pytest.mark.parametrize("text", ["# only a comment\n", '"""Only a docstring."""', "import os\n"])
def test_a_file_of_nothing_but_a_preamble_is_one_chunk(text: str) -> None:
    """ING-5: level 0."""
    (chunk,) = chunks_of(text)
    assert (chunk.level, chunk.kind, chunk.text) == (0, "preamble", text.strip())
