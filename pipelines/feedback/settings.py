"""What the feedback flow is tuned by; every value is stated in `conf/base/feedback.yaml`."""

from __future__ import annotations

from functools import cached_property

from pydantic import BaseModel, ConfigDict, Field

MS = 1_000


class CreditSettings(BaseModel):
    """How much one piece of feedback weighs, in observations."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    retrieved: float = Field(ge=0.0)
    included: float = Field(ge=0.0)
    referenced: float = Field(ge=0.0)
    success: float = Field(ge=0.0)
    explicit: float = Field(ge=0.0)
    selected: float = Field(ge=0.0)
    skipped: float = Field(ge=0.0)


class TimeSettings(BaseModel):
    """Which event times are believed, and how long an event is waited for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    earliest_ms: int = Field(ge=0)
    latest_ms: int
    lead_s: float = Field(ge=0.0)
    clock_step_s: float = Field(gt=0.0)
    window_s: float = Field(gt=0.0)

    @cached_property
    def lead_ms(self) -> int:
        """`lead_s` in milliseconds."""
        return round(self.lead_s * MS)

    @cached_property
    def clock_step_ms(self) -> int:
        """`clock_step_s` in milliseconds."""
        return round(self.clock_step_s * MS)

    @cached_property
    def window_ms(self) -> int:
        """`window_s` in milliseconds."""
        return round(self.window_s * MS)


class LimitSettings(BaseModel):
    """What bounds memory and disk, per partition."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    event_bytes: int = Field(gt=0)
    dead_letter_bytes: int = Field(gt=0)
    detail_characters: int = Field(gt=0)
    dead_letter_records: int = Field(gt=0)
    event_id_records: int = Field(gt=0)
    impression_records: int = Field(gt=0)
    waiting_records: int = Field(gt=0)
    session_records: int = Field(gt=0)


class FeedbackSettings(BaseModel):
    """The topic, the updaters, and the rules events are judged by."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str = Field(min_length=1)
    dead_letter_topic: str = Field(min_length=1)
    partitions: int = Field(gt=0)
    replication: int = Field(gt=0)
    updaters: int = Field(gt=0)
    poll_records: int = Field(gt=0)
    poll_timeout_s: float = Field(gt=0.0)
    publish_every_s: float = Field(gt=0.0)
    tick_every_s: float = Field(gt=0.0)
    retry_s: float = Field(gt=0.0)
    unreachable_s: float = Field(gt=0.0)
    lock_timeout_s: float = Field(gt=0.0)
    credit: CreditSettings
    time: TimeSettings
    limits: LimitSettings
