"""Collections of judged queries: indexed in a store of their own, and asked."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from weft.app.indexing import plan_of
from weft.app.indexing import run as index
from weft.app.searching.engines import opened
from weft.app.searching.replay import StoreReplay
from weft.catalog.catalog import Catalog
from weft.evaluation.measures.beir import Dataset, JudgedQuery
from weft.evaluation.measures.measuring import Measurement, as_query, measure_searcher
from weft.evaluation.measures.runs import Run, as_ranked
from weft.ingestion.pipeline import Watch
from weft.ingestion.sources.corpus import corpus_name
from weft.ingestion.stages.reuse import cutting_code
from weft.retrieval.settings import BudgetSettings
from weft.runtime.ray.cluster import connect
from weft.runtime.ray.stages import ON_CLUSTER
from weft.runtime.stages import Executor
from weft.runtime.storage.files import sha256_of, write_atomically
from weft.settings import Settings

log = logging.getLogger(__name__)

_PATIENCE_MS = 60_000.0  # for a query in a channel: a measurement must not lose one to a busy machine


def measuring(settings: Settings) -> Settings:
    """The settings of a measurement: no entities are looked for, and no channel is lost to a busy machine."""
    patient = BudgetSettings(searching=_PATIENCE_MS, following=_PATIENCE_MS)
    return settings.model_copy(
        update={
            "extraction": settings.extraction.model_copy(update={"enabled": False}),
            "retrieval": settings.retrieval.model_copy(update={"budget_ms": patient}),
        }
    )


def indexed(
    dataset: Dataset, settings: Settings, *, executor: Executor = ON_CLUSTER, watch: Watch = lambda _: None
) -> Settings:
    """The settings with a store that holds the data set's corpus, indexed now unless that was done before."""
    root = root_of(dataset, settings)
    stored = settings.model_copy(update={"storage": settings.storage.model_copy(update={"root": str(root)})})
    cut_with = root / _CUT_WITH
    code = cutting_code().encode()
    if Catalog(root).pointer().generation is None or not cut_with.is_file() or cut_with.read_bytes() != code:
        log.info("indexing %s below %s", dataset.corpus, root)
        if executor is ON_CLUSTER:
            connect(settings.cluster)
        index(plan_of(stored, [dataset.corpus]), watch=watch, executor=executor)
        write_atomically(cut_with, code)
    return stored


def root_of(dataset: Dataset, settings: Settings) -> Path:
    """The store of a collection, below that of the settings."""
    return Path(settings.storage.root) / "evaluation" / f"{dataset.name}-{_key(dataset.corpus, settings)}"


def run(
    dataset: Dataset,
    settings: Settings,
    *,
    progress: Callable[[Iterable[JudgedQuery]], Iterable[JudgedQuery]] = lambda queries: queries,
) -> Measurement:
    """Ask every query of the data set of its indexed corpus."""
    with opened(settings) as searcher:
        uri_to_id = document_id(dataset)
        return measure_searcher(searcher, dataset, settings.evaluation, document_id=uri_to_id, progress=progress)


def document_id(dataset: Dataset) -> Callable[[str], str]:
    """From the URI of a document of the corpus to the id that judgements name it by."""
    prefix = f"{corpus_name(dataset.corpus)}:"
    return lambda uri: uri.removeprefix(prefix)


def runs_of(
    dataset: Dataset, configured: Sequence[Settings], replay: StoreReplay, *, watch: Watch = lambda _: None
) -> list[Run]:
    """What is returned for every query of the data set under each configuration, all of them asked together."""
    stored = [indexed(dataset, each, watch=watch) for each in configured]
    queries = [[as_query(query, each.evaluation) for query in dataset.queries] for each in stored]
    same = all(some == queries[0] for some in queries)
    rankings_by_side = (
        replay.rankings(queries[0], [(each, None) for each in stored])
        if stored and same
        else [replay.rankings(some, [(each, None)])[0] for some, each in zip(queries, stored, strict=True)]
    )
    return [
        {
            str(query.query_id): as_ranked(results, each.evaluation.depth, document_id=document_id(dataset))
            for query, results in zip(some, rankings, strict=True)
        }
        for each, some, rankings in zip(stored, queries, rankings_by_side, strict=True)
    ]


_CUT_WITH = "cut-with"
"""In a store of an evaluation: which code cut what is live in it. No part of its name: vectors are cached inside."""


def _key(corpus: Path, settings: Settings) -> str:
    """What decides an index: the corpus and the settings that read, cut, embed and index it."""
    parts = (settings.ingest, settings.chunking, settings.priors.sizing, settings.embedding, settings.index)
    values = [sha256_of(corpus), *(part.model_dump(mode="json") for part in parts)]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]
