"""Which channels a generation can offer; one whose index it lacks is named, and the others search (RET-7)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType

from pipelines.domain.errors import StoreError
from pipelines.domain.ranking import Channel
from pipelines.indexes.graph import EdgeArrays
from pipelines.retrieval.channels.degree import DegreeChannel
from pipelines.retrieval.channels.dense import DenseChannel
from pipelines.retrieval.channels.graph import GraphChannel
from pipelines.retrieval.channels.lexical import LexicalChannel
from pipelines.retrieval.channels.names import Vocabulary
from pipelines.retrieval.channels.run import Channels, FollowingChannel, SearchChannel
from pipelines.retrieval.channels.triggers import TriggerChannel, Triggered
from pipelines.retrieval.ports import OpenGeneration, QueryEncoder
from pipelines.retrieval.settings import RetrievalSettings

log = logging.getLogger(__name__)

ENCODERS = (Channel.DENSE, Channel.DENSE_2, Channel.DENSE_3)
"""The channel of each encoder, in their order."""


def open_channels(
    generation: OpenGeneration, encoders: Sequence[QueryEncoder], settings: RetrievalSettings
) -> Channels:
    """The configured channels over one generation; a dense one only where there is an encoder for it."""
    opening = _Opening(generation, encoders, settings)
    wanted = [channel for channel in settings.channels if channel not in ENCODERS[len(encoders) :]]
    searching: dict[Channel, SearchChannel] = {}
    following: dict[Channel, FollowingChannel] = {}
    missing: dict[str, str] = {}
    for channel in dict.fromkeys(wanted):
        try:
            if channel in _FOLLOWING:
                following[channel] = _FOLLOWING[channel](opening)
            else:
                searching[channel] = _SEARCHING[channel](opening)
        except StoreError as error:
            log.warning("without channel %s: %s", channel.value, error)
            missing[channel.value] = str(error)
    return Channels(searching, following, missing)


@dataclass(frozen=True)
class _Opening:
    generation: OpenGeneration
    encoders: Sequence[QueryEncoder]
    settings: RetrievalSettings

    @cached_property
    def edges(self) -> EdgeArrays:
        return self.generation.graph.arrays()

    def dense(self, place: int) -> SearchChannel:
        encoder = self.encoders[place]
        index = self.generation.dense(encoder.name)
        # Only the default encoder's tokens are kept.
        tokens = self.generation.tokens(encoder.name) if self.settings.rerank.late_interaction and not place else None
        return DenseChannel(encoder, index, self.settings.encode_batch, tokens=tokens)

    def lexical(self) -> SearchChannel:
        return LexicalChannel(self.generation.lexical, self.settings.lexical_threads)

    def triggers(self) -> SearchChannel:
        phrases = self.generation.chunks.trigger_phrases()
        return TriggerChannel((Triggered(*phrase) for phrase in phrases), most_words=self.settings.query_max_terms)

    def graph(self) -> FollowingChannel:
        tuned = self.settings.graph
        spellings = self.generation.graph.spellings()
        names = Vocabulary(
            spellings,
            longest=tuned.name_words,
            shortest=tuned.name_characters,
            most_words=self.settings.query_max_terms,
        )
        return GraphChannel(self.edges, names, tuned)

    def degree(self) -> FollowingChannel:
        tuned = self.settings.degree
        excluded = self.generation.chunks.rows_of_tiers(tuned.excluded_tiers)
        return DegreeChannel(self.edges, tuned, excluded=excluded)


_SEARCHING: Mapping[Channel, Callable[[_Opening], SearchChannel]] = MappingProxyType(
    {
        **{channel: partial(_Opening.dense, place=place) for place, channel in enumerate(ENCODERS)},
        Channel.LEXICAL: _Opening.lexical,
        Channel.TRIGGERS: _Opening.triggers,
    }
)

_FOLLOWING: Mapping[Channel, Callable[[_Opening], FollowingChannel]] = MappingProxyType(
    {Channel.GRAPH: _Opening.graph, Channel.DEGREE: _Opening.degree}
)
