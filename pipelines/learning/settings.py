"""How evidence is binned and calibration is fitted; what is believed before evidence is in `priors`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class LearningSettings(BaseModel):
    """The section `learning` of the configuration.

    Attributes:
        relevance_bins: Bins of equal width over the score, in which outcomes are counted for calibration.
        age_bins_per_doubling: Bins of ages, in which accurate and inaccurate documents are counted (LRN-6).
        confidence_bins: Bins of equal width over confidence, in which decisions are counted (LRN-7).
        calibration_smoothing: Pseudo-observations at the overall rate in each bin that a calibration is fitted to.
        calibration_bands: Ascending bounds of the bands that calibration is reported by (CON-8).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    relevance_bins: Annotated[int, Field(ge=2, le=100)]
    age_bins_per_doubling: Annotated[int, Field(ge=1, le=10)]
    confidence_bins: Annotated[int, Field(ge=2, le=100)]
    calibration_smoothing: Annotated[float, Field(gt=0.0)]
    calibration_bands: Annotated[tuple[Annotated[float, Field(ge=0.0, le=1.0)], ...], Field(min_length=2)]
