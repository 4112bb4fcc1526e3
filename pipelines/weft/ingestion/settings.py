"""How sources are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr

from weft.domain.documents import Domain
from weft.domain.sections import Section
from weft.runtime.storage.origins import source_place

Level = Annotated[int, Field(ge=0, le=100)]

_CHUNKING_SHARE = 0.1  # of the CPUs goes to readers: chunking costs about a tenth of embedding


class SourceSettings(Section):
    """A declared source (OPS-3b); what is left out is as for a source without a declaration."""

    # A folder, a file, a corpus or a table; `~` is the home folder; or the URL of objects or of a git repository
    path: str = Field(min_length=1)
    domain: Domain | None = None  # of all its documents
    trust: Level | None = None  # of all its documents that declare none, 0 to 100
    include: tuple[str, ...] = ()  # Files of a folder, written as in .gitignore; without `include` all
    exclude: tuple[str, ...] = ()
    tenant: str | None = Field(default=None, min_length=1)  # A fact about all its documents, for filters

    @property
    def place(self) -> Path:
        """Its path, absolute, or where it is brought to."""
        return source_place(self.path).absolute()


class TrustSettings(Section):
    """Trust level, 0 to 100, by kind of source (ING-2)."""

    local_code: Level
    recent: Level
    standard: Level
    academic: Level
    old_history: Level
    blog: Level
    generated: Level
    corpus: Level  # records of a corpus and rows of a table


class ParquetSettings(Section):
    """Names of columns; of those that a file has the first counts."""

    text: tuple[str, ...] = Field(min_length=1)
    id: tuple[str, ...]
    title: tuple[str, ...]
    time: tuple[str, ...]


class SummarySettings(Section):
    """Summaries of documents (ING-18)."""

    max_tokens: int = Field(gt=0)  # in the encoder's tokens
    # URL of an OpenAI-compatible chat completion; empty for extracts from the text itself
    endpoint: str = Field(pattern=r"^(https?://\S+)?$")
    model: str  # What it is asked with
    api_key: SecretStr


class ParserSettings(Section):
    """What cutting one document may take; beyond it the document is cut into plain line windows (ING-3)."""

    cpu_s: float = Field(gt=0.0)
    memory_bytes: int = Field(gt=0)


@dataclass(frozen=True, slots=True)
class Pools:
    """Actors per stage, the logical CPUs that each holds, and the logical GPUs of those whose models run on one."""

    readers: int  # 0 where the actors of the next stage read, too
    extractors: int
    encoders: int
    cpus_each: float
    gpus_each: float  # below 1 where several share each


class PoolSettings(Section):
    """Actors per stage; 0 derives a number from the cluster's CPUs."""

    readers: int = Field(ge=0)
    encoders: int = Field(ge=0)
    few: int = Field(ge=0)  # so many units of new documents one worker takes through all stages

    def sized(self, *, cpus: int, extraction: bool, models: int = 1, gpus: int = 0, on_gpus: int = 0) -> Pools:
        """Pools for a cluster of `cpus` CPUs and `models` encoders, each of which gets the same number of actors.

        Extraction takes several times the work of embedding. The CPUs that all actors hold together stay below the
        cluster's, so every actor starts, and the stream cannot get stuck.

        Args:
            extraction: Whether entities are found, on CPUs.
            models: Encoders that compute on CPUs.
            gpus: GPUs of the cluster.
            on_gpus: Stages whose models run on these. Each of them has one actor on every GPU, so they share it evenly.
                Texts are read and cut by others meanwhile, so that no GPU waits.
        """
        rest = max(1, cpus - gpus * on_gpus)
        readers = self.readers or (int(rest * _CHUNKING_SHARE) if extraction or models else rest)
        readers = max(1, readers) if on_gpus else readers
        extractors = rest if extraction else 0
        encoders = self.encoders or max(1, (rest // 2 if extraction else rest) // max(1, models))
        actors = readers + extractors + encoders * models + gpus * on_gpus
        return Pools(readers, extractors, encoders, min(1.0, cpus / (actors + 1)), 1.0 / max(1, on_gpus))


class IngestSettings(Section):
    """What is read from sources, and how far."""

    max_file_bytes: int
    max_chunks_per_file: int = Field(ge=1)  # of a document: what comes after is left out, and told
    skipped_names: tuple[str, ...]
    # rules, as ignore files have them, of files that are left out, tracked or not; where there are any, files
    # that hold a private key are rejected too
    secret_files: tuple[str, ...]
    unit_documents: int = Field(ge=1)
    git_seconds: float = Field(ge=0.0)  # for the history of one source; 0 reads none, and files have their own times
    trust: TrustSettings
    parquet: ParquetSettings
    summary: SummarySettings
    parser: ParserSettings
    pools: PoolSettings
