"""From sources to a published generation: list → read and chunk → find entities → embed → build → publish."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipelines.catalog.catalog import Catalog
from pipelines.domain.errors import SourceError
from pipelines.indexes.builder import GenerationBuilder
from pipelines.ingestion.parts import reject_repeated, write_part
from pipelines.ingestion.plan import Plan, Run
from pipelines.ingestion.report import Outcome, Progress, outcome_of
from pipelines.ingestion.units import unpack

Watch = Callable[[Progress], None]


def ingest(plan: Plan, catalog: Catalog, run: Run, watch: Watch = lambda _: None) -> Outcome:
    """Index the sources and make the result live, or change nothing.

    Safe to run again after any failure: what a killed run left is removed first, and its caches spare the work done.
    Content that is live already is not published again, unless everything was to be made anew.

    Raises:
        SourceError: A source cannot be read at all, or nothing in any of them can be indexed.
        ModelUnavailableError: A model cannot be loaded.
        StaleVersionError: Another run published meanwhile.
    """
    begun = time.monotonic()
    catalog.clean_leftovers()
    live = catalog.pointer().generation
    plan.prepare()
    with _folder(catalog) as parts, _folder(catalog) as staged:
        progress = _stream(plan, run, parts, begun, watch)
        folders = sorted(parts.iterdir())
        reject_repeated(folders)
        _require_documents(progress)
        watch(progress.entering("building indexes", time.monotonic() - begun))
        builder = GenerationBuilder(staged, plan.index, map_shards=run.tasks)
        manifest = builder.build(folders, plan.facts(parent=live))
        known = {} if plan.full else {one.id: one.content_hash for one in catalog.generations()}
        published = live is None or known.get(live) != manifest.content_hash
        finished = progress.entering("published", time.monotonic() - begun)
        outcome = outcome_of(staged, manifest, finished, generation=manifest.id if published else live, published=published)
        if published:
            catalog.publish(staged, expected_parent=live)
    return outcome
