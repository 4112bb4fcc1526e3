"""Measure retrieval on a data set in BEIR layout, and compare what can be compared.

    weft evaluate --dataset DIR --split test [--store DIR] [--channels lexical,dense] [--fusion learned]
    weft evaluate --dataset DIR --split test --compare A B
    weft evaluate --store DIR [--days 7] [--bootstrap HOST:PORT] [--judgements FILE] [--compare A B]
    weft evaluate --lessons DIR

The corpus is indexed below the store once for the settings that matter, and found there afterwards. Queries are asked
one by one, each within its group where the data set has groups. `--run-file` writes what was returned as TREC does.
`--compare` takes TREC run files, YAML files, assignments such as "retrieval.fusion=rrf", or `base`, in any combination.
Without `--dataset` it measures on the query log of the store: what was shown against what feedback and judgements say
was right, the measures of a memory, and alarms for failure modes; `--compare` asks the logged queries again.
`--snapshot` records the figures in MLflow. `--lessons` measures what is heard of lessons and which are one, on labelled
texts (`weft.app.lessons.measuring`). `--half tuned` asks half of the queries, to choose settings on;
`--half held-out` the others, to measure the choice.
Exit codes: 0 measured, 1, 75 or 78 with a reason (unreadable data set, no such split), 2 usage.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.progress import track
from rich.table import Table

from weft.app import log_evaluation
from weft.app.collecting import collected
from weft.app.collections import indexed, measuring, root_of, run, runs_of
from weft.app.comparing import Configure, compared, configuration, sides
from weft.app.lessons.measuring import measured as measured_lessons
from weft.app.log_evaluation import Logged
from weft.app.searching.replay import StoreReplay
from weft.app.snapshot import EXPERIMENT, record
from weft.cli.console.options import MEASURED, CommonOptions, command, run_job
from weft.cli.console.output import Result, Shown
from weft.cli.console.terminal import note, stderr
from weft.cli.reports import comparison, query_log
from weft.cli.reports.figures import LABELS, mean_cells, titled
from weft.cli.reports.indexing import watch_lines
from weft.cli.searches.search import channel_names
from weft.domain.errors import SourceError
from weft.evaluation.measures.beir import Dataset, JudgedQuery, read_dataset
from weft.evaluation.measures.measuring import Measurement
from weft.evaluation.measures.runs import write_run
from weft.evaluation.measures.significance import Half, half_of
from weft.evaluation.settings import EvaluationSettings
from weft.retrieval.settings import FusionMode
from weft.settings import Settings

_TIMED = 100  # queries of B that a comparison asks one by one besides
DAYS = 7.0
"""Of the query log, where nobody says how many."""

Report: TypeAlias = tuple[dict[str, Any], Iterable[Shown]]
"""What was measured, for programs and for people."""


@command
def evaluate(
    dataset: Annotated[
        Path | None,
        typer.Option("--dataset", help="Folder with corpus, queries and qrels/; without it, the query log."),
    ] = None,
    *,
    options: CommonOptions,
    split: Annotated[str, typer.Option("--split", help="Which judgements.")] = "test",
    channels: Annotated[str | None, typer.Option("--channels", help="Only these, such as lexical,dense.")] = None,
    fusion: Annotated[FusionMode | None, typer.Option("--fusion", help="Default retrieval.fusion.")] = None,
    run_file: Annotated[Path | None, typer.Option("--run-file", help="Write what was returned, as TREC does.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first queries.")] = None,
    half: Annotated[Half | None, typer.Option("--half", help="Only this half of the queries.")] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option("--compare", metavar="A B", help="Run files or configurations, paired by query."),
    ] = None,
    days: Annotated[float | None, typer.Option("--days", min=0.0, help=f"Of the query log; default {DAYS:g}.")] = None,
    judgements: Annotated[
        Path | None, typer.Option("--judgements", help="Judgements of logged queries, JSON lines, kept in the store.")
    ] = None,
    judge: Annotated[
        int, typer.Option("--judge", min=0, help="Let the configured model grade so many shown contents.")
    ] = 0,
    bootstrap: Annotated[str | None, typer.Option("--bootstrap", help="Broker to collect new feedback from.")] = None,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="Record the figures in MLflow.")] = False,
    lessons: Annotated[
        Path | None, typer.Option("--lessons", help="Measure what is heard of lessons, on labelled texts in a folder.")
    ] = None,
) -> Result:
    """Measure retrieval on one split of a data set, on the query log, or what is heard of lessons."""
    if lessons is not None:
        _require_one({"--lessons": lessons, "--dataset": dataset, "--compare": compare})
        return _lessons_measured(lessons, options.settings(MEASURED))
    _require_one({"--compare": compare, "--run-file": run_file})
    of_data_sets = {"--run-file": run_file, "--half": half, "--limit": limit}
    of_the_log = {"--days": days is not None, "--judgements": judgements, "--judge": judge, "--bootstrap": bootstrap}
    _require_none(of_data_sets if dataset is None else of_the_log, "with" if dataset is None else "without")
    chosen = [] if channels is None else [f"retrieval.channels={json.dumps(channel_names(channels))}"]
    chosen += [] if fusion is None else [f"retrieval.fusion={fusion.value}"]

    def configured(files: list[Path], more: list[str]) -> Settings:
        return measuring(options.settings(MEASURED, *chosen, *more, conf=files))

    settings = configured([], [])
    if dataset is None:
        name, measured = "query log", Path(settings.storage.root)
        if bootstrap is not None:
            collected(measured, options.settings(bootstrap=bootstrap))
        logged = log_evaluation.read(settings, days=DAYS if days is None else days, judgements=judgements, ask=judge)
        summary, shown = _log_compared(logged, compare, configured) if compare else _log_reported(logged, settings)
    else:
        judged = part_of(read_dataset(dataset, split), settings.evaluation, half=half, limit=limit)
        name, measured = f"{judged.name} {judged.split}", root_of(judged, settings)
        if compare is not None:
            summary, shown = _compared(judged, compare, configured)
        else:
            summary, shown = _measured(judged, settings, run_file)
    if snapshot:
        summary = {**summary, "run": record(name, summary, settings, measured=measured)}
        note(f"recorded in MLflow: experiment {EXPERIMENT}, run {summary['run']}")
    return Result([summary], shown)


def _lessons_measured(folder: Path, settings: Settings) -> Result:
    figures = measured_lessons(folder, settings)
    shown = titled(f"lessons, {folder}", "measure", "value")
    for name, values in figures.items():
        for measure, value in values.items():
            shown.add_row(
                f"{name}: {measure.replace('_', ' ')}", f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
            )
    return Result([dict(figures)], [shown])


def _require_one(given: Mapping[str, object]) -> None:
    if len(named := [name for name, value in given.items() if value]) > 1:
        raise typer.BadParameter(f"give one of {' and '.join(named)}")


def _require_none(given: Mapping[str, object], where: str) -> None:
    if named := [name for name, value in given.items() if value]:
        raise typer.BadParameter(f"{' and '.join(named)}: only {where} a --dataset")


def _log_reported(logged: Logged, settings: Settings) -> Report:
    result = log_evaluation.report(logged, settings)
    return query_log.as_json(result), query_log.shown(result)


def _log_compared(logged: Logged, names: tuple[str, str], configured: Configure) -> Report:
    control, treatment = (configuration(name, configured) for name in names)
    result = log_evaluation.compared(logged, control, treatment)
    return query_log.comparison_as_json(names, result), query_log.comparison_shown(names, result)


def _measured(dataset: Dataset, settings: Settings, run_file: Path | None) -> Report:
    measurement = _measure(dataset, settings)
    if run_file is not None:
        write_run(run_file, measurement.run, tag="weft")
    summary = described(dataset, settings, measurement)
    return summary, [table(summary, measurement)]


def _compared(dataset: Dataset, names: tuple[str, str], configured: Configure) -> Report:
    settings = configured([], [])
    with closing(StoreReplay(settings, times=len(names))) as replay:
        control, treatment = sides(names, configured, lambda each: runs_of(dataset, each, replay, watch=watch_lines()))
    result = compared(dataset, control, treatment, settings)
    # The first queries asked one by one, as users ask them: whoever asks in batches knows no times.
    first = replace(dataset, queries=dataset.queries[:_TIMED])
    times = None if treatment.settings is None else _measure(first, treatment.settings)
    return comparison.as_json(result, times), comparison.shown(result, interval=settings.evaluation.interval)


def _measure(dataset: Dataset, settings: Settings) -> Measurement:
    return run(dataset, indexed(dataset, settings, watch=watch_lines()), progress=_shown)


def part_of(dataset: Dataset, settings: EvaluationSettings, *, half: Half | None, limit: int | None) -> Dataset:
    """The data set with some of its queries, and their judgements alone."""
    queries = [query for query in dataset.queries if half in (None, half_of(query.query_id, settings.seed))][:limit]
    if not queries:
        raise SourceError(
            f"{dataset.name} {dataset.split}: expected judged queries, found none in the part asked for: ask for "
            "another split or half"
        )
    names = {query.query_id for query in queries}
    qrels = {query_id: grades for query_id, grades in dataset.qrels.items() if query_id in names}
    return replace(dataset, queries=tuple(queries), qrels=qrels)


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
    shown = titled(title, "measure", "mean", "interval")
    for name, value in measurement.estimates.items():
        shown.add_row(LABELS[name], *mean_cells(value))
    shown.add_row("ms per query", f"{measurement.p50_ms:.1f}", f"95 % below {measurement.p95_ms:.1f}")
    for channel, worth in measurement.channels.items():
        shown.add_row(f"found by {channel}", f"{worth.shown:.1%}", f"{worth.exclusive:.1%} by it alone")
    for channel, count in measurement.failed_channels.items():
        shown.add_row(f"without {channel}", str(count), "queries")
    return shown


def _shown(queries: Iterable[JudgedQuery]) -> Iterable[JudgedQuery]:
    return track(list(queries), description="asking", console=stderr, transient=True)


main = partial(run_job, evaluate)
"""Run the job on arguments."""
