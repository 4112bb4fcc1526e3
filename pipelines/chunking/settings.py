"""Sizes of chunks by domain."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from pipelines.chunking.sizes import ChunkSizes
from pipelines.domain.documents import ContentType, Document, Domain


class SizeSettings(BaseModel):
    """Sizes of one domain, in the encoder's tokens; see `ChunkSizes`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int
    target_tokens: int
    min_tokens: int
    overlap_tokens: int

    def sizes(self) -> ChunkSizes:
        """The sizes as the chunkers take them."""
        return ChunkSizes(self.max_tokens, self.target_tokens, self.min_tokens, self.overlap_tokens)


class ProseSettings(BaseModel):
    """What stays together in documents with headings (ING-6), in the encoder's tokens; see `ChunkSizes`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    list_tokens: int
    paragraph_tokens: int


class ChunkingSettings(BaseModel):
    """How documents are cut."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    record_max_tokens: int
    prose: ProseSettings
    code: SizeSettings
    academic: SizeSettings
    history: SizeSettings
    general: SizeSettings

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for domain in Domain:
            self.sizes_of_domain(domain)
            if self.record_max_tokens < self.sizes_of_domain(domain).target_tokens:
                raise ValueError(f"expected record_max_tokens >= {domain}.target_tokens, got {self.record_max_tokens}")
        return self

    def sizes_of_domain(self, domain: Domain) -> ChunkSizes:
        """Sizes of one domain."""
        sections = {
            Domain.CODE: self.code,
            Domain.ACADEMIC: self.academic,
            Domain.HISTORY: self.history,
            Domain.GENERAL: self.general,
        }
        sizes = sections[domain].sizes()
        return replace(sizes, list_tokens=self.prose.list_tokens, paragraph_tokens=self.prose.paragraph_tokens)

    def sizes_of(self, document: Document) -> ChunkSizes:
        """Sizes for one document; a record stays whole up to a limit of its own."""
        sizes = self.sizes_of_domain(document.domain)
        if document.content_type is ContentType.RECORD:
            return replace(sizes, max_tokens=self.record_max_tokens)
        return sizes
