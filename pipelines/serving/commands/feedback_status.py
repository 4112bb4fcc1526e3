"""`weft feedback status`: what the updaters have been through, and which sources close no loop (FBK-12)."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from pipelines.feedback.fold.names import principal_fingerprint
from pipelines.feedback.fold.sources import SourceActivity
from pipelines.feedback.run.metrics import losses_of, prometheus, samples, standings_of
from pipelines.runtime.clock import system_clock
from pipelines.serving.commands.damaged import damaged
from pipelines.serving.terminal import Conf, Store, cells, moment, root_of, tell
from pipelines.settings import load_settings

feedback = typer.Typer(no_args_is_help=True, help="What became of feedback.")
feedback.add_typer(damaged, name="damaged")


@feedback.command()
def status(
    store: Store = None,
    conf: Conf = [],  # noqa: B006
    principal: Annotated[
        str | None, typer.Option("--principal", help="Only this one: stores keep of principals a fingerprint, no name.")
    ] = None,
    metrics: Annotated[bool, typer.Option("--prometheus", help="Print metrics in Prometheus' text format.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Each source beside all others: rates of events per answer shown, and what is wrong; or metrics of partitions."""
    settings = load_settings(conf)
    root = root_of(store, settings)
    standings, sources = standings_of(root, settings.feedback)
    if principal is not None:
        sources = [
            source
            for source in sources
            if (source.kind, source.name) == ("principal", principal_fingerprint(principal))
        ]
    losses = losses_of(root, settings.feedback)
    measured = samples(root, standings, now=system_clock())
    if metrics:
        sys.stdout.write(prometheus(measured))
    elif as_json:
        values = [{"name": each.name, **dict(each.labels), "value": each.value} for each in measured]
        document = {"sources": [source.as_json() for source in sources], "metrics": values, "losses": losses}
        sys.stdout.write(json.dumps(document, sort_keys=True) + "\n")
    else:
        tell(_table(sources))
        for report in (progress.report for progress in standings):
            if waiting := report.dead_letters_waiting:
                sys.stdout.write(f"partition {report.partition}: {waiting:,} dead letters wait for their topic\n")
        if losses:
            tell(_lost(losses))


def _lost(losses: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("partition", "offset", "records", "reason", "accepted", "by", title="lost unread", box=None)
    for loss in losses:
        place = (str(loss["partition"]), str(loss["offset"]), f"{loss['records']:,}", loss["reason"])
        table.add_row(*cells(*place, moment(loss["accepted_ms"]), loss["accepted_by"]))
    return table


def _table(sources: list[SourceActivity]) -> Table:
    table = Table("kind", "source", "answers", "per answer (others)", "flags", title="sources", box=None)
    for source in sources:
        rates = ", ".join(
            f"{what} {rate:.2g} ({source.expected.get(what, 0.0):.2g})" for what, rate in source.seen.items() if rate
        )
        table.add_row(*cells(source.kind, source.name, f"{source.impressions:,}", rates, "; ".join(source.flags)))
    return table
