"""From sources to a published generation: list → compare → read and chunk → find entities → embed → build → publish."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from weft.catalog.catalog import Catalog
from weft.domain.errors import WeftError
from weft.domain.ids import GenerationId
from weft.embedding.tokens import load_token_counter
from weft.indexes.builder import GenerationBuilder
from weft.indexes.graph.graph import unmet_relations
from weft.indexes.manifest import read_generation_manifest, seal_with
from weft.indexes.merge import MergedTables
from weft.indexes.text.jvm import java_class
from weft.ingestion.building import Builders, builders_of, description, sending
from weft.ingestion.plan import (
    IndexPlan,
    by_words,
    facts_of,
    forget,
    items_of,
    models_of,
    pinned_to,
    reading_of,
    require_documents,
    stages_of,
    units_of,
    weighing_of,
    with_stored,
)
from weft.ingestion.questions import write_questions
from weft.ingestion.report import IndexOutcome, IndexProgress, ProgressReporter, outcome_of
from weft.ingestion.settings import IngestSettings
from weft.ingestion.sizing import live_sizes, sizes_in_force
from weft.ingestion.sources.items import SourceItem
from weft.ingestion.stages.read_and_chunk import NewWork, ReadAndChunk, ReadRules
from weft.ingestion.stages.reuse import Base, DocumentKeys
from weft.ingestion.stages.visibility import SUSPECT, require_gone, require_sources
from weft.ingestion.units import (
    UNIT_BYTES,
    Unit,
    UnitWorker,
    bring_part,
    pack,
    part_of,
    sent_parts,
    shuffled,
    unpack,
    write_part,
    written_parts,
)
from weft.runtime.clock import Clock
from weft.runtime.reuse import reused
from weft.runtime.stages import HERE, Executor, Stage, run_through
from weft.runtime.storage.errors import named
from weft.runtime.storage.run_files import RunFiles

_log = logging.getLogger(__name__)

Watch = Callable[[IndexProgress], None]

_UNITS_COMPARED = 256  # by one task


def ingest(
    plan: IndexPlan,
    catalog: Catalog,
    executor: Executor,
    watch: Watch,
    *,
    clock: Clock,
    soon: Executor | None = None,
) -> IndexOutcome:
    """Index the sources and make the result live, or change nothing.

    In a store where nothing is live yet, many documents are searched by words first: a generation without vectors is
    made live before the one with them, by `soon` where that is given.

    Safe to run again after any failure: what a killed run left is removed first, and its caches spare the work done.
    Documents that the live generation holds already are taken from it. Without sources its own documents are indexed
    anew from their stored texts. Content that is live already is not published again, unless everything was to be
    made anew.

    Raises:
        SourceError: A source cannot be read at all or not from every host, or nothing in any of them can be indexed.
        ModelUnavailableError: A model cannot be loaded.
        ConfigurationError: The store's vectors are of another precision than is asked for.
        StoreError: Not every host sees the store, or not everything that was made is on disk.
        NothingPublishedError: There is neither a source nor a live generation.
        StaleVersionError: Another run published meanwhile.
    """
    reporter = ProgressReporter(watch, clock)
    listing, models = items_of(plan), models_of(plan)
    if not plan.by_words and catalog.pointer().generation is None and are_many(plan, listing.items):
        first = ingest(by_words(plan), catalog, soon or executor, watch, clock=clock)
        reporter.enter(f"{first.generation} answers by words until vectors are there; begun again with them")
    weighing = weighing_of(plan, models)

    # Nothing is changed before every host that reads is known to see the sources, and all of them the store.
    guarding = executor.on_other_hosts
    if plan.here:
        executor = replace(executor, on_other_hosts=lambda _: ())
    require_sources(listing.items, executor)
    guard = catalog.claim(guarding)
    catalog.clean_leftovers()

    base = Base.of(catalog, full=plan.full)
    if not plan.by_words:  # finding out what is fastest here loads PyTorch
        plan = pinned_to(plan, catalog.precisions(), executor)
    limit = reused(load_token_counter, plan.embedding).limit
    sizes = (live_sizes if plan.resized else sizes_in_force)(plan.chunking, plan.priors, catalog, limit=limit)
    if plan.full:
        forget(plan)
    reading = reading_of(plan, models, weighing, sizes, base.documents())

    with ExitStack() as stack:
        parts = stack.enter_context(staged_folder(catalog, executor))
        executor = executor.guarded(replace(guard, made=parts))

        units = units_of(plan, with_stored(plan, listing, catalog, base.generation))
        changes = changed_units(units, reading, parts, executor, reporter, here=plan.here)
        stages = stages_of(plan, models, weighing, reading, parts, executor=executor) if changes.units else []
        compute(changes, stages, parts, executor, reporter)
        require_documents(plan, reporter.progress)

        facts = facts_of(plan, models, weighing, sizes, limit=limit, base=base)
        work = _Work(plan, catalog, base, parts, units, facts, reporter)
        executor = replace(executor, on_other_hosts=guarding)
        built = None
        while built is None:
            staged = stack.enter_context(staged_folder(catalog, executor))
            builders = builders_of(executor, catalog, parts, staged, base, is_small=work.is_small)
            try:
                built = _built(work, builders, staged)
            except WeftError:
                if not builders.lost_host:
                    raise
                reporter.enter("building again without a host that was lost")
        reporter.enter("done")
        return outcome_of(
            built.tables,
            reporter.progress,
            generation=built.generation,
            content_hash=built.content_hash,
            published=built.published,
            broken=listing.broken,
            unmet_relations=built.unmet,
            extraction=plan.extraction.enabled,
        )


@dataclass(frozen=True, slots=True)
class _Work:
    """What a generation is built from."""

    plan: IndexPlan
    catalog: Catalog
    base: Base
    parts: Path
    units: Sequence[Unit]
    facts: Mapping[str, object]
    reporter: ProgressReporter

    @property
    def is_small(self) -> bool:
        """Whether it is one shard in any case."""
        held = 0 if self.base.folder is None else read_generation_manifest(self.base.folder).counts["chunks"]
        return held + self.reporter.progress.counts.get("chunks", 0) <= self.plan.index.shard_contents


class _Built(NamedTuple):
    """What was made, or is live already."""

    tables: MergedTables
    content_hash: str
    generation: GenerationId
    published: bool
    unmet: list[str]  # a line for each relation that leads nowhere


def _built(work: _Work, builders: Builders, staged: Path) -> _Built:
    """Merge the parts, and build and publish what they make, unless it is live already."""
    plan, base, reporter = work.plan, work.base, work.reporter
    reporter.enter("merging tables")
    parts = (written_parts if builders.run_files is None else sent_parts)(work.parts, work.units)
    builder = GenerationBuilder(staged, plan.index, map_shards=builders.tasks, alone=builders.alone)
    before = builders.seen(base.folder)
    merged = builder.merge(parts, base=before, earlier=builders.seen(base.earlier))
    content_hash, live = builder.content_hash(merged, work.facts), base.generation
    if live is not None and not plan.retrained and content_hash == base.content_hash:
        return _Built(merged, content_hash, live, False, unmet_relations(work.catalog.folder_of(live)))

    run, shards = builder.map_shards, [shard.folder for shard in merged.shards]
    reporter.enter("building indexes")
    if not plan.by_words:
        write_questions(staged, shards, run)
    builder.index(merged, work.facts, base=before, retrained=plan.retrained, on_gpus=builders.on_gpus)
    reporter.enter("telling answers from gaps")
    described = base.description(merged, plan.described_least)
    seal_with(staged, described or description(plan, staged, len(shards), builders, run))
    reporter.enter("publishing")
    unmet = unmet_relations(staged)
    elsewhere = sending(builders, staged, len(shards), run)
    generation = work.catalog.publish(staged, expected_parent=live, elsewhere=elsewhere)
    return _Built(merged, content_hash, generation, True, unmet)


def are_many(plan: IndexPlan, items: Sequence[SourceItem]) -> bool:
    """Whether so much is to be made vectors of that somebody would wait for it."""
    return 0 < plan.words_first <= sum(item.count for item in items)


def warm(plan: IndexPlan, catalog: Catalog) -> None:
    """Load what a run would wait for once something is new, where a block keeps it (`runtime.reuse`)."""
    plan = pinned_to(plan, catalog.precisions(), HERE)
    models = models_of(plan)
    weighing = weighing_of(plan, models)
    limit = reused(load_token_counter, plan.embedding).limit
    sizes = sizes_in_force(plan.chunking, plan.priors, catalog, limit=limit)
    reading = reading_of(plan, models, weighing, sizes, DocumentKeys())
    for stage in stages_of(plan, models, weighing, reading, plan.store, executor=HERE):
        worker = stage.worker(*stage.arguments)
        if isinstance(worker, UnitWorker):
            worker.warm()
    java_class("java.lang.Object")


@dataclass(frozen=True, slots=True)
class Changes:
    """Units with something new."""

    units: Sequence[Unit]
    are_few: bool  # whether one worker is done with them before a pool of actors would have started


@dataclass(frozen=True, slots=True)
class _Task:
    """Neighbouring units to be compared with the live generation; those that are done already become parts."""

    units: Sequence[Unit]
    reading: ReadRules
    parts: Path


@dataclass(frozen=True, slots=True)
class _Compared:
    """Units with something new and how much that is, and the counts of the others."""

    changed: Sequence[Unit]
    work: NewWork
    counts: Mapping[str, int]


@contextmanager
def staged_folder(catalog: Catalog, executor: Executor) -> Iterator[Path]:
    """A folder in the store, removed in the end; of one that was published nothing is left there by then.

    Removed with it is what hosts have sent of it to an object store, and have of it on disks of their own.
    """
    folder = catalog.stage()
    try:
        with named(folder):
            yield folder
    finally:
        if catalog.is_remote:
            run_files = RunFiles(catalog.root.absolute())
            try:
                run_files.forget(folder)
                executor.on_other_hosts(partial(run_files.leave, folder))
                run_files.leave(folder)
            except WeftError as error:  # the next runs remove it after a day
                _log.warning("left behind: %s", error)
        catalog.discard(folder)


def changed_units(
    units: Sequence[Unit],
    reading: ReadRules,
    parts: Path,
    executor: Executor,
    reporter: ProgressReporter,
    *,
    here: bool,
) -> Changes:
    """The units that the live generation does not hold as they are; the others are written to the folder of parts."""
    reporter.begin(len(units))
    if not len(reading.live):
        return Changes(units, len(units) <= reading.ingest.pools.few)
    reporter.enter("comparing with what is live", work=sum(unit.work for unit in units))
    starts = range(0, len(units), _UNITS_COMPARED)
    tasks = [_Task(units[start : start + _UNITS_COMPARED], reading, parts) for start in starts]
    # One task alone is done before a worker for it would have started.
    results = executor.tasks(_compare, tasks, here=here) if len(tasks) > 1 else map(_compare, tasks)
    changed: list[Unit] = []
    new = NewWork()
    for task, result in zip(tasks, results, strict=True):
        numbers = {unit.number for unit in result.changed}
        _check([unit for unit in task.units if unit.number not in numbers], result.counts, parts, executor)
        changed += result.changed
        new += result.work
        done = len(task.units) - len(result.changed)
        reporter.add(result.counts, units=done, work=sum(unit.work for unit in task.units))
    return Changes(changed, _is_little(new, reading.ingest))


def compute(
    changes: Changes, stages: Sequence[Stage], parts: Path, executor: Executor, reporter: ProgressReporter
) -> None:
    """Pass changed units through the stages, which write them to the folder of parts."""
    by_number = {unit.number: unit for unit in changes.units}
    reporter.enter("reading and embedding", work=sum(unit.work for unit in changes.units))
    rows = [pack(unit) for unit in shuffled(changes.units)]
    with closing(_in_one_task(rows, stages, executor) if changes.are_few else executor.stream(rows, stages)) as made:
        for row in made:
            done = unpack(row)
            _check([by_number[done.number]], done.counts, parts, executor)
            reporter.add(done.counts, work=by_number[done.number].work)


def _in_one_task(rows: Sequence[pa.Table], stages: Sequence[Stage], executor: Executor) -> Generator[pa.Table]:
    if rows:
        gpus, here = min(1.0, sum(stage.gpus for stage in stages)), any(stage.here for stage in stages)
        for made in executor.tasks(run_through, [(rows, stages)], gpus=gpus, here=here):
            yield from made


def _compare(task: _Task) -> _Compared:
    """Read every document and look its key up; a task lost with its worker is run again."""
    reader = ReadAndChunk(task.reading)
    changed: list[Unit] = []
    work = NewWork()
    counts: Counter[str] = Counter()
    for unit in task.units:
        compared = reader.compared(unit)
        if isinstance(compared, NewWork):
            changed.append(unit)
            work += compared
        else:
            write_part(task.parts, compared)
            counts.update(compared.counts)
    return _Compared(changed, work, dict(counts))


def _is_little(work: NewWork, settings: IngestSettings) -> bool:
    few = settings.pools.few
    return work.documents <= few * settings.unit_documents and work.characters <= few * UNIT_BYTES


def _check(units: Sequence[Unit], counts: Mapping[str, int], parts: Path, executor: Executor) -> None:
    """Look into what workers could not read of some units: no other host may be able to."""
    if any(counts.get(name) for name in SUSPECT):
        for unit in units:
            bring_part(part_of(parts, unit))
            require_gone(unit, part_of(parts, unit), executor)
