"""Where a night is written down: a run of the tracker, or nowhere, for a rehearsal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self

import pyarrow as pa
from matplotlib.figure import Figure


class Page(Protocol):
    """One run; a context that closes it, as failed where its block raises."""

    run_id: str

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *error: Any) -> None:
        """Close."""

    def child(self, name: str, /) -> Page:
        """A run below this one."""

    def parameters(self, values: Mapping[str, object]) -> None:
        """Keep what went in."""

    def metrics(self, values: Mapping[str, float], *, now: float) -> None:
        """Keep measures."""

    def figure(self, name: str, figure: Figure) -> None:
        """Keep a picture."""

    def table(self, name: str, table: pa.Table) -> None:
        """Keep a table."""

    def document(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep a JSON document."""

    def file(self, path: Path, folder: str | None = None) -> None:
        """Keep a copy of a file."""

    def note(self, markdown: str) -> None:
        """Say what the page shows at its top."""


class Nowhere:
    """The page of a rehearsal: it keeps nothing."""

    run_id = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None: ...

    def child(self, _name: str, /) -> Page:
        """Itself."""
        return self

    def _ignore(self, *arguments: Any, **options: Any) -> None: ...

    parameters = metrics = figure = table = document = file = note = _ignore
