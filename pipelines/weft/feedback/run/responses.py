"""Responses that come over the log without an attribution: what they rest on, by texts of the live generation (FBK-9).

It happens in the updater, before evidence is added, and not beside it: a step that published attributed events would
have the outcome wait for it, or count twice and take itself back. A content's text never changes, nor do the bits of
its comparison on one kind of processor: so who is killed and starts again adds the same. What is not in the log is
which contents a generation holds when the event is read.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path

from weft.catalog.catalog import Catalog
from weft.domain.errors import ConfigurationError, ModelUnavailableError, StoreError
from weft.domain.events import Attribution
from weft.domain.ids import ContentHash, GenerationId
from weft.embedding.encoders.precision import pinned
from weft.embedding.settings import EmbeddingSettings
from weft.feedback.events.attributor import Attributor, texts_in
from weft.feedback.settings import AttributionSettings
from weft.indexes.chunk_store import ChunkStore
from weft.indexes.manifest import CHUNKS_FOLDER

_log = logging.getLogger(__name__)


class LiveAttribution:
    """Attributes responses to contents of whatever generation is live; used by one thread.

    Nothing is loaded before the first response. Where no generation is live, it holds none of the contents, or there is
    no encoder, a response speaks for all of its contents alike; the last is said once in the log.
    """

    def __init__(self, store: Path, rules: AttributionSettings, embedding: EmbeddingSettings) -> None:
        self._catalog = Catalog(store)
        self._rules = rules
        self._embedding = embedding
        self._live: GenerationId | None = None
        self._chunks: ChunkStore | None = None
        self._attributor: Attributor | None = None

    def __call__(self, contents: Sequence[ContentHash], response: str) -> Attribution | None:
        """What a response rests on among contents that it was given; None where nothing tells them apart."""
        texts = {} if (chunks := self._current()) is None else texts_in(chunks, contents)
        if not any(texts.values()):
            return None
        if self._attributor is None:
            self._attributor = self._loaded()
        return self._attributor.attribution(texts, response)

    def _current(self) -> ChunkStore | None:
        live = self._catalog.pointer().generation
        if live != self._live:
            if self._chunks is not None:
                self._chunks.close()
            self._live, self._chunks = live, None
            if live is not None:
                with contextlib.suppress(StoreError, OSError):  # who searches says what is wrong with it
                    self._chunks = ChunkStore(self._catalog.folder_of(live) / CHUNKS_FOLDER)
        return self._chunks

    def _loaded(self) -> Attributor:
        try:
            return Attributor.load(self._rules, pinned(self._embedding, self._catalog.precisions()))
        except (ModelUnavailableError, ConfigurationError) as error:
            _log.warning("responses are shared equally by their contents: %s", error)
            return Attributor(self._rules, None)
