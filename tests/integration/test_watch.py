"""ING-25, ING-26: `weft index --watch` indexes what is saved, and nothing ends it but a signal."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.ingestion import COUNTED, CountedEncoder, a_plan, a_tree
from weft.app.watching import SPARED, Followed, follow
from weft.catalog.catalog import Catalog
from weft.ingestion.plan import IndexPlan
from weft.ingestion.report import IndexOutcome

pytestmark = pytest.mark.integration

WORDS = ("zanzibar", "quetzal", "marmoset", "axolotl", "ocelot", "tapir")  # more than generations are kept


@pytest.fixture
def plan(tmp_path: Path) -> IndexPlan:
    CountedEncoder.loaded = 0
    return a_plan(a_tree(tmp_path, files=4), tmp_path / "store", encoder=COUNTED)


def found(plan: IndexPlan, words: str) -> list[str]:
    """The documents that hold some words in what is live, by the text index."""
    with closing(Catalog(plan.store).open_live()) as generation:
        rows = [row for row, _ in generation.lexical.search(words, 10)]
        return sorted({place.uri for content in generation.chunks.contents(rows) for place in content.occurrences})


def until(runs: Iterator[Followed], holds: bool, plan: IndexPlan, word: str) -> IndexOutcome:
    """The run after which a word is found, or is not: what one save changes may be seen as two changes."""
    for followed in runs:
        assert followed.outcome is not None, followed.trouble
        if bool(found(plan, word)) is holds:
            return followed.outcome
    raise AssertionError("expected another run")


def test_what_is_saved_is_searched_and_what_is_removed_is_not(plan: IndexPlan) -> None:
    """ING-25: only what changed is made anew, models are loaded once, and generations in between do not pile up."""
    (tree,), catalog = plan.sources, Catalog(plan.store)
    with closing(follow(plan, threading.Event())) as runs:
        first = next(runs).outcome
        assert first is not None
        assert first.published
        for word in WORDS:
            (tree / "module_00.py").write_text(f"def saved():\n    return '{word}'\n")
            outcome = until(runs, True, plan, word)
            assert outcome.published
            assert outcome.unchanged == outcome.documents - 1
        assert found(plan, WORDS[-2]) == []
        (tree / "module_00.py").unlink()
        gone = until(runs, False, plan, WORDS[-1])
        assert gone.documents == first.documents - 1
    assert CountedEncoder.loaded == 1
    assert len(catalog.generations()) <= SPARED + 1


def test_bad_input_is_counted_and_ends_nothing(plan: IndexPlan, tmp_path: Path) -> None:
    """ING-3, ING-26: a file that is none is counted; while the source is gone what was live stays; it may come back."""
    (tree,) = plan.sources
    with closing(follow(plan, threading.Event())) as runs:
        before = next(runs).outcome
        assert before is not None
        (tree / "broken.py").write_bytes(b"\x00\xff\x00\xfe" * 100)
        outcome = next(runs).outcome
        assert outcome is not None
        assert outcome.skipped == before.skipped + 1
        live = Catalog(plan.store).pointer().generation
        tree.rename(tmp_path / "away")
        failed = next(followed for followed in runs if followed.outcome is None)
        assert str(tree) in failed.trouble
        assert Catalog(plan.store).pointer().generation == live
        (tmp_path / "away").rename(tree)
        (tree / "new.md").write_text("# Back\n\nThe zanzibar returned.\n")
        while not found(plan, "zanzibar"):
            next(runs)
        # It is watched again.
        (tree / "new.md").write_text("# Back\n\nThe quetzal returned.\n")
        until(runs, True, plan, "quetzal")


def test_a_file_as_source_and_a_store_in_its_source(tmp_path: Path) -> None:
    """ING-25: a file is followed by its name; what the run itself writes below a source starts no other run."""
    tree = a_tree(tmp_path, files=2)
    alone = tmp_path / "alone.md"
    alone.write_text("# Alone\n\nA marmoset.\n")
    plan = replace(a_plan(tree, tree / "kept"), sources=[tree, alone])
    stop = threading.Event()
    with closing(follow(plan, stop)) as runs:
        next(runs)
        put = tmp_path / "put.md"
        put.write_text("# Alone\n\nAn axolotl.\n")
        put.replace(alone)
        until(runs, True, plan, "axolotl")
        assert found(plan, "marmoset") == []
        timer = threading.Timer(3.0, stop.set)
        timer.start()
        assert list(runs) == []


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)],
    ids=["SIGTERM", "SIGINT"],
)
def test_a_signal_ends_it(number: signal.Signals, tmp_path: Path) -> None:
    """ING-25, OPS-15: the command says when it watches and what it published, and a signal ends it with 0."""
    source, store = tmp_path / "notes", tmp_path / "store"
    source.mkdir()
    (source / "one.md").write_text("# One\n\nThe first note.\n")
    words = ["index", str(source), "--store", str(store), "--watch", "--set", "extraction.enabled=false"]
    said = tmp_path / "stderr"
    with said.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-m", "weft", *words], cwd=ROOT, stderr=stderr, stdout=stderr)
        try:
            _await(said, "watching ", process)
            (source / "two.md").write_text("# Two\n\nThe second note.\n")
            _await(said, "1 of 2 documents new or changed", process)
            process.send_signal(number)
            assert process.wait(120.0) == 0, said.read_text()
        finally:
            process.kill()
            process.wait()
    assert "Traceback" not in said.read_text()
    Catalog(store).verify(str(Catalog(store).pointer().generation))  # type: ignore[arg-type]


def _await(file: Path, words: str, process: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + 240.0
    while words not in file.read_text():
        assert process.poll() is None, file.read_text()
        assert time.monotonic() < until_s, file.read_text()
        time.sleep(0.1)
