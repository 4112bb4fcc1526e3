"""`weft ubi`: feedback that OpenSearch User Behavior Insights collected, sent as events of weft (FBK-2)."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from pipelines.domain.documents import Domain
from pipelines.domain.errors import SourceError
from pipelines.domain.events import AnyEvent
from pipelines.feedback.events.codec import encode
from pipelines.feedback.events.ubi import Refused, from_ubi, hashes_alone
from pipelines.runtime.kafka.writer import KafkaPublisher
from pipelines.runtime.storage.errors import advice_on
from pipelines.runtime.storage.files import text_lines
from pipelines.serving.console.options import Bootstrap, CommonOptions, Conf
from pipelines.settings import Settings

Files = Annotated[list[Path], typer.Argument(help="Documents of ubi_queries and ubi_events, one JSON object a line.")]
Of = Annotated[Domain, typer.Option("--domain", help="Domain of the contents that the documents name.")]


class Line(NamedTuple):
    """Where a document stands."""

    file: Path
    number: int


def send_ubi(
    files: Files,
    domain: Of = Domain.GENERAL,
    conf: Conf = [],  # noqa: B006
    bootstrap: Bootstrap = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be sent, and send nothing.")] = False,
) -> None:
    """Send feedback collected by OpenSearch User Behavior Insights.

    Objects are content hashes. Read again, documents are recognised as repeats. Refused ones are told on stderr.
    """
    settings = CommonOptions(conf).settings(bootstrap=bootstrap)
    lines = [(Line(file, number), text) for file in files for number, text in _lines(file)]
    documents = [_parsed(text) for _, text in lines]
    mapped = from_ubi(documents, settings.feedback.ubi, hashes_alone(domain))
    for index, reason, detail in mapped.refused:
        place = lines[index][0]
        sys.stderr.write(f"{place.file}:{place.number}: {reason}: {detail}\n")
    if not dry_run:
        _send(settings, mapped.events)
    sys.stdout.write(json.dumps(_summary(mapped.events, mapped.refused, sent=not dry_run), sort_keys=True) + "\n")


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        yield from ((number, line) for number, line in text_lines(file) if line.strip())
    except OSError as error:
        raise SourceError(f"{file}: expected a readable file, found: {error}: {advice_on(error)}") from error


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


def _summary(events: Sequence[AnyEvent], refused: Sequence[Refused], *, sent: bool) -> dict[str, object]:
    return {
        "sent": len(events) if sent else 0,
        "events": Counter(str(event.__struct_config__.tag) for event in events),
        "refused": Counter(each.reason for each in refused),
    }
