"""What a searcher is opened over: the models and the store that settings name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.catalog.catalog import Catalog
from pipelines.embedding.encoder import load_encoder, load_pair_encoder
from pipelines.retrieval.live import CatalogSource
from pipelines.retrieval.ports import PairScorer, QueryEncoder
from pipelines.runtime.clock import Clock, system_clock
from pipelines.settings import Settings


@dataclass(frozen=True, slots=True)
class Engines:
    """What a searcher encodes queries with.

    Attributes:
        encoders: The default one first, each of which is a dense channel.
        pairs: A cross-encoder for the best candidates; None where none is configured.
    """

    encoders: Sequence[QueryEncoder]
    pairs: PairScorer | None = None


LoadEngines = Callable[[Settings], Engines]
"""Loads what the settings name; called once per process."""


def load_engines(settings: Settings) -> Engines:
    """The configured encoders and cross-encoder.

    Raises:
        ModelUnavailableError: One of them cannot be found or loaded.
    """
    threads = {"threads": settings.retrieval.encode_threads}
    encoders = [load_encoder(one.model_copy(update=threads)) for one in settings.embedding.encoders]
    return Engines(encoders, load_pair_encoder(settings.retrieval.rerank.cross_encoder))


def source_of(settings: Settings, clock: Clock = system_clock) -> CatalogSource:
    """What says what is live in the store of the settings."""
    catalog, held = Catalog(Path(settings.storage.root)), settings.retrieval.sessions_held
    return CatalogSource(catalog, settings.priors, clock=clock, sessions_held=held)
