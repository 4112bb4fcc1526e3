"""How evidence is binned and calibration is fitted; what is believed before evidence is in `priors`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class LearningSettings(BaseModel):
    """The section `learning` of the configuration.

    Attributes:
        relevance_bins: Bins of equal width over the score, in which outcomes are counted for calibration.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    relevance_bins: Annotated[int, Field(ge=2, le=100)]
