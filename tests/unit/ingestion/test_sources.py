"""ING-1: what sources hold. ING-3: what is wrong with an item is told, and stops nothing."""

import gzip
import json
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.ingestion import write
from weft.domain.documents import ContentType, Document, Domain, Rejection
from weft.domain.errors import SourceError
from weft.ingestion.git.safe_files import MAX_DEPTH
from weft.ingestion.settings import IngestSettings
from weft.ingestion.sources.items import FileItem
from weft.ingestion.sources.sources import list_items, list_source, read_item, read_source
from weft.ingestion.sources.tree import SkipReason
from weft.settings import load_settings


@pytest.fixture
def settings() -> IngestSettings:
    return load_settings([], ["ingest.max_file_bytes=1000"], environment={}).ingest


def read(
    path: Path, settings: IngestSettings, domain: Domain | None = None
) -> tuple[dict[str, Document], dict[str, str]]:
    results = list(read_source(path, settings, domain=domain))
    documents = {item.uri: item for item in results if isinstance(item, Document)}
    return documents, {item.uri: item.reason for item in results if isinstance(item, Rejection)}


def test_a_tree_gives_documents_with_their_kind(tree: Path, settings: IngestSettings) -> None:
    """ING-1, ING-2: content type, domain and language from name and content; trust by kind."""
    write(tree / "pkg" / "a.py", "x = 1\n")
    write(tree / "tool", "#!/usr/bin/env python3\nx = 1\n")
    write(tree / "README.md", "\ufeff# Title\n")
    write(tree / "conf.yaml", "a: 1\n")
    write(tree / "notes", "Prose.\r\n")
    documents, rejected = read(tree, settings)
    assert rejected == {}
    assert {uri: (d.content_type, d.domain, d.language) for uri, d in documents.items()} == {
        "tree/README.md": (ContentType.MARKDOWN, Domain.GENERAL, None),
        "tree/conf.yaml": (ContentType.CONFIGURATION, Domain.CODE, "yaml"),
        "tree/notes": (ContentType.TEXT, Domain.GENERAL, None),
        "tree/pkg/a.py": (ContentType.CODE, Domain.CODE, "python"),
        "tree/tool": (ContentType.CODE, Domain.CODE, "python"),
    }
    assert documents["tree/notes"].text == "Prose.\r\n"
    assert documents["tree/README.md"].text == "# Title\n"
    assert documents["tree/pkg/a.py"].trust_level == settings.trust.local_code
    assert documents["tree/pkg/a.py"].metadata == {"folder": "tree/pkg"}
    assert documents["tree/notes"].modified_at == pytest.approx((tree / "notes").stat().st_mtime)


def test_a_lone_carriage_return_ends_a_line(tree: Path, settings: IngestSettings) -> None:
    """ING-40: as a line feed, which takes as many bytes, so that spans stay those of the file."""
    write(tree / "a.md", b"# One\r\rText.\r\n\r\n# Two\n")
    documents, _ = read(tree, settings)
    assert documents["tree/a.md"].text == "# One\n\nText.\r\n\r\n# Two\n"


def test_ignore_files_hold_at_every_level(tree: Path, settings: IngestSettings) -> None:
    """ING-1: patterns of inner files win, excluded folders are not entered, histories never are."""
    write(tree / ".gitignore", "*.log\nbuild/\n/top.txt\n")
    write(tree / "keep" / ".gitignore", "!wanted.log\nlocal.txt\n")
    for name in ("a.log", "build/b.txt", "top.txt", ".git/config", "__pycache__/c.txt", "keep/build/d.txt"):
        write(tree / name)
    for name in ("keep/wanted.log", "keep/top.txt", "keep/local.txt", "local.txt"):
        write(tree / name)
    documents, _ = read(tree, settings)
    visible = {uri for uri in documents if not uri.endswith(".gitignore")}
    assert visible == {"tree/keep/wanted.log", "tree/keep/top.txt", "tree/local.txt"}


def test_a_hostile_tree_is_reported_and_never_left(tree: Path, tmp_path: Path, settings: IngestSettings) -> None:
    """ING-3: links, FIFOs, binaries, damaged and huge files are rejected with a reason; nothing outside is read."""
    write(tmp_path / "outside" / "secret.txt", "secret")
    (tree / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (tree / "folder").symlink_to(tmp_path / "outside")
    os.mkfifo(tree / "fifo")
    write(tree / "binary", b"MZ\0\1")
    write(tree / "latin.txt", b"caf\xe9\n")
    write(tree / "large.txt", b"x" * 1001)
    with (tree / "sparse.txt").open("wb") as file:
        file.truncate(1 << 40)
    write(tree / "fine.txt")
    documents, rejected = read(tree, settings)
    assert set(documents) == {"tree/fine.txt", "tree/latin.txt"}
    assert rejected == {
        "tree/binary": "binary",
        "tree/fifo": "not_regular",
        "tree/folder": "symlink",
        "tree/large.txt": "too_large",
        "tree/latin.txt": "decoded",
        "tree/link.txt": "symlink",
        "tree/sparse.txt": "too_large",
    }


def test_a_folder_that_became_a_link_after_listing_is_not_followed(
    tree: Path, tmp_path: Path, settings: IngestSettings
) -> None:
    """ING-3: every step to a file is opened without following links, when it is read."""
    write(tree / "inner" / "a.txt", "ours")
    write(tmp_path / "outside" / "a.txt", "secret")
    (item,) = list_items(tree, settings)
    (tree / "inner").rename(tree / "moved")
    (tree / "inner").symlink_to(tmp_path / "outside")
    (result,) = read_item(item, settings, domain=None)
    assert isinstance(result, Rejection)
    assert result.reason == "symlink"


def test_names_that_are_not_text_are_escaped(tree: Path, settings: IngestSettings) -> None:
    """ING-3: a name of any bytes gives a URI that can be stored."""
    with open(os.fsencode(tree) + b"/caf\xe9\n\\.txt", "wb") as file:
        file.write(b"text")
    documents, _ = read(tree, settings)
    assert list(documents) == [r"tree/caf\xe9\x0a\\.txt"]


def test_folders_too_deep_are_reported(tree: Path, settings: IngestSettings) -> None:
    """ING-3: too deeply nested."""
    deepest = "/".join(["a"] * MAX_DEPTH)
    write(tree / deepest / "ok.txt")
    write(tree / deepest / "b" / "deep.txt")
    documents, rejected = read(tree, settings)
    assert (list(documents), rejected) == ([f"tree/{deepest}/ok.txt"], {f"tree/{deepest}/b": "too_deep"})


def test_items_travel_and_come_in_a_fixed_order(tree: Path, settings: IngestSettings) -> None:
    """ARC-9: workers read pickled items; the order does not depend on the file system."""
    for name in ("b.txt", "a/z.txt", "a.txt", "c/a.txt", "B.txt"):
        write(tree / name)
    items = list_items(tree, settings)
    assert pickle.loads(pickle.dumps(items)) == items
    assert [item.uri for item in items] == [
        "tree/B.txt",
        "tree/a.txt",
        "tree/b.txt",
        "tree/a/z.txt",
        "tree/c/a.txt",
    ]


def test_a_single_file_is_a_source(tree: Path, settings: IngestSettings) -> None:
    """ING-1: it has the URI that its folder would give it; a domain may be forced."""
    write(tree / "a.py", "x = 1\n")
    documents, _ = read(tree / "a.py", settings, Domain.ACADEMIC)
    assert [(uri, d.domain) for uri, d in documents.items()] == [("tree/a.py", Domain.ACADEMIC)]


def test_a_source_that_is_not_there_is_an_error(tree: Path, settings: IngestSettings) -> None:
    """ING-3: the user named it, so nothing can go on without it."""
    with pytest.raises(SourceError, match="found none"):
        list_items(tree / "nothing", settings)


RECORDS = [
    {"_id": "1", "title": "One", "text": "First.", "metadata": {"year": 1999, "venue": "X", "none": None}},
    {"_id": "2", "title": "", "text": "Second \ud800."},
]
BROKEN = [
    b"{not json",
    b'["a list"]',
    b'{"_id": "3"}',
    b'{"_id": "4", "text": "' + b"x" * 1000 + b'"}',
    b"[" * 900,
    b"\xff",
]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_a_corpus_gives_its_records_and_names_its_broken_lines(
    tmp_path: Path, settings: IngestSettings, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ING-1, ING-3: the id is kept, facts become strings, a malformed line is a rejection naming it."""
    path = tmp_path / "books" / f"corpus{suffix}"
    lines = b"\n".join(
        [*(json.dumps(record).encode() for record in RECORDS), *BROKEN, b"", b'{"_id": 9, "text": "Last."}']
    )
    write(path, gzip.compress(lines) if suffix.endswith("gz") else lines)
    monkeypatch.setattr("weft.ingestion.sources.corpus.RECORDS_PER_ITEM", 3)
    documents, rejected = read(path, settings)
    assert [(uri, d.title, d.text) for uri, d in documents.items()] == [
        ("books:1", "One", "First."),
        ("books:2", None, "Second \ufffd\ufffd\ufffd."),
        ("books:9", None, "Last."),
    ]
    assert documents["books:1"].metadata == {"_id": "1", "year": "1999", "venue": "X"}
    assert {d.content_type for d in documents.values()} == {ContentType.RECORD}
    assert rejected == {f"books:line {n}": "invalid_record" for n in (3, 4, 5, 7, 8)} | {"books:line 6": "too_large"}


def test_a_damaged_compressed_corpus_gives_what_it_can(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-3: a truncated download is reported once, and what comes before the damage is read."""
    rows = [json.dumps({"_id": str(n), "text": f"{n * 7919 % 104729} words"}).encode() for n in range(2000)]
    whole = gzip.compress(b"\n".join(rows))
    path = tmp_path / "cut.jsonl.gz"
    write(path, whole[: len(whole) // 2])
    documents, rejected = read(path, settings)
    assert 100 < len(documents) < 2000
    assert list(rejected.values()) == ["undecodable"]


def test_batches_of_a_corpus_are_the_corpus(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ING-1, ARC-9: however a real corpus is divided into items, its records are the same, in order."""
    path = data_root / "cacm" / "corpus.jsonl.gz"
    ingest = load_settings([], [], environment={}).ingest
    with gzip.open(path, "rt", encoding="utf-8") as file:
        expected = [f"cacm:{json.loads(line)['_id']}" for line in file]
    for records in (64, 100):
        monkeypatch.setattr("weft.ingestion.sources.corpus.RECORDS_PER_ITEM", records)
        results = list(read_source(path, ingest, domain=None))
        assert [item.uri for item in results] == expected


PAPER = {"title": "On Reeds", "abstract": "Tall grass.", "sections": [{"heading": "Water", "text": "Wet."}]}


def test_a_paper_in_json_is_read_as_markdown(tree: Path, settings: IngestSettings) -> None:
    """ING-1, ING-7: by its content; other JSON is configuration, and a broken file is what it was."""
    write(tree / "paper.json", json.dumps(PAPER))
    write(tree / "other.json", json.dumps({"sections": {"a": 1}}))
    write(tree / "broken.json", '{"abstract": "x", ')
    documents, rejected = read(tree, settings)
    assert rejected == {}
    kinds = {uri.removeprefix("tree/"): (d.content_type, d.language, d.domain) for uri, d in documents.items()}
    assert kinds["paper.json"] == (ContentType.PAPER, "markdown", Domain.ACADEMIC)
    assert documents["tree/paper.json"].text.startswith("# On Reeds\n")
    assert documents["tree/paper.json"].trust_level == settings.trust.academic
    assert {kind for name, (kind, _, _) in kinds.items() if name != "paper.json"} == {ContentType.CONFIGURATION}


@pytest.mark.parametrize("nested", ['{"a": ', "["])
def test_no_depth_of_metadata_ends_a_corpus(tmp_path: Path, settings: IngestSettings, nested: str) -> None:
    """ING-3: what can just be read may be too deep to be written again."""
    closing = {"{": "}", "[": "]"}[nested[0]]
    wide = settings.model_copy(update={"max_file_bytes": 100_000})
    lines = [
        f'{{"_id": "{depth}", "text": "t", "metadata": {{"title": {nested * depth}1{closing * depth}}}}}\n'
        for depth in range(900, 1000)
    ]
    write(tmp_path / "deep.jsonl", "".join(lines))
    documents, rejected = read(tmp_path / "deep.jsonl", wide)
    assert len(documents) + len(rejected) == len(lines)
    assert set(rejected.values()) == {"invalid_record"}


def test_lines_of_objects_that_are_no_records_are_text(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-1: named by itself or found in a folder, such a file is the same."""
    write(tmp_path / "kilns" / "log.jsonl", '{"cone": 6, "remark": "hot"}\n' * 3)
    alone, folder = (read(path, settings) for path in (tmp_path / "kilns" / "log.jsonl", tmp_path / "kilns"))
    assert alone == folder
    (document,) = alone[0].values()
    assert (document.content_type, document.language, alone[1]) == (ContentType.TEXT, "json", {})


def test_a_corpus_cut_short_after_listing_tells_what_is_gone(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-3: nothing disappears unsaid."""
    path = tmp_path / "books.jsonl"
    write(path, "".join(json.dumps({"_id": str(n), "text": "x"}) + "\n" for n in range(5)))
    (item,) = list_items(path, settings)
    write(path, path.read_bytes()[: len(path.read_bytes()) * 2 // 5])
    *documents, gone = read_item(item, settings, domain=None)
    assert [one.uri for one in documents] == ["books:0", "books:1"]
    assert gone == Rejection("books:line 3", "unreadable", "expected 3 more lines, found the end: the file was changed")


def test_files_with_names_that_are_not_text_are_corpora_and_tables(tmp_path: Path, settings: IngestSettings) -> None:
    """ING-1, ING-3: a URI can always be written down."""
    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    write(Path(f"{name}.jsonl"), '{"_id": "1", "text": "x"}\n')
    with Path(f"{name}.parquet").open("wb") as file:
        pq.write_table(pa.table({"text": ["x"], "id": ["1"]}), file)
    for suffix in (".jsonl", ".parquet"):
        documents, rejected = read(Path(f"{name}{suffix}"), settings)
        assert (list(documents), rejected) == (["caf\\xe9:1"], {})


def test_a_reader_that_fails_costs_its_own_item_alone(
    tree: Path, settings: IngestSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ING-3: input may raise anything inside a reader; want of memory tells nothing of the input, and ends the run."""

    def failing(text: str, *_: object, **__: object) -> None:
        if "boom" in text:
            raise RuntimeError("nobody foresaw this")
        if "large" in text:
            raise MemoryError

    monkeypatch.setattr("weft.ingestion.sources.files.front_matter", failing)
    write(tree / "a.md", "# boom\n")
    write(tree / "b.md", "# calm\n")
    documents, rejected = read(tree, settings)
    assert list(documents) == ["tree/b.md"]
    assert rejected == {"tree/a.md": "reader_crashed"}
    write(tree / "c.md", "# large\n")
    with pytest.raises(MemoryError):
        read(tree, settings)


def test_the_store_is_no_source(tree: Path, tmp_path: Path, settings: IngestSettings) -> None:
    """ING-1, ING-25: a store inside a source is left out, as is any folder of the name that stores have by default."""
    for folder in ("kept", ".weft"):
        write(tree / folder / "generations" / "manifest.json", "{}")
    write(tree / "a.md", "# A\n")
    (tmp_path / "link").symlink_to(tree)
    for store in (tree / "kept", tmp_path / "link" / "kept"):
        uris = [item.uri for item in list_items(tree, settings, store=store) if isinstance(item, FileItem)]
        assert uris == ["tree/a.md"]
    for other in (None, tmp_path / "elsewhere", tmp_path, tree):
        uris = [item.uri for item in list_items(tree, settings, store=other) if isinstance(item, FileItem)]
        assert uris == ["tree/a.md", "tree/kept/generations/manifest.json"]


KEY = "-----BEGIN PRIVATE KEY-----\nMIIEv\n-----END PRIVATE KEY-----\n"
SECRET_FILES = [".env", ".env.local", "prod.env", ".envrc", "env.local", ".aws/credentials", ".pypirc", ".my.cnf"]
SECRET_FILES += [".docker/config.json", ".kube/config", "terraform.tfvars", "terraform.tfstate", "in/.aws/credentials"]


def test_files_of_passwords_are_left_out_by_their_names(tree: Path) -> None:
    """ING-40: counted, and read where they are asked for; examples of them and other settings are read."""
    for name in [*SECRET_FILES, ".env.example", "example.env", "config.json", "secrets.yaml", "dev.tfvars"]:
        write(tree / name, "a = 1\n")
    settings = load_settings(environment={}).ingest
    listing = list_source(tree, settings)
    read = {"/".join(item.path) for item in listing.items if isinstance(item, FileItem)}
    assert read == {".env.example", "example.env", "config.json", "secrets.yaml", "dev.tfvars"}
    assert listing.left_out == {SkipReason.SECRET: len(SECRET_FILES)}
    asked = list_source(tree, settings.model_copy(update={"secret_files": ()}))
    assert (len(asked.items), asked.left_out) == (len(read) + len(SECRET_FILES), {})


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("account.json", json.dumps({"type": "service_account", "private_key": KEY}), "private_key"),
        ("values.yaml", "tls:\n  key: |\n" + KEY.replace("-----B", "    -----B"), "private_key"),
        ("deploy_key", f"# of the bastion\n{KEY}", "private_key"),
        ("key.py", KEY, "private_key"),
        (".npmrc", "//registry.example/:_authToken=npm_abc\n", "access_token"),
        (".yarnrc.yml", 'npmAuthToken: "abc"\n', "access_token"),
        (".npmrc", "save-exact=true\n//registry.example/:_authToken=${NPM_TOKEN}\n", None),
        ("test_tls.py", f'KEY = """\n{KEY}"""\n', None),
        ("tls.md", f"# Keys\n\n```\n{KEY}```\n", None),
        ("notes.txt", "A key begins with -----BEGIN PRIVATE KEY-----.\n", None),
    ],
)
def test_a_key_in_what_is_neither_code_nor_documentation_is_not_read(
    tree: Path, name: str, text: str, reason: str | None
) -> None:
    """ING-40: a key of JSON or YAML and a token of a package registry are rejected by name, unless asked for."""
    write(tree / name, text)
    settings = load_settings(environment={}).ingest
    (found,) = read_source(tree, settings, domain=None)
    assert (found.reason if isinstance(found, Rejection) else None) == reason
    asked = read_source(tree, settings.model_copy(update={"secret_files": ()}), domain=None)
    assert any(isinstance(one, Document) for one in asked)
