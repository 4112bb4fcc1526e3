"""Indexing what settings name."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from weft.app.searching.gaps import answering_facts
from weft.catalog.catalog import Catalog
from weft.domain.documents import Domain
from weft.domain.errors import ConfigurationError
from weft.indexes.manifest import CHUNKS_FOLDER, read_generation_manifest
from weft.ingestion.pipeline import Watch, ingest
from weft.ingestion.plan import IndexPlan
from weft.ingestion.report import IndexOutcome
from weft.ingestion.sources.items import begins_with, escaped
from weft.ingestion.sources.sources import uri_prefixes
from weft.runtime.ray.stages import ON_CLUSTER, Executor
from weft.settings import Settings

LOCK = Path("generations") / ".indexing"
"""Held by whoever indexes a store, below its root."""

OWN_CHANGED = 0.2
"""Share of the documents that is new since a store's own questions were asked, from which on they are asked again."""


def plan_of(
    settings: Settings, sources: Sequence[Path], *, domain: Domain | None = None, full: bool = False
) -> IndexPlan:
    """What the settings and a job's arguments ask for."""
    root = Path(settings.storage.root).absolute()
    if not (sources or settings.sources) and Catalog(root).pointer().generation is None:
        raise ConfigurationError("expected at least one --source: a folder, a file, a corpus or a table")
    return IndexPlan(
        sources=[path.absolute() for path in sources],
        store=root,
        domain=domain,
        full=full,
        fingerprint=settings.fingerprint,
        ingest=settings.ingest,
        chunking=settings.chunking,
        priors=settings.priors,
        extraction=settings.extraction,
        embedding=settings.embedding,
        index=settings.index,
        declared=settings.sources,
        describe=partial(described, settings),
        described_least=1.0 - OWN_CHANGED,
    )


def described(settings: Settings, staged: Path) -> Mapping[str, object]:
    """What searches of a staged generation say about it; run where it was built."""
    return answering_facts(settings, staged)


def dropped(plan: IndexPlan) -> dict[str, int]:
    """Sources of the live generation that a run does not name any more, each with the documents that would go."""
    catalog = Catalog(plan.store)
    live = catalog.pointer().generation
    if live is None or not plan.places:
        return {}
    folder = catalog.folder_of(live)
    gone = set(read_generation_manifest(folder).sources) - {escaped(str(place)) for place in plan.places}
    if not gone:
        return {}
    staying = [prefix for place in plan.places for prefix in uri_prefixes(place)]
    uris = pq.read_table(folder / CHUNKS_FOLDER / "documents.parquet", columns=["uri"])["uri"].to_pylist()
    going = [uri for uri in map(str, uris) if not begins_with(uri, staying)]
    counts = {source: sum(begins_with(uri, uri_prefixes(Path(source))) for uri in going) for source in sorted(gone)}
    return {source: count for source, count in counts.items() if count}


def run(plan: IndexPlan, *, watch: Watch = lambda _: None, executor: Executor = ON_CLUSTER) -> IndexOutcome:
    """Run a plan on the cluster that this process has joined; see `ingest`."""
    return ingest(plan, Catalog(plan.store), executor, watch, clock=time.monotonic)
