from __future__ import annotations

import json
from pathlib import Path

import pytest

from weft.domain.documents import Document, Rejection
from weft.domain.links import Link, LinkKind
from weft.ingestion.metadata.declared import MOST_BYTES, DeclarationError
from weft.ingestion.metadata.front_matter import front_matter
from weft.ingestion.settings import IngestSettings
from weft.ingestion.sources.sources import list_items, read_source
from weft.settings import load_settings

GUIDE = {
    "title": "Locks, in short",
    "summary": "When to lock, and when not to.",
    "trigger_phrases": ["deadlock", "who holds the lock"],
    "tier": "core",
    "intent": "onboarding",
    "decisions": ["no global lock"],
    "cross_references": ["queue.md", {"kind": "cites", "target": "paper:7"}],
    "validation_status": "reviewed",
    "citations": 12,
    "authors": ["Ann", "Bob"],
    "trust": 95,
    "team": {"name": "core", "size": 3},
}


@pytest.fixture
def settings() -> IngestSettings:
    return load_settings(environment={}).ingest


def read(root: Path, settings: IngestSettings) -> tuple[dict[str, Document], dict[str, Rejection]]:
    results = list(read_source(root, settings, domain=None))
    documents = {one.uri.partition("/")[2]: one for one in results if isinstance(one, Document)}
    return documents, {one.uri.partition("/")[2]: one for one in results if isinstance(one, Rejection)}


def test_a_sidecar_is_merged_and_is_no_document(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-4, ING-2: everything that a sidecar declares stands in the document's facts; the prose is as it was."""
    (tmp_path / "guide.md").write_text("# Locks\n")
    (tmp_path / "guide.md.meta.json").write_text(json.dumps(GUIDE))
    documents, rejected = read(tmp_path, settings)
    (document,) = documents.values()
    assert rejected == {}
    assert document.text == "# Locks\n"
    assert (document.title, document.summary) == (GUIDE["title"], GUIDE["summary"])
    assert document.triggers == ("deadlock", "who holds the lock")
    assert (document.tier, document.intent, document.validation) == ("core", "onboarding", "reviewed")
    assert (document.citations, document.trust_level, document.authors) == (12, 95, ("Ann", "Bob"))
    assert document.links == (
        Link(LinkKind.REFERENCES, "queue.md", declared=True),
        Link(LinkKind.CITES, "paper:7", declared=True),
    )
    assert json.loads(document.metadata["decisions"]) == GUIDE["decisions"]
    assert json.loads(document.metadata["team"]) == GUIDE["team"]


def test_sidecars_go_by_whole_name_then_by_stem_and_strays_are_documents(
    tmp_path: Path, settings: IngestSettings
) -> None:
    """ING-4: a sidecar beside no document of its name is a file like any other."""
    for name in ("a.md", "a.rst"):
        (tmp_path / name).write_text("Text.\n")
    (tmp_path / "a.meta.json").write_text('{"title": "by stem"}')
    (tmp_path / "a.md.meta.json").write_text('{"title": "by name"}')
    (tmp_path / "stray.meta.json").write_text('{"title": "none"}')
    documents, rejected = read(tmp_path, settings)
    assert rejected == {}
    assert {name: document.title for name, document in documents.items()} == {
        "a.md": "by name",
        "a.rst": "by stem",
        "stray.meta.json": None,
    }


def test_a_single_file_has_its_sidecar_too(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-1, ING-4: the file alone is the source, and what lies beside it is still about it."""
    (tmp_path / "a.md").write_text("Text.\n")
    (tmp_path / "b.md").write_text("Text.\n")
    (tmp_path / "a.md.meta.json").write_text('{"title": "A"}')
    documents, _ = read(tmp_path / "a.md", settings)
    assert {name: document.title for name, document in documents.items()} == {"a.md": "A"}
    assert len(list_items(tmp_path / "a.md", settings)) == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{not json", "Expecting property name"),
        (b"\xff", "can't decode"),
        (b"[1]", "found list"),
        (b"[" * 1500, "recursion"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "nested at most 16 deep"),
        (b'{"title": "' + b"x" * MOST_BYTES + b'"}', "too_large"),
        (b'{"trust": 101}', "from 0 to 100"),
        (b'{"cross_references": [{"kind": "hates", "target": "x"}]}', "a kind of calls"),
    ],
)
def test_a_bad_sidecar_is_named_and_its_document_kept(
    tmp_path: Path, settings: IngestSettings, content: bytes, problem: str
) -> None:
    """ING-3, ING-4: one row of `rejected` names the sidecar and says why."""
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "a.py.meta.json").write_bytes(content)
    documents, rejected = read(tmp_path, settings)
    assert list(documents) == ["a.py"]
    assert {name: one.reason for name, one in rejected.items()} == {"a.py.meta.json": "bad_sidecar"}
    assert problem in rejected["a.py.meta.json"].detail


def test_a_sidecar_that_is_a_link_is_not_followed(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-3: nothing outside the source is read, by no way."""
    (tmp_path / "secret.json").write_text('{"title": "secret"}')
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.py").write_text("x = 1\n")
    (tmp_path / "tree" / "a.py.meta.json").symlink_to(tmp_path / "secret.json")
    documents, rejected = read(tmp_path / "tree", settings)
    assert documents["a.py"].title is None
    assert rejected["a.py.meta.json"].detail.startswith("symlink")


def test_front_matter_is_merged_under_the_sidecar(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-4: front matter of Markdown declares the same facts; what lies beside the document goes before."""
    text = "---\ntitle: Own\nauthor: Ann\ndate: 2024-05-01\ntags: [a, b]\ndescription: On locks.\n---\n# Locks\n"
    (tmp_path / "a.md").write_text(text)
    (tmp_path / "b.md").write_text(text)
    (tmp_path / "b.md.meta.json").write_text('{"title": "Beside"}')
    documents, rejected = read(tmp_path, settings)
    assert rejected == {}
    assert {name: document.title for name, document in documents.items()} == {"a.md": "Own", "b.md": "Beside"}
    for document in documents.values():
        assert (document.text, document.authors, document.summary) == (text, ("Ann",), "On locks.")
        assert (document.metadata["date"], document.metadata["tags"]) == ("2024-05-01", '["a", "b"]')


AS_WRITTEN = {
    "countries": ("---\ncountry: [NO, ON, y]\n---\n", '["NO", "ON", "y"]'),
    "numbers": ("---\nn: {a: 1e3, b: 0x1F, c: 1_000, d: .inf, e: 0o17}\n---\n", None),
    "nothing": ("---\nn: ~\nm: Null\no:\nteam: a\n---\n", "a"),
    "keys": ('---\n$schema: a\n"@type": b\na/b: c\nname (short): d\n---\n', None),
    "a tag of its tool": ("---\nicon: !mine x\n---\n", "x"),
    "aliases": ("---\nbase: &b {k: 1.10}\nother:\n  <<: *b\n---\n", '{"k": "1.10"}'),
    "json": ('{\n  "release": 1.10,\n  "tags": ["NO"]\n}\n\nText.\n', '["NO"]'),
}


@pytest.mark.parametrize("name", AS_WRITTEN)
def test_values_of_front_matter_stay_as_they_are_written(name: str) -> None:
    """ING-40: whatever YAML or JSON would make of them; the last of each is looked at, or all."""
    text, last = AS_WRITTEN[name]
    facts = front_matter(text)
    assert facts is not None
    if last is not None:
        assert list(facts.metadata.values())[-1] == last
    elif name == "numbers":
        assert facts.metadata == {"n": '{"a": "1e3", "b": "0x1F", "c": "1_000", "d": ".inf", "e": "0o17"}'}
    else:
        assert facts.metadata == {"$schema": "a", "@type": "b", "a/b": "c", "name (short)": "d"}


def test_front_matter_of_another_meaning_is_kept_as_metadata() -> None:
    """ING-4: many tools give these names meanings of their own, and a document is no worse for it."""
    facts = front_matter("---\ntrust: high\nauthor: {name: Ann}\n---\n")
    assert facts is not None
    assert (facts.trust, facts.authors) == (None, ())
    assert facts.metadata == {"trust": "high", "author": '{"name": "Ann"}'}


@pytest.mark.parametrize(
    "text", ["# No front matter\n", "---\n", "---\n\nA rule.\n\n---\n\nAnother.\n", "----\na: 1\n----\n", "---\n---\n"]
)
def test_what_only_looks_like_front_matter_declares_nothing(text: str) -> None:
    """ING-4: two rules are Markdown too."""
    assert front_matter(text) is None


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)
)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (LAUGHS, "aliases"),
        ("a: " + "[" * 400 + "]" * 400, "nested at most 16 deep"),
        ("a: " + "[" * 900, "nested at most 16 deep"),
        ("a: [1, 2\n", "YAML"),
        ("a: !!python/object/apply:os.system [ls]\n", "YAML"),
        ("a: 1\n" * 20_000, "at most 65536 characters"),
        ("{a: 1}: 2\n", "YAML"),
        ("? [a]\n: 2\n", "None"),
    ],
)
def test_hostile_front_matter_is_refused(source: str, problem: str) -> None:
    """ING-3: aliases, depth and length are bounded before anything is built, and no code is run."""
    text = f"---\n{source}\n---\nText.\n"
    if problem == "None":
        assert front_matter(text) is None
        return
    with pytest.raises(DeclarationError, match=problem):
        front_matter(text)


def test_hostile_front_matter_leaves_a_note_and_the_document(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-3: the document is indexed without what was declared."""
    (tmp_path / "a.md").write_text(f"---\n{LAUGHS}---\n# Title\n")
    documents, rejected = read(tmp_path, settings)
    assert list(documents) == ["a.md"]
    assert rejected["a.md"].reason == "bad_front_matter"


def test_what_is_declared_of_a_paper_goes_before_what_it_says(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-4, ING-7: its title page may name others."""
    (tmp_path / "a.json").write_text('{"title": "On Reeds", "authors": ["Ann"], "abstract": "Tall \\ud800 grass."}')
    (tmp_path / "a.json.meta.json").write_text('{"title": "Ours", "authors": ["Bob"], "trust": 5}')
    documents, rejected = read(tmp_path, settings)
    paper = documents["a.json"]
    assert rejected == {}
    assert (paper.title, paper.authors, paper.trust_level) == ("Ours", ("Bob",), 5)
    assert "Tall \ufffd" in paper.text


def test_names_of_facts_that_are_no_texts_stop_nothing() -> None:
    """ING-3, ING-4: YAML names facts by numbers and days, too; a set has one order, whatever process reads it."""
    source = "history:\n  2024-05-01: first\nports:\n  80: web\n  x: y\n  ~: z\nfound: !!set {b, a, c}\n"
    facts = front_matter(f"---\n{source}---\n")
    assert facts is not None
    assert facts.metadata == {
        "history": '{"2024-05-01": "first"}',
        "ports": '{"80": "web", "null": "z", "x": "y"}',
        "found": '["a", "b", "c"]',
    }


@pytest.mark.parametrize("name", ["title", "citations", "team"])
def test_a_number_of_too_many_digits_is_refused(name: str) -> None:
    """ING-3: YAML reads any number of hexadecimal digits, and Python writes no integer of so many."""
    with pytest.raises(DeclarationError, match="digits"):
        front_matter(f"---\n{name}: !!int 0x{'f' * 5000}\n---\n")


def test_values_of_front_matter_are_texts_as_written() -> None:
    """ING-40: no country is false, no time a number of seconds, no version loses its last zero; counts are numbers."""
    written = {"country": "NO", "zip": "01234", "start": "12:30", "release": "1.10", "draft": "yes", "on": "2024-5-1"}
    source = "".join(f"{name}: {value}\n" for name, value in written.items())
    facts = front_matter(f"---\ntitle: 1.10\n{source}trust: 90\nnothing: ~\n---\n")
    assert facts is not None
    assert (facts.title, facts.trust, facts.metadata) == ("1.10", 90, written)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_front_matter_may_be_toml(tmp_path: Path, settings: IngestSettings, end: str) -> None:
    """ING-40: between plus signs, with the facts that YAML gives, and whatever ends its lines."""
    lines = [
        "+++",
        'title = "Toml Front"',
        'team = "hugo"',
        "release = 1.10",
        "at = 12:30:00",
        "trust = 5",
        "+++",
        "",
        "# Body",
    ]
    (tmp_path / "a.md").write_bytes(end.join(lines).encode())
    documents, rejected = read(tmp_path, settings)
    assert rejected == {}
    document = documents["a.md"]
    assert (document.title, document.trust_level) == ("Toml Front", 5)
    declared = {name: value for name, value in document.metadata.items() if name != "folder"}
    assert declared == {"team": "hugo", "release": "1.10", "at": "12:30:00"}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("a = 1\n" + "a." * 20_000 + "b = 1", "nested at most 16 deep"),
        ("[" + "a." * 20_000 + "b]", "nested at most 16 deep"),
        ("a = " + "[" * 20_000, "TOML"),
        ("a = {" + "a = {" * 17 + "b = 1" + "}" * 18, "nested at most 16 deep"),
        ("a = 1\na = 2", "TOML"),
        ("a = 9" + "9" * 5000, "TOML"),
    ],
)
def test_hostile_toml_is_refused(source: str, reason: str) -> None:
    """ING-3: names of many parts, of which the parser takes the square, deep values, and plain mistakes."""
    with pytest.raises(DeclarationError, match=reason):
        front_matter(f"+++\n{source}\n+++\n")


@pytest.mark.parametrize("text", ["+++\n", "+++\nText.\n+++\n", "+++ b/a.py\n+a = 1\n+++\n", "++++\na = 1\n+++\n"])
def test_what_only_looks_like_toml_declares_nothing(text: str) -> None:
    """ING-40: differences between files begin so."""
    assert front_matter(text) is None


RELATIONS = [{"kind": "supersedes", "target": "old.md"}, {"kind": "derived_from", "target": "https://example.org/a"}]
RELATED = (
    Link(LinkKind.SUPERSEDES, "old.md", declared=True),
    Link(LinkKind.DERIVED_FROM, "https://example.org/a", declared=True),
)


def test_relations_are_declared_in_sidecars_and_in_front_matter(tmp_path: Path, settings: IngestSettings) -> None:
    """GRA-1, ING-4: as a list of kind and target, or short; the short form stays a fact that one can filter by."""
    (tmp_path / "beside.md").write_text("Text.\n")
    (tmp_path / "beside.md.meta.json").write_text(json.dumps({"relations": RELATIONS, "related": ["queue.md"]}))
    rows = "".join(f"  - {{kind: {one['kind']}, target: '{one['target']}'}}\n" for one in RELATIONS)
    (tmp_path / "within.md").write_text(f"---\ntitle: T\nrelations:\n{rows}---\nText.\n")
    (tmp_path / "short.md").write_text("---\nsupersedes: old.md\nenabled: true\nsupports: [a/b, c.md]\n---\nText.\n")
    documents, rejected = read(tmp_path, settings)
    assert rejected == {}
    assert documents["beside.md"].links == (Link(LinkKind.REFERENCES, "queue.md", declared=True), *RELATED)
    assert documents["within.md"].links == RELATED
    assert [(link.kind, link.target) for link in documents["short.md"].links] == [
        (LinkKind.SUPERSEDES, "old.md"),
        (LinkKind.SUPPORTS, "a/b"),
        (LinkKind.SUPPORTS, "c.md"),
    ]
    assert documents["short.md"].metadata["supersedes"] == "old.md"


@pytest.mark.parametrize("relations", ["old.md", [{"kind": "replaces", "target": "a.md"}], [{"kind": "caused"}], {}])
def test_relations_that_are_none_are_told_and_kept(tmp_path: Path, settings: IngestSettings, relations: object) -> None:
    """GRA-1: what is wrong is named with the sidecar; the document is indexed, and the words stay among its facts."""
    (tmp_path / "a.md").write_text("Text.\n")
    (tmp_path / "a.md.meta.json").write_text(json.dumps({"relations": relations}))
    documents, rejected = read(tmp_path, settings)
    assert "relations: expected objects of a target and a kind of caused" in rejected["a.md.meta.json"].detail
    assert documents["a.md"].links == ()
    assert "relations" in documents["a.md"].metadata
