"""What tunes measuring and the query log; the values stand in `conf/base/{evaluation,query_log}.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, SecretStr

from weft.domain.sections import Count, NonNegative, Section

BOOTSTRAP_DRAWS = 1_000
"""Resamples of the queries behind each interval: its bounds stand within a few thousandths."""

Share = Annotated[float, Field(gt=0.0, lt=1.0)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class MemorySettings(Section):
    """How answers are measured as those of a memory (EVA-2)."""

    intent_weights: Mapping[str, NonNegative]


class GroundTruthSettings(Section):
    """The model that judges (EVA-4)."""

    endpoint: Annotated[str, Field(pattern=r"^(https?://.+)?$")]
    api_key: SecretStr
    model: str


class EvaluationSettings(Section):
    """How runs over judged queries are made and summed up."""

    depth: Count
    interval: Share
    seed: int
    memory: MemorySettings
    ground_truth: GroundTruthSettings


class QueryLogSettings(Section):
    """How much of what is asked is kept, and for how long."""

    sample: Probability
    keep_days: Count
