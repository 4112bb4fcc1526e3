"""How sources are read."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

Level = Annotated[int, Field(ge=0, le=100)]


class TrustSettings(BaseModel):
    """Trust level, 0 to 100, by kind of source (ING-2), and how the kinds are told apart.

    Attributes:
        corpus: Records of a corpus and rows of a table.
        generated_markers: What the head of generated text says, in any case.
        generated_within: How many characters that head has.
        blog_folders: Names, in lower case, of folders of blog posts.
        recent_within_days, old_after_days: Ages, from the newest change in the source.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    local_code: Level
    recent: Level
    standard: Level
    academic: Level
    old_history: Level
    blog: Level
    generated: Level
    corpus: Level
    generated_markers: tuple[str, ...]
    generated_within: int = Field(ge=0)
    blog_folders: tuple[str, ...]
    recent_within_days: float = Field(ge=0.0)
    old_after_days: float = Field(ge=0.0)


class DeclaredSettings(BaseModel):
    """How much sidecars and front matter may hold (ING-4)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_bytes: int = Field(gt=0)
    max_depth: int = Field(gt=0)


class GitSettings(BaseModel):
    """How far the history of a repository is read; what lies beyond has the times of its files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: float = Field(ge=0.0)
    output_bytes: int = Field(gt=0)
    memory_bytes: int = Field(gt=0)


class ParquetSettings(BaseModel):
    """Names of columns; of those that a file has the first counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: tuple[str, ...] = Field(min_length=1)
    id: tuple[str, ...]
    title: tuple[str, ...]
    time: tuple[str, ...]


class SummarySettings(BaseModel):
    """Summaries of documents (ING-18).

    Attributes:
        max_tokens: In the encoder's tokens.
        endpoint: URL of an OpenAI-compatible chat completion; empty for extracts from the text itself.
        model, instruction, api_key: What it is asked with.
        characters: How much of a document it is shown.
        timeout_s: For one answer.
        failures_allowed: In a row; then a worker asks no more.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int = Field(gt=0)
    endpoint: str = Field(pattern=r"^(https?://\S+)?$")
    model: str
    instruction: str
    api_key: SecretStr
    characters: int = Field(gt=0)
    timeout_s: float = Field(gt=0.0)
    failures_allowed: int = Field(gt=0)


class ParserSettings(BaseModel):
    """What cutting one document may take; beyond it the document is cut into plain line windows (ING-3)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpu_s: float = Field(gt=0.0)
    memory_bytes: int = Field(gt=0)


class IngestSettings(BaseModel):
    """What is read from sources, and how far.

    Attributes:
        secret_files: Rules, as ignore files have them, of files that are left out, tracked or not; where there are
            any, files that hold a private key are rejected too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_file_bytes: int
    max_depth: int
    skipped_names: tuple[str, ...]
    secret_files: tuple[str, ...]
    records_per_item: int
    items_per_compressed_corpus: int
    trust: TrustSettings
    declared: DeclaredSettings
    git: GitSettings
    parquet: ParquetSettings
    summary: SummarySettings
    parser: ParserSettings
    unit_documents: int = Field(ge=1)
    unit_bytes: int = Field(ge=1)
    units_compared: int = Field(ge=1)
    document_bytes: int = Field(ge=1)
    pools: PoolSettings


class PoolSettings(BaseModel):
    """Actors per stage; 0 derives a number from the cluster's CPUs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    readers: int = Field(ge=0)
    extractors: int = Field(ge=0)
    encoders: int = Field(ge=0)
    threads: int = Field(ge=1)
    chunking_share: float = Field(gt=0.0, le=1.0)
    few: int = Field(ge=0)
