"""Train the heads that hear lessons, and measure them on manners of speaking that they did not see (LES-5).

    python -m jobs.train_hearing [--out DIR] [--only outcome] [--figures] [--json]

Without `--out` the heads that come with weft are written anew. `--figures` trains six heads more, each without a
few of the manners, and sets the temperature by what these say of them: ten minutes a head. Exit codes: 0 done,
1 with a reason, 2 usage.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

import weft.lessons
from lab.hearing.labelled import outcome_examples, teaching_examples
from lab.hearing.training import TrainingSet, out_of_manner, trained
from weft.cli.console.options import CommonOptions, command, run_job
from weft.cli.console.output import Result
from weft.cli.reports.figures import titled
from weft.embedding.text_states import TextStates
from weft.lessons.hearing import FeatureReader

_EXAMPLES = {"outcome": outcome_examples, "teaching": teaching_examples}
_SEED = 7
# Of the places in `OUTCOMES` and `TEACHINGS`: 0 for nothing, 1 for what speaks for a lesson, 2 against it.
_SIGNS = {"outcome": np.array([0, 1, 2, 2, 1]), "teaching": np.array([0, 1, 1, 1])}
_HEADS = Path(str(weft.lessons.__path__[0])) / "heads"
_ALL_TEXTS = 1_000_000


@command
def train_hearing(
    *,
    out: Annotated[Path, typer.Option(help="Folder for the heads.")] = _HEADS,
    only: Annotated[str | None, typer.Option(help="One head: outcome or teaching.")] = None,
    figures: Annotated[bool, typer.Option("--figures", help="Measure by manner, and set the temperature.")] = False,
    options: CommonOptions,
) -> Result:
    """Train the heads that hear lessons."""
    torch.set_num_threads(1)  # the networks are small: threads wait for one another
    settings = options.settings()
    reading = FeatureReader(TextStates(settings.embedding, retained=_ALL_TEXTS))
    least = {"outcome": settings.lessons.hearing.least, "teaching": settings.lessons.hearing.teaches}
    summary: dict[str, Any] = {}
    table = titled("by manner, kept out of training", "head", "manner", "labelled", "recall", "precision", "exact")
    for name in [only] if only else list(_EXAMPLES):
        given = TrainingSet(list(_EXAMPLES[name](reading, random.Random(_SEED))), _SEED)  # noqa: S311 - it draws what is learned
        weights = trained(given, range(len(given.examples)), _SEED)
        summary[name] = {"examples": len(given.examples)}
        if figures:
            shares, temperature = out_of_manner(given, _SEED)
            weights["t"] = np.array([temperature])
            rows, claimed = by_manner(name, given, shares, least[name]), calibration(name, given, shares)
            summary[name] |= {"temperature": temperature, "manners": rows, "calibration": claimed}
            for manner, row in rows.items():
                table.add_row(name, manner, *(f"{value:.2f}" if value <= 1 else f"{value}" for value in row.values()))
        out.mkdir(parents=True, exist_ok=True)
        retained = {each: values.astype(np.float32 if each == "t" else np.float16) for each, values in weights.items()}
        np.savez_compressed(out / f"{name}.npz", **retained)  # type: ignore[arg-type]
    return Result([summary], [table] if figures else [])


def by_manner(name: str, given: TrainingSet, shares: np.ndarray, least: float) -> Mapping[str, Mapping[str, float]]:
    """Of each manner, and of all: how many turns say something, and how much of it is heard, by its sign."""
    labels, signs = given.labels, _SIGNS[name]
    of = np.array([each.manner for each in given.examples])
    sure = _by_sign(name, shares)
    detected = np.where(sure.max(axis=1) >= least, 1 + sure.argmax(axis=1), 0)
    best = np.where(signs[None, :] == detected[:, None], shares, -1.0).argmax(axis=1)
    rows = {}
    for manner in [*sorted(set(of.tolist())), "all"]:
        own = (of == manner) | (manner == "all")
        wanted, claimed = own & (labels > 0), own & (detected > 0)
        right = wanted & (detected == signs[labels])
        rows[manner] = {
            "labelled": int(wanted.sum()),
            "recall": float(right.sum() / max(1, wanted.sum())),
            "precision": float(right.sum() / max(1, claimed.sum())),
            "exact": float((right & (best == labels)).sum() / max(1, wanted.sum())),
        }
    return rows


def calibration(name: str, given: TrainingSet, shares: np.ndarray) -> Sequence[Mapping[str, float]]:
    """How often what is said with a probability is so, in tenths."""
    sure, rows = _by_sign(name, shares), []
    so = np.stack([_SIGNS[name][given.labels] == 1 + at for at in range(sure.shape[1])], axis=1)
    for low in range(10):
        within = np.minimum((sure * 10).astype(int), 9) == low
        if count := int(within.sum()):
            rows.append({"said": float(sure[within].mean()), "so": float(so[within].mean()), "turns": count})
    return rows


def _by_sign(name: str, shares: np.ndarray) -> np.ndarray:
    """The probability of each sign but that nothing is said: float (examples, signs)."""
    signs = _SIGNS[name]
    return np.stack([shares[:, signs == sign].sum(axis=1) for sign in range(1, signs.max() + 1)], axis=1)


main = partial(run_job, train_hearing)
"""Run the job on arguments."""
