"""Where runs and learned versions are recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.runtime.extras import extras_named
from weft.runtime.settings import TrackingSettings

if TYPE_CHECKING:
    from weft.runtime.mlflow.tracking import Tracking


def tracking_of(settings: TrackingSettings, store: Path) -> Tracking:
    """The tracking that settings name, by default MLflow's SQLite in the store."""
    # MLflow takes 1.8 s to import: only who records or promotes something waits for it.
    with extras_named():
        from weft.runtime.mlflow.tracking import Tracking  # noqa: PLC0415

    return Tracking.of(settings, store)
