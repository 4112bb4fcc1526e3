"""What the feedback flow is tuned by; every value is stated in `conf/base/feedback.yaml`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.runtime.storage.locks import Patience

MS = 1_000
DAY_MS = 86_400 * MS
_COMPARING = {"counterfactual", "attention", "semantic"}


class CreditSettings(BaseModel):
    """How much one piece of feedback weighs, in observations.

    Attributes:
        inverse_clip: Implicit feedback is weighed by 1 / P(its rank is looked at), at most so much (FBK-10).
        ranks: Down to which shown and clicked results are counted, to learn that probability.
        score_bins: Of equal width, by which they are counted; each knows the mean of its scores.
        lead_bins: By which they are counted as well: how far they stand above the best of the others, finest at 0.
        compared: Whether signals of a result are measured against what was shown beside it, and count as far as
            precedent left the order of that open (LRN-4).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    retrieved: float = Field(ge=0.0)
    included: float = Field(ge=0.0)
    referenced: float = Field(ge=0.0)
    success: float = Field(ge=0.0)
    explicit: float = Field(ge=0.0)
    selected: float = Field(ge=0.0)
    skipped: float = Field(ge=0.0)
    inverse_clip: float = Field(ge=1.0)
    ranks: int = Field(ge=1, le=99)
    score_bins: int = Field(ge=2, le=99)
    lead_bins: int = Field(ge=2, le=99, multiple_of=2)
    compared: bool


class TriggerSettings(BaseModel):
    """Which words of a query become triggers of a result that was picked from far down (RET-17).

    Attributes:
        beyond_rank: Results at this rank or better are found well enough.
        terms: Words of one selection at most.
        shortest, longest: Characters of a word.
        stop: Words that say nothing about what is looked for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    beyond_rank: int = Field(ge=0)
    terms: int = Field(ge=0, le=8)
    shortest: int = Field(ge=1)
    longest: int = Field(ge=1, le=40)
    stop: tuple[str, ...]

    @cached_property
    def stop_words(self) -> frozenset[str]:
        """`stop`, to look up."""
        return frozenset(self.stop)


class MixSettings(BaseModel):
    """What each view weighs in one method of attribution, and how far to rely on the method (FBK-9)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    counterfactual: float = Field(ge=0.0)
    attention: float = Field(ge=0.0)
    semantic: float = Field(ge=0.0)
    confidence: float = Field(ge=0.0, le=1.0)

    @model_validator(mode="after")
    def _weights_are_shares(self) -> Self:
        total = self.counterfactual + self.attention + self.semantic
        if not math.isclose(total, 1.0, abs_tol=1e-9):
            raise ValueError(f"feedback.attribution: expected the weights of a method to sum to 1, found {total}")
        return self


class AttributionSettings(BaseModel):
    """How an outcome is shared among the contents a response was made from (FBK-9).

    Attributes:
        encoder: Whether producers load the encoder to compare responses with contents.
        sentences: How many sentences of a response are looked at.
        mixes: By method, those that compare something.
        equal_confidence: How far to rely on equal shares, which compare nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder: bool
    sentences: int = Field(gt=0)
    mixes: Mapping[str, MixSettings]
    equal_confidence: float = Field(ge=0.0, le=1.0)

    @model_validator(mode="after")
    def _covers_every_method(self) -> Self:
        if self.mixes.keys() != _COMPARING:
            raise ValueError(f"feedback.attribution.mixes: expected {sorted(_COMPARING)}, found {sorted(self.mixes)}")
        return self

    def confidence(self, method: str) -> float:
        """How far to rely on a method by name; equal shares are the one without a mix."""
        mix = self.mixes.get(method)
        return self.equal_confidence if mix is None else mix.confidence


class TimeSettings(BaseModel):
    """Which event times are believed, and how long an event is waited for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    earliest_ms: int = Field(ge=0)
    latest_ms: int
    lead_s: float = Field(ge=0.0)
    clock_step_s: float = Field(gt=0.0)
    clock_alone_records: int = Field(gt=0)
    window_s: float = Field(gt=0.0)
    session_idle_s: float = Field(gt=0.0)
    session_suspended_s: float = Field(gt=0.0)
    session_kept_s: float = Field(gt=0.0)

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

    @cached_property
    def session_idle_ms(self) -> int:
        """`session_idle_s` in milliseconds."""
        return round(self.session_idle_s * MS)

    @cached_property
    def session_suspended_ms(self) -> int:
        """`session_suspended_s` in milliseconds."""
        return round(self.session_suspended_s * MS)

    @cached_property
    def session_kept_ms(self) -> int:
        """`session_kept_s` in milliseconds."""
        return round(self.session_kept_s * MS)


class LimitSettings(BaseModel):
    """What bounds memory and disk, and what one principal may say, per partition.

    Attributes:
        principal_daily: Observations of one principal that move parameters per day.
        session_part: Observations of a session, about so many, that count together where it has been merged, or not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    event_bytes: int = Field(gt=0)
    dead_letter_bytes: int = Field(gt=0)
    detail_characters: int = Field(gt=0)
    dead_letter_records: int = Field(gt=0)
    event_id_records: int = Field(gt=0)
    impression_records: int = Field(gt=0)
    waiting_records: int = Field(gt=0)
    session_records: int = Field(gt=0)
    principals: int = Field(gt=0)
    models: int = Field(gt=0)
    agents: int = Field(gt=0)
    intents: int = Field(gt=0)
    lessons: int = Field(gt=0)
    sources: int = Field(gt=0)
    principal_daily: float = Field(gt=0.0)
    session_part: float = Field(gt=0.0)

    @cached_property
    def daily_micro(self) -> int:
        """`principal_daily` in micro-units."""
        return round(self.principal_daily * 1_000_000)

    @cached_property
    def part_micro(self) -> int:
        """`session_part` in micro-units."""
        return round(self.session_part * 1_000_000)


class UbiSettings(BaseModel):
    """What actions of OpenSearch User Behavior Insights mean.

    Attributes:
        actions: By `action_name`: "selection", or a verdict from −1 to 1 on the object.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    actions: Mapping[str, Literal["selection"] | Annotated[float, Field(ge=-1.0, le=1.0)]]


class SessionMergeSettings(BaseModel):
    """What counts as a conflict when a session is merged (LRN-16); and who tells how much sessions differ (LRN-5)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    margin: float = Field(gt=0.0, lt=1.0)
    strength: float = Field(gt=0.0)
    reported: int = Field(gt=0)
    alike_sessions: int = Field(gt=0)


class SourceSettings(BaseModel):
    """From when on the silence, or the noise, of a source means something (FBK-12)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    impressions: int = Field(gt=0)
    verdicts: int = Field(gt=0)
    rate_factor: float = Field(gt=1.0)


class FeedbackSettings(BaseModel):
    """The topic, the updaters, and the rules events are judged by."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str = Field(min_length=1)
    dead_letter_topic: str = Field(min_length=1)
    partitions: int = Field(gt=0)
    replication: int | None = Field(gt=0)
    updaters: int = Field(gt=0)
    poll_records: int = Field(gt=0)
    poll_timeout_s: float = Field(gt=0.0)
    publish_every_s: float = Field(gt=0.0)
    publish_behind_s: float = Field(ge=0.0)
    collect_every_s: float = Field(gt=0.0)
    tick_every_s: float = Field(gt=0.0)
    retry_s: float = Field(gt=0.0)
    unreachable_s: float = Field(gt=0.0)
    lock_timeout_s: float = Field(gt=0.0)
    stopped_timeout_s: float = Field(gt=0.0)
    watch_every_s: float = Field(gt=0.0)
    open_transaction_s: float = Field(ge=0.0)
    hole_refetches: int = Field(ge=0)
    checkpoint_every_s: float = Field(gt=0.0)
    checkpoint_records: int = Field(gt=0)
    checkpoints: int = Field(gt=0)
    damaged_states: int = Field(gt=0)
    credit: CreditSettings
    triggers: TriggerSettings
    attribution: AttributionSettings
    time: TimeSettings
    limits: LimitSettings
    sources: SourceSettings
    ubi: UbiSettings
    merge: SessionMergeSettings

    @property
    def patience(self) -> Patience:
        """With others that hold a partition's files."""
        return Patience(min(self.stopped_timeout_s, self.lock_timeout_s), self.lock_timeout_s)
