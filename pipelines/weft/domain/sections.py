"""What sections of the configuration have in common: kinds of numbers, and tables with a value for each of a kind."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Section(BaseModel):
    """A section: frozen, without keys that nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def one_for_each(kind: type[StrEnum]) -> AfterValidator:
    """Of a table: it has a value for each of a kind; an error names those that have none."""

    def checked(table: Mapping[StrEnum, object]) -> Mapping[StrEnum, object]:
        if missing := sorted(set(kind) - set(table)):
            raise ValueError(f"expected a value for each of {sorted(kind)}, missing {missing}")
        return table

    return AfterValidator(checked)
