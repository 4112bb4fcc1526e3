"""Run the night: fold the day's evidence into a learned version, calibrate, judge, publish and report it in MLflow.

    python -m jobs.consolidate --store DIR [--adopt DIR] [--dry-run] [--json]

Queries of the query log are asked again for the gate, where there are any. It can be killed at any instant and started
again: the next run finishes what was begun. `--dry-run` finds everything out and changes nothing. `--adopt` takes over
what another store learned, as after a move to another topic. Exit codes: 0 done or nothing new, 1 with a reason (no
MLflow, no store or a damaged one, taken over before), 2 usage.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs import _job
from pipelines.catalog.catalog import Catalog
from pipelines.consolidation.candidate import Adopted, learned_by
from pipelines.consolidation.gate import Improve, Shadow
from pipelines.consolidation.night import STEPS, Evaluate, Night
from pipelines.consolidation.pipeline import consolidate as through_the_night
from pipelines.consolidation.probes import probed
from pipelines.domain.matching import MatchFeatures
from pipelines.feedback.run.partitions import states_in
from pipelines.learning.calibration.fit import Look
from pipelines.learning.calibration.matching import Probe
from pipelines.runtime.clock import Clock, system_clock
from pipelines.runtime.mlflow.tracking import Tracking
from pipelines.serving.engines import opened
from pipelines.serving.replays import StoreReplay
from pipelines.serving.reports import query_log
from pipelines.serving.terminal import Conf, Store, plain, root_of, stderr
from pipelines.settings import Settings

_DOING = {
    "merge": "folding what was streamed into the base",
    "recalibrate": "checking what confidences are worth",
    "gate": "comparing with what is live",
    "publish": "publishing and registering",
    "report": "drawing and writing the report",
}


def consolidate(
    conf: Conf = [],
    assignments: _job.Assignments = [],
    store: Store = None,
    adopt: Annotated[Path | None, typer.Option("--adopt", help="Another store, to take over what it learned.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would be published, change nothing.")] = False,
    as_json: _job.AsJson = False,
) -> None:
    """Fold the day's evidence into a learned version, calibrate, judge, publish and report it."""
    settings = _job.settings_of(conf, assignments, store)
    root_of(store, settings)  # a night over a folder that is not there would find nothing new, every night
    with closing(StoreReplay(settings, times=2)) as replay:
        shadow, look = query_log.shadow_of(settings, replay), query_log.look_of(settings)
        adopted = None if adopt is None else _learned_by(adopt, settings)
        summary = run_visibly(settings, dry_run=dry_run, shadow=shadow, look=look, adopted=adopted)
    ringing = query_log.ringing(settings)
    for alarm in ringing:
        stderr.print(f"[yellow]⚠ {alarm.name}: {plain(alarm.says)}[/]")
    _job.emit({**summary, "alarms": [alarm.as_json() for alarm in ringing]}, as_json=as_json)


def _learned_by(store: Path, settings: Settings) -> Adopted:
    if store.resolve() == Path(settings.storage.root).resolve():
        raise typer.BadParameter(f"--adopt takes another store than the one that it is taken over into, {store}")
    return learned_by(str(store.resolve()), Catalog(store))


def run_visibly(
    settings: Settings,
    *,
    dry_run: bool = False,
    shadow: Shadow | None = None,
    improve: Improve | None = None,
    evaluate: Evaluate | None = None,
    look: Look | None = None,
    adopted: Adopted | None = None,
) -> Mapping[str, Any]:
    """The same, and say on stderr what it does and what came of it."""
    announce = lambda step: stderr.print(_line(step))  # noqa: E731
    summary = run(
        settings,
        dry_run=dry_run,
        announce=announce,
        shadow=shadow,
        improve=improve,
        evaluate=evaluate,
        look=look,
        adopted=adopted,
    )
    stderr.print(_outcome_line(summary))
    return summary


def run(
    settings: Settings,
    *,
    dry_run: bool,
    announce: Callable[[str], None] = lambda _: None,
    shadow: Shadow | None = None,
    improve: Improve | None = None,
    evaluate: Evaluate | None = None,
    look: Look | None = None,
    adopted: Adopted | None = None,
    clock: Clock = system_clock,
) -> Mapping[str, Any]:
    """The night that the settings describe; see `pipelines.consolidation.pipeline.consolidate`.

    Args:
        shadow: Replays queries for the gate; without it the gate judges the weights.
        improve: Compares the live version and the candidate on judged queries, for the gate.
        evaluate: Measures retrieval for the report.
        look: Asks queries of all channels and of each alone: what is shown is what probabilities are about.
        adopted: What another store learned.
    """
    root = Path(settings.storage.root)
    night = Night(
        catalog=Catalog(root),
        tracking=Tracking.of(settings.tracking, root),
        priors=settings.priors,
        learning=settings.learning,
        rules=settings.consolidation,
        now=clock(),
        facts={"settings": settings.fingerprint, "priors": settings.priors.fingerprint, "store": str(root.resolve())},
        shadow=shadow,
        improve=improve,
        evaluate=evaluate,
        probe=_probe(settings),
        look=look,
        announce=announce,
        counters={str(state.partition): state.report().counts for state in states_in(root, settings.feedback)},
    )
    return through_the_night(night, dry_run=dry_run, adopted=adopted)


def _probe(settings: Settings) -> Probe | None:
    """Asks the configured queries of the live generation, and some of its own words, when it is asked to."""
    rules, catalog = settings.consolidation.calibration, Catalog(Path(settings.storage.root))
    if not rules.probes or catalog.pointer().generation is None:
        return None

    def ask_probes() -> list[list[MatchFeatures]]:
        with opened(settings) as searcher, closing(catalog.open_live()) as generation:
            return probed(searcher.search_many, generation, rules, k=settings.retrieval.rerank.depth)

    return ask_probes


def _line(step: str) -> str:
    return f"step {STEPS.index(step) + 1} of {len(STEPS)} · {step}: {_DOING[step]}"


def _outcome_line(summary: Mapping[str, Any]) -> str:
    if "reason" not in summary:
        return f"nothing new since learned version {summary['learned'] or 'none'}"
    version = summary["learned"] or "rehearsal, nothing published"
    return f"learned version {version}: {summary['decision']} ({summary['reason']}); {summary['calibration']}"


if __name__ == "__main__":
    sys.exit(_job.run(consolidate))
