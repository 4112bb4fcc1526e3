"""The graph of a real generation, built by the pipeline from this repository's own code."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ingestion import a_plan
from weft.catalog.catalog import Catalog
from weft.domain.errors import ModelUnavailableError
from weft.domain.ids import ContentHash
from weft.extraction.checkpoints import identify
from weft.extraction.settings import CHECKPOINT
from weft.indexes.generation import Generation
from weft.indexes.graph.graph import Direction, EdgeKind
from weft.ingestion.pipeline import ingest
from weft.ingestion.report import IndexProgress
from weft.runtime.stages import HERE
from weft.settings import load_settings

REPOSITORY = Path(__file__).resolve().parents[2]
COPIED = ("ingestion",)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some packages of this repository and a page about them, indexed twice with other shards."""
    folder = tmp_path_factory.mktemp("graph")
    tree = folder / "pipelines" / "weft"
    for package in COPIED:
        shutil.copytree(
            REPOSITORY / "pipelines" / "weft" / package,
            tree / package,
            ignore=shutil.ignore_patterns("*.pyc", "formats"),
        )
    (tree / "__init__.py").write_text('"""Packages."""\n')
    (tree / "guide.md").write_text("# Guide\n\nAda Lovelace says: read [the plan](ingestion/plan.py).\n")
    for shards, name in ((1, "store"), (3, "again")):
        plan = a_plan(tree, folder / name, "extraction.enabled=true", f"index.shards={shards}")
        ingest(plan, Catalog(folder / name), HERE, lambda _: None, clock=lambda: 0.0)
    return folder / "store"


@pytest.fixture(scope="module")
def generation(store: Path) -> Iterator[Generation]:
    generation = Catalog(store).open_live()
    yield generation
    generation.close()


def contents_of(generation: Generation, uri: str, symbol: str | None) -> list[ContentHash]:
    """Contents of a unit, the first part first."""
    rows = generation.chunks.contents(generation.chunks.rows_of_document(uri))
    places = [(one.chunk, content.content_hash) for content in rows for one in content.occurrences if one.uri == uri]
    found = sorted((chunk.sequence, content) for chunk, content in places if chunk.symbol == symbol)
    return [content for _, content in found]


def symbols_of(generation: Generation, contents: list[ContentHash | None]) -> set[tuple[str, str | None]]:
    rows = [generation.chunks.row_of(one) for one in contents if one is not None]
    return {
        (place.uri, place.chunk.symbol)
        for content in generation.chunks.contents([row for row in rows if row is not None])
        for place in content.occurrences
    }


def test_known_calls_of_this_repository_resolve_across_files(generation: Generation) -> None:
    """ING-14: `ingest` calls `stages_of` of another module, which is thereby called by it; surely."""
    caller = contents_of(generation, "weft/ingestion/pipeline.py", "ingest")
    called = [near for part in caller for near in generation.graph.neighbours(part, [EdgeKind.CALLS])]
    sure = symbols_of(generation, [near.content for near in called if near.confidence > 0.9])
    assert {("weft/ingestion/plan.py", name) for name in ("stages_of", "units_of", "facts_of")} <= sure
    stages = contents_of(generation, "weft/ingestion/plan.py", "stages_of")[0]
    callers = generation.graph.neighbours(stages, [EdgeKind.CALLS], Direction.IN)
    assert ("weft/ingestion/pipeline.py", "ingest") in symbols_of(generation, [near.content for near in callers])


def test_imports_base_types_and_prose_resolve_too(generation: Generation) -> None:
    """ING-14: imports, extends and references, each of its kind."""
    edges = generation.graph.table("edges").to_pylist()
    assert {row["kind"] for row in edges} >= {"calls", "extends", "imports", "references", "mentions", "defines"}
    worker = contents_of(generation, "weft/ingestion/units.py", "UnitWorker")[0]
    heirs = generation.graph.neighbours(worker, [EdgeKind.EXTENDS], Direction.IN)
    assert ("weft/ingestion/stages/models.py", "Embed") in symbols_of(generation, [near.content for near in heirs])
    guide = contents_of(generation, "weft/guide.md", None)[0]
    (plan,) = symbols_of(
        generation, [near.content for near in generation.graph.neighbours(guide, [EdgeKind.REFERENCES])]
    )
    assert plan[0] == "weft/ingestion/plan.py"


def test_entities_and_counts_are_in_the_sealed_generation(generation: Generation) -> None:
    """ING-16, ING-17: mentions and symbols are nodes; the manifest counts and seals both files."""
    (ada,) = generation.graph.find("ADA")
    assert contents_of(generation, "weft/guide.md", None)[0] in generation.graph.contents_of(ada.node)
    assert {entity.label for entity in generation.graph.find("ingest")} == {"code symbol"}
    counts = generation.manifest.counts
    assert counts["entities"] == generation.graph.table("nodes").num_rows
    assert counts["edges"] == generation.graph.table("edges").num_rows
    assert {"graph/nodes.parquet", "graph/edges.parquet"} <= generation.manifest.files.keys()


def test_shards_change_nothing_in_the_graph(store: Path, generation: Generation) -> None:
    """ING-24, ARC-9: bytes and all."""
    again = Catalog(store.with_name("again")).open_live()
    for file in ("graph/nodes.parquet", "graph/edges.parquet"):
        assert generation.manifest.files[file] == again.manifest.files[file]
    assert generation.manifest.content_hash == again.manifest.content_hash
    again.close()


def test_a_checkpoint_that_is_not_there_stops_the_run_before_any_unit(tmp_path: Path) -> None:
    """ING-16: the reason comes at the start, before hours of reading and embedding."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.txt").write_text("Ada wrote.")
    broken = tmp_path / "broken"
    shutil.copytree(CHECKPOINT, broken)
    (broken / "model.onnx").write_bytes((broken / "model.onnx").read_bytes()[:1000])
    for model in (tmp_path / "none", broken):
        seen: list[IndexProgress] = []
        plan = a_plan(
            tmp_path / "tree",
            tmp_path / "store",
            "extraction.enabled=true",
            f"extraction.model={model}",
        )
        with pytest.raises(ModelUnavailableError, match=r"extraction\.model"):
            ingest(plan, Catalog(tmp_path / "store"), HERE, seen.append, clock=lambda: 0.0)
        assert not seen


def test_another_checkpoint_is_another_identity(tmp_path: Path) -> None:
    """ING-20: what one checkpoint found is never taken for what another would."""
    settings = load_settings(environment={}).extraction
    copy = tmp_path / "copy"
    shutil.copytree(CHECKPOINT, copy)
    same = settings.model_copy(update={"model": str(copy)})
    assert identify(same) == identify(settings)
    (copy / "gliner_config.json").write_text((copy / "gliner_config.json").read_text() + "\n")
    assert identify(same) != identify(settings)
