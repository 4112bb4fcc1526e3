"""`weft graph`: what has to do with what, the way between two things, and declaring a relation (GRA-1, GRA-3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Annotated, Any

import typer

from weft.app.views.graph_view import Facts, GraphView
from weft.cli.console.options import CommonOptions, command
from weft.cli.console.output import Result, Shown, markup
from weft.cli.console.terminal import visible
from weft.domain.links import CAUSAL
from weft.retrieval.snapshot.relations import named_relation
from weft.runtime.clock import system_clock

graph = typer.Typer(no_args_is_help=True, help="What has to do with what: relations, links, folders and entities.")

_SHOWN = 40  # lines of each kind that people are shown; --json has all


@graph.command()
@command
def show(
    name: Annotated[str, typer.Argument(help="URI or path of a document or folder, hash of a content, or an entity.")],
    options: CommonOptions,
) -> Result:
    """What a document, a part of it, a folder, a content or an entity has to do with others."""
    with closing(_opened(options)) as opened:
        facts = opened.facts(name)
    return Result([facts], _page(facts))


@graph.command()
@command
def path(
    start: Annotated[str, typer.Argument(metavar="A", help="As in `weft graph show`.")],
    end: Annotated[str, typer.Argument(metavar="B", help="As in `weft graph show`.")],
    options: CommonOptions,
) -> Result:
    """The way of fewest steps from one thing to another, whichever way its edges lead."""
    with closing(_opened(options)) as opened:
        steps = opened.steps(start, end)
    shown = (f"{each['here']}  {_arrow(each)}  {each['there']}" for each in steps)
    return Result([{"from": start, "to": end, "steps": steps}], shown if steps else ["no way leads there"])


def _arrow(step: Facts) -> str:
    return f"─{step['kind']}→" if step["forward"] else f"←{step['kind']}─"


@graph.command()
@command
def declare(
    start: Annotated[str, typer.Argument(metavar="A", help="URI or path of a document, or PATH#heading of a part.")],
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(CAUSAL)}.")],
    end: Annotated[str, typer.Argument(metavar="B", help="The document or part that it leads to.")],
    options: CommonOptions,
    *,
    retract: Annotated[bool, typer.Option("--retract", help="Take it back; what documents declare stays.")] = False,
) -> Result:
    """Declare that A supersedes, contradicts, supports … B; searches know within a second, without indexing anew."""
    _, catalog = options.opened()
    with closing(catalog.open_live()) as generation:
        try:
            relation = named_relation(generation.chunks, start, kind, end, at=system_clock())
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
    (catalog.retract if retract else catalog.declare)(relation)
    facts = {"uri": relation.uri, "kind": kind, "target": relation.target, "retracted": retract}
    return Result([facts], [f"{relation.uri} {kind} {relation.target}"])


def _opened(options: CommonOptions) -> GraphView:
    settings, catalog = options.opened()
    return GraphView.of(catalog, settings)


def _page(facts: Facts) -> Iterator[Shown]:
    """Facts for people: plain ones in a line each, lists below their names."""
    for name, value in facts.items():
        if not isinstance(value, list):
            yield f"{name.replace('_', ' ')}  {value}"
            continue
        yield markup(f"[bold]{name.replace('_', ' ')}[/]  {len(value)}")
        yield from (f"  {visible(_line(each))}" for each in value[:_SHOWN])
        if len(value) > _SHOWN:
            yield markup(f"  [dim]{len(value) - _SHOWN} more with --json[/]")


def _line(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    if "says" in value:
        return f"{value['says']} ({value['source']})"
    if "direction" in value:
        arrow = "→" if value["direction"] == "out" else "←"
        return f"{arrow} {value['kind']} {value['name']} ({value['confidence']:.2f}, {value['source']})"
    return ", ".join(f"{name} {one}" for name, one in value.items() if not isinstance(one, list))
