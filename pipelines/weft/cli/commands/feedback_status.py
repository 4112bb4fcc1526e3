"""`weft feedback`: what updaters have been through, sources that close no loop (FBK-12), feedback that finds no answer,
states set aside (OPS-15).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from weft.cli.console.options import CommonOptions, command
from weft.cli.console.output import Result, Shown, rows
from weft.cli.console.terminal import moment, table_of
from weft.domain.errors import StoreError
from weft.domain.ids import principal_fingerprint
from weft.feedback.events.codec import json_schema
from weft.feedback.run.metrics import (
    SourceActivity,
    UnmetQuery,
    losses_of,
    partition_progress,
    prometheus,
    samples,
    unmet_queries,
)
from weft.feedback.run.partitions import UPDATERS, partition_folder, states_in
from weft.feedback.store.checkpoints import damaged_in, remove_damaged
from weft.feedback.store.tables import ahead_in
from weft.runtime.clock import SECONDS_PER_DAY, day_of, stamp, system_clock
from weft.settings import require_store

_LOST = ("partition", "offset", "records", "reason", "accepted", "by")
_SOURCES = ("kind", "source", "answers", "per answer (others)", "flags")
_WAITING = ("session", "query", "events", "since", "what to do")
_HOUR_S = 3600.0
_DATE = len("2026-11-29")
damaged = typer.Typer(no_args_is_help=True, help="Damaged states that updaters set aside; no run removes them.")


class _DamagedState(NamedTuple):
    partition: int
    folder: str
    bytes: int
    set_aside_at: float


@damaged.command("list")
@command
def list_damaged(options: CommonOptions) -> Result:
    """Every state that was set aside, by partition, oldest first."""
    root = require_store(options.settings())
    return rows(
        [
            _DamagedState(partition, str(folder), _bytes(folder), folder.stat().st_mtime)
            for partition in _partitions(root)
            for folder in damaged_in(partition_folder(root, partition))
        ],
        document=_DamagedState._asdict,
        columns=("partition", "folder", "bytes", "set aside"),
        texts=lambda row: (str(row.partition), row.folder, f"{row.bytes:,}", stamp(row.set_aside_at)),
    )


@damaged.command()
@command
def remove(
    partition: Annotated[int, typer.Argument(min=0, help="Number of the partition.")], options: CommonOptions
) -> Result:
    """Remove all damaged states of a partition, for good."""
    root = require_store(options.settings())
    if not (count := remove_damaged(partition_folder(root, partition))):
        raise StoreError(
            f"{root}: expected damaged states of partition {partition}, found none; `weft feedback damaged list` names"
            " those that there are"
        )
    return Result([{"partition": partition, "removed": count}], [f"removed {count}"])


def _partitions(root: Path) -> list[int]:
    return sorted(int(folder.name) for folder in (root / UPDATERS).glob("*") if folder.name.isdecimal())


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


feedback = typer.Typer(no_args_is_help=True, help="What became of feedback.")
feedback.add_typer(damaged, name="damaged")


@feedback.command()
@command
def status(
    options: CommonOptions,
    principal: Annotated[
        str | None, typer.Option("--principal", help="Only this one: stores keep of principals a fingerprint, no name.")
    ] = None,
    metrics: Annotated[bool, typer.Option("--prometheus", help="Print metrics in Prometheus' text format.")] = False,
) -> Result:
    """Each source beside all others: rates of events per answer shown, and what is wrong; or metrics of partitions."""
    settings = options.settings()
    root = require_store(settings)
    all_progress, sources = partition_progress(root, settings.feedback)
    if principal is not None:
        wanted = ("principal", principal_fingerprint(principal))
        sources = [source for source in sources if (source.kind, source.name) == wanted]
    losses = losses_of(root, settings.feedback)
    now = system_clock()
    ahead = sum((state.read(ahead_in, day_of(now)) for state in states_in(root, settings.feedback)), Counter[int]())
    measured = samples(root, all_progress, now=now)
    values = [{"name": each.name, **dict(each.labels), "value": each.value} for each in measured]
    waiting_days = {stamp(day * SECONDS_PER_DAY)[:_DATE]: count for day, count in sorted(ahead.items())}
    waiting, unmet = unmet_queries(root, settings.feedback)
    reports = [progress.report for progress in all_progress]
    unjoined = sum(report.unjoined for report in reports)
    reasons = sum((Counter(report.reasons) for report in reports), Counter[str]())
    document = {
        "sources": [asdict(source) for source in sources],
        "metrics": values,
        "losses": losses,
        "ahead": waiting_days,
        "waiting": {
            "events": sum(each.events for each in waiting),
            "queries": len(waiting),
            "named": [{**each.waiting._asdict(), "shown_in": each.shown_in, "advice": each.advice} for each in unmet],
        },
        "unjoined": unjoined,
        "dead_letters": dict(sorted(reasons.items())),
    }

    def shown() -> Iterator[Shown]:
        yield table_of(_SOURCES, map(_source, sources), title="sources")
        for report in reports:
            if report.dead_letters_waiting:
                yield f"partition {report.partition}: {report.dead_letters_waiting:,} dead letters wait for their topic"
        if reasons:
            counts = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
            yield f"dead letters: {counts}; `weft dlq list` says what was wrong with each"
        if waiting:
            yield table_of(_WAITING, map(_unmet, unmet), title="feedback without an answer")
            events, hours = sum(each.events for each in waiting), settings.feedback.time.window_s / _HOUR_S
            more = f" (the first {len(unmet)} are named)" if len(waiting) > len(unmet) else ""
            about = f"{events:,} events on {len(waiting):,} queries{more}"
            yield f"{about} count for nothing until these are shown in their session, within {hours:g} hours"
        if unjoined:
            yield f"{unjoined:,} events waited so in vain, or were about results that were not shown"
        for day, count in waiting_days.items():
            yield f"{count:,} pieces of evidence wait for {day}: this clock says {stamp(now)}; set it if it is behind"
        if losses:
            yield table_of(_LOST, map(_lost, losses), title="lost unread")

    return Result([document], [prometheus(measured).rstrip("\n")] if metrics else shown())


@feedback.command()
@command
def schema() -> Result:
    """The JSON Schema of feedback events, for producers in any language."""
    return Result([json_schema()], [json.dumps(json_schema(), indent=2)])


def _lost(loss: Mapping[str, Any]) -> tuple[str, ...]:
    place = (str(loss["partition"]), str(loss["offset"]), f"{loss['records']:,}", loss["reason"])
    return (*place, moment(loss["accepted_ms"]), loss["accepted_by"])


def _unmet(unmet: UnmetQuery) -> tuple[str, ...]:
    query = unmet.waiting
    return (query.session_id, query.query_id, f"{query.events:,}", moment(query.since_ms), unmet.advice)


def _source(source: SourceActivity) -> tuple[str, ...]:
    rates = ", ".join(
        f"{what} {rate:.2g} ({source.expected.get(what, 0.0):.2g})" for what, rate in source.seen.items() if rate
    )
    return (source.kind, source.name, f"{source.impressions:,}", rates, "; ".join(source.flags))
