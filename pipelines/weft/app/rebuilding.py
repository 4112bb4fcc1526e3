"""Making the live generation anew from its stored texts: cut by the sizes believed in, or trained anew (CON-7)."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from weft.app.indexing import LOCK, plan_of, run
from weft.catalog.catalog import Catalog
from weft.consolidation.tending.rebuild import (
    MovedSize,
    Rebuild,
    RebuildResult,
    Snapshots,
    moved_sizes,
    same_sizes,
    within_window,
)
from weft.domain.documents import Domain
from weft.domain.errors import WeftError
from weft.embedding.tokens import load_token_counter
from weft.indexes.manifest import Manifest
from weft.ingestion.sizing import SIZING, live_sizes, snapshots
from weft.learning.observe.sizes import last_day, read_sizing
from weft.runtime.ray.cluster import connect
from weft.runtime.ray.stages import ON_CLUSTER, Executor
from weft.runtime.storage.locks import exclusive_lock
from weft.settings import Settings

log = logging.getLogger(__name__)


def rebuild_of(settings: Settings, executor: Executor | None = None) -> Rebuild | None:
    """Makes the live generation anew where beliefs about sizes have moved beyond their interval, or its vectors were
    trained on too many other contents; None without one.

    Texts and vectors come from the store, so that only chunks that come out otherwise are embedded. What is made is a
    generation like any other: `weft generations rollback` takes it back, and no night makes it again.
    """
    catalog = Catalog(Path(settings.storage.root))
    if catalog.pointer().generation is None:
        return None

    def rebuild(may: bool) -> RebuildResult:
        rebuilt = due(settings, catalog)
        if not rebuilt.due or not may:
            return rebuilt
        plan = replace(plan_of(settings, []), declared=(), retrained=rebuilt.outdated)
        try:
            with exclusive_lock(plan.store / LOCK, f"indexing {plan.store}"):
                if executor is None:
                    connect(settings.cluster)
                outcome = run(plan, executor=executor or ON_CLUSTER)
        except WeftError as error:
            log.warning("not made anew, the next night tries again: %s", error)
            return replace(rebuilt, reason=str(error))
        made = outcome.generation if outcome.published else ""
        return replace(rebuilt, generation=made, counts={"documents": outcome.documents, "chunks": outcome.chunks})

    return rebuild


def due(settings: Settings, catalog: Catalog) -> RebuildResult:
    """Which sizes of the live generation are not believed any more, and what its vectors were trained without."""
    pointer, manifests = catalog.pointer(), catalog.generations()
    manifest = next((one for one in manifests if one.id == pointer.generation), None)
    if manifest is None:
        return RebuildResult()
    # What was live before the one that is was taken back; what was finished, and killed before it was live, was not.
    later = [one for one in manifests if one.id > manifest.id and one.id == pointer.previous]
    changed = _changed(manifest)
    outdated = changed > settings.consolidation.rebuild.most_changed
    again = outdated and any(one.content_hash == manifest.content_hash and _changed(one) < changed for one in later)
    window = load_token_counter(settings.embedding).limit
    # Chunks are never longer than the encoder reads: a target that moves beyond that cuts nothing anew.
    cut_by = {one.id: within_window(one.facts[SIZING], window) for one in (manifest, *later) if SIZING in one.facts}
    wanted = within_window(snapshots(live_sizes(settings.chunking, settings.priors, catalog)), window)
    if manifest.id not in cut_by or same_sizes(cut_by[manifest.id], wanted):
        return RebuildResult(declined=again, changed=changed, outdated=outdated)
    moved = _moved(settings, catalog, cut_by[manifest.id], wanted)
    taken_back = bool(moved) and any(same_sizes(sizes, wanted) for id_, sizes in cut_by.items() if id_ != manifest.id)
    return RebuildResult(moved, taken_back or (again and not moved), changed=changed, outdated=outdated)


def _changed(manifest: Manifest) -> float:
    """The greatest share of contents that the quantisers of an encoder's vectors were trained without."""
    return max((1.0 - facts.trained_on for facts in manifest.dense.values()), default=0.0)


def _moved(settings: Settings, catalog: Catalog, cut_by: Snapshots, wanted: Snapshots) -> list[MovedSize]:
    evidence = catalog.live.evidence()
    believed = read_sizing(settings.priors, evidence, last_day(evidence) or 0)
    generation = catalog.open_live()
    domains = {Domain(str(each)) for each in generation.chunks.table("documents")["domain"].unique().to_pylist()}
    generation.close()
    return moved_sizes(cut_by, wanted, believed, domains, level=settings.priors.interval.level)
