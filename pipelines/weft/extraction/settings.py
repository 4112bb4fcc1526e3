"""What the entity recogniser needs to know."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from weft.domain.sections import Section

WINDOW_WORDS = 250
"""Words a model reads at once: labels and text share 512 positions."""

WINDOW_OVERLAP_WORDS = 20
"""Words that neighbouring windows share; longer than any name."""

BUNDLED: Final = "bundled"
CHECKPOINT: Final = Path(__file__).resolve().parent / "checkpoint"


class ExtractionSettings(Section):
    """How entities are found in chunks."""

    enabled: bool
    model: str
    labels: tuple[str, ...]
    threshold: float = Field(ge=0, le=1)
    device: Literal["auto", "cpu", "cuda"]

    @property
    def source(self) -> str:
        """The folder or hub name that the configured model is loaded from."""
        return str(CHECKPOINT) if self.model == BUNDLED else str(Path(self.model).expanduser())
