"""From sources to a published generation: list → read and chunk → find entities → embed → build → publish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipelines.catalog.catalog import Catalog
from pipelines.domain.errors import SourceError
from pipelines.domain.ids import GenerationId
from pipelines.embedding.models import find_model
from pipelines.indexes.builder import GenerationBuilder
from pipelines.ingestion.parts import keep_mentions_once, reject_repeated, write_part
from pipelines.ingestion.plan import Plan, facts_of, forget, stages_of, units_of
from pipelines.ingestion.report import Outcome, Progress, outcome_of
from pipelines.ingestion.sizing import live_sizes
from pipelines.ingestion.units import pack, unpack
from pipelines.runtime.clock import Clock
from pipelines.runtime.stages import Executor, Stage

Watch = Callable[[Progress], None]


def ingest(plan: Plan, catalog: Catalog, executor: Executor, watch: Watch, *, clock: Clock) -> Outcome:
    """Index the sources and make the result live, or change nothing.

    Safe to run again after any failure: what a killed run left is removed first, and its caches spare the work done.
    Content that is live already is not published again, unless everything was to be made anew.

    Args:
        watch: Told of every step.
        clock: Seconds, only running forward; for progress alone.

    Raises:
        SourceError: A source cannot be read at all, or nothing in any of them can be indexed.
        ModelUnavailableError: A model cannot be loaded.
        StaleVersionError: Another run published meanwhile.
    """
    catalog.clean_leftovers()
    parent = catalog.pointer().generation
    sizes = live_sizes(plan.chunking, plan.priors, catalog)
    model = find_model(plan.embedding)
    if plan.full:
        forget(plan)
    with _folder(catalog) as parts, _folder(catalog) as staged:
        stages = stages_of(plan, model, sizes, cpus=executor.cpus())
        progress = _stream(plan, stages, parts, executor=executor, watch=watch, clock=clock)
        folders = sorted(parts.iterdir())
        reject_repeated(folders)
        keep_mentions_once(folders)
        watch(progress.entering("building indexes", clock()))
        builder = GenerationBuilder(staged, plan.index, map_shards=executor.tasks)
        manifest = builder.build(folders, facts_of(plan, model, sizes, parent=parent))
        kept = parent if not plan.full and _hash_of(catalog, parent) == manifest.content_hash else None
        outcome = outcome_of(staged, manifest, progress.entering("done", clock()), kept=kept)
        if kept is None:
            catalog.publish(staged, expected_parent=parent)
    return outcome


def _stream(
    plan: Plan, stages: Sequence[Stage], parts: Path, *, executor: Executor, watch: Watch, clock: Clock
) -> Progress:
    begun = clock()
    units = units_of(plan)
    progress = Progress("reading and embedding", len(units), begun, begun)
    watch(progress)
    for row in executor.stream([pack(unit) for unit in units], stages):
        done = unpack(row)
        write_part(parts, done)
        progress = progress.after(done.counts, clock())
        watch(progress)
    if not progress.counts.get("documents"):
        raise SourceError(
            f"nothing to index in {[str(source) for source in plan.sources]}: {progress.rejected or 'no files'}"
        )
    return progress


def _hash_of(catalog: Catalog, generation: GenerationId | None) -> str | None:
    return next((one.content_hash for one in catalog.generations() if one.id == generation), None)


@contextmanager
def _folder(catalog: Catalog) -> Iterator[Path]:
    folder = catalog.stage()
    try:
        yield folder
    finally:
        catalog.discard(folder)  # of a published one nothing is left here
