"""What the entity recogniser needs to know."""

from __future__ import annotations

from itertools import pairwise

from pydantic import BaseModel, ConfigDict, Field, field_validator

WINDOW_WORDS = 250
"""Words a model reads at once: labels and text share 512 positions."""

WINDOW_OVERLAP_WORDS = 20
"""Words that neighbouring windows share; longer than any name."""


class ExtractionSettings(BaseModel):
    """How entities are found in chunks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool
    model: str
    onnx_file: str
    labels: tuple[str, ...]
    threshold: float = Field(ge=0, le=1)
    label_thresholds: dict[str, float]
    confidences: dict[str, tuple[tuple[float, float], ...]]
    threads: int = Field(ge=0)

    @property
    def fingerprint(self) -> dict[str, object]:
        """What decides the mentions of a text besides itself and the checkpoint; it is part of keys that are stored."""
        stated = self.model_dump(mode="json", exclude={"enabled", "threads"})
        return {**stated, "window_words": WINDOW_WORDS, "window_overlap_words": WINDOW_OVERLAP_WORDS}

    def confidence_of(self, label: str, score: float) -> float:
        """How sure a find with a score is, in [0, 1]: linear between the label's points, and the score without any."""
        points = self.confidences.get(label)
        if not points:
            return score
        for (low, least), (high, most) in pairwise(points):
            if low <= score <= high:
                return least + (most - least) * (score - low) / (high - low)
        return points[0][1] if score < points[0][0] else points[-1][1]

    @field_validator("confidences")
    @classmethod
    def _rising(cls, value: dict[str, tuple[tuple[float, float], ...]]) -> dict[str, tuple[tuple[float, float], ...]]:
        for label, points in value.items():
            if any(low >= high or least > most for (low, least), (high, most) in pairwise(points)):
                raise ValueError(f"expected points of rising score and confidence for {label!r}, found {points}")
        return value
