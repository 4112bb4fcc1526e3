"""ING-3: a hostile tree goes through `ingest`: nothing outside is read, nothing hangs, every skip has its reason."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.ingestion import a_plan
from weft.catalog.catalog import Catalog
from weft.domain.errors import StoreError
from weft.ingestion.pipeline import ingest
from weft.ingestion.report import IndexOutcome
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.sources.sources import list_items
from weft.ingestion.stages.read_and_chunk import ReadAndChunk, ReadRules
from weft.ingestion.units import Unit
from weft.runtime.stages import HERE, Stage

SECRET = "the combination of the vault is 4711"


def _run(root: Path, store: Path, *assignments: str) -> IndexOutcome:
    plan = a_plan(root, store, "index.shards=1", *assignments)
    return ingest(plan, Catalog(store), HERE, lambda _: None, clock=time.monotonic)


def _tables(store: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Reason by name of what was rejected or noted, and texts of chunks by document."""
    folder = store / "generations" / str(Catalog(store).pointer().generation) / "chunks"
    rejected = pq.read_table(folder / "rejected.parquet").to_pylist()
    texts: dict[str, list[str]] = {}
    for row in pq.read_table(folder / "chunks.parquet", columns=["uri", "text"]).to_pylist():
        texts.setdefault(row["uri"].partition("/")[2], []).append(row["text"])
    return {row["uri"].partition("/")[2]: row["reason"] for row in rejected}, texts


def _strange_files(root: Path, outside: Path) -> dict[str, str]:
    """What is no readable text file, and the reason that each must be given."""
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "out").symlink_to(outside)
    (root / "loop").symlink_to(root)
    (root / "self").symlink_to("self")
    (root / "inward.txt").symlink_to(root / "good.txt")
    (root / "device").symlink_to("/dev/zero")
    (root / "hard.meta.json").symlink_to(outside / "secret.txt")
    (root / "hard.txt").write_text("A good file with a bad sidecar.\n")
    os.mkfifo(root / "fifo.py")
    with (root / "sparse.py").open("wb") as file:
        file.truncate(1 << 40)
    (root / "huge.txt").write_bytes(b"word " * 1_000_000)
    (root / "elf").write_bytes(b"\x7fELF\2\1\1\0" + bytes(range(256)))
    (root / "latin.md").write_bytes(b"caf\xe9\n")
    (root / "utf16.txt").write_bytes("text".encode("utf-16"))
    links = ("link.txt", "out", "loop", "self", "inward.txt", "device")
    return {
        **dict.fromkeys(links, "symlink"),
        "hard.meta.json": "bad_sidecar",
        "fifo.py": "not_regular",
        "sparse.py": "too_large",
        "huge.txt": "too_large",
        "elf": "binary",
        "latin.md": "decoded",
        "utf16.txt": "decoded",
    }


def test_what_is_no_text_file_is_told_and_nothing_outside_is_read(tmp_path: Path) -> None:
    """ING-3: links in, out and in a loop, a FIFO, sparse, huge and binary files, bytes that are no text."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "good.txt").write_text("A good file.\n")
    expected = _strange_files(root, tmp_path / "outside")
    with open(os.fsencode(root) + b"/\xff\n.txt", "wb") as file:
        file.write(b"A file of a strange name.\n")
    outcome = _run(root, tmp_path / "store")
    rejected, texts = _tables(tmp_path / "store")
    assert rejected == expected
    assert outcome.rejected == {reason: list(expected.values()).count(reason) for reason in set(expected.values())}
    assert set(texts) == {"good.txt", "hard.txt", "\\xff\\x0a.txt", "latin.md", "utf16.txt"}
    assert texts["latin.md"] == ["café"]
    assert SECRET not in json.dumps(texts)


def _aliases(levels: int) -> str:
    names = [f"a{level}" for level in range(levels)]
    return f"{names[0]}: &{names[0]} [x, x]\n" + "".join(
        f"{name}: &{name} [*{before}, *{before}, *{before}]\n" for before, name in itertools.pairwise(names)
    )


BOMBS: Mapping[str, Callable[[], str]] = {
    "calls.py": lambda: "x = " + "f(\n" * 60_000 + ")" * 60_000 + "\n",
    "chain.js": lambda: "x" + ".f()\n" * 60_000 + ";\n",
    "parens.c": lambda: ("(" * 100 + "\n") * 30_000,
    "brackets.md": lambda: "[" * 50_000,
    "quotes.md": lambda: ">" * 50_000 + " deep\n",
    "lists.md": lambda: "".join(" " * (2 * depth) + "- x\n" for depth in range(1500)),
    "stars.md": lambda: "*a **b " * 100_000,
    "front.md": lambda: f"---\n{_aliases(60)}---\n# Title\n",
    "deep.json": lambda: "[\n" * 500_000 + "]" * 500_000,
    "objects.json": lambda: '{"a":\n' * 100_000 + "1" + "}" * 100_000,
    "wide.json": lambda: json.dumps({str(key): key for key in range(150_000)}),
    "laughs.yaml": lambda: _aliases(60),
    "flow.yaml": lambda: "a: [" + "1, " * 300_000 + "1]\n",
    "nested.yaml": lambda: ("[" * 100 + "\n") * 200,
    "digits.json": lambda: "[" + "9" * 1_000_000 + ",\n" + "1,\n" * 60_000 + "1]",
    "one_line.txt": lambda: "é" * 1_950_000,
    "blanks.txt": lambda: "." + " " * 3_000_000 + "x",
    "lines.txt": lambda: "a\n" * 1_000_000,
    "table.md": lambda: "|" + "a|" * 3_000 + "\n|" + "-|" * 3_000 + "\n" + "|x" * 3_000 + "\n",
    "paper.tex": lambda: "\\begin{a}\n" * 50_000 + "{" * 200_000,
    "turns.txt": lambda: "Ann: hi\nBob: ho\n" * 60_000,
    "rst.rst": lambda: ("x\n=\n" * 50_000) + "*" * 100_000,
    "templates.cpp": lambda: "a<\n" * 100_000,
    "minus.go": lambda: "package a\nvar x = " + "-\n" * 100_000 + "1\n",
    "heredoc.sh": lambda: "cat <<A\n" * 20_000,
}


NOTED = {"parser_timeout", "parser_memory", "parser_crashed", "bad_front_matter", "too_many_chunks"}
IN_SHORT = ("calls.py", "parens.c", "brackets.md", "lists.md", "front.md", "deep.json", "laughs.yaml", "one_line.txt")


@pytest.mark.slow
def test_bombs_are_cut_into_windows_and_good_files_properly(tmp_path: Path) -> None:
    """ING-3: parsers that do not come to an end are ended, whatever the order; every file is indexed."""
    root = tmp_path / "tree"
    root.mkdir()
    for name in IN_SHORT:
        (root / name).write_text(BOMBS[name]())
        (root / f"{name}.good.py").write_text(f"def good():\n    return {name!r}\n")
    short = ("ingest.parser.cpu_s=0.5", "ingest.unit_documents=100")
    outcome = _run(root, tmp_path / "store", *short)
    rejected, texts = _tables(tmp_path / "store")
    assert set(texts) == {path.name for path in root.iterdir()}
    assert set(rejected.values()) <= NOTED
    assert "parser_timeout" in rejected.values()
    assert rejected["front.md"] == "bad_front_matter"
    assert not [name for name in rejected if name.endswith("good.py")]
    assert outcome.skipped == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BOMBS))
def test_no_file_keeps_another_from_the_index(tmp_path: Path, name: str) -> None:
    """ING-3: within the shipped limits a costly file is indexed, and so is its neighbour."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "good.py").write_text("def good():\n    return 1\n")
    (root / name).write_text(BOMBS[name]())
    plan = a_plan(root, tmp_path / "store")
    worker = ReadAndChunk(
        ReadRules(plan.ingest, prior_sizes(plan.chunking, plan.priors, limit=254), plan.embedding, None)
    )
    items = list_items(root, plan.ingest)
    worker.work(Unit(0, [item for item in items if item.uri.endswith("good.py")]))  # starts the child
    unit = worker.work(Unit(1, items))
    documents = {row["uri"].rpartition("/")[2].partition("#")[0] for row in unit.tables["documents"].to_pylist()}
    assert documents == {"good.py", name}
    assert {row["reason"] for row in unit.tables["rejected"].to_pylist()} <= NOTED
    assert max(len(row["text"]) for row in unit.tables["chunks"].to_pylist()) < 100_000


@pytest.mark.parametrize("files", [400, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_many_tiny_files_are_all_indexed(tmp_path: Path, files: int) -> None:
    """ING-3: one folder with as many files as it pleases; the bad ones are told one by one."""
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(files):
        bad = number % 100 == 7
        (root / f"{number}.txt").write_bytes(b"\0" if bad else b"note %d\n" % number)
    outcome = _run(root, tmp_path / "store", "ingest.unit_documents=500")
    assert outcome.rejected == {"binary": files // 100}
    assert outcome.documents == files - files // 100


def test_a_source_under_a_name_that_is_no_text_is_indexed(tmp_path: Path) -> None:
    """ING-1, ING-3: the manifest names its sources in a form that can be written down."""
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    root.mkdir()
    (root / "good.txt").write_text("A good file.\n")
    outcome = _run(root, tmp_path / "store")
    assert (outcome.documents, outcome.rejected) == (1, {})
    (manifest,) = Catalog(tmp_path / "store").generations()
    assert manifest.facts["sources"] == [f"{tmp_path}/caf\\xe9"]


def test_a_run_that_lost_what_a_worker_made_publishes_nothing(tmp_path: Path) -> None:
    """ING-3, ARC-2: every unit is on disk, or the run fails."""
    root, store = tmp_path / "tree", tmp_path / "store"
    root.mkdir()
    for name in "abcd":
        (root / f"{name}.txt").write_text(f"File {name}.\n")

    def forgetful(rows: Sequence[pa.Table], stages: Sequence[Stage]) -> Generator[pa.Table]:
        yield from HERE.stream(rows[1:], stages)

    plan = a_plan(root, store, "index.shards=1", "ingest.unit_documents=1")
    with pytest.raises(StoreError, match="expected 4 parts, found none of"):
        ingest(plan, Catalog(store), replace(HERE, stream=forgetful), lambda _: None, clock=time.monotonic)
    assert Catalog(store).pointer().generation is None
