"""Which channels a generation can offer; one whose index it lacks is named, and the others search (RET-7)."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from weft.domain.errors import StoreError
from weft.domain.ranking import Channel
from weft.embedding.ports import TermEncoder, TextEncoder
from weft.indexes.graph.graph import EdgeArrays
from weft.retrieval.channels.following import DegreeChannel, GraphChannel, Vocabulary
from weft.retrieval.channels.run import ENCODERS, Channels, FollowingChannel, SearchChannel
from weft.retrieval.channels.searching import DenseChannel, LexicalChannel, NamesChannel, TriggerChannel
from weft.retrieval.query.named import NamedPlaces
from weft.retrieval.settings import RetrievalSettings
from weft.retrieval.snapshot.ports import OpenGeneration
from weft.retrieval.snapshot.relations import ResolvedRelations

log = logging.getLogger(__name__)

_SPARSE = "weft.retrieval.channels.sparse:SparseChannel"

Opened = TypeVar("Opened")


class OpenedCache:
    """What was opened of one generation: who opens it again in the same way gets what was opened before."""

    def __init__(self) -> None:
        self._generation: object = None
        self._opened: dict[str, tuple[object, Any]] = {}

    def of(self, generation: object, what: str, way: object, opening: Callable[[], Opened]) -> Opened:
        """What `opening` gives, now or when it was asked for last."""
        if generation is not self._generation:
            self._generation, self._opened = generation, {}
        if what not in self._opened or self._opened[what][0] != way:
            self._opened[what] = (way, opening())
        opened: Opened = self._opened[what][1]
        return opened


def open_channels(
    generation: OpenGeneration,
    encoders: Sequence[TextEncoder],
    settings: RetrievalSettings,
    openings: OpenedCache,
    relations: ResolvedRelations,
    *,
    names: NamedPlaces,
    terms: TermEncoder | None = None,
) -> Channels:
    """The configured channels over one generation; a dense one only where there is an encoder for it."""
    searching_ways = {
        **_searching(generation, encoders, terms, settings),
        Channel.NAMES: (names, lambda: NamesChannel(names)),
    }
    following_ways = _following(generation, settings, relations)
    searching: dict[Channel, SearchChannel] = {}
    following: dict[Channel, FollowingChannel] = {}
    missing: dict[str, str] = {}
    for channel in settings.channels:
        try:
            if channel in following_ways:
                following[channel] = openings.of(generation, channel.value, *following_ways[channel])
            elif channel in searching_ways:
                searching[channel] = openings.of(generation, channel.value, *searching_ways[channel])
        except StoreError as error:
            log.warning("without channel %s: %s", channel.value, error)
            missing[channel.value] = str(error)
    return Channels(searching, following, missing)


# For each channel what of the settings it depends on, and what opens it under that alone.
def _searching(
    generation: OpenGeneration, encoders: Sequence[TextEncoder], terms: TermEncoder | None, settings: RetrievalSettings
) -> Mapping[Channel, tuple[object, Callable[[], SearchChannel]]]:
    batch = settings.encode_batch

    def dense(encoder: TextEncoder, compared: bool) -> Callable[[], SearchChannel]:
        return lambda: DenseChannel(
            encoder, generation.dense(encoder.name), batch, tokens=generation.tokens(encoder.name) if compared else None
        )

    def sparse() -> SearchChannel:
        if terms is None:
            raise StoreError("expected a sparse encoder, found none: name one in embedding.sparse.model and reindex")
        channel: SearchChannel = pkgutil.resolve_name(_SPARSE)(terms, generation.impacts(terms.name))
        return channel

    # Only the default encoder's tokens are stored.
    tokens_of = [settings.rerank.late_interaction, *[False] * (len(encoders) - 1)]
    by_vector = zip(ENCODERS, encoders, tokens_of, strict=False)
    return {
        **{channel: ((encoder, batch, compared), dense(encoder, compared)) for channel, encoder, compared in by_vector},
        Channel.LEXICAL: (None, lambda: LexicalChannel(generation.lexical)),
        Channel.SPARSE: (terms, sparse),
        Channel.TRIGGERS: (None, lambda: TriggerChannel(generation.chunks.trigger_phrases())),
    }


def _following(
    generation: OpenGeneration, settings: RetrievalSettings, relations: ResolvedRelations
) -> Mapping[Channel, tuple[object, Callable[[], FollowingChannel]]]:
    graph, excluded = settings.graph, settings.degree.excluded_tiers
    passes, counts = settings.graph_weights, settings.degree_weights

    @cache
    def stored() -> EdgeArrays:
        return generation.graph.arrays()

    def by_activation() -> FollowingChannel:
        spellings = generation.graph.spellings()
        return GraphChannel(
            relations.energy_edges.extend_edges(stored(), graph.strengths),
            Vocabulary(spellings),
            passes,
            graph,
        )

    def by_degree() -> FollowingChannel:
        edges = relations.extend_edges(stored(), graph.strengths)
        return DegreeChannel(edges, counts, excluded=generation.chunks.rows_of_tiers(excluded))

    further = relations.further
    return {
        Channel.GRAPH: ((graph, passes, further), by_activation),
        Channel.DEGREE: ((counts, excluded, graph.strengths, further), by_degree),
    }
