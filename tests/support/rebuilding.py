"""A store whose vectors were trained on other contents than it holds, and what makes its generation anew."""

from __future__ import annotations

import time
from collections.abc import Sequence
from multiprocessing.synchronize import Event
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weft.app.indexing import plan_of
from weft.app.rebuilding import Rebuild
from weft.catalog.catalog import Catalog
from weft.ingestion.pipeline import ingest
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

NOTES = 300  # an index of vectors takes 256 at least


def settings_of(root: Path, *assignments: str) -> Settings:
    """So few vectors are indexed, however much memory that takes."""
    few = ("index.vectors.exact_below=256", "index.vectors.bytes_per_vector=100000")
    plain = ("extraction.enabled=false", "embedding.tokens.enabled=false", f"storage.root={root}")
    return load_settings(assignments=[*few, *plain, *assignments], environment={})


def index(settings: Settings, source: Path, numbers: Sequence[int]) -> None:
    """Index notes of these numbers, and none else."""
    texts = (f"Note {number} tells of ship {number * 7} and of harbour {number * 13}." for number in numbers)
    rows = [{"id": str(number), "text": text} for number, text in zip(numbers, texts, strict=True)]
    pq.write_table(pa.Table.from_pylist(rows), source)
    catalog = Catalog(Path(settings.storage.root))
    ingest(plan_of(settings, [source]), catalog, HERE, lambda _: None, clock=time.monotonic)


def rebuild_store(root: Path, ready: Event) -> None:
    """Make the generation of a store anew, where that is due; runs in a process that may be killed."""
    rebuild = Rebuild(settings_of(root), executor=HERE)
    ready.set()
    rebuild.rebuilt(may=True)
