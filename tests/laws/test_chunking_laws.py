"""Laws of chunking: they hold for every document, whatever is in it (ING-5, ING-6, ING-10, ING-12, ING-13)."""

import ast
import sysconfig
from bisect import bisect_right
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.shown import reads_from, shown
from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.ids import content_hash

ROOT = Path(__file__).resolve().parents[2]
COMPOUND = (ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try, ast.TryStar, ast.Match)
SMALL = ChunkSizes(max_tokens=40, target_tokens=24, min_tokens=5, overlap_tokens=6)
LARGE = ChunkSizes(max_tokens=4096, target_tokens=300, min_tokens=30, overlap_tokens=50)


def words(text: str) -> int:
    return len(text.split())


def a_document(text: str, content_type: ContentType, language: str | None = None) -> Document:
    return Document(
        uri="tree/file",
        content_type=content_type,
        domain=Domain.GENERAL,
        text=text,
        title="A title",
        language=language or ("python" if content_type is ContentType.CODE else None),
        trust_level=70,
    )


FRAGMENTS = st.sampled_from(
    [
        *("def f(a,\n      b):\n", "    return g(a)\n", "class A(B):\n", '    """Says. More."""\n', "    x: int = 1\n"),
        *(
            "    def m(self):\n",
            "        if a:\n            b()\n        else:\n            c()\n",
            "@dec\n",
            "# note\n",
        ),
        *(
            "X = [\n  1,\n]\n",
            "import os\n",
            "if x:\n",
            "    def f(): pass\n",
            "else:\n",
            "y = 1; z = 2\n",
            "((((",
            "'''",
        ),
        *(
            "# Title\n",
            "## Part\n",
            "Words of prose. And more! ",
            "```py\ncode\n\n# no heading\n```\n",
            "- item\n- item\n",
        ),
        *(
            "| a | b |\n| - | - |\n| 1 | 2 |\n",
            "---\n",
            "<!-- ANCHOR:x -->\n",
            "Setext\n===\n",
            "> quote\n",
            "\n",
            "\r\n",
            "Part\n~~~~\n",
            ".. note:: Words.\n\n   More words.\n",
            ".. code-block:: py\n\n   code\n\n   more\n",
            "So::\n\n    literal\n\n    more\n",
            "=== ===\na   b\n=== ===\n1   2\n=== ===\n\n",
            "term\n    What it is. And more.\n",
            ".. _label:\n",
            "   deeper words\n",
            "1. one\n2. two\n\n   more\n",
            ":field: value\n",
            ".. function:: f(a)\n\n   Says. More.\n",
            "A :ref:`text <label>` and `Part`_.\n",
        ),
        *(
            "\r",
            "\t",
            " ",
            "é",
            "漢字。",
            "\u2028",
            "\ufeff",
            "\x0c",
            "w" * 50,
            "a b c d e f g h i j k l m n o p\n" * 3,
        ),
    ]
)
DOCUMENTS = st.builds(
    a_document,
    st.one_of(st.lists(FRAGMENTS, max_size=25).map("".join), st.text(max_size=80)),
    st.sampled_from(ContentType),
)
SIZES = st.sampled_from([SMALL, LARGE])


def check_place(document: Document, chunks: list[Chunk]) -> None:
    source = document.text.encode("utf-8", "surrogatepass")
    covered = 0
    for sequence, chunk in enumerate(chunks):
        assert chunk.sequence == sequence
        assert chunk.start_byte <= covered, "every byte is in a chunk"
        covered = max(covered, chunk.end_byte)
        body = source[chunk.start_byte : chunk.end_byte].strip().decode("utf-8", "surrogatepass")
        assert chunk.text.endswith(shown(document, chunk))
        first = source.index(body.encode("utf-8", "surrogatepass"), chunk.start_byte)
        reads = reads_from(document, chunk)
        starts = [0, *(index + 1 for index, byte in enumerate(source) if byte == ord("\n"))]
        assert chunk.start_line == bisect_right(starts, reads)
        assert chunk.end_line == bisect_right(
            starts, max(first, first + len(body.encode("utf-8", "surrogatepass")) - 1)
        )
    assert covered == len(source) or not source.strip()


def check_identity(chunks: list[Chunk]) -> None:
    ids = [chunk.chunk_id for chunk in chunks]
    assert len(set(ids)) == len(ids)
    for chunk in chunks:
        assert chunk.content_hash == content_hash(chunk.text)
        assert chunk.parent_id is None or chunk.parent_id in ids[: chunk.sequence]
        if chunk.next_id is not None:
            following = chunks[ids.index(chunk.next_id)]
            assert (following.previous_id, following.parent_id) == (chunk.chunk_id, chunk.parent_id)
            assert following.sequence > chunk.sequence


@given(DOCUMENTS, SIZES)
def test_chunks_cover_the_document_and_say_where_they_stand(document: Document, sizes: ChunkSizes) -> None:
    """ING-13: every byte is in some chunk; spans and lines agree with the text; blank documents have no chunks."""
    if document.content_type is not ContentType.RECORD or document.text.strip():
        check_place(document, chunk_document(document, sizes, words))


@given(DOCUMENTS, SIZES)
def test_identities_and_neighbours_are_sound(document: Document, sizes: ChunkSizes) -> None:
    """ING-13: ids are unique, hashes are of the text, parents come first, neighbours are mutual."""
    check_identity(chunk_document(document, sizes, words))


@given(DOCUMENTS, SIZES)
def test_chunking_is_a_function_of_the_document(document: Document, sizes: ChunkSizes) -> None:
    """ING-13, ARC-9: twice the same."""
    assert chunk_document(document, sizes, words) == chunk_document(document, sizes, words)


@given(DOCUMENTS, st.sampled_from([words, len]))
def test_no_chunk_is_above_the_maximum(document: Document, count: object) -> None:
    """ING-12: also where one line, or one word, is longer than a chunk may be."""
    sizes = SMALL if count is words else LARGE.capped(60)
    for chunk in chunk_document(document, sizes, count):
        assert chunk.tokens <= sizes.max_tokens, chunk


def real_documents() -> list[Document]:
    modules = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("[a-f]*.py"))[::4]
    pages = sorted(ROOT.glob("docs/**/*.md")) + sorted(ROOT.glob("*.md"))
    return [
        a_document(path.read_text(encoding="utf-8"), kind)
        for kind, paths in ((ContentType.CODE, modules), (ContentType.MARKDOWN, pages))
        for path in paths
    ]


@pytest.mark.parametrize("sizes", [LARGE, LARGE.capped(254)], ids=["whole", "capped"])
def test_the_laws_hold_on_real_files(sizes: ChunkSizes) -> None:
    """ING-13: the interpreter's library and this repository's pages."""
    for document in real_documents():
        chunks = chunk_document(document, sizes, words)
        check_identity(chunks)
        source = document.text.encode()
        assert chunks[0].start_byte == 0
        assert all(right.start_byte <= left.end_byte for left, right in pairwise(chunks))
        assert max(chunk.end_byte for chunk in chunks) == len(source)
        assert all(chunk.tokens <= sizes.max_tokens for chunk in chunks)


NAMES = st.lists(st.sampled_from([f"name_{number}" for number in range(12)]), min_size=1, max_size=6, unique=True)


def a_function(name: str) -> str:
    return f"@cached\ndef {name}(a):\n    return a\n\n\n"


def a_class(name: str) -> str:
    return f"class {name}(Base):\n    x: int = 1\n\n    def method(self):\n        return self.x\n\n\n"


def a_section(name: str) -> str:
    return f"## About {name}\n\nWords on {name}.\n\n"


@pytest.mark.parametrize(
    ("build", "content_type"),
    [
        (a_function, ContentType.CODE),
        (a_class, ContentType.CODE),
        (a_section, ContentType.MARKDOWN),
    ],
)
@given(names=NAMES, at=st.integers(0, 6))
def test_identities_survive_edits_elsewhere(build, content_type: ContentType, names: list[str], at: int) -> None:
    """ING-13: a unit put anywhere between the others leaves their ids and hashes as they are, if none is too small."""
    before = [build(name) for name in names]
    after = [*before[:at], build("another"), *before[at:]]
    sizes = replace(LARGE, min_tokens=0)
    ids = [
        {(chunk.chunk_id, chunk.content_hash) for chunk in chunk_document(a_document(text, content_type), sizes, words)}
        for text in ("".join(before), "".join(after))
    ]
    assert ids[0] < ids[1]


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 20))
def test_fences_tables_and_short_lists_stay_whole(before: int, after: int, size: int) -> None:
    """ING-6: whatever surrounds them, and though the section is above its target."""
    blocks = [
        "```py\n" + "code\n" * size + "```",
        "| a | b |\n| - | - |\n" + "| 1 | 2 |\n" * (size // 4),
        "- item\n" * (size // 2),
    ]
    prose = "Some words that fill.\n\n"
    text = "# Title\n\n" + prose * before + f"\n\n{prose}".join(blocks) + "\n\n" + prose * after
    chunks = chunk_document(a_document(text, ContentType.MARKDOWN), SMALL, words)
    for block in blocks:
        assert any(block.strip() in chunk.text for chunk in chunks), block


def test_no_statement_and_no_function_within_the_maximum_is_cut() -> None:
    """ING-5: checked against the interpreter's own parser."""
    cut_free = 0
    for document in real_documents():
        if document.content_type is not ContentType.CODE:
            continue
        starts = {chunk.start_line for chunk in chunk_document(document, LARGE, words)}
        for node in ast.walk(ast.parse(document.text)):
            if isinstance(node, ast.stmt) and not isinstance(node, COMPOUND):
                first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))])
                assert not starts & set(range(first + 1, (node.end_lineno or first) + 1)), (document.uri, first)
                cut_free += 1
    assert cut_free > 1000
