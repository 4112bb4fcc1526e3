"""Laws of chunking source code: for every language, whatever is in the file (ING-5, ING-12, ING-13)."""

from __future__ import annotations

import sys
import sysconfig
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_sitter import Node, Parser
from tree_sitter_language_pack import get_language

from tests.support.code_samples import SAMPLES
from tests.support.code_units import kept_whole, python_files, python_functions
from tests.support.examples import examples
from weft.chunking.chunker import chunk_document
from weft.chunking.code.grammars import GRAMMARS
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.ids import content_hash

SMALL = ChunkSizes(max_tokens=40, target_tokens=24, min_tokens=5, overlap_tokens=6)
LARGE = ChunkSizes(max_tokens=4096, target_tokens=300, min_tokens=30, overlap_tokens=50)
SUFFIXES = {".py": "python", ".h": "cpp", ".hpp": "cpp", ".c": "c", ".cpp": "cpp", ".js": "javascript"}
PACKAGES = ("numpy", "pyarrow", "torch", "sklearn", "matplotlib", "mlflow")
LONGEST_LINE = 2_000  # bytes: lines of minified code have few of the blanks that words are counted by
BROKEN = ["((((", "}}\n", "'''", '"', "{\n", "#if\n", "/*", "\u2028", "é漢\n", "\r\n", "\t", "w" * 60 + "\n"]


def words(text: str) -> int:
    return len(text.split())


def a_file(text: str, language: str) -> Document:
    return Document(
        uri="tree/file",
        content_type=ContentType.CODE,
        domain=Domain.CODE,
        text=text,
        language=language,
        trust_level=100,
    )


def pieces(language: str) -> list[str]:
    """Paragraphs and lines of a language's sample, which may be put together in any order."""
    sample = SAMPLES[language]
    return [*(f"{part}\n\n" for part in sample.split("\n\n")), *sample.splitlines(keepends=True), *BROKEN]


FILES = st.sampled_from(sorted(GRAMMARS)).flatmap(
    lambda language: st.builds(
        a_file, st.lists(st.sampled_from(pieces(language)), max_size=20).map("".join), st.just(language)
    )
)


def check(document: Document, chunks: list[Chunk], sizes: ChunkSizes, count: Callable[[str], int]) -> None:
    source = document.text.encode()
    covered = 0
    ids = [chunk.chunk_id for chunk in chunks]
    places = {identity: place for place, identity in enumerate(ids)}
    assert len(places) == len(ids)
    for sequence, chunk in enumerate(chunks):
        assert chunk.sequence == sequence
        assert chunk.start_byte <= covered, "every byte is in a chunk"
        covered = max(covered, chunk.end_byte)
        assert source[chunk.start_byte : chunk.end_byte].decode().strip() in chunk.text
        assert chunk.content_hash == content_hash(chunk.text)
        assert chunk.tokens == count(chunk.text) <= sizes.max_tokens
        assert 0.0 <= chunk.parse_quality <= 1.0
        assert chunk.parent_id is None or places[chunk.parent_id] < sequence
        assert chunk.bundle is None or chunk.bundle in places
        assert chunk.bundle != chunk.chunk_id
        assert all(0.0 < link.confidence <= 1.0 and link.target for link in chunk.links)
    assert covered == len(source) or not source.strip()


@given(FILES, st.sampled_from([SMALL, LARGE]))
@settings(max_examples=examples(60))
def test_every_byte_is_covered_and_every_place_is_sound(document: Document, sizes: ChunkSizes) -> None:
    """ING-13, ING-12: whatever is broken; and no chunk is above the limit, context included."""
    check(document, chunk_document(document, sizes, words), sizes, words)


@given(FILES, st.sampled_from([SMALL, LARGE, LARGE.capped(60)]))
@settings(max_examples=examples(60))
def test_nothing_below_the_minimum_stands_alone_where_it_can_join(document: Document, sizes: ChunkSizes) -> None:
    """ING-38: beside it there is nothing, or what has no room for it."""
    source = document.text.encode()

    def own(start: int, end: int) -> int:
        return words(source[start:end].decode())

    for before, after in pairwise(chunk_document(document, sizes, words)):
        if min(before.tokens, after.tokens) < sizes.min_tokens:
            context = before.tokens - own(before.start_byte, before.end_byte)
            assert context + own(before.start_byte, after.end_byte) > sizes.max_tokens


@given(FILES)
@settings(max_examples=examples(40))
def test_chunking_twice_gives_the_same(document: Document) -> None:
    """ING-13, ARC-9: links and bundles too."""
    assert chunk_document(document, SMALL, words) == chunk_document(document, SMALL, words)


UNITS = {
    "python": lambda name: f"# On {name}.\n@dec\ndef {name}(a):\n    return a\n\n\n",
    "go": lambda name: f"// {name} does.\nfunc (s *S) {name}(a int) int {{\n\treturn a\n}}\n\n",
    "javascript": lambda name: f"/** {name} does. */\nexport const {name} = (a) => {{\n  return a;\n}};\n\n",
    "typescript": lambda name: (
        f"export class {name} {{\n  size: number;\n\n  get(): number {{\n    return 1;\n  }}\n}}\n\n"
    ),
    "tsx": lambda name: f"export function {name}() {{\n  return <A b={{1}} />;\n}}\n\n",
    "java": lambda name: (
        f"/** Does. */\n@Ann\nclass {name} {{\n  int a = 1;\n\n  int get() {{\n    return a;\n  }}\n}}\n\n"
    ),
    "rust": lambda name: f"/// Does.\n#[inline]\nfn {name}(a: u8) -> u8 {{\n    a\n}}\n\n",
    "c": lambda name: f"/* Does. */\nstatic int\n{name}(int a)\n{{\n    return a;\n}}\n\n",
    "cuda": lambda name: f"// Does.\n__global__ void {name}(int *a) {{\n  a[0] = 1;\n}}\n\n",
    "csharp": lambda name: f"/// Does.\nclass {name} {{\n  int Get() {{\n    return 1;\n  }}\n}}\n\n",
    "kotlin": lambda name: f"/** Does. */\nfun {name}(a: Int): Int {{\n    return a\n}}\n\n",
    "ruby": lambda name: f"# Does.\ndef {name}(a)\n  a\nend\n\n",
    "swift": lambda name: f"/// Does.\nfunc {name}(a: Int) -> Int {{\n    return a\n}}\n\n",
    "scala": lambda name: f"/** Does. */\nobject {name} {{\n  def get = 1\n}}\n\n",
    "bash": lambda name: f"# Does.\n{name}() {{\n  echo 1\n}}\n\n",
    "lua": lambda name: f"-- Does.\nlocal function {name}(a)\n  return a\nend\n\n",
    "sql": lambda name: f"-- Holds.\nCREATE TABLE {name} (\n  a integer\n);\n\n",
    "proto": lambda name: f"// Holds.\nmessage {name} {{\n  string a = 1;\n}}\n\n",
    "hcl": lambda name: f'# Holds.\nresource "a" "{name}" {{\n  b = 1\n}}\n\n',
    "graphql": lambda name: f"# Holds.\ntype {name} {{\n  a: ID\n}}\n\n",
    "cpp": lambda name: f"// Does.\ntemplate <class T>\nint S::{name}(T a) {{\n  return a;\n}}\n\n",
}
NAMES = st.lists(st.sampled_from([f"name_{number}" for number in range(12)]), min_size=1, max_size=5, unique=True)


@pytest.mark.parametrize("language", sorted(GRAMMARS.keys() - {"php"}))  # a file of PHP begins with its tag
@given(names=NAMES, at=st.integers(0, 5))
@settings(max_examples=15)
def test_identities_survive_edits_elsewhere(language: str, names: list[str], at: int) -> None:
    """ING-13: a unit put anywhere between the others leaves their ids and hashes as they are, if none is too small."""
    build = UNITS[language]
    sizes = replace(LARGE, min_tokens=0)
    before = [build(name) for name in names]
    after = [*before[:at], build("another"), *before[at:]]
    ids = [
        {(chunk.chunk_id, chunk.content_hash) for chunk in chunk_document(a_file(text, language), sizes, words)}
        for text in ("".join(before), "".join(after))
    ]
    assert ids[0] < ids[1]


def real_files(most: int) -> Iterator[Document]:
    """Files of the interpreter's library and of installed packages, at most so many of each kind, evenly spread."""
    library = Path(sysconfig.get_paths()["stdlib"])
    installed = Path(sysconfig.get_paths()["purelib"])
    found = {".py": python_files(library)}
    for package in PACKAGES:
        for suffix in SUFFIXES.keys() - {".py"}:
            found.setdefault(suffix, []).extend(sorted((installed / package).rglob(f"*{suffix}")))
    for suffix, paths in sorted(found.items()):
        for path in paths[:: -(-len(paths) // most) or 1]:
            if path.stat().st_size < 200_000:
                try:
                    yield a_file(path.read_bytes().decode(), SUFFIXES[suffix])
                except UnicodeDecodeError:
                    continue


def simple_statements(root: Node) -> Iterator[Node]:
    """Statements that hold no others, as the grammar itself names them; those inside errors are left out."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error:
            continue
        inner = [child for child in node.children if child.is_named]
        named = node.type.endswith(("_statement", "declaration")) or node.type in {"assignment", "call"}
        # What a label stands before is a statement without it: in a class read as a function, `public:` is one, too.
        holder = "compound" in node.type or "labeled" in node.type
        if named and not holder and not any(_holds_block(child) for child in inner):
            yield node
        else:
            waiting.extend(inner)


def _holds_block(node: Node) -> bool:
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current.type.endswith(("block", "body", "declaration_list", "_statement", "ERROR")):
            return True
        waiting.extend(child for child in current.children if child.is_named)
    return False


def split_statements(document: Document, sizes: ChunkSizes) -> tuple[int, int]:
    """How many statements that fit are in no chunk as a whole, of how many; what a parser cannot read says nothing.

    A small one is always whole. One that takes most of a chunk may not be, with the comments and the context around it.
    """
    chunks = chunk_document(document, sizes, words)
    source = document.text.encode()
    root = Parser(get_language(document.language or "")).parse(source).root_node
    if root.has_error or len(max(source.splitlines(), key=len, default=b"")) > LONGEST_LINE:
        return 0, 0
    spans = [(chunk.start_byte, chunk.end_byte) for chunk in chunks]
    starts = sorted({start for start, _ in spans})
    split = looked_at = 0
    for node in simple_statements(root):
        length = words(node.text.decode())
        looked_at += length <= sizes.max_tokens
        following = bisect_right(starts, node.start_byte)
        cut = following < len(starts) and starts[following] < node.end_byte
        if cut and not any(start <= node.start_byte and node.end_byte <= end for start, end in spans):
            assert length > sizes.max_tokens // 2, (document.language, node.text[:200])
            split += length <= sizes.max_tokens
    return split, looked_at


def check_real_files(most: int) -> None:
    split = looked_at = 0
    for document in real_files(most):
        for sizes in (LARGE, LARGE.capped(254)):
            check(document, chunk_document(document, sizes, words), sizes, words)
        if len(document.text) < 100_000:
            here, of = split_statements(document, LARGE.capped(100))
            split, looked_at = split + here, looked_at + of
    sys.stdout.write(f"{split} of {looked_at} statements that fit are in no chunk as a whole\n")
    assert looked_at > 1000
    assert split <= looked_at / 10_000


def test_few_pieces_of_real_files_are_below_the_minimum() -> None:
    """ING-38: at most 3 in 100, in files that are more than one piece."""
    sizes = LARGE.capped(254)
    every: Counter[str | None] = Counter()
    below: Counter[str | None] = Counter()
    for document in real_files(16):
        chunks = chunk_document(document, sizes, words)
        if len(chunks) > 1:
            every[document.language] += len(chunks)
            below[document.language] += sum(chunk.tokens < sizes.min_tokens for chunk in chunks)
    assert len(every) == 4
    assert every.total() > 500
    assert below.total() <= 0.03 * every.total(), (below, every)
    assert all(below[language] <= 0.03 * every[language] for language in every if every[language] > 100), below


def test_the_laws_hold_on_a_sample_of_real_files() -> None:
    """ING-5, ING-12, ING-13: of the standard library and of installed packages."""
    check_real_files(6)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_laws_hold_on_whole_trees() -> None:
    """ING-5, ING-12, ING-13: the standard library, and every source of some large packages."""
    check_real_files(100_000)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "x" + ".a()" * 60_000),
        ("javascript", "x" + ".a()" * 60_000),
        ("java", "f(" * 60_000 + ")" * 60_000),
        ("c", "(" * 1_000_000),
        ("python", "# Words.\n" * 5_000),
        ("cpp", "#if A\n" + "#elif B\nint f();\n" * 5_000 + "#endif\n"),
        ("cpp", "namespace a{" * 5_000 + "int f(){}" + "}" * 5_000),
        ("typescript", "function f(){" * 5_000 + "}" * 5_000),
        ("rust", "fn f(){" + "match a {_=>" * 5_000),
        ("go", "func f(){" + "if a {" * 5_000 + "}" * 5_000 + "}"),
    ],
)
def test_nothing_is_too_deep_or_too_long(language: str, text: str) -> None:
    """ING-3, ING-12: whatever is nested costs seconds, exhausts no stack, and no chunk is above the limit."""
    sizes = LARGE.capped(254)
    document = a_file(text, language)
    check(document, chunk_document(document, sizes, len), sizes, len)


def test_what_ends_a_definition_draws_nothing_into_it() -> None:
    """ING-5: a function ends at the semicolon behind it, and the declarations after it stand for themselves."""
    text = "int get(int a) {\n  return a;\n};\n\n"
    text += "".join(f"Result<int> make_{number}(int length,\n    int pool = 0);\n\n" for number in range(12))
    chunks = chunk_document(a_file(text, "cpp"), LARGE.capped(24), words)
    made = [chunk for chunk in chunks if "make_" in chunk.text]
    assert made
    assert not [chunk for chunk in made if chunk.symbol == "get"]


def test_functions_that_fit_stay_whole() -> None:
    """ING-5: at least 99 in 100 of the functions of real files, as the interpreter's own parser sees them."""
    whole = fitting = 0
    sizes = LARGE.capped(254)
    for path in python_files(Path(sysconfig.get_paths()["stdlib"]))[::23]:
        text = path.read_text(encoding="utf-8")
        if {"\x0c", "\r", "\ufeff"} & set(text):
            continue  # lines end differently for the two parsers
        source = text.encode()
        spans = [
            (start, end)
            for start, end in python_functions(text)
            if words(source[start:end].decode()) <= sizes.max_tokens
        ]
        chunks = chunk_document(a_file(text, "python"), sizes, words)
        assert all(right.start_byte <= left.end_byte for left, right in pairwise(chunks))
        whole += kept_whole(spans, [(chunk.start_byte, chunk.end_byte) for chunk in chunks])
        fitting += len(spans)
    assert fitting > 300
    assert whole / fitting >= 0.99
