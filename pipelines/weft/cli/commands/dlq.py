"""`weft dlq`: look at records that could not become events, and send those that can by now once more (FBK-3)."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Annotated

import typer

from weft.cli.commands.partitions import states
from weft.cli.console.options import AsJson, Bootstrap, CommonOptions, store_command
from weft.cli.console.terminal import moment, print_report, table_of
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
@store_command
def list_dead_letters(
    options: CommonOptions,
    reason: Reason = None,
    partition: Partition = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most so many, the oldest first.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Dead letters that the updaters keep, by partition and offset; and how many there were by reason."""
    counts: Counter[str] = Counter()
    shown: list[tuple[PartitionReport, StoredDeadLetter]] = []
    for state in states(options.settings(), partition):
        report = state.report()
        counts.update(report.reasons)
        for letter in _letters(state, reason):
            if len(shown) == limit:
                break
            shown.append((report, letter))
    if as_json:
        for report, letter in shown:
            sys.stdout.write(envelope(letter, report.topic, report.partition).decode() + "\n")
        return
    rows = [
        (report.partition, each.offset, moment(each.timestamp), each.reason, f"{each.size:,}", each.detail)
        for report, each in shown
    ]
    print_report(
        table_of(("partition", "offset", "time", "reason", "bytes", "detail"), [tuple(map(str, row)) for row in rows])
    )
    sys.stdout.write("".join(f"{name}: {count:,}\n" for name, count in sorted(counts.items())) or "no dead letters\n")


@dlq.command()
@store_command
def replay(
    options: CommonOptions, reason: Reason = None, partition: Partition = None, bootstrap: Bootstrap = None
) -> None:
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
    sys.stdout.write(json.dumps(counts, sort_keys=True) + "\n")


def _letters(state: PartitionState, reason: str | None) -> Iterator[StoredDeadLetter]:
    offset = 0
    while letters := state.read(dead_letters_in, offset, _AT_ONCE):
        yield from (letter for letter in letters if reason in {None, letter.reason})
        offset = letters[-1].offset + 1
