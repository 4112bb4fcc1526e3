"""Measure retrieval on a data set in BEIR layout.

    python -m jobs.evaluate --dataset DIR --split test [--store DIR] [--channels lexical,dense] [--fusion learned]

The corpus is indexed below the store once for the settings that matter, and found there afterwards. Queries are asked
one by one, each within its group where the data set has groups. `--run-file` writes what was returned as TREC does.
Exit codes: 0 measured, 1 with a reason (unreadable data set, no such split), 2 usage.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track
from rich.table import Table

from jobs import _job, reindex
from jobs.search import channel_names, opened
from pipelines.catalog.catalog import Catalog
from pipelines.domain.ranking import Channel
from pipelines.evaluation.beir import Dataset, JudgedQuery, read_dataset
from pipelines.evaluation.measuring import Measurement, measure_searcher
from pipelines.evaluation.runs import write_run
from pipelines.ingestion.corpus import corpus_name
from pipelines.ingestion.report import Progress
from pipelines.retrieval.settings import FusionMode
from pipelines.runtime.cluster import connect
from pipelines.runtime.files import sha256_of
from pipelines.runtime.stages import ON_CLUSTER, Executor
from pipelines.settings import Settings

_LABELS = {
    "ndcg_at_10": "nDCG@10",
    "mrr_at_5": "MRR@5",
    "mrr_at_10": "MRR@10",
    "recall_at_20": "Recall@20",
    "recall_at_100": "Recall@100",
    "hit_rate_at_1": "Hit rate@1",
    "map": "MAP",
}


def evaluate(
    dataset: Annotated[Path, typer.Option("--dataset", help="Folder with corpus, queries and qrels/.")],
    conf: _job.Conf = [],
    assignments: _job.Assignments = [],
    split: Annotated[str, typer.Option("--split", help="Which judgements.")] = "test",
    store: _job.Store = None,
    channels: Annotated[str | None, typer.Option("--channels", help="Such as lexical,dense.")] = None,
    fusion: Annotated[FusionMode | None, typer.Option("--fusion", help="Default retrieval.fusion.")] = None,
    run_file: Annotated[Path | None, typer.Option("--run-file", help="Write what was returned, as TREC does.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first queries.")] = None,
    as_json: _job.AsJson = False,
) -> None:
    """Measure retrieval on one split of a data set."""
    chosen = [] if channels is None else [f"retrieval.channels={json.dumps(channel_names(channels))}"]
    chosen += [] if fusion is None else [f"retrieval.fusion={fusion.value}"]
    settings = measuring(_job.settings_of(conf, [*assignments, *chosen], store))
    judged = read_dataset(dataset, split)
    judged = replace(judged, queries=judged.queries[:limit])
    store_of = indexed(judged, settings, before=lambda: connect(settings.cluster))
    measurement = run(judged, store_of, progress=_shown)
    if run_file is not None:
        write_run(run_file, measurement.run, tag="weft")
    summary = described(judged, settings, measurement)
    _job.stdout.print(table(summary, measurement))
    _job.emit(summary, as_json=as_json)


def measuring(settings: Settings) -> Settings:
    """The settings of a measurement: no entities are looked for, and no channel is lost to a busy machine."""
    patient = dict.fromkeys(Channel, settings.evaluation.budget_ms)
    return settings.model_copy(
        update={
            "extraction": settings.extraction.model_copy(update={"enabled": False}),
            "retrieval": settings.retrieval.model_copy(update={"budget_ms": patient}),
        }
    )


def indexed(
    dataset: Dataset, settings: Settings, *, executor: Executor = ON_CLUSTER, before: Callable[[], None] = lambda: None
) -> Settings:
    """The settings with a store that holds the data set's corpus, indexed now unless that was done before.

    Args:
        before: Called before anything is indexed, and only then.
    """
    root = Path(settings.storage.root) / "evaluation" / f"{dataset.name}-{_key(dataset.corpus, settings)}"
    stored = settings.model_copy(update={"storage": settings.storage.model_copy(update={"root": str(root)})})
    if Catalog(root).pointer().generation is None:
        _job.stderr.print(f"indexing {dataset.corpus} below {root}")
        before()
        plan = reindex.plan_of(stored, [dataset.corpus])
        outcome = reindex.run(plan, watch=_tell, executor=executor)
        _job.stderr.print(reindex.headline(outcome))
    return stored


def run(
    dataset: Dataset,
    settings: Settings,
    *,
    progress: Callable[[Iterable[JudgedQuery]], Iterable[JudgedQuery]] = lambda queries: queries,
) -> Measurement:
    """Ask every query of the data set of its indexed corpus."""
    with opened(settings) as searcher:
        return measure_searcher(
            searcher,
            dataset,
            settings.evaluation,
            document_id=lambda uri: uri.removeprefix(f"{corpus_name(dataset.corpus)}:"),
            progress=progress,
        )


def described(dataset: Dataset, settings: Settings, measurement: Measurement) -> dict[str, Any]:
    """The measurement with what was measured, as the job prints it."""
    return {
        "dataset": dataset.name,
        "split": dataset.split,
        "channels": [channel.value for channel in settings.retrieval.channels],
        "fusion": settings.retrieval.fusion.value,
        **measurement.summary(),
    }


def table(summary: Mapping[str, Any], measurement: Measurement) -> Table:
    """The measurement, for people."""
    how = f"{summary['fusion']} over {', '.join(summary['channels'])}"
    title = f"{summary['dataset']} {summary['split']}: {summary['queries']} queries, {how}"
    shown = Table("measure", "mean", "interval", box=None, title=title, title_justify="left")
    for name, value in measurement.estimates.items():
        shown.add_row(_LABELS[name], f"{value.mean:.4f}", f"{value.low:.4f} – {value.high:.4f}")
    shown.add_row("ms per query", f"{measurement.p50_ms:.1f}", f"95 % below {measurement.p95_ms:.1f}")
    for channel, count in measurement.failed_channels.items():
        shown.add_row(f"without {channel}", str(count), "queries")
    return shown


def _key(corpus: Path, settings: Settings) -> str:
    """What decides an index: the corpus and the settings that read, cut, embed and index it."""
    parts = (settings.ingest, settings.chunking, settings.priors.sizing, settings.embedding, settings.index)
    values = [sha256_of(corpus), *(part.model_dump(mode="json") for part in parts)]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _tell(progress: Progress) -> None:
    _job.stderr.print(reindex.line(progress), highlight=False, soft_wrap=True)


def _shown(queries: Iterable[JudgedQuery]) -> Iterable[JudgedQuery]:
    asked = list(queries)
    return track(asked, description="asking", console=_job.stderr, transient=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job."""
    return _job.run(evaluate, argv)


if __name__ == "__main__":
    sys.exit(main())
