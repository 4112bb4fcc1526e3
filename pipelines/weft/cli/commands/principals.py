"""`weft principals`: what somebody said and what it moved, and taking it out again (LRN-17a)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from weft.app.principals import (
    PrincipalActivity,
    activity_of,
    erase,
    everybody,
    lasting_of,
    moved_by,
    principal_document,
    require_in_force,
    verdicts_by_content,
    words_of,
)
from weft.app.producer import acknowledged_producer
from weft.cli.console.options import Bootstrap, CommonOptions, Limit, command
from weft.cli.console.output import Result, Shown, rows
from weft.cli.console.terminal import note, table_of
from weft.learning.observe.verdicts import VERDICT, VerdictBin
from weft.learning.reading import BeliefChange
from weft.runtime.pages import number

Name = Annotated[str, typer.Argument(help="The principal, as events name it.")]

_PHASE, _CORRECTION = "session", "correction"
_LOOKED_AT = 10_000  # logged queries, the newest, that name who asked
_HASH = 12  # characters of a hash that are shown
_CONTENTS = ("content", "question", "what", "observations")
_BELIEFS = ("family", "scope", "parameter", "without", "with", "change")

principals = typer.Typer(no_args_is_help=True, help="Who said what, what it moved, and taking it out again.")


@principals.command("list")
@command
def list_principals(options: CommonOptions, limit: Limit = 100) -> Result:
    """Who said something, the most first; by name as far as sessions and the query log name them."""
    listed = sorted(
        everybody(options.settings()), key=lambda each: (-sum(each.events.values()), each.name, each.fingerprint)
    )
    return rows(
        listed[:limit],
        document=asdict,
        columns=("principal", "events", "right", "wrong", "history"),
        texts=lambda each: (
            each.name or f"fingerprint {each.fingerprint}",
            f"{sum(each.events.values()):,}",
            f"{each.right:,}",
            f"{each.wrong:,}",
            "" if not each.right + each.wrong else "of one day" if each.new else "of several days",
        ),
        after=[f"{len(listed):,} principals"],
    )


@principals.command()
@command
def show(principal: Name, options: CommonOptions) -> Result:
    """What a principal said, the results and beliefs that it moved, and what of it can be taken out."""
    settings, catalog = options.opened()
    words = words_of(settings, principal)
    changes = list(moved_by(settings.priors, catalog.live.evidence(), words))
    return Result([principal_document(principal, words, changes)], _page(principal, words, changes))


def _page(principal: str, words: PrincipalActivity, changes: Sequence[BeliefChange]) -> Iterator[Shown]:
    events = ", ".join(f"{kind} {count:,}" for kind, count in sorted(words.events.items()))
    yield f"{principal}: {events}"
    yield table_of(_CONTENTS, map(_content_texts, verdicts_by_content(words)), title="contents")
    if changes:
        yield table_of(_BELIEFS, map(_belief_texts, changes), title="beliefs, with and without it")
    yield f"{len(words.sessions):,} sessions that it started"
    yield lasting_of(words)


@principals.command()
@command
def unlearn(principal: Name, options: CommonOptions, bootstrap: Bootstrap = None) -> Result:
    """Take out all that a store holds of a principal, and say what remains where, and until when.

    At once: its questions, what it did about answers and its judgements, in the logs. When the updaters read of it:
    its name, its questions, what it said of contents, and its sessions of the last ninety days, exactly. What it said
    outside of sessions that sent `start` has moved weights, which stay: nobody's share of these is told apart.
    """
    settings, catalog = options.opened(bootstrap=bootstrap)
    words = activity_of(settings, principal)
    event_ids = []
    if words.events:
        require_in_force(catalog)
        with acknowledged_producer(settings) as producer:
            event_ids = producer.unlearn(principal, partitions=words.partitions)
    erased = erase(settings, principal, words)
    return Result([erased.to_dict(event_ids)], then=lambda: _say(erased.erased, erased.remains))


def _say(erased: Mapping[str, int], remains: Mapping[str, str]) -> None:
    note(f"erased from the logs: {', '.join(f'{count:,} {what}' for what, count in erased.items())}")
    for where, until in remains.items():
        note(f"remains in {where}: {until}")


def _content_texts(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["place"] or row["content_hash"][:_HASH],
        row["text"] or row["question"],
        _word(row["what"]) + ("" if row["holds"] else ", until it said otherwise"),
        f"{row['observations']:.2f}",
    )


def _word(what: str) -> str:
    """What was said, in a word."""
    return {True: "right", False: "wrong"}[VerdictBin.of(what).good] if what.startswith(VERDICT) else what


def _belief_texts(change: BeliefChange) -> tuple[str, ...]:
    sides = (number(None if each is None else each.mean) for each in (change.before, change.after))
    return (*change.key, *sides, number(change.change, sign=True))
