"""`weft triggers`: words that contents are found by since people picked them, and taking one away (RET-17)."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from weft.app.producer import acknowledged_producer
from weft.app.views.beliefs import content_names
from weft.catalog.catalog import Catalog
from weft.cli.console.options import Bootstrap, CommonOptions, Limit, Principal, command
from weft.cli.console.output import Result, rows
from weft.domain.errors import StoreError
from weft.learning.beliefs import read_beliefs
from weft.learning.observe.triggers import LearnedTrigger
from weft.runtime.clock import SECONDS_PER_DAY, stamp, system_clock
from weft.runtime.process import speaker_of
from weft.settings import Settings

triggers = typer.Typer(no_args_is_help=True, help="Words that contents are found by since people picked them.")


@triggers.command("list")
@command
def list_triggers(options: CommonOptions, limit: Limit = 100) -> Result:
    """Every learned trigger, in force or on trial, and what it leads to; those that most people agree on first."""
    settings, catalog = options.opened()
    learned = sorted(_learned(catalog, settings), key=lambda each: (each.on_trial, -each.strength, each.term))
    with closing(catalog.open_live(searched=False)) as generation:
        names = content_names(generation, [each.content_hash for each in learned[:limit]])
    return rows(
        list(zip(learned, names, strict=False)),
        document=lambda row: {
            "term": row[0].term,
            "content_hash": row[0].content_hash,
            "people": row[0].strength,
            "in_force": not row[0].on_trial,
            "first_day": row[0].first,
            "last_day": row[0].last,
            "name": row[1],
        },
        columns=("word", "content", "people", "", "first", "last", "leads to"),
        texts=lambda row: _texts(*row),
        after=[f"{len(learned):,} triggers"],
    )


@triggers.command()
@command
def remove(
    term: Annotated[str, typer.Argument(help="The word.")],
    content: Annotated[str, typer.Argument(help="Hash of the content that it leads to, or how that begins.")],
    options: CommonOptions,
    bootstrap: Bootstrap = None,
    principal: Principal = None,
) -> Result:
    """Find a content by a word no more, whoever picks it again; other words and other contents stay as they are.

    The wish travels through the log like everything else, so that a store which is built anew from the log keeps it.
    """
    settings, catalog = options.opened(bootstrap=bootstrap)
    trigger = _one(_learned(catalog, settings), term, content)
    with acknowledged_producer(settings) as producer:
        event_id = producer.trigger_removal(trigger.content_hash, trigger.term, principal=speaker_of(principal))
    return Result([{"term": trigger.term, "content_hash": trigger.content_hash, "event_id": event_id}])


def _learned(catalog: Catalog, settings: Settings) -> list[LearnedTrigger]:
    return read_beliefs(settings.priors, catalog.live.evidence(), now=system_clock()).triggers.every()


def _one(learned: list[LearnedTrigger], term: str, content: str) -> LearnedTrigger:
    """The trigger of a word to a content."""
    meant = [each for each in learned if each.term == term and each.content_hash.startswith(content)]
    if len(meant) != 1:
        count = f"{len(meant)} contents" if meant else "none"
        raise StoreError(
            f"expected one content whose hash begins with {content!r} and that {term!r} leads to, found {count}; list "
            "them with `weft triggers list --json`"
        )
    return meant[0]


def _texts(trigger: LearnedTrigger, name: str) -> tuple[str, ...]:
    days = (stamp(day * SECONDS_PER_DAY)[:10] for day in (trigger.first, trigger.last))
    phase = "on trial" if trigger.on_trial else "in force"
    return trigger.term, trigger.content_hash[:12], f"{trigger.strength:g}", phase, *days, name
