"""`weft status`: what is live in a store, and how far its updaters have come (OPS-4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from weft.catalog.catalog import Catalog
from weft.cli.console.options import CommonOptions, command
from weft.cli.console.output import Result
from weft.cli.console.terminal import cells
from weft.feedback.run.partitions import states_in
from weft.feedback.settings import WITHOUT_KEY
from weft.runtime.clock import stamp
from weft.settings import Settings

_COUNTS = ("documents", "chunks", "contents")
_EVENTS = ("consumed", "applied", "dead_lettered", "lost")


@command
def status(options: CommonOptions) -> Result:
    """What is live in a store, and what became of feedback."""
    settings, catalog = options.opened()
    facts = facts_of(catalog.root, settings)
    table = Table(box=None, show_header=False)
    for name, value in facts.items():
        table.add_row(*cells(name.replace("_", " "), _text(name, value)))
    return Result([facts], [table])


def facts_of(root: Path, settings: Settings) -> dict[str, Any]:
    """What is live: the generation with its size, the learned version, and the sums over all partitions."""
    catalog = Catalog(root)
    pointer = catalog.pointer()
    live = next((each for each in catalog.generations() if each.id == pointer.generation), None)
    reports = [state.report() for state in states_in(root, settings.feedback)]
    return {
        "store": str(root.resolve()),
        "generation": pointer.generation,
        "made_at": None if live is None else live.created_at,
        **{name: 0 if live is None else live.counts.get(name, 0) for name in _COUNTS},
        "models": {} if live is None else dict(live.models),
        "learned_version": pointer.learned,
        "partitions": len(reports),
        **{f"events_{name}": sum(getattr(report, name) for report in reports) for name in _EVENTS},
        "open_sessions": sum(report.open_sessions for report in reports),
        "authenticity": WITHOUT_KEY if settings.feedback.key is None else "impressions are signed, feedback has tokens",
    }


def _text(name: str, value: object) -> str:
    if name == "made_at" and isinstance(value, float):
        return stamp(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{role} {model}" for role, model in value.items())
    if isinstance(value, int):
        return f"{value:,}"
    return "none" if value is None else str(value)
