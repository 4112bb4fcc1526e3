"""How it is shown how a file would be read and cut."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Column

from weft.app.explaining import ExplainedDocument, ExplainedFile
from weft.cli.console.output import Shown, dim, markup
from weft.cli.console.terminal import plain, table_of
from weft.ingestion.report import NOTES

_COLUMNS = (
    Column("level", justify="right", style="cyan"),
    Column("kind", style="magenta"),
    Column("lines", justify="right"),
    Column("tokens", justify="right", style="green"),
    Column("unit", overflow="fold"),
)


def explanation_lines(explained: ExplainedFile) -> Iterator[Shown]:
    """A head and a table of units for each document, and what is left out or rejected, and why."""
    for document in explained.documents:
        yield from _head(document)
        rows = (
            (
                str(unit.level),
                unit.kind,
                "-".join(map(str, dict.fromkeys(unit.lines))),
                f"{unit.tokens:,}",
                "  " * unit.level + unit.title + (f"  #{unit.anchor}" if unit.anchor else ""),
            )
            for unit in document.units
        )
        yield table_of(_COLUMNS, rows)
        yield ""
    for note in explained.notes:
        colour = "yellow" if note.reason in NOTES else "red"
        yield markup(f"[{colour}]{plain(note.reason)}[/] {plain(note.uri)}: {plain(note.detail)}")
    if not explained.documents:
        yield markup("[bold red]nothing of it would be indexed[/]")


def _head(document: ExplainedDocument) -> Iterator[Shown]:
    yield markup(f"[bold]{plain(document.title or document.uri)}[/]")
    yield dim(document.uri)
    language = f" ({document.language})" if document.language else ""
    yield markup(f"type    [bold]{plain(document.content_type + language)}[/], {plain(document.why)}")
    yield f"trust   {document.trust}"
    yield f"domain  {document.domain}"
    yield f"text    {document.characters:,} characters, {len(document.units):,} units"
    if document.authors:
        yield f"authors {', '.join(document.authors)}"
    for name, value in sorted(document.facts.items()):
        if name != "turns":
            yield dim(f"{name}: {value}")
    yield dim(f"sizes: {' '.join(document.sizes)}")
