"""ARC-9: a store's precision is chosen once; any later processor computes the same, or says that it cannot."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.cli.commands import reindex
from weft.domain.errors import ConfigurationError
from weft.domain.ids import QueryId
from weft.domain.ranking import Query
from weft.embedding.encoders import precision
from weft.ingestion.report import IndexOutcome
from weft.runtime.stages import HERE, Executor, Stage
from weft.settings import Settings, load_settings

NEW, OLD = "avx2 avx512_vnni", "sse4_2"
"""Flags of two processors, of which "auto" would choose int8 on one and fp32 on the other."""
QUESTIONS = ("how is a checkpoint written", "fruit that is yellow")
NOTES = {
    "a.md": "A checkpoint is written in one transaction with its offset.",
    "b.md": "Bananas are yellow and grow in the tropics.",
    "c.md": "Locks are released when the transaction ends.",
    "d.md": "Lemons are yellow and sour, and grow on trees.",
}


class Processor:
    """What the system says of the processor; other flags make it another one, for whatever is loaded from then on."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_now(self, flags: str) -> None:
        self._path.write_text(f"flags: {flags}\n")


@pytest.fixture
def processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Processor:
    monkeypatch.setattr(precision, "CPU_FACTS", tmp_path / "cpuinfo")
    return Processor(tmp_path / "cpuinfo")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / name).write_text(text)
    return folder


def settings_of(store: Path, *assignments: str) -> Settings:
    changes = [f"storage.root={store}", "extraction.enabled=false", "ingest.unit_documents=1", *assignments]
    return load_settings([], changes, environment={})


def indexed(settings: Settings, source: Path, *, executor: Executor = HERE, full: bool = False) -> IndexOutcome:
    return reindex.run(reindex.plan_of(settings, [source], full=full), executor=executor)


def pins(store: Path) -> list[str]:
    """The precision of every generation, oldest first."""
    return [next(iter(manifest.precisions.values())) for manifest in Catalog(store).generations()]


def ranked(settings: Settings) -> list[list[tuple[str, float]]]:
    """Content hashes and scores, of each question."""
    queries = [Query(text=text, query_id=QueryId(f"q{at}"), k=4) for at, text in enumerate(QUESTIONS)]
    with opened(settings) as searcher:
        return [[(each.content_hash, each.score) for each in one.results] for one in searcher.search_many(queries)]


@pytest.mark.parametrize(
    ("processors", "expected"), [((NEW, OLD), "int8"), pytest.param((OLD, NEW), "fp32", marks=pytest.mark.slow)]
)
def test_another_processor_finds_and_adds_the_same(
    tmp_path: Path, processor: Processor, source: Path, processors: tuple[str, str], expected: str
) -> None:
    """ARC-9: equal ids and scores; what is indexed later is computed as what was there."""
    settings, (maker, other) = settings_of(tmp_path / "store"), processors
    processor.is_now(maker)
    indexed(settings, source)
    there = ranked(settings)
    processor.is_now(other)
    assert ranked(settings) == there
    (source / "e.md").write_text("Snapshots are read without locks.")
    assert indexed(settings, source).published
    assert pins(tmp_path / "store") == [expected, expected]


@pytest.mark.slow
def test_workers_on_different_processors_make_one_precision(tmp_path: Path, processor: Processor, source: Path) -> None:
    """ARC-9: the driver chooses; each unit is computed elsewhere, and the generation is that of one processor."""

    def elsewhere(rows: Sequence[pa.Table], stages: Sequence[Stage]) -> Generator[pa.Table]:
        for row, flags in zip(rows, itertools.cycle((OLD, NEW)), strict=False):
            processor.is_now(flags)
            yield from HERE.stream([row], stages)

    def made(name: str, executor: Executor) -> tuple[str, list[list[tuple[str, float]]]]:
        processor.is_now(NEW)
        settings = settings_of(tmp_path / name, "ingest.pools.few=0")
        hashed = indexed(settings, source, executor=executor).content_hash
        return hashed, ranked(settings)

    assert made("mixed", replace(HERE, stream=elsewhere)) == made("one", HERE)
    assert pins(tmp_path / "mixed") == ["int8"]


@pytest.mark.slow
def test_a_store_is_moved_by_making_all_anew(tmp_path: Path, processor: Processor, source: Path) -> None:
    """ARC-9, OPS-15: another precision is refused, with what moves the store; after that it is the store's own."""
    store = tmp_path / "store"
    processor.is_now(NEW)
    indexed(settings_of(store), source)
    asked = settings_of(store, "embedding.precision=fp32")
    for refused in (lambda: indexed(asked, source), lambda: ranked(asked)):
        with pytest.raises(ConfigurationError, match=r"expected int8, .* found fp32: use auto, or move the store by"):
            refused()
    assert indexed(settings_of(store), source, full=True).published is not None
    assert set(pins(store)) == {"int8"}
    indexed(asked, source, full=True)
    assert pins(store)[-1] == "fp32"
    assert ranked(settings_of(store)) == ranked(asked)


def test_a_searcher_says_that_a_moved_store_is_not_its_own(
    tmp_path: Path, processor: Processor, source: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """ARC-9: one that runs keeps the generation it can search, and says what to do."""
    store = tmp_path / "store"
    processor.is_now(NEW)
    indexed(settings_of(store), source)
    with opened(settings_of(store)) as searcher:
        before = searcher.snapshot.generation_id
        indexed(settings_of(store, "embedding.precision=fp32"), source, full=True)
        searcher.refresh()
        assert searcher.snapshot.generation_id == before
    assert "in int8, in which this process encodes queries, found fp32: start it anew" in caplog.text
