"""What the entity recogniser needs to know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ExtractionSettings(BaseModel):
    """How entities are found in chunks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool
    model: str
    onnx_file: str
    labels: tuple[str, ...]
    threshold: float = Field(ge=0, le=1)
    label_thresholds: dict[str, float]
    window_words: int = Field(gt=0)
    window_overlap_words: int = Field(ge=0)
    batch_size: int = Field(gt=0)
    threads: int = Field(ge=0)

    def threshold_of(self, label: str) -> float:
        """Least score of a mention with `label`, in [0, 1]."""
        return self.label_thresholds.get(label, self.threshold)
