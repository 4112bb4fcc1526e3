"""What the encoder is and how it computes."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class EmbeddingSettings(BaseModel):
    """Which model turns texts into vectors, and how its batches are made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    model_folder: str
    strategy: Literal["text"]
    max_tokens: int = Field(ge=8)
    batch_tokens: int = Field(ge=1)
    pack_tokens: int = Field(ge=1)
    length_step: int = Field(ge=1)
    threads: int = Field(ge=0)
    device: Literal["auto", "cpu", "cuda"]
    dimension: int = Field(ge=0)
    precision: Literal["auto", "fp32", "bf16", "int8"]
