"""From sources to a published generation: list → compare → read and chunk → find entities → embed → build → publish."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from pipelines.catalog.catalog import Catalog
from pipelines.indexes.builder import GenerationBuilder
from pipelines.indexes.graph.build import unmet_relations
from pipelines.indexes.manifest import seal_with
from pipelines.ingestion.plan import (
    IndexPlan,
    description,
    facts_of,
    forget,
    items_of,
    models_of,
    pinned_to,
    reading_of,
    require_documents,
    sparse_of,
    stages_of,
    units_of,
    with_stored,
)
from pipelines.ingestion.questions import write_questions
from pipelines.ingestion.report import IndexOutcome, IndexProgress, ProgressReporter, outcome_of
from pipelines.ingestion.sizing import live_sizes
from pipelines.ingestion.stages.reuse import Base
from pipelines.ingestion.stages.run import changed_units, compute, staged_folder
from pipelines.ingestion.stages.visibility import require_sources
from pipelines.ingestion.units import written_parts
from pipelines.runtime.clock import Clock
from pipelines.runtime.ray.stages import Executor

Watch = Callable[[IndexProgress], None]


def ingest(plan: IndexPlan, catalog: Catalog, executor: Executor, watch: Watch, *, clock: Clock) -> IndexOutcome:
    """Index the sources and make the result live, or change nothing.

    Safe to run again after any failure: what a killed run left is removed first, and its caches spare the work done.
    Documents that the live generation holds already are taken from it. Without sources its own documents are indexed
    anew from their stored texts. Content that is live already is not published again, unless everything was to be
    made anew.

    Args:
        watch: Gets the progress after every step.
        clock: Seconds, only running forward; for progress alone.

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
    sparse = sparse_of(plan, models)

    # Nothing is changed before every host is known to see the sources and the store.
    require_sources(listing.items, executor)
    guard = catalog.claim(executor.on_other_hosts)
    catalog.clean_leftovers()

    base = Base.of(catalog, full=plan.full)
    plan = pinned_to(plan, catalog.precisions())
    sizes = live_sizes(plan.chunking, plan.priors, catalog)
    if plan.full:
        forget(plan)
    reading = reading_of(plan, models, sparse, sizes, base.documents(plan.equivalent_keys))

    with ExitStack() as stack:
        parts = stack.enter_context(staged_folder(catalog))
        staged = stack.enter_context(staged_folder(catalog))
        scratch = stack.enter_context(staged_folder(catalog))
        executor = executor.guarded(replace(guard, made=parts))

        units = units_of(plan, with_stored(plan, listing, catalog, base.generation, scratch))
        changes = changed_units(units, reading, parts, executor, reporter)
        stages = stages_of(plan, models, sparse, reading, parts, cpus=executor.cpus()) if changes.units else []
        compute(changes, stages, parts, executor, reporter)
        require_documents(plan, reporter.progress)

        reporter.enter("merging tables")
        builder = GenerationBuilder(staged, plan.index, map_shards=executor.tasks)
        written = written_parts(parts, units)
        merged = builder.merge(written, base=base.folder, earlier=base.earlier)
        instructions = base.instructions_with(reporter.progress.encoded_with)
        facts = facts_of(plan, models, sparse, sizes, base=base, instructions=instructions)
        content_hash, generation = builder.content_hash(merged, facts), base.generation

        published = generation is None or plan.retrained or content_hash != base.content_hash
        if generation is None or published:
            reporter.enter("building indexes")
            list(executor.tasks(write_questions, [staged]))
            builder.index(merged, written, facts, base=base.folder, retrained=plan.retrained)
            reporter.enter("telling answers from gaps")
            seal_with(staged, base.description(merged, plan.described_least) or description(plan, staged, executor))
            reporter.enter("publishing")
            generation = catalog.publish(staged, expected_parent=base.generation)
        elif reporter.progress.counts.get("documents", 0):
            plan.equivalent_keys.note(generation, staged)
        reporter.enter("done")
        return outcome_of(
            merged,
            reporter.progress,
            generation=generation,
            content_hash=content_hash,
            published=published,
            broken=listing.broken,
            unmet_relations=unmet_relations(catalog.folder_of(generation)),
            extraction=plan.extraction.enabled,
        )
