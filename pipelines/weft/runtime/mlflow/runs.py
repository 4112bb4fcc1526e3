"""Where a store's runs are, and what a finished one left: importing MLflow itself takes seconds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from weft.runtime.extras import extras_named
from weft.runtime.settings import TrackingSettings

if TYPE_CHECKING:
    from weft.runtime.mlflow.tracking import Tracking


def uri_of(store: Path) -> str:
    """The MLflow tracking URI of the database that a store keeps, whatever its path is made of.

    Of a path that needs quoting MLflow would make a folder under its quoted name, were the driver not named too.

    Examples:
        >>> uri_of(Path("/builds/a%2Fb?c"))
        'sqlite+pysqlite:////builds/a%252Fb%3Fc/mlflow/mlflow.db'
    """
    path = str(store.resolve() / "mlflow" / "mlflow.db")
    quoted = path.replace("%", "%25").replace("?", "%3F")
    return f"{'sqlite' if quoted == path else 'sqlite+pysqlite'}:///{quoted}"


class RecordedRun(NamedTuple):
    """What a finished run left."""

    started: float  # seconds since the epoch
    metrics: Mapping[str, float]
    parameters: Mapping[str, str]


def tracking_of(settings: TrackingSettings, store: Path) -> Tracking:
    """The tracking that settings name, by default MLflow's SQLite in the store."""
    # MLflow takes 1.8 s to import: only who records or promotes something waits for it.
    with extras_named():
        from weft.runtime.mlflow.tracking import Tracking  # noqa: PLC0415

    return Tracking.of(settings, store)
