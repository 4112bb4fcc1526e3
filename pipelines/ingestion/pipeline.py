"""From sources to a published generation: list → compare → read and chunk → find entities → embed → build → publish."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.catalog.catalog import Catalog
from pipelines.catalog.store_id import StoreGuard
from pipelines.domain.errors import NothingPublishedError, SourceError, StoreError
from pipelines.domain.ids import GenerationId
from pipelines.embedding.encoders.precision import ROUNDED_APART
from pipelines.indexes.builder import GenerationBuilder
from pipelines.indexes.manifest import FORMAT, read_generation_manifest
from pipelines.ingestion.plan import (
    IndexPlan,
    facts_of,
    forget,
    items_of,
    models_of,
    pinned_to,
    reading_of,
    stages_of,
    units_of,
)
from pipelines.ingestion.report import IndexOutcome, IndexProgress, outcome_of
from pipelines.ingestion.settings import IngestSettings
from pipelines.ingestion.sizing import live_sizes
from pipelines.ingestion.sources.items import SourceItem
from pipelines.ingestion.sources.sources import SourceListing
from pipelines.ingestion.sources.stored import list_stored, stored_tables
from pipelines.ingestion.stages.compare import compare, comparisons, is_little
from pipelines.ingestion.stages.parts import part_of
from pipelines.ingestion.stages.read_and_chunk import NewWork, ReadRules
from pipelines.ingestion.stages.unchanged import KnownDocuments
from pipelines.ingestion.stages.visibility import SUSPECT, require_gone, require_sources
from pipelines.ingestion.units import Unit, pack, shuffled, unpack
from pipelines.runtime.clock import Clock
from pipelines.runtime.ray.stages import Executor, Stage, run_through
from pipelines.runtime.storage.errors import named

log = logging.getLogger(__name__)

Watch = Callable[[IndexProgress], None]


def ingest(plan: IndexPlan, catalog: Catalog, executor: Executor, watch: Watch, *, clock: Clock) -> IndexOutcome:
    """Index the sources and make the result live, or change nothing.

    Safe to run again after any failure: what a killed run left is removed first, and its caches spare the work done.
    Documents that the live generation holds already are taken from it. Without sources its own documents are indexed
    anew from their stored texts. Content that is live already is not indexed
    or published again, unless everything was to be made anew.

    Args:
        watch: Told of every step.
        clock: Seconds, only running forward; for progress alone.

    Raises:
        SourceError: A source cannot be read at all or not from every host, or nothing in any of them can be indexed.
        ModelUnavailableError: A model cannot be loaded.
        ConfigurationError: The store's vectors are of another precision than is asked for.
        StoreError: Not every host sees the store, or not everything that was made is on disk.
        NothingPublishedError: There is neither a source nor a live generation.
        StaleVersionError: Another run published meanwhile.
    """
    begun = clock()
    listed, models = items_of(plan), models_of(plan)
    guard = _checked(listed.items, catalog, executor)
    catalog.clean_leftovers()
    parent = catalog.pointer().generation
    plan = pinned_to(plan, catalog.precisions())
    sizes = live_sizes(plan.chunking, plan.priors, catalog)
    if plan.full:
        forget(plan)
    base, live_hash = _base(plan, catalog, parent)
    reading = reading_of(plan, models, sizes, _known(plan, base, parent))
    with _folder(catalog) as parts, _folder(catalog) as staged, _folder(catalog) as scratch:
        steps = _Steps(executor.guarded(replace(guard, made=parts)), watch, clock, parts)
        every = units_of(plan, listed if plan.sources else _stored(plan, catalog, parent, scratch))
        units, alone, progress = steps.compare(every, reading, begun)
        stages = stages_of(plan, models, reading, parts, cpus=executor.cpus()) if units else []
        progress = steps.compute(units, stages, progress, plan.ingest, alone=alone)
        if not progress.counts.get("documents", 0) + progress.counts.get("unchanged", 0):
            sources = [str(source) for source in plan.sources]
            raise SourceError(f"nothing to index in {sources}: {progress.rejected or 'no files'}")
        watch(progress.entering("merging tables", clock()))
        builder = GenerationBuilder(staged, plan.index, map_shards=steps.executor.tasks)
        written = _written(every, parts)
        merged = builder.merge(written, base=base)
        facts = facts_of(plan, models, sizes, parent=parent, instructions=_instructions(progress, base))
        content_hash = builder.content_hash(merged, facts)
        generation, published = parent, content_hash != live_hash
        if generation is None or published:
            watch(progress.entering("building indexes", clock()))
            builder.index(merged, written, facts, base=base)
            watch(progress.entering("publishing", clock()))
            generation = catalog.publish(staged, expected_parent=parent)
        elif progress.counts.get("documents", 0):
            plan.found_again.note(generation, staged)
        return outcome_of(
            merged,
            progress.entering("done", clock()),
            generation=generation,
            content_hash=content_hash,
            published=published,
            extraction=plan.extraction.enabled,
        )


def _checked(listed: Sequence[SourceItem], catalog: Catalog, executor: Executor) -> StoreGuard:
    """What workers check of the store, once every host sees it and the sources: before that nothing is changed."""
    require_sources(listed, executor)
    return catalog.claim(executor.on_other_hosts)


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps over units."""

    executor: Executor
    watch: Watch
    clock: Clock
    parts: Path

    def compare(
        self, units: Sequence[Unit], reading: ReadRules, begun: float
    ) -> tuple[list[Unit], bool, IndexProgress]:
        """Units with something new, whether that is little, and the progress with the others done."""
        every = sum(unit.work(reading.ingest.document_bytes) for unit in units)
        progress = IndexProgress("comparing with what is live", len(units), begun, begun, work=every)
        if not len(reading.known):
            return list(units), len(units) <= reading.ingest.pools.few, progress
        self.watch(progress)
        tasks = comparisons(units, reading, self.parts, together=reading.ingest.units_compared)
        # One task alone is done before a worker for it would have started.
        found = self.executor.tasks(compare, tasks) if len(tasks) > 1 else map(compare, tasks)
        changed: list[Unit] = []
        new = NewWork()
        for task, one in zip(tasks, found, strict=True):
            numbers = {unit.number for unit in one.changed}
            self._doubt([unit for unit in task.units if unit.number not in numbers], one.counts)
            changed += one.changed
            new += one.work
            seen = sum(unit.work(reading.ingest.document_bytes) for unit in task.units)
            progress = progress.after(one.counts, self.clock(), units=one.done, work=seen)
            self.watch(progress)
        return changed, is_little(new, reading.ingest), progress

    def compute(
        self,
        units: Sequence[Unit],
        stages: Sequence[Stage],
        progress: IndexProgress,
        rules: IngestSettings,
        *,
        alone: bool,
    ) -> IndexProgress:
        """Everything that models and parsers make of units, written to the folder of parts.

        Args:
            alone: All units go through all stages in one worker.
        """
        work = {unit.number: unit.work(rules.document_bytes) for unit in units}
        progress = progress.entering("reading and embedding", self.clock(), work=sum(work.values()))
        self.watch(progress)
        rows = [pack(unit) for unit in shuffled(units, rules.unit_bytes)]
        if rows and alone:
            found = (row for made in self.executor.tasks(run_through, [(rows, stages)]) for row in made)
        else:
            found = self.executor.stream(rows, stages)
        by_number = {unit.number: unit for unit in units}
        with closing(found):
            for row in found:
                done = unpack(row)
                self._doubt([by_number[done.number]], done.counts)
                progress = progress.after(done.counts, self.clock(), work=work[done.number])
                self.watch(progress)
        return progress

    def _doubt(self, units: Sequence[Unit], counts: Mapping[str, int]) -> None:
        """Look into what workers could not read of some units: no other host may be able to."""
        if any(counts.get(name) for name in SUSPECT):
            for unit in units:
                require_gone(unit, part_of(self.parts, unit), self.executor)


def _written(units: Sequence[Unit], parts: Path) -> list[Path]:
    """The parts of all units, each looked up by its name: a network file system may list a folder as it was."""
    written = [part_of(parts, unit) for unit in units]
    if missing := [part.name for part in written if not part.is_dir()]:
        raise StoreError(
            f"{parts} on host {socket.gethostname()}: expected {len(units)} parts, found none of {missing[:3]}, which "
            "workers have written: give the store a file system that shows every host at once what another one wrote"
        )
    return written


def _instructions(progress: IndexProgress, base: Path | None) -> frozenset[str]:
    """The vector instructions that the vectors of this run and those taken from its base were computed with."""
    taken: frozenset[str] = frozenset() if base is None else read_generation_manifest(base).instructions
    instructions = progress.encoded_with | taken
    if len(instructions) > 1:
        log.warning("vectors were computed with %s instructions: %s", " and ".join(sorted(instructions)), ROUNDED_APART)
    return instructions


def _base(plan: IndexPlan, catalog: Catalog, parent: GenerationId | None) -> tuple[Path | None, str | None]:
    """The generation that unchanged documents are taken from, and its content hash; none where all is made anew."""
    if plan.full or parent is None:
        return None, None
    try:
        manifest = catalog.verify(parent)
        return (catalog.folder_of(parent), manifest.content_hash) if manifest.format == FORMAT else (None, None)
    except StoreError as error:
        log.warning("everything is made anew, for the live generation cannot be built on: %s", error)
        return None, None


def _known(plan: IndexPlan, base: Path | None, parent: GenerationId | None) -> KnownDocuments:
    if base is None or parent is None:
        return KnownDocuments()
    return KnownDocuments.of(base) | plan.found_again.of(parent)


def _stored(plan: IndexPlan, catalog: Catalog, parent: GenerationId | None, scratch: Path) -> SourceListing:
    """Documents of the live generation, of whatever format."""
    if parent is None:
        raise NothingPublishedError("expected a live generation to index anew, found none: name a source")
    catalog.verify(parent)
    tables = stored_tables(catalog.folder_of(parent), scratch, plan.index.merge)
    return SourceListing(list_stored(tables, together=plan.ingest.unit_documents))


@contextmanager
def _folder(catalog: Catalog) -> Iterator[Path]:
    folder = catalog.stage()
    try:
        with named(folder):
            yield folder
    finally:
        catalog.discard(folder)  # of a published one nothing is left here
