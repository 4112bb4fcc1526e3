"""`weft status`: what is live in a store, and how far its updaters have come (OPS-4)."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from weft.app.status import status_of
from weft.cli.console.options import CommonOptions, command
from weft.cli.console.output import Result
from weft.cli.console.terminal import cells
from weft.runtime.clock import stamp

GIB = 2**30
SECONDS_PER_HOUR = 3600.0


@command
def status(options: CommonOptions) -> Result:
    """What is live in a store, and what became of feedback."""
    settings, catalog = options.opened()
    facts = status_of(catalog.root, settings)
    table = Table(box=None, show_header=False)
    for name, value in facts.items():
        table.add_row(*cells(name.removesuffix("_s").removesuffix("_bytes").replace("_", " "), _text(name, value)))
    return Result([facts], [table])


def _text(name: str, value: object) -> str:
    if name == "made_at" and isinstance(value, float):
        return stamp(value)
    if name.endswith("_age_s") and isinstance(value, float):
        return f"{value / SECONDS_PER_HOUR:,.1f} hours"
    if name.endswith("_bytes") and isinstance(value, int):
        return f"{value / GIB:,.1f} GiB"
    if isinstance(value, Mapping):
        return ", ".join(f"{role} {model}" for role, model in value.items()) or "none"
    if isinstance(value, int):
        return f"{value:,}"
    return "none" if value is None else str(value)
