"""Indexing what settings name."""

from __future__ import annotations

import logging
import os
import pkgutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from os import PathLike
from pathlib import Path

import pyarrow.parquet as pq

from weft.app.searching.engines import Engines, load_engines
from weft.catalog.catalog import Catalog
from weft.consolidation.probes import probes
from weft.domain.documents import Domain
from weft.domain.errors import ConfigurationError, WeftError
from weft.domain.ids import QueryId
from weft.domain.matching import NO_MATCH, MatchFeatures, best_match
from weft.domain.ranking import Answer, Query
from weft.domain.understanding import Complexity
from weft.embedding.models import BUNDLED
from weft.evaluation.replay.masking import Masks, masked
from weft.indexes.generation import Generation, open_generation
from weft.indexes.manifest import ANSWERING, read_generation_manifest, tables_of
from weft.ingestion.building import Parts
from weft.ingestion.pipeline import Watch, ingest
from weft.ingestion.plan import IndexPlan
from weft.ingestion.questions import StoredQuestion, stored_questions
from weft.ingestion.report import IndexOutcome
from weft.ingestion.sources.items import begins_with, escaped
from weft.ingestion.sources.sources import uri_prefixes
from weft.learning.beliefs import believed
from weft.learning.calibration.matching import Answering, answering_of
from weft.learning.evidence import Evidence
from weft.learning.parts import LearnedVersion
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.filters import RowFilter
from weft.retrieval.snapshot.live import PRIORS_ONLY
from weft.retrieval.snapshot.snapshot import OneSnapshot, Snapshot
from weft.runtime.clock import system_clock
from weft.runtime.settings import ClusterSettings
from weft.runtime.stages import HERE, Executor, in_threads
from weft.runtime.storage.origins import source_place
from weft.settings import Settings, keep_settings, store_settings

LOCK = Path("generations") / ".indexing"
"""Held by whoever indexes a store, below its root."""

OWN_CHANGED = 0.2
"""Share of the documents that is new since a store's own questions were asked, from which on they are asked again."""


def plan_of(
    settings: Settings,
    sources: Sequence[Path],
    *,
    domain: Domain | None = None,
    full: bool = False,
    resized: bool = False,
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
        resized=full or resized,
        fingerprint=settings.fingerprint,
        ingest=settings.ingest,
        chunking=settings.chunking,
        priors=settings.priors,
        extraction=settings.extraction,
        embedding=settings.embedding,
        index=settings.index,
        declared=settings.sources,
        describe=partial(answering_facts, settings),
        described_least=1.0 - OWN_CHANGED,
    )


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
    tables = [pq.read_table(file, columns=["uri"]) for file in tables_of(folder, "documents")]
    uris = [str(uri) for table in tables for uri in table["uri"].to_pylist()]
    going = [uri for uri in uris if not begins_with(uri, staying)]
    counts = {source: sum(begins_with(uri, uri_prefixes(Path(source))) for uri in going) for source in sorted(gone)}
    return {source: count for source, count in counts.items() if count}


def run(
    plan: IndexPlan, *, executor: Executor, watch: Watch = lambda _: None, soon: Executor | None = None
) -> IndexOutcome:
    """Run a plan; see `ingest`."""
    return ingest(plan, Catalog(plan.store), executor, watch, clock=time.monotonic, soon=soon)


def executors_of(settings: ClusterSettings, *, local: bool) -> tuple[Executor, Executor]:
    """Where to index, and where to make what answers before that.

    In threads of this process; or on the cluster that it joins, or starts. One that is to be started keeps no first
    answers waiting.
    """
    threads = in_threads(settings.cpus or len(os.sched_getaffinity(0)))
    if local:
        return threads, threads
    # By its name: only who indexes on a cluster needs Ray.
    executors: tuple[Executor, Executor] = pkgutil.resolve_name("weft.runtime.ray.stages:executors_of")(
        settings, threads
    )
    return executors


def index(
    sources: Sequence[str | PathLike[str]], store: str | PathLike[str], *, assignments: Sequence[str] = ()
) -> IndexOutcome:
    """Index folders and files in this process, and make the result live; large corpora take `weft index` on Ray.

    Args:
        assignments: Settings as "section.key=value".

    Raises:
        WeftError: A source cannot be read, or nothing in it can be indexed.
    """
    settings = store_settings(store, assignments)
    outcome = run(plan_of(settings, [source_place(os.fspath(source)) for source in sources]), executor=HERE)
    keep_settings(settings)
    return outcome


# From when on a match counts as an answer, in a generation that nobody has judged yet (RET-15): its own questions are
# asked of it, each of a content that lacks the words it is asked with; queries on other matters say what passes.


_log = logging.getLogger(__name__)


def answering_facts(settings: Settings, folder: Path, parts: Parts | None = None) -> Mapping[str, object]:
    """What tells answers from gaps in a staged generation, as facts of its manifest.

    Args:
        parts: Where its shards are searched, if that is elsewhere.
    """
    rules = settings.consolidation.calibration
    questions = stored_questions(folder)[: rules.own_questions]
    if len(questions) * rules.answerable_bound < 1.0:
        return {}
    try:
        answering = _fitted(settings, folder, questions, parts)
    except WeftError as error:
        _log.warning("no threshold of answers: %s", error)
        return {}
    return {} if answering is None else {ANSWERING: asdict(answering)}


def _fitted(
    settings: Settings, folder: Path, questions: Sequence[StoredQuestion], parts: Parts | None
) -> Answering | None:
    # Nothing else runs on this host by now; Ray's tasks are told to take one core.
    threads = {"encode_threads": len(os.sched_getaffinity(0))}
    rules, retrieval = settings.consolidation.calibration, settings.retrieval.model_copy(update=threads)
    engines = load_engines(settings.model_copy(update={"retrieval": retrieval}))
    elsewhere = None if parts is None else parts(read_generation_manifest(folder))
    with closing(open_generation(folder, verify=False, parts=elsewhere)) as generation:
        if engines.encoders[0].name not in generation.encoders:
            return None
        snapshot = _as_asked(generation, questions, engines, settings)
        encoder, *further = engines.encoders
        with Searcher(
            OneSnapshot(snapshot), encoder, settings.retrieval, clock=system_clock, further=further, terms=engines.terms
        ) as searcher:
            own = _answers(searcher, [question.text for question in questions], settings)
            others = _answers(searcher, probes(rules.probes), settings)
        return answering_of(_best(own), _best(others), marked=rules.answerable_bound, common=_common(settings))


def _common(settings: Settings) -> MatchFeatures:
    """Where answers begin in other stores; of an encoder that is not the bundled one nobody knows that."""
    begin = settings.consolidation.calibration.answers_begin
    measured = settings.embedding.model == BUNDLED
    return MatchFeatures(dense=begin.meaning, late_interaction=begin.near) if measured else MatchFeatures()


def _as_asked(
    generation: Generation, questions: Sequence[StoredQuestion], engines: Engines, settings: Settings
) -> Snapshot:
    """The generation at the priors, its contents without what they are asked with."""
    learned, filters = LearnedVersion(Evidence()), RowFilter(generation.chunks)
    beliefs = believed(settings.priors, learned, now=generation.created_at)
    plain = Snapshot(generation.manifest.id, generation, filters, PRIORS_ONLY, learned, beliefs)
    rests = {question.content_hash: question.rest for question in questions}
    masks = Masks.of(generation.chunks, rests, [question.text for question in questions])
    pooling = settings.embedding.tokens.pooling
    return masked(plain, masks, engines.of_contents, pooling=pooling, terms=engines.terms)


def _answers(searcher: Searcher, texts: Sequence[str], settings: Settings) -> list[Answer]:
    k = settings.retrieval.understanding.router.limits[Complexity.MODERATE]
    queries = [Query(text=text, query_id=QueryId(f"own-{number}"), k=k) for number, text in enumerate(texts)]
    return searcher.search_many(queries)


def _best(answers: Sequence[Answer]) -> list[MatchFeatures]:
    return [best_match(result.match for result in answer.results) if answer.results else NO_MATCH for answer in answers]
