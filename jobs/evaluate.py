"""Measure retrieval on a data set in BEIR layout, and compare what can be compared.

    python -m jobs.evaluate --dataset DIR --split test [--store DIR] [--channels lexical,dense] [--fusion learned]
    python -m jobs.evaluate --dataset DIR --split test --compare A B
    python -m jobs.evaluate --dataset DIR --split test --ablate
    python -m jobs.evaluate --store DIR [--days 7] [--bootstrap HOST:PORT] [--judgements FILE] [--compare A B]

The corpus is indexed below the store once for the settings that matter, and found there afterwards. Queries are asked
one by one, each within its group where the data set has groups. `--run-file` writes what was returned as TREC does.
`--compare` takes TREC run files, YAML files, assignments such as "retrieval.fusion=rrf", or `base`, in any combination.
Without `--dataset` it measures on the query log of the store: what was shown against what feedback and judgements say
was right, the measures of a memory, and alarms for failure modes; `--compare` asks the logged queries again.
`--snapshot` records the figures in MLflow. `--half tuned` asks half of the queries, to choose settings on;
`--half held-out` the others, to measure the choice.
Exit codes: 0 measured, 1 with a reason (unreadable data set, no such split), 2 usage.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track
from rich.table import Table

from jobs import _ablate, _compare, _job, _log, _replay, _snapshot, reindex
from jobs.search import channel_names, opened
from pipelines.catalog.catalog import Catalog
from pipelines.domain.errors import SourceError
from pipelines.domain.ranking import Channel
from pipelines.evaluation.measures.beir import Dataset, JudgedQuery, read_dataset
from pipelines.evaluation.measures.measuring import Measurement, asked, measure_searcher
from pipelines.evaluation.measures.runs import Run, as_ranked, write_run
from pipelines.evaluation.measures.significance import Half, half_of
from pipelines.evaluation.settings import EvaluationSettings
from pipelines.ingestion.report import IndexProgress
from pipelines.ingestion.sources.corpus import corpus_name
from pipelines.ingestion.stages.unchanged import cutting_code
from pipelines.retrieval.settings import FusionMode
from pipelines.runtime.ray.cluster import connect
from pipelines.runtime.ray.stages import ON_CLUSTER, Executor
from pipelines.runtime.storage.files import sha256_of, write_atomically
from pipelines.serving.queries import collected
from pipelines.serving.terminal import Conf, Store, broker, plain, tell
from pipelines.settings import Settings

DAYS = 7.0
"""Of the query log, where nobody says how many."""


def evaluate(
    dataset: Annotated[
        Path | None,
        typer.Option("--dataset", help="Folder with corpus, queries and qrels/; without it, the query log."),
    ] = None,
    conf: Conf = [],
    assignments: _job.Assignments = [],
    split: Annotated[str, typer.Option("--split", help="Which judgements.")] = "test",
    store: Store = None,
    channels: Annotated[str | None, typer.Option("--channels", help="Only these, such as lexical,dense.")] = None,
    fusion: Annotated[FusionMode | None, typer.Option("--fusion", help="Default retrieval.fusion.")] = None,
    run_file: Annotated[Path | None, typer.Option("--run-file", help="Write what was returned, as TREC does.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first queries.")] = None,
    half: Annotated[Half | None, typer.Option("--half", help="Only this half of the queries.")] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option("--compare", metavar="A B", help="Run files or configurations, paired by query."),
    ] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="Switch every feature off in turn.")] = False,
    days: Annotated[float | None, typer.Option("--days", min=0.0, help=f"Of the query log; default {DAYS:g}.")] = None,
    judgements: Annotated[
        Path | None, typer.Option("--judgements", help="Judgements of logged queries, JSON lines, kept in the store.")
    ] = None,
    judge: Annotated[
        int, typer.Option("--judge", min=0, help="Let the configured model grade so many shown contents.")
    ] = 0,
    bootstrap: Annotated[str | None, typer.Option("--bootstrap", help="Broker to collect new feedback from.")] = None,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="Record the figures in MLflow.")] = False,
    as_json: _job.AsJson = False,
) -> None:
    """Measure retrieval on one split of a data set, or on the query log."""
    _require_one({"--compare": compare, "--ablate": ablate, "--run-file": run_file})
    of_data_sets = {"--ablate": ablate, "--run-file": run_file, "--half": half, "--limit": limit}
    of_the_log = {"--days": days is not None, "--judgements": judgements, "--judge": judge, "--bootstrap": bootstrap}
    _require_none(of_data_sets if dataset is None else of_the_log, "with" if dataset is None else "without")
    chosen = [] if channels is None else [f"retrieval.channels={json.dumps(channel_names(channels))}"]
    chosen += [] if fusion is None else [f"retrieval.fusion={fusion.value}"]

    def configured(files: list[Path], more: list[str]) -> Settings:
        return measuring(_job.settings_of([*conf, *files], [*assignments, *chosen, *more], store))

    settings = configured([], [])
    if dataset is None:
        name, measured = "query log", Path(settings.storage.root)
        if bootstrap is not None:
            collected(measured, _job.settings_of(conf, [*assignments, *broker(bootstrap)], store))
        logged = _log.read(settings, days=DAYS if days is None else days, judgements=judgements, ask=judge)
        summary = _log_compared(logged, compare, configured) if compare else _log_reported(logged, settings)
    else:
        judged = _part_of(read_dataset(dataset, split), settings.evaluation, half=half, limit=limit)
        name, measured = f"{judged.name} {judged.split}", _root_of(judged, settings)
        if compare is not None:
            summary = _compared(judged, compare, configured)
        elif ablate:
            summary = _ablated(judged, settings)
        else:
            summary = _measured(judged, settings, run_file)
    if snapshot:
        summary = {**summary, "run": _snapshot.record(name, summary, settings, measured=measured)}
    _job.emit(summary, as_json=as_json)


def _require_one(given: Mapping[str, object]) -> None:
    if len(named := [name for name, value in given.items() if value]) > 1:
        raise typer.BadParameter(f"give one of {' and '.join(named)}")


def _require_none(given: Mapping[str, object], where: str) -> None:
    if named := [name for name, value in given.items() if value]:
        raise typer.BadParameter(f"{' and '.join(named)}: only {where} a --dataset")


def _log_reported(logged: _log.Logged, settings: Settings) -> dict[str, Any]:
    found = _log.report(logged, settings)
    _log.show(found, settings)
    return _log.as_json(found, settings)


def _log_compared(logged: _log.Logged, names: tuple[str, str], configured: _compare.Configure) -> dict[str, Any]:
    control, treatment = (_compare.configuration(name, configured) for name in names)
    found = _log.compared(logged, control, treatment)
    _log.show_comparison(names, found)
    return _log.comparison_as_json(names, found)


def _measured(dataset: Dataset, settings: Settings, run_file: Path | None) -> dict[str, Any]:
    measurement = _asked_of(dataset, settings)
    if run_file is not None:
        write_run(run_file, measurement.run, tag="weft")
    summary = described(dataset, settings, measurement)
    tell(table(summary, measurement))
    return summary


def _compared(dataset: Dataset, names: tuple[str, str], configured: _compare.Configure) -> dict[str, Any]:
    settings = configured([], [])
    with closing(_replay.Again(settings, times=len(names))) as again:
        control, treatment = _compare.sides(names, configured, lambda each: runs_of(dataset, each, again))
    found, moved = _compare.compared(dataset, control, treatment, settings)
    _compare.show(dataset, control, treatment, found, moved, settings.evaluation)
    times = None if treatment.settings is None else _timed(dataset, treatment.settings)
    return _compare.described(dataset, control, treatment, found, moved, times=times, settings=settings.evaluation)


def _timed(dataset: Dataset, settings: Settings) -> Measurement:
    """The first queries asked one by one, as users ask them: whoever asks in batches knows no times."""
    return _asked_of(replace(dataset, queries=dataset.queries[: settings.evaluation.timed]), settings)


def runs_of(dataset: Dataset, configured: Sequence[Settings], again: _replay.Again) -> list[Run]:
    """What is returned for every query of the data set under each configuration, all of them asked together."""
    stored = [_stored(dataset, each) for each in configured]
    queries = [[asked(query, each.evaluation) for query in dataset.queries] for each in stored]
    alike = all(some == queries[0] for some in queries)
    found = (
        again.rankings(queries[0], [(each, None) for each in stored])
        if stored and alike
        else [again.rankings(some, [(each, None)])[0] for some, each in zip(queries, stored, strict=True)]
    )
    return [
        {
            str(query.query_id): as_ranked(results, each.evaluation.depth, document_id=document_id(dataset))
            for query, results in zip(some, rankings, strict=True)
        }
        for each, some, rankings in zip(stored, queries, found, strict=True)
    ]


def _ablated(dataset: Dataset, settings: Settings) -> dict[str, Any]:
    stored = _stored(dataset, settings)
    found = _ablate.ablated(dataset, stored, document_id(dataset))
    _ablate.show(dataset, stored, found)
    return _ablate.as_json(dataset, stored, found)


def _asked_of(dataset: Dataset, settings: Settings) -> Measurement:
    return run(dataset, _stored(dataset, settings), progress=_shown)


def _stored(dataset: Dataset, settings: Settings) -> Settings:
    return indexed(dataset, settings, before=lambda: connect(settings.cluster))


def _part_of(dataset: Dataset, settings: EvaluationSettings, *, half: Half | None, limit: int | None) -> Dataset:
    """The data set with some of its queries, and their judgements alone.

    Raises:
        SourceError: None of its queries is among them.
    """
    queries = [query for query in dataset.queries if half in (None, half_of(query.query_id, settings.seed))][:limit]
    if not queries:
        raise SourceError(
            f"{dataset.name} {dataset.split}: expected judged queries, found none in the part asked for: ask for "
            "another split or half"
        )
    names = {query.query_id for query in queries}
    qrels = {query_id: grades for query_id, grades in dataset.qrels.items() if query_id in names}
    return replace(dataset, queries=tuple(queries), qrels=qrels)


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

    After a change of the code that cuts the store is brought up to it: what is measured is what that code makes.

    Args:
        before: Called before anything is indexed, and only then.
    """
    root = _root_of(dataset, settings)
    stored = settings.model_copy(update={"storage": settings.storage.model_copy(update={"root": str(root)})})
    cut_with = root / _CUT_WITH
    if Catalog(root).pointer().generation is None or not _says(cut_with, cutting_code()):
        _job.stderr.print(plain(f"indexing {dataset.corpus} below {root}"))
        before()
        plan = reindex.plan_of(stored, [dataset.corpus])
        outcome = reindex.run(plan, watch=_tell, executor=executor)
        _job.stderr.print(reindex.headline(outcome))
        write_atomically(cut_with, cutting_code().encode())
    return stored


def _says(path: Path, wanted: str) -> bool:
    """Whether a file holds a text, and nothing else."""
    return path.is_file() and path.read_bytes() == wanted.encode()


def _root_of(dataset: Dataset, settings: Settings) -> Path:
    return Path(settings.storage.root) / "evaluation" / f"{dataset.name}-{_key(dataset.corpus, settings)}"


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
            document_id=document_id(dataset),
            progress=progress,
        )


def document_id(dataset: Dataset) -> Callable[[str], str]:
    """From the URI of a document of the corpus to the id that judgements name it by."""
    prefix = f"{corpus_name(dataset.corpus)}:"
    return lambda uri: uri.removeprefix(prefix)


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
    shown = Table("measure", "mean", "interval", box=None, title=plain(title), title_justify="left")
    for name, value in measurement.estimates.items():
        shown.add_row(_compare.LABELS[name], f"{value.mean:.4f}", f"{value.low:.4f} – {value.high:.4f}")
    shown.add_row("ms per query", f"{measurement.p50_ms:.1f}", f"95 % below {measurement.p95_ms:.1f}")
    for channel, worth in measurement.channels.items():
        shown.add_row(f"found by {channel}", f"{worth.shown:.1%}", f"{worth.exclusive:.1%} by it alone")
    for channel, count in measurement.failed_channels.items():
        shown.add_row(f"without {channel}", str(count), "queries")
    return shown


_CUT_WITH = "cut-with"
"""In a store of an evaluation: which code cut what is live in it. No part of its name: vectors are cached inside."""


def _key(corpus: Path, settings: Settings) -> str:
    """What decides an index: the corpus and the settings that read, cut, embed and index it."""
    parts = (settings.ingest, settings.chunking, settings.priors.sizing, settings.embedding, settings.index)
    values = [sha256_of(corpus), *(part.model_dump(mode="json") for part in parts)]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _tell(progress: IndexProgress) -> None:
    _job.stderr.print(reindex.line(progress), highlight=False, soft_wrap=True)


def _shown(queries: Iterable[JudgedQuery]) -> Iterable[JudgedQuery]:
    asked = list(queries)
    return track(asked, description="asking", console=_job.stderr, transient=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job."""
    return _job.run(evaluate, argv)


if __name__ == "__main__":
    sys.exit(main())
