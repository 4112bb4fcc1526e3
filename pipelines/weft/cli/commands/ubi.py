"""`weft ubi`: feedback that OpenSearch User Behavior Insights collected, sent as events of weft (FBK-2)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.console.options import Bootstrap, CommonOptions, command
from weft.cli.console.output import Result
from weft.cli.console.terminal import note, reading
from weft.domain.documents import Domain
from weft.domain.events import AnyEvent
from weft.feedback.events.codec import encode
from weft.feedback.events.ubi import content_hashes_only, from_ubi
from weft.runtime.kafka.writer import KafkaPublisher
from weft.runtime.storage.files import text_lines
from weft.settings import Settings

Files = Annotated[list[Path], typer.Argument(help="Documents of ubi_queries and ubi_events, one JSON object a line.")]
Of = Annotated[Domain, typer.Option("--domain", help="Domain of the contents that the documents name.")]


@command
def send_ubi(
    files: Files,
    options: CommonOptions,
    domain: Of = Domain.GENERAL,
    bootstrap: Bootstrap = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be sent, and send nothing.")] = False,
) -> Result:
    """Send feedback collected by OpenSearch User Behavior Insights.

    Objects are content hashes. Read again, documents are recognised as repeats. Refused ones are told on stderr.
    """
    settings = options.settings(bootstrap=bootstrap)
    lines: list[tuple[Path, int, str]] = []
    for file in files:
        with reading(file):
            lines += ((file, number, text) for number, text in text_lines(file) if text.strip())
    documents = [_parsed(text) for *_, text in lines]
    mapped = from_ubi(documents, settings.feedback.ubi, content_hashes_only(domain))
    for index, reason, detail in mapped.refused:
        file, number, _ = lines[index]
        note(f"{file}:{number}: {reason}: {detail}")
    if not dry_run:
        _send(settings, mapped.events)
    summary = {
        "sent": 0 if dry_run else len(mapped.events),
        "events": Counter(str(event.__struct_config__.tag) for event in mapped.events),
        "refused": Counter(each.reason for each in mapped.refused),
    }
    return Result([summary])


def _parsed(text: str) -> object:
    """A document; what is no JSON stays the text it is, and is refused as no object."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _send(settings: Settings, events: Sequence[AnyEvent]) -> None:
    with closing(KafkaPublisher(settings.kafka, settings.feedback.topic)) as publisher:
        for event in events:
            publisher.send(event.session_id.encode(), encode(event))
        publisher.flush()
