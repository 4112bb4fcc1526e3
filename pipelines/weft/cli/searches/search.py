"""Answer a query, or a file of queries, from what is live in the store.

    weft search "how is a checkpoint written" --store DIR [-k N] [--explain] [--json]
    weft search --queries FILE --store DIR --json

A query has three operators. Texts with a "phrase in quotation marks" or with a +word rank before others, and texts with
a -word are left out. If no text has what an operator asks for, the answer says so. All else is words. A file of queries
holds one a line: its text, or, in a file named `.jsonl`, a JSON object with `_id` and `text`; thousands are spread over
processes (`retrieval.spread`). A line that is no query is told and counted (`refused` in JSON), and the others are
answered; a file without a single query is refused. With `--bootstrap` what was shown goes to the feedback topic, so
that feedback can be given on the query id that is printed; with `--session` under that session's id, whose own learning
ranks it, too. The store remembers what a session asked and was given from one call to the next: a change of topic is
noticed, and `--repeats` says what becomes of results given before. Answers are kept in the query log (`weft queries
list`), unless `--set query_log.sample=0`. Where `weft serve` serves the store, it is asked; what says something of
settings, and files of queries, are answered without it. `--server URL`, with the variable WEFT_TOKEN, asks another one,
`--server none` does without. Exit codes: 0 answered, 1, 75 or 78 with a reason (nothing published, damaged store; no
broker, after the answer), 2 usage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from weft.cli.console.options import ServedOptions, command, run_job
from weft.cli.console.output import Result, Shown, dim, markup
from weft.cli.console.terminal import note, plain, warn
from weft.cli.searches.passages import code, opened_here, stands_by_line
from weft.cli.searches.requests import new_id, warn_of_depth
from weft.domain.chunks import ChunkLevel, Context, Role
from weft.domain.documents import Domain
from weft.domain.errors import ServiceError
from weft.domain.ids import SessionId
from weft.domain.ranking import (
    ANY,
    MOST_RESULTS,
    QUERY_BYTES,
    QUERY_TERMS,
    Answer,
    Channel,
    FusionMode,
    Query,
    RankedResult,
    Repeats,
    ResultUnit,
)
from weft.domain.reasons import warns
from weft.retrieval.answer.trace import (
    compared,
    context_lines,
    excerpt,
    explained,
    gap_line,
    hand_off_line,
    line_in_document,
    snippet,
    understanding_line,
)
from weft.runtime.process import speaker_of

_INDENT = 5  # columns below the rank of a result
LOOKED_FOR = 'What to look for; "a phrase" and +word stand first, -word leaves out; all else is words.'


@command
def search(
    query: Annotated[str | None, typer.Argument(help=LOOKED_FOR)] = None,
    *,
    options: ServedOptions,
    queries: Annotated[
        Path | None, typer.Option("--queries", help="File of queries, one a line; .jsonl: JSON objects.")
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", min=1, max=1000, help="Results; default what a query is worth.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what every score is made of.")] = False,
    why: Annotated[
        tuple[int, int] | None, typer.Option("--why", help="Two ranks, such as 1 2: what sets the one above the other.")
    ] = None,
    fusion: Annotated[FusionMode | None, typer.Option("--fusion", help="Default retrieval.fusion.")] = None,
    channels: Annotated[str | None, typer.Option("--channels", help="Only these, such as lexical,dense.")] = None,
    unit: Annotated[ResultUnit | None, typer.Option("--unit", help="One result per document, or per chunk.")] = None,
    domain: Annotated[
        Domain | None, typer.Option("--domain", help="Rank by its weights; default each result's own.")
    ] = None,
    level: Annotated[ChunkLevel | None, typer.Option("--level", help="Only passages of this level.")] = None,
    intent: Annotated[
        str, typer.Option("--intent", help="What is asked for, such as decision; default read out of the query.")
    ] = ANY,
    model: Annotated[str, typer.Option("--model", help="Rank by what was learned for it; * for all.")] = ANY,
    agent: Annotated[str, typer.Option("--agent", help="Rank by what was learned for it; * for all.")] = ANY,
    session: Annotated[
        str | None, typer.Option("--session", help="Whose queries these are, and whose feedback; default each alone.")
    ] = None,
    principal: Annotated[
        str | None, typer.Option("--principal", help="Who asks; default the name you are logged in by.")
    ] = None,
    repeats: Annotated[
        Repeats, typer.Option("--repeats", help="What becomes of results that the session was given before.")
    ] = Repeats.KEEP,
    explore: Annotated[
        bool, typer.Option("--explore", help="Draw the weights from their posterior, to try others.")
    ] = False,
    context: Annotated[bool, typer.Option("--context", help="Add what surrounds each result.")] = False,
    turn: Annotated[
        int | None, typer.Option("--turn", min=1, help="Of the conversation with --model: says when to hand it over.")
    ] = None,
    bootstrap: Annotated[str | None, typer.Option("--bootstrap", help="Broker that is told what was shown.")] = None,
) -> Result:
    """Search what is live in the store."""
    _require_usable(query, queries, repeats, session)
    wanted, refused = [(new_id(), query or "")], list[str]()
    if queries is not None:
        from weft.cli.searches import here  # noqa: PLC0415  1 s, which who asks a service does without

        wanted, refused = here.queries_of(queries)
    requests = [
        Query(
            text=text,
            query_id=query_id,
            k=k or MOST_RESULTS,
            adaptive=k is None,
            domain=domain,
            filters={} if level is None else {"level": level.value},
            intent=intent,
            model=model,
            agent=agent,
            session_id=SessionId(session) if session else None,
            principal=speaker_of(principal),
            repeats=repeats,
            explore=explore,
            context=context,
            turn=turn,
        )
        for query_id, text in wanted
    ]
    own = {"--fusion": fusion, "--channels": channels, "--unit": unit, "--queries": queries, "--bootstrap": bootstrap}
    answers, then = _served(options, own, requests), _nothing
    if answers is None:
        from weft.cli.searches import here  # noqa: PLC0415  1 s, which who asks a service does without

        settings = options.settings(*_chosen(fusion, channels, unit), bootstrap=bootstrap)
        answers = here.searched(settings, requests)
        # Last of all: where there is no broker, what was found is seen all the same.
        then = partial(here.publish, settings, answers) if bootstrap is not None else _nothing
    if refused:
        of_all = f"{len(refused)} of {len(refused) + len(answers)}"
        warn(f"{of_all} queries were not answered: mend their lines and ask these again")
    return Result(
        _records(answers, None if queries is None else refused),
        (each for answer in answers for each in shown(answer, explain=explain, why=why)),
        then=then,
    )


def _nothing() -> None:
    """Nothing is left to do."""


def _served(options: ServedOptions, own: Mapping[str, object], requests: Sequence[Query]) -> Sequence[Answer] | None:
    """What a running service answers; None where none is asked, or the store's own one cannot."""
    if (client := options.service(own)) is None:
        return None
    with client:
        try:
            answered = client.answers(requests)
        except ServiceError as error:
            if options.server is not None:
                raise
            note(f"searched without the service of this store: {error}")
            return None
    warn_of_depth(requests, answered.depth)
    return answered.answers


def _records(answers: Sequence[Answer], refused: Sequence[str] | None) -> Iterator[object]:
    """The answer, or those to a file of queries, with what is wrong with the lines that are none."""
    rendered = [answer.to_dict() for answer in answers]
    yield rendered[0] if refused is None else {"answers": rendered, "refused": refused}


def _require_usable(query: str | None, queries: Path | None, repeats: Repeats, session: str | None) -> None:
    if (query is None) == (queries is None):
        raise typer.BadParameter("give either a QUERY or --queries FILE")
    if query is not None and not query.strip():
        raise typer.BadParameter("expected a query with words in it, found none")
    if repeats is not Repeats.KEEP and session is None:
        raise typer.BadParameter("--repeats is about what a session was given: say which with --session ID")


def shown(answer: Answer, *, explain: bool, why: tuple[int, int] | None = None) -> Iterator[Shown]:
    """An answer for people; what is wrong with it is said on stderr."""
    yield markup(f"[bold]{plain(answer.query.text)}[/]")
    if answer.understanding is not None:
        yield dim(understanding_line(answer.understanding))
    for left_out, failure in (*answer.failed_channels.items(), *answer.failed_shards.items()):
        warn(f"without {left_out}: {failure}")
    if answer.truncated:
        warn(f"the query was cut: of one, {QUERY_TERMS} terms of {QUERY_BYTES} bytes are read")
    if not answer.results:
        yield dim("nothing found")
    if answer.gap is not None:
        yield markup(f"[yellow]{plain(gap_line(answer.gap))}[/]")
    if answer.hand_off is not None:
        yield markup(f"[{'yellow' if answer.hand_off.due else 'dim'}]{plain(hand_off_line(answer.hand_off))}[/]")
    if answer.uncalibrated and explain:
        yield dim(f"no probabilities: {answer.uncalibrated}")
    for result in answer.results:
        yield from _result(result, answer.query.text, explain=explain)
    if why is not None:
        yield _compared(answer, *why)
    how = (
        f"query {answer.query.query_id} · {answer.fusion} · generation {answer.generation} · "
        f"learned {answer.learned} · {sum(answer.timings_ms.values()):.0f} ms"
    )
    yield dim(how)
    yield ""


def _result(result: RankedResult, query: str, *, explain: bool) -> Iterator[Shown]:
    name = " › ".join(_names(result))
    around = excerpt(result.text, query)
    place = f"{opened_here(result.uris[0])}:{line_in_document(result, around.matched)}"
    sure = "  [yellow]doubtful[/]" if result.doubtful else ""
    yield markup(
        f"[bold]{result.rank:>3}[/]  [cyan]{result.score:.4f}[/]{sure}  {plain(place)}  [magenta]{plain(name)}[/]"
    )
    if result.domain is Domain.CODE or stands_by_line(around.lines):
        yield code(around.lines, result.uris[0], indent=_INDENT)
    else:
        yield _below(dim(snippet(result.text, query)))
    for uri in result.uris[1:]:
        yield dim(f"     also {uri}")
    for uri in result.alike:
        yield dim(f"     much the same {uri}")
    for each in result.relations:
        yield markup(f"     [{'yellow' if warns(each) else 'dim'}]{plain(each.says)}[/]")
    if result.context is not None:
        yield from _context(result.context, query)
    if explain:
        yield Padding(explained(result), (0, 0, 1, 5))
    elif result.past is not None:
        yield _below(markup(f"[green]{plain(result.why)}[/]"))


def _context(context: Context, query: str) -> Iterator[Shown]:
    """What surrounds a result, in the order in which it is read; the result itself is named alone."""
    first, *_ = lines = context_lines(context)
    yield dim(f"     {first}")
    for part, line in zip(context.parts, lines[1:], strict=False):
        yield dim(f"     {line}")
        if part.role is not Role.CHUNK:
            yield code(excerpt(part.text, query).lines, part.uri, indent=2 * _INDENT)
    yield from (dim(f"     {line}") for line in lines[1 + len(context.parts) :])


def _below(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, _INDENT))


def _names(result: RankedResult) -> Iterator[str]:
    """What its document is called, where its headings do not say so, and what it is called in there."""
    if result.title and result.title not in result.heading_path:
        yield result.title
    yield from (result.symbol,) if result.symbol else result.heading_path


def _compared(answer: Answer, one: int, other: int) -> RenderableType:
    ranked = {result.rank: result for result in answer.results}
    if missing := [rank for rank in (one, other) if rank not in ranked]:
        raise typer.BadParameter(f"--why: expected ranks from 1 to {len(ranked)}, found {missing[0]}")
    return compared(ranked[one], ranked[other])


def _chosen(fusion: FusionMode | None, channels: str | None, unit: ResultUnit | None) -> list[str]:
    named = None if channels is None else json.dumps(channel_names(channels))
    choices = {"fusion": fusion and fusion.value, "channels": named, "unit": unit and unit.value}
    return [f"retrieval.{key}={value}" for key, value in choices.items() if value is not None]


def channel_names(text: str) -> list[str]:
    """Channels named in a list such as "lexical,dense"."""
    names = [name.strip() for name in text.split(",")]
    if unknown := sorted(set(names) - set(Channel)):
        raise typer.BadParameter(f"expected channels among {[channel.value for channel in Channel]}, found {unknown}")
    return names


main = partial(run_job, search)
"""Run the job on arguments."""
