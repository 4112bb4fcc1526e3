"""What tunes contexts; the values stand in `conf/base/retrieval.yaml`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ContextSettings(BaseModel):
    """Budget and bounds of contexts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_context_tokens: Annotated[int, Field(ge=1)]
    high: Share
    low: Share

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> ContextSettings:
        if self.low > self.high:
            raise ValueError(f"context: expected low <= high, found {self.low} > {self.high}")
        return self
