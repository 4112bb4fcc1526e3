"""What the encoder is and how it computes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from weft.domain.sections import Section

LENGTH_STEP = 16
"""Tokens: texts are padded to a multiple of this, so that a vector never depends on its batch mates.

Keys of stored vectors name it.
"""

_LEAST_TOKENS = 8  # of a window: special ones and a few words


class TokenSettings(Section):
    """Token embeddings kept for late interaction (RET-10)."""

    enabled: bool
    dimension: int = Field(ge=1)
    pooling: int = Field(ge=1)


class CrossEncoderSettings(Section):
    """A model that reads query and text together."""

    model: str
    max_tokens: int = Field(ge=8)
    most_tokens: int = Field(ge=8)
    precision: Literal["auto", "fp32", "int8"]


class SparseSettings(Section):
    """A model that turns texts into weights of terms (RET-7)."""

    model: str
    max_tokens: int = Field(ge=8)
    most_terms: int = Field(ge=1)
    most_query_terms: int = Field(ge=1, le=1024)  # Lucene compares no more
    scale: float = Field(gt=0, allow_inf_nan=False)


class EmbeddingSettings(Section):
    """Which model turns texts into vectors, and how its batches are made."""

    model: str
    model_folder: str
    strategy: Literal["text", "levels"]
    level_tokens: tuple[int, int, int, int]
    max_tokens: int = Field(ge=0)
    query_prompt: str | None
    document_prompt: str | None
    batch_tokens: int = Field(ge=1)
    threads: int = Field(ge=0)
    device: Literal["auto", "cpu", "cuda"]
    dimension: int = Field(ge=0)
    precision: Literal["auto", "fp32", "bf16", "int8"]
    tokens: TokenSettings
    sparse: SparseSettings
    further: tuple[dict[str, Any], ...]

    @property
    def encoders(self) -> tuple[EmbeddingSettings, ...]:
        """The settings of each encoder, the default one first, none of them with further ones.

        Token embeddings are kept of the default one alone, unless a further one asks for its own; and each has the
        prompts of its own model, unless it names others.
        """
        own = self.model_dump() | {"further": ()}
        untold = own | {"tokens": own["tokens"] | {"enabled": False}, "query_prompt": None, "document_prompt": None}
        return tuple(EmbeddingSettings.model_validate(one) for one in (own, *(untold | more for more in self.further)))

    @model_validator(mode="after")
    def _window_holds_a_text(self) -> EmbeddingSettings:
        if 0 < self.max_tokens < _LEAST_TOKENS:
            raise ValueError(f"max_tokens: expected 0 or {_LEAST_TOKENS} tokens and more, found {self.max_tokens}")
        return self

    @model_validator(mode="after")
    def _further_ones_are_settings_too(self) -> EmbeddingSettings:
        if self.further:
            self.encoders  # noqa: B018  validates each
        return self
