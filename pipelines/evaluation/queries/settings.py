"""What is logged of searches; the values stand in `conf/base/query_log.yaml`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1)]


class QueryLogSettings(BaseModel):
    """How much of what is asked is kept, where it waits, and for how long it stays."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool
    sample: Annotated[float, Field(ge=0.0, le=1.0)]
    queue: Count
    flush_rows: Count
    flush_s: Annotated[float, Field(gt=0.0)]
    keep_days: Count
    read_memory_mb: Count
