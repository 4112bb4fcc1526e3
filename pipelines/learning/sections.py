"""What sections of `conf/priors.yaml` have in common: kinds of numbers, and tables with a value for each of a kind."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Section(BaseModel):
    """A section: frozen, without keys that nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def require(wanted: type[StrEnum], stated: Iterable[str], at: str) -> None:
    """Check that each of a kind has a value.

    Raises:
        ValueError: Some have none; they are named.
    """
    if missing := sorted(set(wanted) - set(stated)):
        raise ValueError(f"{at}: expected a value for each of {sorted(wanted)}, missing {missing}")
