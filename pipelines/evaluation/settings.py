"""What tunes measuring; the values stand in `conf/base/evaluation.yaml`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class StrengthSettings(BaseModel):
    """From how many queries on a comparison is worth what (EVA-10)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    directional: Annotated[int, Field(ge=1)]
    moderate: Annotated[int, Field(ge=1)]
    strong: Annotated[int, Field(ge=1)]


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
    unjudged_depth: Annotated[int, Field(ge=1)]
    shown_movers: Annotated[int, Field(ge=0)]
    batch: Annotated[int, Field(ge=1)]
    group_key: str
    budget_ms: Annotated[float, Field(gt=0.0)]
