"""What one run of ingestion is to do: sources and settings, resolved into units, stages and the manifest's facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.chunking.settings import ChunkingSettings
from pipelines.domain.documents import Domain
from pipelines.embedding.cache import VectorCache
from pipelines.embedding.models import display_name, identity, locate
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.extraction.settings import ExtractionSettings
from pipelines.indexes.settings import IndexSettings
from pipelines.ingestion.mention_cache import MentionCache
from pipelines.ingestion.pools import sized
from pipelines.ingestion.settings import IngestSettings
from pipelines.ingestion.sources import list_items
from pipelines.ingestion.units import Unit, grouped
from pipelines.ingestion.workers import ENCODER, EXTRACTOR, Embed, FindEntities, ReadAndChunk
from pipelines.runtime.blobs import blob_key
from pipelines.runtime.stages import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run.

    Attributes:
        domain: Overrides the domain of every document.
        full: Make everything anew: forget what is cached, and publish even content that is live already.
        fingerprint: Of all settings, for the manifest.
        encoder, extractor: What makes the models, as "module:name".
    """

    sources: Sequence[Path]
    store: Path
    domain: Domain | None
    full: bool
    fingerprint: str
    ingest: IngestSettings
    chunking: ChunkingSettings
    extraction: ExtractionSettings
    embedding: EmbeddingSettings
    index: IndexSettings
    encoder: str = ENCODER
    extractor: str = EXTRACTOR
