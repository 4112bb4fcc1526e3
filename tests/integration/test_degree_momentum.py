"""GRA-2, RET-13: how the degree of contents changes from generation to generation, and the signal that tells of it."""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.ingestion import a_plan
from tests.support.retrieval_fakes import a_query
from tests.support.small_store import DirectionEncoder
from weft.catalog.catalog import Catalog
from weft.cli.main import main
from weft.domain.ranking import RankedResult, Signal
from weft.indexes.generation import Generation
from weft.indexes.graph.graph import FORMER_DEGREES
from weft.ingestion.pipeline import ingest
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.runtime.stages import HERE
from weft.settings import load_settings

pytestmark = pytest.mark.integration

HALF = load_settings(environment={}).retrieval.quality.momentum_half
TARGET = "tree/target.md"


def indexed(tree: Path, catalog: Catalog, pages: dict[str, str]) -> None:
    """One more generation, with these pages beside those that are there."""
    tree.mkdir(exist_ok=True)
    for name, text in pages.items():
        (tree / name).write_text(text)
    outcome = ingest(a_plan(tree, catalog.root), catalog, HERE, lambda _: None, clock=time.monotonic)
    assert outcome.published


def degrees_of(generation: Generation) -> dict[str, float]:
    """Sum of the strengths of each content's edges, counted edge by edge."""
    sums: defaultdict[str, float] = defaultdict(float, dict.fromkeys(generation.contents, 0.0))
    for edge in generation.graph.table("edges").to_pylist():
        for row in (
            {edge["source_row"], edge["target_row"]} - {None} if edge["source_row"] != edge["target_row"] else ()
        ):
            sums[generation.contents[row]] += edge["confidence"] * edge["strength"]
    return sums


def found(catalog: Catalog, encoder: DirectionEncoder) -> RankedResult:
    settings = load_settings([], [f"storage.root={catalog.root}"], environment={})
    source = CatalogSource(catalog, settings.priors, clock=time.time)
    with Searcher(source, encoder, settings.retrieval, clock=time.time) as searcher:
        results = searcher.search(a_query("locks are released")).results
    return next(one for one in results if one.uris[0] == TARGET)


@pytest.mark.slow
def test_what_more_leads_to_from_one_generation_to_the_next_gains_momentum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """GRA-2, RET-13: the change over the last seven generations, beside counting edges in each; told and explained."""
    tree, catalog, encoder = tmp_path / "tree", Catalog(tmp_path / "store"), DirectionEncoder()
    encoder.name = "model"
    indexed(tree, catalog, {"target.md": "# Locks\n\nLocks are released after a minute.\n"})
    assert Signal.MOMENTUM not in found(catalog, encoder).signals
    history: list[dict[str, float]] = []
    for number in range(FORMER_DEGREES + 2):
        with closing(catalog.open_live()) as generation:
            changes, now = generation.graph.degree_changes(), degrees_of(generation)
            assert changes is not None
            for content, change in zip(generation.contents, changes.tolist(), strict=True):
                had = [each[content] for each in history[-FORMER_DEGREES:] if content in each]
                assert math.isnan(change) if not had else change == pytest.approx(now[content] - had[0])
            history.append(now)
        page = f"# Page {number}\n\nNumber {number} of the pages, see [locks](target.md).\n"
        indexed(tree, catalog, {f"page{number}.md": page})
    result = found(catalog, encoder)
    first, last = history[1][result.content_hash], history[-1][result.content_hash]
    assert last > first
    with closing(catalog.open_live()) as generation:
        changes = generation.graph.degree_changes()
        assert changes is not None
        (change,) = changes[generation.chunks.rows_of([result.content_hash])]
    assert result.signals[Signal.MOMENTUM] == pytest.approx((1.0 + change / (change + HALF)) / 2.0)
    assert result.signals[Signal.MOMENTUM] > 0.5
    (part,) = (part for part in result.contributions if part.name == Signal.MOMENTUM.value)
    assert (part.weight, part.amount) == (0.0, 0.0)
    assert main(["graph", "show", "target.md", "--store", str(catalog.root), "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["analytics"]
    assert (len(shown["former_degrees"]), shown["degree_change"]) == (FORMER_DEGREES, pytest.approx(change))


def test_a_damaged_generation_before_begins_the_history_anew(tmp_path: Path) -> None:
    """GRA-2, OPS-1: how degrees change is no reason to fail, and nothing is told of what cannot be read."""
    tree, catalog = tmp_path / "tree", Catalog(tmp_path / "store")
    indexed(tree, catalog, {"target.md": "# Locks\n\nLocks are released after a minute.\n"})
    live: Any = catalog.pointer().generation
    (catalog.folder_of(live) / "graph" / "analytics.parquet").write_bytes(b"PAR1")
    indexed(tree, catalog, {"page.md": "# Page\n\nSee [locks](target.md).\n"})
    with closing(catalog.open_live()) as generation:
        changes = generation.graph.degree_changes()
        assert changes is not None
        assert all(map(math.isnan, changes.tolist()))
