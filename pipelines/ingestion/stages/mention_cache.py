"""Mentions by what they were found with: unchanged chunks are never read by the model twice (ING-20)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

from pipelines.domain.entities import Mention
from pipelines.extraction.settings import ExtractionSettings
from pipelines.runtime.storage.sqlite import BlobCache, blob_key


def mention_key(settings: ExtractionSettings, checkpoint: str, text: str) -> str:
    """Key of a text's mentions: SHA-256 over the checkpoint, its labels, thresholds and windows, and the text."""
    return blob_key(json.dumps(settings.fingerprint, sort_keys=True), checkpoint, text)


class MentionCache:
    """Mentions on disk, at `cache/entities.sqlite` of a store, shared by every worker on the machine."""

    def __init__(self, path: Path) -> None:
        self._blobs = BlobCache(path)

    def get(self, keys: Sequence[str]) -> dict[str, list[Mention]]:
        """Mentions of those keys that were looked for before; none found is an empty list."""
        return {key: [Mention(*row) for row in json.loads(blob)] for key, blob in self._blobs.get(keys).items()}

    def put(self, mentions: Mapping[str, Sequence[Mention]]) -> None:
        """Keep mentions; a key that has some keeps them."""
        rows = {key: json.dumps([astuple(item) for item in found]) for key, found in mentions.items()}
        self._blobs.put({key: text.encode() for key, text in rows.items()})

    def clear(self) -> None:
        """Forget all mentions."""
        self._blobs.clear()

    def close(self) -> None:
        """Close the file."""
        self._blobs.close()
