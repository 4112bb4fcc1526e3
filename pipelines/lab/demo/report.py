"""What the demonstration says on its way and at its end."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from weft.app.updaters import require_balance, summary
from weft.cli.console.terminal import plain, print_report, stdout
from weft.cli.reports.figures import titled
from weft.domain.documents import Domain
from weft.domain.ranking import Channel, Scope, Signal, WeightBelief
from weft.evaluation.measures.compare import HEADLINE, compare
from weft.evaluation.measures.metrics import PerQuery, estimates
from weft.evaluation.settings import EvaluationSettings
from weft.feedback.run.updater import PartitionProgress
from weft.retrieval.searcher import Searcher
from weft.retrieval.settings import FusionMode

BASELINES: Mapping[str, Mapping[str, Any]] = {
    "BM25 alone": {"channels": (Channel.LEXICAL,), "fusion": FusionMode.RSF},
    "dense alone": {"channels": (Channel.DENSE,), "fusion": FusionMode.RSF},
    "RRF": {"fusion": FusionMode.RRF},
}
"""What is measured beside weft, as changes to the retrieval settings."""

BEFORE = "weft, at its priors"
AFTER = "weft, after learning"
_SHOWN = {"ndcg_at_10": "nDCG@10", "mrr_at_10": "MRR@10", "hit_rate_at_1": "hit@1", "recall_at_20": "recall@20"}

_LEAST_SHOWN = 0.005  # of a weight, before or after: below it two digits say nothing

Weights = Mapping[Signal, WeightBelief]


def step(text: str) -> None:
    """Begin a part of the demonstration."""
    stdout.print(f"\n[bold]▸ {text}[/bold]")


def say(text: str) -> None:
    """Add a fact to the part under way."""
    stdout.print(f"  {text}")


def weights_of(searcher: Searcher) -> Weights:
    """What is believed now about every signal of code, for the demonstration's users."""
    return searcher.snapshot.beliefs.weights(Scope(Domain.CODE, agent="demo"), tuple(Signal))


def weights(before: Weights, after: Weights) -> None:
    """Show what learning moved: the signals of code that something was said about."""
    table = Table("what a result is scored by", "weight before", "learned (90 % interval)", box=None)
    for signal, now in after.items():
        weight = before[signal].mean
        if now.n_effective > 0.0 and max(weight, now.mean) >= _LEAST_SHOWN:
            table.add_row(signal.value, f"{weight:.2f}", f"{now.mean:.2f} ({now.low:.2f}–{now.high:.2f})")
    print_report(table)


def record_counts(all_progress: Sequence[PartitionProgress]) -> dict[str, Any]:
    """What became of every event, and the check that they add up."""
    require_balance(all_progress)
    counts = summary(all_progress)
    names = ("consumed", "applied", "duplicate", "dead_lettered", "late")
    say("events: " + ", ".join(f"{counts[name]:,} {name.replace('_', '-')}" for name in names))
    return counts


def quality(measured: Mapping[str, PerQuery], settings: EvaluationSettings) -> None:
    """The table of held-out quality, and how sure the gain is."""
    questions = len(next(iter(measured[AFTER].values())))
    table = titled(f"{questions} held-out questions", "", *_SHOWN.values())
    for name, values in measured.items():
        means = estimates(values, settings)
        figures = (f"{means[metric].mean:.3f}" for metric in _SHOWN)
        table.add_row(name, *figures, style="bold" if name == AFTER else "")
    print_report(table)
    gain = compare(measured[BEFORE][HEADLINE], measured[AFTER][HEADLINE], settings)
    verdict = "more than chance" if gain.significant else "not shown by this sample"
    say(
        f"learning moved {_SHOWN[HEADLINE]} by {gain.change.mean:+.3f} "
        f"({gain.change.low:+.3f} to {gain.change.high:+.3f}, {settings.interval:.0%} interval); "
        f"{gain.better} questions better, {gain.worse} worse; {verdict}"
    )


def again(right: Mapping[str, float], questions: int) -> None:
    """How often the right answer is first for questions that users asked before."""
    table = titled(f"{questions} questions that users ask", "", "right answer first")
    for name, share in right.items():
        table.add_row(name, f"{share:.2f}")
    print_report(table)


def next_steps(root: Path, page: Path, night: Mapping[str, Any], seconds: float) -> None:
    """Say what to do next, and where the page of what was learned lies."""
    store, shown = plain(shlex.quote(str(root))), plain(str(page))
    stdout.print(f"\n[bold]Done in {seconds:.0f} s.[/bold] Learned version {night['learned']}: {night['decision']}.")
    stdout.print(f'  search   .venv/bin/weft search "find files by a wildcard pattern" --store {store} --explain')
    stdout.print(f"  look     {shown} in a browser: what it learned; `weft learned page` writes it anew")
    stdout.print(f"  review   make mlflow STORE={store}    then http://127.0.0.1:5000, Model training, calibration")
