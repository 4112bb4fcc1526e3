"""Train, export and measure the bundled entity recogniser.

Usage: python -m jobs.train_ner --data FOLDER --out FOLDER [--minutes N] [--words N] [--seed N] [--threads N]

A run that was stopped goes on with --resume, or is exported as it stands with --export-only; --start trains the
weights of an earlier run's state further, on a schedule of its own. On a shared machine
set OMP_WAIT_POLICY=PASSIVE and GOMP_SPINCOUNT=0. Exit codes: 0 done, 1 the data or a model is missing, 2 wrong usage.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lab.entities import recipe
from lab.entities.evaluation import EITHER, ExtractionReport
from lab.entities.schedule import Schedule
from weft.cli.console.options import CommonOptions, command, run_job
from weft.cli.console.output import Result


@command
def train_ner(
    *,
    data: Annotated[Path, typer.Option(help="Folder with train.jsonl.gz and dev.jsonl.gz.")],
    out: Annotated[Path, typer.Option(help="Folder for the saved state and the checkpoint.")],
    words: Annotated[int, typer.Option(min=1, help="Words to train on at most.")] = 4_000_000,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="Minutes to train at most; the rate anneals to whichever ends.")
    ] = 60,
    seed: Annotated[int, typer.Option(help="Of weights and drawn texts.")] = 7,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 2,
    batch_words: Annotated[int, typer.Option(min=1, help="Words a step.")] = 400,
    encoder_rate: Annotated[float, typer.Option(help="Peak learning rate of the encoder.")] = 1.2e-4,
    head_rate: Annotated[float, typer.Option(help="Peak learning rate of the new layers.")] = 8e-4,
    save_minutes: Annotated[float, typer.Option(help="Minutes between saved states.")] = 5,
    log_every: Annotated[int, typer.Option(min=1, help="Steps between progress lines.")] = 50,
    bf16: Annotated[bool, typer.Option(help="Multiply in bfloat16.")] = True,
    resume: Annotated[bool, typer.Option(help="Go on from the saved state.")] = False,
    start: Annotated[Path | None, typer.Option(help="State of an earlier run to begin with its weights.")] = None,
    export_only: Annotated[bool, typer.Option(help="Export and measure the saved state, without training.")] = False,
    options: CommonOptions,
) -> Result:
    """Train, export and measure the bundled entity recogniser."""
    out.mkdir(parents=True, exist_ok=True)
    schedule = Schedule(words, minutes, batch_words, encoder_rate, head_rate, bf16, save_minutes, log_every)
    settings = options.settings().extraction
    run = recipe.TrainingRun(data, out, seed, threads, schedule, settings, start)
    progress = recipe.export_saved(run) if export_only else recipe.fit(run, resume=resume)
    report, facts = recipe.assess(run, progress)
    summary = {"checkpoint": str(run.checkpoint), "words": progress.words, "bytes": facts.size, "speed": facts.speed}
    return Result([{**summary, **_figures(report)}], [])


def _figures(report: ExtractionReport) -> dict[str, object]:
    f1 = {label: round(count.f1, 4) for label, count in report.labels.items()}
    sources = {name: round(count.f1, 4) for name, count in report.sources.items()}
    return {
        "f1": f1 | {EITHER: round(report.either.f1, 4)},
        "sources": sources,
        "thresholds": dict(report.thresholds),
    } | {"confidences": {label: [list(point) for point in points] for label, points in report.confidences.items()}}


main = partial(run_job, train_ner)
"""Run the job on arguments."""
