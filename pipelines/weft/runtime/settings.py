"""How weft meets the engines around it. Values only: reading them starts and imports none of the engines."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from weft.domain.sections import Section


class ClusterSettings(Section):
    """How weft meets Ray."""

    address: str
    join_timeout_s: float = Field(gt=0)
    cpus: int
    object_store_bytes: int


class KafkaSettings(Section):
    """How weft meets Kafka: who answers, how each side is authenticated, how long anything may take."""

    bootstrap: str
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None
    sasl_username: str | None
    sasl_password: SecretStr | None
    ssl_cafile: str | None
    ssl_certfile: str | None
    ssl_keyfile: str | None
    ssl_keyfile_password: SecretStr | None
    ssl_check_hostname: bool
    group: str
    isolation: Literal["read_committed", "read_uncommitted"]
    connect_timeout_ms: int = Field(gt=0)
    request_timeout_ms: int = Field(gt=0)
    send_block_ms: int = Field(gt=0)
    idempotent: bool

    @property
    def delivery_timeout_ms(self) -> int:
        """Until a produced event counts as undeliverable: one request and one retry."""
        return 2 * self.request_timeout_ms

    @model_validator(mode="after")
    def _a_password_is_whole(self) -> Self:
        if self.security_protocol.startswith("SASL"):
            missing = [name for name in ("sasl_mechanism", "sasl_username", "sasl_password") if not getattr(self, name)]
            if missing:
                raise ValueError(f"expected {', '.join(missing)} with {self.security_protocol}, found none")
        return self


HTTP_TIMEOUT_S = 5
"""For one request to a tracking server, unless MLFLOW_HTTP_REQUEST_TIMEOUT says otherwise; a local one takes less."""


class TrackingSettings(Section):
    """Where runs and learned versions are recorded."""

    uri: str  # any MLflow tracking URI; "" is SQLite in the store


class ServeSettings(Section):
    """What a service takes on at a time."""

    waiting: int = Field(ge=1)
    timeout_s: float = Field(gt=0)
    requests_per_s: float = Field(gt=0)
