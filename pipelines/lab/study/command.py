"""What learning is worth: simulated users ask queries of one split, retrieval is measured on another that nobody asked.

    python -m jobs.study --dataset DIR --learn-from train --split test [--sessions 100,500,2000,all] [--random 0.2]
        [--adversarial 0.1] [--deals 5] [--hold-out 0.5] [--foreign DIR:SPLIT] [--least 0.9]
        [--bare] [--fit] [--json]
        [--set retrieval.rerank.late_interaction=false]

Every session is a user who asks one query, reads, opens and judges what is shown; what they do travels through Kafka to
the updaters, and what the updaters learned ranks what later users are shown. The table sets beside it each channel
alone, reciprocal rank fusion, and the best fixed convex combination tuned on the queries that were learned from. What
is known of single contents (usage) is left out of every row but the last one: held-out queries may ask for the same.
Who asks what, and does what about it, is drawn: with `--deals` as often, each time from nothing, and means are told.
With `--least .9` both are asked only what is nearly solved at the priors: more feedback must not lose it (LRN-22).
With `--fit` weights are also fitted to the query log as a night does, and measured beside those counted (CON-8).
A study takes minutes and stands for days, of a hundred each: what a day brings is capped for those.

    python -m jobs.study --dataset DIR --split test --again 200 [--json]

asks again what people said something about: a result of the first ten is called right by one, two and three people, the
first one wrong, a right one that nobody is shown is pointed at; then a stranger asks the same, in the same words and in
others, and new questions. Every line is a share of the questions, with its goal.
What is not given of the users is as `pipelines/lab/simulation.yaml` states it.
Exit codes: 0 measured, 1 with a reason (unreadable data set, no such split), 2 usage.
"""

from __future__ import annotations

import random
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lab.settings import SimulationSettings, simulated_users
from lab.simulation.study import hold_out_share
from lab.study.again import ask_again
from lab.study.report import calibrated, described, outcomes, table
from lab.study.run import run
from weft.app.collections import measuring
from weft.cli.console.options import MEASURED, CommonOptions, command, run_job
from weft.cli.console.output import Result
from weft.domain.errors import SourceError
from weft.evaluation.measures.beir import read_dataset

ALL = "all"


@command
def study(
    dataset: Annotated[Path, typer.Option("--dataset", help="Folder with corpus, queries and qrels/.")],
    learn_from: Annotated[str, typer.Option("--learn-from", help="Which judgements users know.")] = "train",
    split: Annotated[str, typer.Option("--split", help="Which judgements are measured, and never asked.")] = "test",
    sessions: Annotated[
        str, typer.Option("--sessions", help="Measured after so many; all is as many as stated.")
    ] = "100,500,2000,all",
    noise: Annotated[
        float | None, typer.Option("--noise", help="Probability that a result looks the opposite of what it is.")
    ] = None,
    random_users: Annotated[float | None, typer.Option("--random", help="Share of users who judge at random.")] = None,
    adversarial: Annotated[
        float | None,
        typer.Option("--adversarial", help="Share who praise what is wrong."),
    ] = None,
    deals: Annotated[int | None, typer.Option("--deals", help="Draws of users.", min=1)] = None,
    foreign: Annotated[
        list[str], typer.Option("--foreign", help="DIR:SPLIT, whose queries have no answer here; repeatable.")
    ] = [],
    hold_out: Annotated[
        float,
        typer.Option(
            "--hold-out", min=0.0, max=1.0, help="Share of the queries to learn from that is measured as well, unasked."
        ),
    ] = 0.0,
    least: Annotated[
        float, typer.Option("--least", min=0.0, max=1.0, help="Only queries whose measure reaches it at the priors.")
    ] = 0.0,
    again: Annotated[
        int | None, typer.Option("--again", min=2, help="Questions of the split that are asked again, instead.")
    ] = None,
    bare: Annotated[
        bool, typer.Option("--bare", help="Learning alone: no other ways to rank beside it, no probabilities.")
    ] = False,
    fit: Annotated[
        bool, typer.Option("--fit", help="Also fit weights to the query log as a night does, at every mark.")
    ] = False,
    *,
    options: CommonOptions,
) -> Result:
    """Measure what learning from simulated users is worth on queries that were never shown."""
    if bare and foreign:
        raise typer.BadParameter("--foreign is about probabilities, which --bare leaves out: give one of them")
    elsewhere = [_place_of(each) for each in foreign]
    named = {"noise": noise, "random": random_users, "adversarial": adversarial, "deals": deals}
    settings, users = measuring(options.settings(MEASURED)), simulated_users(**named)
    if again is not None:
        asked = ask_again(read_dataset(dataset, split), settings, questions=again, seed=settings.evaluation.seed)
        shown = outcomes(f"{dataset.name} {split}, asked again", asked)
        return Result([{"again": [asdict(each) for each in asked]}], [shown])
    marks = marks_of(sessions, users)
    lessons, held_out = read_dataset(dataset, learn_from), read_dataset(dataset, split)
    lessons, held_out = hold_out_share(lessons, held_out, hold_out, random.Random(settings.evaluation.seed))  # noqa: S311
    for part in (lessons, held_out):
        if not part.queries:
            raise SourceError(f"{part.name} {part.split}: expected queries to learn from and others to ask, found none")
    foreign_queries = [read_dataset(folder, part) for folder, part in elsewhere]
    result = run(lessons, held_out, settings, users, marks, foreign_queries, least=least, bare=bare, fit=fit)
    tables = [table(f"{held_out.name} {split}, learned from {learn_from}", result)]
    tables += [calibrated(result.held)] if result.held else []
    return Result([described(held_out, learn_from, result)], tables)


def _place_of(text: str) -> tuple[Path, str]:
    folder, _, part = text.rpartition(":")
    if not folder or not part:
        raise typer.BadParameter(f"--foreign takes DIR:SPLIT, found {text!r}")
    return Path(folder), part


def marks_of(text: str, users: SimulationSettings) -> list[int]:
    """Numbers of sessions in a list such as "100,500,all".

    Raises:
        BadParameter: One of them is neither a number from 1 on nor "all".
    """
    names = [name.strip() for name in text.split(",")]
    if not all(name == ALL or (name.isdecimal() and int(name) > 0) for name in names):
        raise typer.BadParameter(f"expected numbers of sessions or {ALL!r}, separated by commas, found {text!r}")
    return sorted({users.sessions if name == ALL else int(name) for name in names})


main = partial(run_job, study)
"""Run the job on arguments."""
