"""What tunes measuring; the values stand in `conf/base/evaluation.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0.0, lt=1.0)]


class StrengthSettings(BaseModel):
    """From how many queries on a comparison is worth what (EVA-10)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    directional: Annotated[int, Field(ge=1)]
    moderate: Annotated[int, Field(ge=1)]
    strong: Annotated[int, Field(ge=1)]


class MemorySettings(BaseModel):
    """How answers are measured as those of a memory (EVA-2)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    depth: Count
    constitutional_depth: Count
    constitutional_tiers: tuple[str, ...]
    new_hours: Positive
    importance: Mapping[str, Weight]
    usual_importance: Weight
    intent_weights: Mapping[str, Weight]
    usual_intent_weight: Weight


class AlarmSettings(BaseModel):
    """From where on a failure mode rings (EVA-11)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    queries: Count
    minimum: Count
    level: Share
    depth: Count
    lexical_margin: Positive
    blind_share: Share
    popularity_share: Share
    new_hours: Positive
    cold_ratio: Share
    drift_index: Positive
    drift_bands: Annotated[int, Field(ge=2)]
    drift_p: Share
    collapse_share: Share
    hub_share: Share
    trigger_channels: tuple[str, ...]
    trigger_ratio: Share


class GroundTruthSettings(BaseModel):
    """What judgements are worth, by where they come from, and for how long (EVA-4)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    days: Mapping[str, Count]
    grades: Mapping[str, Annotated[float, Field(ge=0.0, le=3.0)]]
    endpoint: Annotated[str, Field(pattern=r"^(https?://.+)?$")]
    api_key: SecretStr
    model: str
    instruction: str
    characters: Count
    timeout_s: Positive
    failures_allowed: Count


class EvaluationSettings(BaseModel):
    """How runs over judged queries are made and summed up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    depth: Annotated[int, Field(ge=1)]
    bootstrap_draws: Annotated[int, Field(ge=100)]
    interval: Annotated[float, Field(gt=0.0, lt=1.0)]
    seed: int
    randomisations: Annotated[int, Field(ge=100)]
    power: Annotated[float, Field(gt=0.0, lt=1.0)]
    strength: StrengthSettings
    memory: MemorySettings
    alarms: AlarmSettings
    ground_truth: GroundTruthSettings
    unjudged_depth: Annotated[int, Field(ge=1)]
    shown_movers: Annotated[int, Field(ge=0)]
    batch: Annotated[int, Field(ge=1)]
    timed: Annotated[int, Field(ge=1)]
    remembered: Count
    reward_strength: Positive
    shadow_queries: Count
    group_key: str
    budget_ms: Annotated[float, Field(gt=0.0)]
