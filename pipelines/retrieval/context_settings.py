"""What tunes contexts; the values stand in `conf/base/retrieval.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.domain.context import Role

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ContextSettings(BaseModel):
    """Budget and bounds of contexts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_context_tokens: Annotated[int, Field(ge=1)]
    high: Share
    low: Share
    most: Mapping[Role, Annotated[int, Field(ge=0)]]

    @model_validator(mode="after")
    def _every_role_is_bounded(self) -> ContextSettings:
        if missing := [role.value for role in Role if role not in self.most]:
            raise ValueError(f"context.most: expected a value per role, none for {missing}")
        if self.low > self.high:
            raise ValueError(f"context: expected low <= high, found {self.low} > {self.high}")
        return self
