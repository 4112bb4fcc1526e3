"""Cutting the live generation anew with the sizes that are believed now, from its stored texts (CON-7)."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from pipelines.catalog.catalog import Catalog
from pipelines.consolidation.tending.rebuild import MovedSize, Rebuild, Rebuilt, moved_sizes, same_sizes
from pipelines.domain.documents import Domain
from pipelines.domain.errors import WeftError
from pipelines.indexes.manifest import Manifest
from pipelines.ingestion.sizing import SIZING, live_sizes, snapshots
from pipelines.learning.observe.sizes import last_day, read_sizing
from pipelines.runtime.ray.cluster import connect
from pipelines.runtime.storage.locks import alone
from pipelines.serving.indexing import LOCK, plan_of, run
from pipelines.settings import Settings

log = logging.getLogger(__name__)


def rebuild_of(settings: Settings) -> Rebuild | None:
    """Cuts the live generation anew where beliefs about sizes have moved beyond their interval; None without one.

    Texts and vectors come from the store, so that only chunks that come out otherwise are embedded. What is made is a
    generation like any other: `weft generations rollback` takes it back, and no night makes it again.
    """
    catalog = Catalog(Path(settings.storage.root))
    if catalog.pointer().generation is None:
        return None

    def rebuild(may: bool) -> Rebuilt:
        rebuilt = due(settings, catalog)
        if not rebuilt.moved or rebuilt.declined or not may:
            return rebuilt
        plan = replace(plan_of(settings, []), declared=())
        try:
            with alone(plan.store / LOCK, f"indexing {plan.store}"):
                connect(settings.cluster)
                outcome = run(plan)
        except WeftError as error:
            log.warning("not cut anew, the next night tries again: %s", error)
            return replace(rebuilt, reason=str(error))
        made = outcome.generation if outcome.published else ""
        return replace(rebuilt, generation=made, counts={"documents": outcome.documents, "chunks": outcome.chunks})

    return rebuild


def due(settings: Settings, catalog: Catalog) -> Rebuilt:
    """Which sizes of the live generation are not believed any more."""
    live = catalog.pointer().generation
    manifests = catalog.generations()
    manifest = next((one for one in manifests if one.id == live), None)
    if manifest is None or SIZING not in manifest.facts:
        return Rebuilt()
    wanted = snapshots(live_sizes(settings.chunking, settings.priors, catalog))
    if same_sizes(manifest.facts[SIZING], wanted):
        return Rebuilt()
    moved = _moved(settings, catalog, manifest, wanted)
    later = [one for one in manifests if one.id > manifest.id and SIZING in one.facts]
    declined = bool(moved) and any(same_sizes(one.facts[SIZING], wanted) for one in later)
    return Rebuilt(moved, declined)


def _moved(settings: Settings, catalog: Catalog, manifest: Manifest, wanted: dict[str, list[str]]) -> list[MovedSize]:
    evidence = catalog.live_evidence()
    believed = read_sizing(settings.priors, evidence, last_day(evidence) or 0)
    generation = catalog.open_live()
    domains = {Domain(str(each)) for each in generation.chunks.table("documents")["domain"].unique().to_pylist()}
    generation.close()
    return moved_sizes(manifest.facts[SIZING], wanted, believed, domains, level=settings.priors.interval.level)
