"""`weft queries`: what was asked, how it was answered, why it ranked so, and what became of it (EVA-3)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from weft.app.collecting import collected
from weft.app.log_evaluation import read
from weft.app.log_export import export
from weft.cli.console.options import Bootstrap, CommonOptions, command
from weft.cli.console.output import Result, Shown, markup, rows
from weft.cli.console.terminal import plain, table_of, visible
from weft.domain.errors import StoreError
from weft.domain.ids import question_of
from weft.evaluation.queries.reader import LoggedQuery, LoggedResult, read_queries
from weft.learning.observe.verdicts import called_wrong
from weft.runtime.clock import SECONDS_PER_DAY, stamp, system_clock

queries = typer.Typer(no_args_is_help=True, help="What was asked and answered, from the query log.")

_TEXT = 60  # characters of a query in the list
_LOOKED_AT = 10_000  # of the newest, where only some are listed


class QueryOrder(StrEnum):
    """What comes first in a list of queries."""

    NEWEST = "newest"
    PROBABILITY = "probability"


@queries.command("list")
@command
def list_queries(
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many, the newest.")] = 20,
    days: Annotated[float, typer.Option("--days", min=0.0, help="Asked within so many days.")] = 7.0,
    *,
    gap: Annotated[bool, typer.Option("--gap", help="Only those that nothing answered.")] = False,
    blamed: Annotated[bool, typer.Option("--blamed", help="Only those with a result that was called wrong.")] = False,
    sort: Annotated[QueryOrder, typer.Option("--sort", help="What comes first.")] = QueryOrder.NEWEST,
    options: CommonOptions,
) -> Result:
    """Logged queries: the newest, or those that went wrong."""
    _, catalog = options.opened()
    since = system_clock() - days * SECONDS_PER_DAY
    wrong = called_wrong(catalog.live.evidence().usage) if blamed else set()
    most = limit if sort is QueryOrder.NEWEST and not gap and not blamed else _LOOKED_AT
    logged = [
        query
        for query in read_queries(catalog.root, limit=most, since=since)
        if (not gap or query.facts["gap"]) and (not blamed or _is_blamed(query, wrong))
    ]
    if sort is QueryOrder.PROBABILITY:
        logged.sort(key=_probability)
    return rows(
        logged[:limit],
        document=brief,
        columns=("query id", "asked", "text", "results", "p(good)", "channels", "ms", "outcomes"),
        texts=_texts,
    )


def _is_blamed(query: LoggedQuery, wrong: Collection[tuple[str, str]]) -> bool:
    """Whether a collected outcome speaks against it, or somebody called one of its results wrong for its question."""
    asked = question_of(query.text)
    return any(each.value < 0.0 for each in query.outcomes) or any(
        (result.content_hash, asked) in wrong for result in query.results
    )


def _probability(query: LoggedQuery) -> float:
    """P(good) of its best result, what is not known last."""
    probabilities = [each.facts["probability"] for each in query.results if each.facts["probability"] is not None]
    return max(probabilities, default=math.inf)


def _texts(query: LoggedQuery) -> tuple[str, ...]:
    summary = brief(query)
    outcomes = ", ".join(f"{count} {kind}" for kind, count in summary["outcomes"].items())
    best = "" if math.isinf(probability := _probability(query)) else f"{probability:.2f}"
    facts = (query.query_id, stamp(query.at), query.text[:_TEXT], str(len(query.results)), best)
    return (*facts, ", ".join(query.heads), f"{summary['ms']:.0f}", outcomes)


@queries.command()
@command
def show(query_id: Annotated[str, typer.Argument(help="Id of a logged query.")], options: CommonOptions) -> Result:
    """One query: what each channel found, what every score was made of, and what became of the results."""
    _, catalog = options.opened()
    logged = read_queries(catalog.root, limit=1, query_id=query_id)
    if not logged:
        raise StoreError(f"expected a logged query, found no {query_id!r}; list them with `weft queries list`")
    return Result([whole(logged[0])], _page(logged[0]))


def _page(query: LoggedQuery) -> Iterator[Shown]:
    facts = query.facts
    yield markup(f"[bold]{plain(query.text)}[/]")
    how = (
        f"asked {stamp(query.at)} · intent {query.intent} · {facts['fusion']} · generation {facts['generation']} · "
        f"learned {facts['learned']}{' · explored' if query.explored else ''}"
    )
    yield markup(f"[dim]{plain(how)}[/]")
    stages = ", ".join(f"{stage['name']} {stage['value']:.1f}" for stage in facts["timings_ms"])
    yield markup(f"[dim]{plain(f'milliseconds: {stages}')}[/]")
    for failed in facts["failed_channels"]:
        yield markup(f"[yellow]without {plain(failed['channel'])}: {plain(failed['reason'])}[/]")
    yield _channels(query)
    for result in query.results:
        yield f"\n{visible(_headline(query, result))}"
        yield _why(result)


@queries.command()
@command
def collect(options: CommonOptions, bootstrap: Bootstrap = None) -> Result:
    """Read new feedback from the topic and keep it beside the queries it is about."""
    settings, catalog = options.opened(bootstrap=bootstrap)
    feedback = collected(catalog.root, settings)
    return Result([{"records": feedback.records, "outcomes": feedback.outcomes}])


@queries.command("export")
@command
def export_queries(
    folder: Annotated[Path, typer.Argument(help="Where it is written; files of the same names are replaced.")],
    options: CommonOptions,
    days: Annotated[float, typer.Option("--days", min=0.0, help="Asked within so many days.")] = 30.0,
) -> Result:
    """Write judgements in BEIR's layout, and clicks by rank, for other tools.

    `weft evaluate --dataset FOLDER --split log` reads it as well. Documents are contents, by their hashes. Questions
    are what people typed: look at them before the folder leaves the house.
    """
    settings, _ = options.opened()
    return Result([export(read(settings, days=days, judgements=None, ask=0), folder)])


def brief(query: LoggedQuery) -> dict[str, Any]:
    """A query in a line."""
    return {
        "query_id": query.query_id,
        "asked_at": query.at,
        "text": query.text,
        "intent": query.intent,
        "explored": query.explored,
        "results": len(query.results),
        "channels": sorted(query.heads),
        "ms": sum(stage["value"] for stage in query.facts["timings_ms"]),
        "outcomes": dict(sorted(Counter(seen.kind for seen in query.outcomes).items())),
    }


def whole(query: LoggedQuery) -> dict[str, Any]:
    """A query with everything that is known of it."""
    outcomes = [
        {"at": seen.at, "kind": seen.kind, "content_hash": seen.content_hash, "value": seen.value}
        for seen in query.outcomes
    ]
    heads = {
        channel: [{"content_hash": hit.content_hash, "score": hit.score} for hit in head]
        for channel, head in query.heads.items()
    }
    results = [result.facts for result in query.results]
    return {**query.facts, "asked_at": query.at, "heads": heads, "results": results, "outcomes": outcomes}


def _channels(query: LoggedQuery) -> Table:
    shown = {result.content_hash: result.rank for result in query.results}
    lines = [
        (channel, ", ".join(f"#{hit.rank} → {shown.get(hit.content_hash, 'not shown')}" for hit in head[:10]))
        for channel, head in query.heads.items()
    ]
    return table_of(("channel", "its best, and where they ended"), lines)


def _headline(query: LoggedQuery, result: LoggedResult) -> str:
    facts = result.facts
    place = facts["uris"][0] if facts["uris"] else result.content_hash
    seen = [seen for seen in query.outcomes if seen.content_hash == result.content_hash]
    became = ", ".join(f"{one.kind} {one.value:+.1f}" for one in seen)
    sure = "" if facts["above_next"] is None else f" · above the next {facts['above_next']:.2f}"
    return f"{result.rank}  {result.score:.4f}  {place}{sure}{' · ' + became if became else ''}"


def _why(result: LoggedResult) -> Table:
    lines = [
        (part["name"].replace("_", " "), f"{part['value']:.4f}", f"{part['weight']:.3f}", f"{part['amount']:.4f}")
        for part in result.facts["contributions"]
    ]
    return table_of(("", "value", "weight", "adds"), lines)
