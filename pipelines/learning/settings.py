"""How calibration is fitted; what is believed before evidence is in `priors`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class LearningSettings(BaseModel):
    """The section `learning` of the configuration.

    Attributes:
        calibration_smoothing: Pseudo-observations at the overall rate in each bin that a calibration is fitted to.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    calibration_smoothing: Annotated[float, Field(gt=0.0)]
