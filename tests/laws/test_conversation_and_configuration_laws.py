"""Laws of the chunks of conversations and of configuration files (ING-8, ING-9, ING-12, ING-13)."""

import gzip
import json
import sysconfig
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.notations import ini, properties, toml
from weft.chunking.chunker import chunk_document, chunkers_with
from weft.chunking.config.file import entries_of
from weft.chunking.config.outline import Entry
from weft.chunking.conversation.dialogue import Line, Turn, places, written
from weft.chunking.conversation.session import exchanges
from weft.chunking.units.splitting import ChunkSizes, TopicRules
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.embedding.word_vectors import load_word_vectors
from weft.ingestion.sources.files import kind_of
from weft.ingestion.sources.transcripts import sessions
from weft.settings import load_settings

RULES = TopicRules(0.47, ("by the way",))
SMALL = ChunkSizes(40, 24, 5, 6, whole_tokens=20, nested_tokens=10, topics=RULES)
LARGE = ChunkSizes(4096, 300, 30, 50, whole_tokens=200, nested_tokens=100, topics=RULES)
ROOT = Path(__file__).resolve().parents[2]


def words(text: str) -> int:
    return len(text.split())


def a_session(lines: list[Line]) -> Document:
    return Document(
        uri="chat#1", content_type=ContentType.CONVERSATION, domain=Domain.HISTORY, text=written(lines), trust_level=50
    )


def a_file(text: str, language: str, name: str = "file") -> Document:
    kind = ContentType.CONFIGURATION
    return Document(uri=name, content_type=kind, domain=Domain.CODE, text=text, language=language, trust_level=50)


def check(document: Document, chunks: list[Chunk], sizes: ChunkSizes) -> None:
    source = document.text.encode("utf-8", "surrogatepass")
    covered = 0
    for chunk in chunks:
        assert chunk.start_byte <= covered, "every byte is in a chunk"
        covered = max(covered, chunk.end_byte)
        assert chunk.tokens <= sizes.max_tokens
        assert chunk.text.endswith(source[chunk.start_byte : chunk.end_byte].strip().decode("utf-8", "surrogatepass"))
    assert covered == len(source) or not source.strip()
    ids = [chunk.chunk_id for chunk in chunks]
    assert len(set(ids)) == len(ids)
    assert all(chunk.parent_id is None or chunk.parent_id in ids[: chunk.sequence] for chunk in chunks)


SPOKEN = st.builds(
    Turn,
    st.sampled_from(["Ann", "Bob", "user"]),
    st.lists(
        st.sampled_from(["Why?", "So.", "By the way, x", "\n", "```\ncode here\n```", "Bob: y", "# z", "a b c " * 9])
    ).map(" ".join),
)
LINES = st.lists(st.one_of(SPOKEN, SPOKEN, SPOKEN, st.sampled_from(["", "Topic"])), max_size=14)


@given(LINES, st.sampled_from([SMALL, LARGE]))
def test_conversations_are_covered_and_cut_the_same_twice(lines: list[Line], sizes: ChunkSizes) -> None:
    """ING-8, ING-13: every byte in a chunk, no chunk above the maximum, a function of the document."""
    document = a_session(lines)
    chunks = chunk_document(document, sizes, words)
    check(document, chunks, sizes)
    assert chunks == chunk_document(document, sizes, words)


@given(LINES)
@example([Turn("Ann", f"{'a b c ' * 9} Why?"), Turn("user", "Why? Why? Why? Why? By the way, x By the way, x")])
def test_no_exchange_that_fits_is_cut(lines: list[Line]) -> None:
    """ING-8: a question and its answer are in one chunk whatever stands around them."""
    document = a_session(lines)
    source = document.text.encode()
    chunks = chunk_document(document, SMALL, words)
    for exchange in exchanges(source, places(source), RULES):
        body = source[exchange.start : exchange.end].strip().decode()
        if 0 < words(body) <= SMALL.max_tokens - SMALL.leading_budget:
            assert any(chunk.level == 2 and chunk.text.endswith(body) for chunk in chunks), body


NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True)


@given(NUMBERS, st.integers(0, 6))
def test_exchanges_keep_their_identity_when_others_come(numbers: list[int], at: int) -> None:
    """ING-13: an exchange put anywhere leaves the others' ids and hashes as they are."""
    before = [[Turn("user", f"What is {number}?"), Turn("assistant", f"It is {number}.")] for number in numbers]
    after = [*before[:at], [Turn("user", "Another?"), Turn("assistant", "Yes.")], *before[at:]]
    ids = []
    for turns in (before, after):
        chunks = chunk_document(a_session([turn for pair in turns for turn in pair]), LARGE, words)
        ids.append({(chunk.chunk_id, chunk.content_hash) for chunk in chunks if chunk.level == 2})
    assert ids[0] < ids[1]


FRAGMENTS = [
    *(
        '{"a": 1,',
        '"b": {"c": [1, {"d": 2}]},',
        '"e": "f g h i j k l m n o p"',
        "}",
        "[",
        "]",
        "{",
        '"',
        "// note\n",
        ",",
    ),
    *("key: value\n", "# note\n", "list:\n", "  - name: x\n    y: z\n", "- a\n", "text: |\n  a: b\n  # c\n", "---\n"),
    *("  deep: {x: 1,\n y: 2}\n", "&a [*a]\n", 'q: "x\n  y: z"\n', "[table]\n", "[[t.u]]\n", 'k = """\n[no]\n"""\n'),
    *('k = """a \\\n  b\n', "  [t]\n", "\tk = v\n  # w: x\n"),
    *("k = [\n 1,\n]\n", "; note\n", "FROM a AS b\n", "RUN c \\\n  d\n", "COPY x y\n", "RUN <<EOF\nFROM e\nEOF\n"),
    *(
        "require (\n",
        "\ta/b v1\n",
        ")\n",
        "all: x\n\tcmd\n",
        'resource "a" "b" {\n',
        "}\n",
        "pkg==1\n",
        "\r\n",
        "é",
        "\ufeff",
    ),
    *("a b c d e f g h i j k l m n o p q r s t u v w x y z " * 2, "\n", " ", "\t"),
]
LANGUAGES = ["json", "yaml", "toml", "ini", "dockerfile", "gomod", "make", "hcl", "requirements", "xml"]
NAMES = ["file", "package.json", "compose.yaml", "pyproject.toml"]


@given(
    st.one_of(st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join), st.text(max_size=60)),
    st.sampled_from(LANGUAGES),
    st.sampled_from(NAMES),
    st.sampled_from([SMALL, LARGE]),
)
def test_configuration_is_covered_whatever_it_holds(text: str, language: str, name: str, sizes: ChunkSizes) -> None:
    """ING-9, ING-13: well-formed or not; twice the same."""
    document = a_file(text, language, name)
    chunks = chunk_document(document, sizes, words)
    check(document, chunks, sizes)
    assert chunks == chunk_document(document, sizes, words)


VALUES = st.recursive(
    st.one_of(st.integers(), st.text("ab \n:#'\"-", max_size=30), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text("abc", min_size=1), inner, max_size=4)
    ),
    max_leaves=25,
)
KEYS = st.text("abcdef:'# -", min_size=1, max_size=6)
OBJECTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("language", "write"),
    [
        ("json", lambda value: json.dumps(value, indent=2)),
        ("yaml", lambda value: yaml.safe_dump(value, width=30, sort_keys=False)),
    ],
)
@given(value=OBJECTS)
@example(value={"a": [], "c": {}, "b": " '\n#", "aaaa": [0, 0, 0, 0], "aa": [], "aaa": []})  # a quote written twice
@example(value={"b": [], "aa": [None, 0, 0, [" :\n: a : ", 0]], "a": None, **dict.fromkeys("cdef", 0)})  # after dashes
@example(value={"a": [f"{'a ' * 15}- 'b", 0], **dict.fromkeys("bcd", 0)})  # neither a dash nor a quote means anything
@example(value={"a:b": [], "c d": {}, "e'": 0, "f": "a b " * 10})
def test_keys_are_found_and_no_short_scalar_is_cut(language: str, write: Callable[[object], str], value: dict) -> None:
    """ING-9: checked against what wrote the file: each top-level key is a chunk's, and values stay whole."""
    keys_found(value, language, write)


def keys_found(value: dict, language: str, write: Callable[[dict], str]) -> None:
    text = write(value)
    document = a_file(text, language)
    chunks = chunk_document(document, SMALL, words)
    check(document, chunks, SMALL)
    if words(text) > 20:
        found = {name for chunk in chunks for name in chunk.defines}
        assert found == set(value)
        for key, item in value.items():
            line = write({key: item}).strip("{}").strip()
            if not isinstance(item, dict | list) and words(line) < SMALL.target_tokens // 2:
                assert any(line in chunk.text for chunk in chunks), line


@given(value=st.dictionaries(KEYS, st.lists(VALUES, min_size=1, max_size=4), min_size=1, max_size=6))
@example(value={"a": ["b'"], "c": [0] * 20})
@example(value={"a": ["it's", '"', "#b", "c: 'd"], "b": [[[0]], {"a": "a'b"}], "c": [0] * 12})
def test_keys_are_found_beside_brackets(value: dict) -> None:
    """ING-9: what is between brackets may hold quotes that mean themselves."""
    keys_found(value, "yaml", lambda one: yaml.safe_dump(one, width=30, sort_keys=False, default_flow_style=None))


@given(value=OBJECTS, width=st.sampled_from([30, 10_000]))
@example(value={"a": 1, "b": {"c": 2}}, width=10_000)
@example(value={"a:b": {"c d": ["it's", {"e": "x: {y"}]}, "e'": "f # g"}, width=30)
@example(value={":": None, ":::'": [], ":::::": "a '"}, width=30)
def test_keys_of_a_file_in_braces_are_found(value: dict, width: int) -> None:
    """ING-9: a YAML file that is one mapping in flow style, on one line or several."""
    text = yaml.safe_dump(value, width=width, sort_keys=False, default_flow_style=True)
    assert keys_below(entries_of("a.yaml", "yaml", text.encode())[1]) == keys_in(value)


def keys_in(value: dict) -> dict[str, object]:
    return {key: keys_in(item) if isinstance(item, dict) else {} for key, item in value.items()}


def keys_below(entries: Sequence[Entry]) -> dict[str, object]:
    """Elements of lists, which are no keys of anybody's, have numbers for names."""
    return {entry.key: keys_below(entry.children) for entry in entries if not entry.key.isdecimal()}


def lists_and_tables(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4))


TEXTS = st.text("ab \n:#'\"=[];\\-", max_size=30)
TOML = st.dictionaries(
    KEYS, st.recursive(st.one_of(st.integers(0, 9), TEXTS, st.booleans()), lists_and_tables, max_leaves=20), min_size=1
)


@given(value=TOML)
def test_keys_and_tables_of_toml_are_found_and_no_short_scalar_is_cut(value: dict) -> None:
    """ING-9: whatever stands in strings and arrays that go on over lines."""
    assert tomllib.loads(toml(value)) == value
    keys_found(value, "toml", toml)


@given(value=st.dictionaries(st.text("abc:'#-", min_size=1), st.dictionaries(st.text("ab", min_size=1), TEXTS)))
def test_sections_are_found(value: dict) -> None:
    """ING-9: lines that are indented go on with a value, whatever they begin with."""
    keys_found(value, "ini", ini)


# Quotes around a key are no part of its name.
UNQUOTED = KEYS.filter(lambda key: len(key) < 2 or not key[0] == key[-1] == "'")


@given(value=st.dictionaries(UNQUOTED, TEXTS.map(lambda text: text.replace("\\", "")), min_size=1))
def test_keys_of_properties_are_found_and_no_short_value_is_cut(value: dict) -> None:
    """ING-9: with what a backslash stands before."""
    keys_found(value, "ini", properties)


def a_member(language: str, name: str) -> str:
    inner = {"first": f"{name} " * 20, "second": f"{name} " * 20}
    text = json.dumps({name: inner}) if language == "json" else yaml.safe_dump({name: inner}, width=1000)
    return f"{text[1:-1]},\n" if language == "json" else text


@pytest.mark.parametrize("language", ["json", "yaml"])
@given(numbers=NUMBERS, at=st.integers(0, 6))
def test_keys_keep_their_identity_when_others_come(language: str, numbers: list[int], at: int) -> None:
    """ING-13: a key put anywhere between the others leaves their ids and hashes as they are, if none is too small."""
    before = [a_member(language, f"key{number}") for number in numbers]
    after = [*before[:at], a_member(language, "another"), *before[at:]]
    ids = []
    for members in (before, after):
        body = "".join(members)
        text = f'{{\n{body}"end": 0\n}}' if language == "json" else body
        chunks = chunk_document(a_file(text, language), replace(SMALL, min_tokens=0), words)
        ids.append({(each.chunk_id, each.content_hash) for each in chunks if each.level > 0 and each.symbol != "end"})
    assert ids[0] < ids[1]


def real_files() -> list[Path]:
    site = Path(sysconfig.get_paths()["purelib"])
    own = [*ROOT.glob("*.toml"), *ROOT.glob("conf/**/*.yaml"), *ROOT.glob("infra/**/*.yaml"), ROOT / "Makefile"]
    patterns = ["*/*.json", "*/*/*.yaml", "*/*/*.yml", "*/*.toml", "*/*/*.cfg", "*/*/*.ini"]
    found = [path for pattern in patterns for path in sorted(site.glob(pattern))[::4]]
    return [path for path in (*own, *found) if path.is_file() and path.stat().st_size < 100_000]


def test_the_laws_hold_on_real_configuration() -> None:
    """ING-9, ING-13: this repository's files and those of installed packages."""
    seen = 0
    for path in real_files():
        text = path.read_text(encoding="utf-8")
        kind = kind_of(path.name, text)
        if kind.content_type is ContentType.CONFIGURATION:
            document = a_file(text, kind.language or "", path.name)
            check(document, chunk_document(document, LARGE, words), LARGE)
            seen += 1
    assert seen > 20


def test_the_laws_hold_on_real_conversations(data_root: Path) -> None:
    """ING-8, ING-12, ING-13: LoCoMo, by the similarity that indexing uses and in the encoder's window."""
    sizes = LARGE.capped(254)
    chunkers = chunkers_with(load_word_vectors(load_settings(environment={}).embedding))
    text = gzip.decompress((data_root / "locomo" / "locomo_conv1-6.json.gz").read_bytes()).decode()
    levels = set()
    for session in list(sessions(text, "locomo"))[:40]:
        document = Document(
            uri=session.uri,
            content_type=ContentType.CONVERSATION,
            domain=Domain.HISTORY,
            text=session.text,
            trust_level=50,
            metadata=session.metadata,
        )
        chunks = chunk_document(document, sizes, words, chunkers)
        check(document, chunks, sizes)
        pairs = [chunk for chunk in chunks if chunk.level == 2]
        assert all(left.end_byte == right.start_byte for left, right in pairwise(pairs))
        assert [turn for pair in pairs for turn in pair.attributes["turns"].split()] == session.metadata[
            "turns"
        ].split()
        levels |= {chunk.level for chunk in chunks}
    assert levels >= {1, 2}
