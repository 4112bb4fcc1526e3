"""Measure data sets with one encoder and another, both together, and the other one without its prompts (ING-19).

    python -m jobs.encoders --encoder FOLDER --dataset DIR:SPLIT [--dataset …] [--store DIR] [--without-prompts]

Each is asked at the priors, by its vectors alone and by everything. Exit codes: 0 measured, 1 with a reason, 2 usage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from weft.app.collections import measuring, runs_of
from weft.app.searching.replay import StoreReplay
from weft.cli.console.options import MEASURED, CommonOptions, command, run_job
from weft.cli.console.output import Result, Shown
from weft.cli.reports.figures import change_cells, figures, titled
from weft.cli.reports.indexing import watch_lines
from weft.domain.errors import SourceError
from weft.domain.ranking import Channel
from weft.evaluation.measures.beir import Dataset, read_dataset
from weft.evaluation.measures.compare import HEADLINE, Difference, compare
from weft.evaluation.measures.metrics import measure
from weft.retrieval.settings import FusionMode
from weft.settings import Settings

_ALONE = {"channels": (Channel.DENSE, Channel.DENSE_2), "fusion": FusionMode.RRF}


@dataclass(frozen=True, slots=True)
class Row:
    """One way to encode, on one data set."""

    dataset: str
    way: str
    alone: float  # the headline measure by vectors alone, of two encoders by reciprocal ranks
    whole: float  # the same by everything
    difference: Difference  # of the whole, from the encoder that the settings name


def ways_of(encoder: str, *, without_prompts: bool) -> Mapping[str, Sequence[str]]:
    """Assignments of settings by what they are called, the encoder that the settings name first."""
    other, name = f"embedding.model={json.dumps(encoder)}", Path(encoder).name
    plain = {f"{name}, no prompts": (other, "embedding.query_prompt=''", "embedding.document_prompt=''")}
    both = {f"with {name}": (f"embedding.further=[{{model: {json.dumps(encoder)}}}]",)}
    return {"as set": (), name: (other,), **(plain if without_prompts else {}), **both}


def measured(dataset: Dataset, ways: Mapping[str, Settings]) -> Iterator[Row]:
    """A row for each way, over an index of its own."""
    sides = {name: (_alone(settings), settings) for name, settings in ways.items()}
    values: dict[str, tuple[Mapping[str, float], Mapping[str, float]]] = {}
    for name, both in sides.items():
        with closing(StoreReplay(both[1], times=len(both))) as replay:
            alone, whole = (
                measure(run, dataset.qrels)[HEADLINE] for run in runs_of(dataset, both, replay, watch=watch_lines())
            )
        values[name] = alone, whole
    (_, first), *_ = values.values()
    for name, (alone, whole) in values.items():
        difference = compare(first, whole, ways[name].evaluation)
        yield Row(f"{dataset.name} {dataset.split}", name, fmean(alone.values()), fmean(whole.values()), difference)


def _alone(settings: Settings) -> Settings:
    return settings.model_copy(update={"retrieval": settings.retrieval.model_copy(update=_ALONE)})


def shown(rows: Sequence[Row]) -> Iterator[Shown]:
    """For people."""
    table = titled("nDCG@10 at the priors", "data set", "encoder", *figures(("alone", "weft", "change", "interval")))
    for row in rows:
        table.add_row(row.dataset, row.way, f"{row.alone:.4f}", f"{row.whole:.4f}", *change_cells(row.difference))
    yield table


def _as_json(row: Row) -> dict[str, Any]:
    return {
        "dataset": row.dataset,
        "encoder": row.way,
        "alone": row.alone,
        "weft": row.whole,
        "difference": row.difference.as_json(),
    }


def _read(name: str) -> Dataset:
    folder, colon, split = name.rpartition(":")
    if not colon:
        raise SourceError(f"--dataset {name}: expected DIR:SPLIT, found no split")
    return read_dataset(Path(folder), split)


@command
def encoders(
    encoder: Annotated[str, typer.Option("--encoder", help="The other one: a folder, or a hub name.")],
    dataset: Annotated[list[str], typer.Option("--dataset", help="DIR:SPLIT; repeatable.")],
    *,
    options: CommonOptions,
    without_prompts: Annotated[
        bool, typer.Option("--without-prompts", help="Also measure it without prompts.")
    ] = False,
) -> Result:
    """Measure data sets with the encoder of the settings, another one, and both, and print one table."""
    ways = {
        name: measuring(options.settings(MEASURED, *more))
        for name, more in ways_of(encoder, without_prompts=without_prompts).items()
    }
    rows = [row for name in dataset for row in measured(_read(name), ways)]
    return Result([_as_json(row) for row in rows], shown(rows))


main = partial(run_job, encoders)
"""Run the job on arguments."""
