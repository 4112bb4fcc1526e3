"""ING-38: pieces below the minimum are joined with what they belong to."""

from __future__ import annotations

import pytest

from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.links import LinkKind

SIZES = ChunkSizes(max_tokens=60, target_tokens=60, min_tokens=12, overlap_tokens=6, whole_tokens=12, nested_tokens=10)
BODY = "".join(f'        step_{number} = take(a, {number}, "one")\n' for number in range(4))  # 20 words


def words(text: str) -> int:
    return len(text.split())


def chunks_of(text: str, language: str = "python", kind: ContentType = ContentType.CODE) -> list[Chunk]:
    document = Document(
        uri="tree/file", content_type=kind, domain=Domain.CODE, text=text, language=language, trust_level=100
    )
    return chunk_document(document, SIZES, words)


def units(chunks: list[Chunk]) -> list[tuple[str, tuple[str, ...]]]:
    return [(chunk.kind, chunk.symbols) for chunk in chunks]


def test_a_preamble_joins_the_first_declaration_and_is_still_the_head_of_the_file() -> None:
    """ING-38: the others have it as their parent, as they would have the preamble."""
    first, second = chunks_of(
        f"package auth\n\n// Adds.\nfunc Add(a int) {{\n{BODY}}}\n\nfunc Sub(a int) {{\n{BODY}}}\n", "go"
    )
    assert first.text.startswith("package auth\n\n// Adds.\nfunc Add(")
    assert (first.kind, first.symbol, first.level, first.parent_id) == ("function", "Add", 2, None)
    assert (second.symbol, second.parent_id) == ("Sub", first.chunk_id)


def test_a_bare_head_joins_its_first_member_and_keeps_its_members() -> None:
    """ING-38: the method is found as the method that it is; the type is a symbol of the piece, too, and its place."""
    first, other = chunks_of(f"class Shelf(Base):\n    def add(self, a):\n{BODY}\n    def take(self, a):\n{BODY}")
    assert (first.kind, first.level, first.symbols) == ("method", 2, ("Shelf.add", "Shelf"))
    assert first.defines == ("Shelf", "add")
    assert first.text.startswith("class Shelf(Base):\n    def add(self, a):\n")
    assert (other.symbol, other.parent_id, other.bundle) == ("Shelf.take", first.chunk_id, first.chunk_id)


def test_a_type_of_tiny_members_alone_is_named_by_itself() -> None:
    """ING-38: what heads the others, where none of them could stand alone."""
    (chunk,) = chunks_of("class Shelf:\n    def a(self):\n        return 1\n\n    def b(self):\n        return 2\n")
    assert (chunk.kind, chunk.level, chunk.symbols) == ("class", 1, ("Shelf", "Shelf.a", "Shelf.b"))


def test_tiny_members_side_by_side_are_one_bundle() -> None:
    """ING-38: until they are no longer tiny; each is a name that the piece defines, and links stand together."""
    getters = "".join(f"    def {name}(self):\n        return self.{name}_of(1, 2)\n\n" for name in "abcdef")
    chunks = chunks_of(
        f"class Shelf(Base):\n    '''Holds books, in the order in which they came to be here.'''\n\n{getters}"
    )
    head, *bundles = chunks
    assert head.symbols == ("Shelf",)
    assert [bundle.symbols for bundle in bundles] == [
        ("Shelf.a", "Shelf.b"),
        ("Shelf.c", "Shelf.d"),
        ("Shelf.e", "Shelf.f"),
    ]
    assert {bundle.bundle for bundle in bundles} == {head.chunk_id}
    assert bundles[0].defines == ("a", "b")
    assert {link.target for link in bundles[0].links if link.kind is LinkKind.CALLS} == {"Shelf.a_of", "Shelf.b_of"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"def f(a):\n{BODY}\nexport(f)\n", [("function", ("f",))]),
        (f"LIMIT = 3\n\n\ndef f(a):\n{BODY}", [("function", ("f",))]),
        (f"try:\n    from fast import f\nexcept ImportError:\n    def f(a):\n{BODY}", [("function", ("f",))]),
        (f"def f(a):\n{BODY}\nLIMIT = 3\n\n\ndef g(a):\n{BODY}", [("function", ("f",)), ("function", ("g",))]),
    ],
)
def test_guards_exports_and_constants_join_what_stands_beside_them(
    text: str, found: list[tuple[str, tuple[str, ...]]]
) -> None:
    """ING-38: and the piece bears the name of what is defined there."""
    chunks = chunks_of(text)
    assert units(chunks) == found
    assert "".join(text[chunk.start_byte : chunk.end_byte] for chunk in chunks) == text


def test_nothing_is_joined_beyond_the_maximum() -> None:
    """ING-38, ING-12: what has no room beside it stands alone."""
    long = "".join(f"    step_{number} = take(a, {number}, 'one')\n" for number in range(11))
    assert units(chunks_of(f"LIMIT = (1, 2, 3)\n\n\ndef f(a):\n{long}")) == [("constants", ()), ("function", ("f",))]


def test_small_keys_of_configuration_join_what_is_beside_them() -> None:
    """ING-38, ING-9."""
    long = "".join(f"  key_{number}: {number} and more\n" for number in range(5))
    chunks = chunks_of(f"name: a\nfirst:\n{long}small: 1\nsecond:\n{long}", "yaml", ContentType.CONFIGURATION)
    assert min(chunk.tokens for chunk in chunks) >= SIZES.min_tokens
    assert {"name", "first", "small", "second"} <= {name for chunk in chunks for name in chunk.defines}
