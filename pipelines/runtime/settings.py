"""How weft meets the engines around it. Values only: reading them starts and imports none of the engines."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class TrackingSettings(BaseModel):
    """Where runs and learned versions are recorded.

    Attributes:
        uri: Any MLflow tracking URI; "" is SQLite in the store.
        http_timeout_s, http_retries: Patience with a tracking server that does not answer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    uri: str
    http_timeout_s: int
    http_retries: int
