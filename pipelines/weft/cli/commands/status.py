"""`weft status`: what is live in a store, and how far its updaters have come (OPS-4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from weft.cli.console.options import ServedOptions, command
from weft.cli.console.output import Result
from weft.cli.console.terminal import cells
from weft.runtime.clock import stamp

GIB = 2**30
SECONDS_PER_HOUR = 3600.0


@command
def status(options: ServedOptions) -> Result:
    """What is live in a store, and what became of feedback."""
    facts = _facts(options)
    table = Table(box=None, show_header=False)
    for name, value in facts.items():
        table.add_row(*cells(name.removesuffix("_s").removesuffix("_bytes").replace("_", " "), _text(name, value)))
    return Result([facts], [table])


def _facts(options: ServedOptions) -> dict[str, Any]:
    if (client := options.service()) is not None:
        with client:
            return client.status()
    from weft.app.views.status import status_of  # noqa: PLC0415  .5 s, which who asks a service does without

    settings, catalog = options.opened()
    return status_of(catalog.root, settings)


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
