"""The second stage: entities in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pipelines.domain.entities import Mention
from pipelines.extraction.settings import ExtractionSettings
from pipelines.indexes import schemas
from pipelines.ingestion.stages.mention_cache import MentionCache, mention_key
from pipelines.ingestion.stages.worker import Lazy, UnitWorker, completed, texts_of
from pipelines.ingestion.units import Unit

EXTRACTOR = "pipelines.extraction.entities:EntityExtractor"


class Extracts(Protocol):
    """What entity extraction needs of an extractor."""

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions of each text."""
        ...


class FindEntities(UnitWorker):
    """Mentions of named things in each distinct text; texts seen before come from the cache (ING-16, ING-20).

    Args:
        checkpoint: What identifies the model, part of every cache key.
    """

    def __init__(self, settings: ExtractionSettings, cache: Path, maker: str = EXTRACTOR, checkpoint: str = "") -> None:
        self._settings = settings
        self._checkpoint = checkpoint
        self._cache = MentionCache(cache)
        self._extractor: Lazy[Extracts] = Lazy(maker, settings)

    def work(self, unit: Unit) -> Unit:
        """Add the table `mentions`."""
        texts = texts_of(unit)
        keys = {content: mention_key(self._settings, self._checkpoint, text) for content, text in texts.items()}
        known, fresh = completed(self._cache, keys, texts, lambda wanted: self._extractor.get().extract(wanted))
        rows = [(content, mention) for content in texts for mention in known[keys[content]]]
        counts = {"mentions": len(rows), "extracted": fresh, "entity_cache_hits": len(texts) - fresh}
        return unit.having({"mentions": schemas.mentions_to_table(rows)}, counts)
