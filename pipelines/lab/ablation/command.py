"""Measure what every feature is worth on a data set, each switched off in turn (EVA-9).

    python -m jobs.ablate --dataset DIR --split test [--store DIR] [--half tuned]

Exit codes: 0 measured, 1 with a reason (unreadable data set, no such split), 2 usage.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lab.ablation import report
from weft.app.collections import document_id, indexed, measuring
from weft.cli.commands.evaluate import part_of
from weft.cli.console import jobs as _job
from weft.cli.console.options import MEASURED, CommonOptions, job_command
from weft.evaluation.measures.beir import read_dataset
from weft.evaluation.measures.significance import Half


@job_command
def ablate(
    dataset: Annotated[Path, typer.Option("--dataset", help="Folder with corpus, queries and qrels/.")],
    *,
    options: CommonOptions,
    split: Annotated[str, typer.Option("--split", help="Which judgements.")] = "test",
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first queries.")] = None,
    half: Annotated[Half | None, typer.Option("--half", help="Only this half of the queries.")] = None,
    as_json: _job.AsJson = False,
) -> None:
    """Switch every feature off in turn, and print one table."""
    settings = measuring(options.settings(MEASURED))
    judged = part_of(read_dataset(dataset, split), settings.evaluation, half=half, limit=limit)
    stored = indexed(judged, settings)
    result = report.ablated(judged, stored, document_id(judged))
    report.show(judged, stored, result)
    _job.emit(report.as_json(judged, result), as_json=as_json)


main = partial(_job.run, ablate)
"""Run the job on arguments."""
