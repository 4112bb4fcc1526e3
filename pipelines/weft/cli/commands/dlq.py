"""`weft dlq`: look at records that could not become events, and send those that can by now once more (FBK-3)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Annotated

import typer

from weft.cli.console.options import Bootstrap, CommonOptions, Limit, command
from weft.cli.console.output import Result, rows
from weft.cli.console.partitions import states
from weft.cli.console.terminal import moment
from weft.feedback.publish.dead_letters import envelope, replayed
from weft.feedback.store.report import PartitionReport
from weft.feedback.store.state import PartitionState
from weft.feedback.store.tables import StoredDeadLetter, dead_letters_in
from weft.runtime.kafka.writer import KafkaPublisher

Reason = Annotated[str | None, typer.Option("--reason", help="Only those with this reason code.")]
Partition = Annotated[int | None, typer.Option("--partition", min=0, help="Only those of this partition.")]

dlq = typer.Typer(no_args_is_help=True, help="Records that could not become events.")

_AT_ONCE = 1_000  # dead letters read from a store at a time


@dlq.command("list")
@command
def list_dead_letters(
    options: CommonOptions, reason: Reason = None, partition: Partition = None, limit: Limit = 100
) -> Result:
    """Dead letters that the updaters keep, by partition and offset; and how many there were by reason."""
    counts: Counter[str] = Counter()
    shown: list[tuple[PartitionReport, StoredDeadLetter]] = []
    for state in states(options.settings(), partition):
        report = state.report()
        counts.update(report.reasons)
        shown += ((report, letter) for letter in islice(_letters(state, reason), limit - len(shown)))
    return rows(
        shown,
        document=lambda row: json.loads(envelope(row[1], row[0].topic, row[0].partition)),
        columns=("partition", "offset", "time", "reason", "bytes", "detail"),
        texts=lambda row: _texts(*row),
        after=[f"{name}: {count:,}" for name, count in sorted(counts.items())] or ["no dead letters"],
    )


def _texts(report: PartitionReport, letter: StoredDeadLetter) -> tuple[str, ...]:
    place = (str(report.partition), str(letter.offset), moment(letter.timestamp))
    return (*place, letter.reason, f"{letter.size:,}", letter.detail)


@dlq.command()
@command
def replay(
    options: CommonOptions, reason: Reason = None, partition: Partition = None, bootstrap: Bootstrap = None
) -> Result:
    """Send dead letters that can be read as events by now to the feedback topic again.

    An event counts once, however often it is sent: its id tells. What still cannot be read, or was kept in part
    only, stays where it is.
    """
    settings = options.settings(bootstrap=bootstrap)
    sent: Counter[str] = Counter()
    left: Counter[str] = Counter()
    with closing(KafkaPublisher(settings.kafka, settings.feedback.topic)) as publisher:
        for state in states(settings, partition):
            for letter in _letters(state, reason):
                replayed_letter = replayed(letter, max_bytes=settings.feedback.limits.event_bytes)
                if replayed_letter is not None:
                    publisher.send(*replayed_letter)
                (left if replayed_letter is None else sent)[letter.reason] += 1
        publisher.flush()
    counts = {"sent": sum(sent.values()), "left": sum(left.values()), "sent_by_reason": sent, "left_by_reason": left}
    return Result([counts])


def _letters(state: PartitionState, reason: str | None) -> Iterator[StoredDeadLetter]:
    offset = 0
    while letters := state.read(dead_letters_in, offset, _AT_ONCE):
        yield from (letter for letter in letters if reason in {None, letter.reason})
        offset = letters[-1].offset + 1
