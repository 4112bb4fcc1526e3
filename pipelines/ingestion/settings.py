"""How sources are read."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from pipelines.ingestion.pools import PoolSettings


class TrustSettings(BaseModel):
    """Trust level, 0 to 100, by kind of source (ING-2)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: int
    document: int
    text: int
    corpus: int


class ParserSettings(BaseModel):
    """What cutting one document may take; beyond it the document is cut into plain line windows (ING-3)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    wall_s: float = Field(gt=0.0)
    windows_s: float = Field(gt=0.0)
    memory_bytes: int = Field(gt=0)
    answer_bytes: int = Field(gt=0)
    start_s: float = Field(gt=0.0)


class IngestSettings(BaseModel):
    """What is read from sources, and how far."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_file_bytes: int
    max_depth: int
    skipped_names: tuple[str, ...]
    records_per_item: int
    items_per_compressed_corpus: int
    trust: TrustSettings
    parser: ParserSettings
    unit_documents: int = Field(ge=1)
    units_compared: int = Field(ge=1)
    pools: PoolSettings
