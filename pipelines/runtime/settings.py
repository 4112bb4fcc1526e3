"""How weft meets the engines around it. Values only: reading them starts and imports none of the engines."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class ClusterSettings(BaseModel):
    """How weft meets Ray."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str
    cpus: int
    object_store_bytes: int


class KafkaSettings(BaseModel):
    """How weft meets Kafka: who answers, how each side is authenticated, how long anything may take."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bootstrap: str
    security_protocol: str
    sasl_mechanism: str | None
    sasl_username: str | None
    sasl_password: SecretStr | None
    ssl_cafile: str | None
    ssl_certfile: str | None
    ssl_keyfile: str | None
    ssl_keyfile_password: SecretStr | None
    ssl_check_hostname: bool
    connect_timeout_ms: int = Field(gt=0)
    request_timeout_ms: int = Field(gt=0)
    delivery_timeout_ms: int = Field(gt=0)
    send_block_ms: int = Field(gt=0)
    wait_bytes: int = Field(ge=0)
    linger_ms: int = Field(ge=0)
    batch_bytes: int = Field(gt=0)
    fetch_bytes: int = Field(gt=0)
    fetch_wait_ms: int = Field(gt=0)
    fetch_pause_ms: int = Field(ge=0)
    idempotent: bool


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
