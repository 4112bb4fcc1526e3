"""What is live in a store, held still, so that queries can be asked of it again and again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipelines.catalog.catalog import Catalog
from pipelines.embedding.encoder import load_encoder
from pipelines.evaluation.replay import RememberingEncoder, Replay
from pipelines.retrieval.live import CatalogSource
from pipelines.retrieval.ports import QueryEncoder
from pipelines.runtime.clock import system_clock
from pipelines.settings import Settings


def replayed(settings: Settings, encoders: Sequence[QueryEncoder] | None = None) -> Replay:
    """A replay over the live generation, under what is believed now.

    Args:
        encoders: Instead of loading the configured ones anew.

    Raises:
        NothingPublishedError: No generation is live.
    """
    now = system_clock()
    catalog, held = Catalog(Path(settings.storage.root)), settings.retrieval.sessions_held
    snapshot = CatalogSource(catalog, settings.priors, clock=lambda: now, sessions_held=held).take(None)
    batch = settings.evaluation.batch
    return Replay(snapshot, encoders or remembering(settings), settings.retrieval, now=now, batch=batch)


def remembering(settings: Settings) -> list[RememberingEncoder]:
    """The configured encoders, each of which encodes a query once however often it is asked."""
    return [RememberingEncoder(load_encoder(each)) for each in settings.embedding.encoders]
