"""CON-7, CON-7a: a night cuts documents anew where other sizes are believed in, and a roll-back holds."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_night_duplicates import OPTIONS
from tests.support.nights import stream
from tests.support.sizing import liked
from weft.app.indexing import plan_of
from weft.catalog.catalog import Catalog
from weft.ingestion.pipeline import ingest
from weft.runtime.clock import day_of, system_clock
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

PLAIN = "extraction.enabled=false", "embedding.tokens.enabled=false"
TOPICS = ("lock", "queue", "parser", "socket", "index", "token", "cache", "thread")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A store of one long page, whose source is gone."""
    here = load_settings(assignments=[f"storage.root={tmp_path / 'store'}", *PLAIN], environment={})
    said = [
        f"The {topic} of number {n} waits until it is asked for, and answers." for topic in TOPICS for n in range(60)
    ]
    page = tmp_path / "long.md"
    page.write_text("# Long\n\n" + "\n\n".join(said) + "\n", encoding="utf-8")
    ingest(plan_of(here, [page]), Catalog(tmp_path / "store"), HERE, lambda _: None, clock=time.monotonic)
    page.unlink()
    return here


def night(settings: Settings, *more: str) -> dict[str, Any]:
    """What the job says of a night, in a process of its own."""
    plain = [part for each in PLAIN[1:] for part in ("--set", each)]
    command = [sys.executable, "-m", "jobs.consolidate", "--store", settings.storage.root, *OPTIONS, *plain, "--json"]
    said = subprocess.run([*command, *more], check=True, capture_output=True, text=True).stdout
    summary: dict[str, Any] = json.loads(said.splitlines()[-1])
    return summary


def tree(root: Path) -> dict[str, str]:
    """The hash of every file of a store, but for decoded tables: whoever opens a generation keeps these."""
    tables = root / "cache" / "tables"
    files = sorted(path for path in root.rglob("*") if path.is_file() and tables not in path.parents)
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def lengths(catalog: Catalog) -> list[int]:
    generation = catalog.open_live()
    return sorted(generation.chunks.table("chunks")["tokens"].to_pylist())


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_documents_are_cut_anew_where_other_sizes_are_believed(settings: Settings) -> None:
    """CON-7, CON-7a, ING-11: a rehearsal says so and changes no byte of the store; a night proposes it with its cost;
    where settings say so it makes a generation from stored texts and vectors, and tells how far it is; the next one has
    nothing to do; what a person rolls back is not made again.
    """
    root = Path(settings.storage.root)
    catalog = Catalog(root)
    first, before = catalog.pointer().generation, lengths(catalog)
    stream(root, 0, liked(30, 5_000, day=day_of(system_clock())))
    untouched = tree(root)
    step = night(settings, "--dry-run")["steps"]["rebuild"]
    assert (step["proposed"], step["applied"]) == (1, 0)
    assert (step["documents_due"], step["chunks_due"]) == (1, len(before))
    assert step["seconds_due"] > 0.0
    assert tree(root) == untouched

    proposed = night(settings)["steps"]["rebuild"]
    assert (proposed["proposed"], proposed["applied"], catalog.pointer().generation) == (1, 0, first)
    step = night(settings, "--set", "consolidation.rebuild.resize=true")["steps"]["rebuild"]
    assert (step["proposed"], step["applied"], step["documents"]) == (1, 1, 1)
    second = catalog.pointer().generation
    assert second != first
    assert max(lengths(catalog)) < max(before)
    assert len(lengths(catalog)) > len(before)
    again = night(settings)["steps"]["rebuild"]
    assert (again["proposed"], again["moved"], catalog.pointer().generation) == (0, 0, second)

    catalog.rollback(first)
    assert lengths(catalog) == before
    declined = night(settings, "--set", "consolidation.rebuild.resize=true")["steps"]["rebuild"]
    assert (declined["proposed"], declined["applied"], declined["declined"]) == (0, 0, 1)
    assert catalog.pointer().generation == first
