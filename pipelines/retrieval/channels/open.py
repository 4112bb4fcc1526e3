"""Which channels a generation can offer; one whose index it lacks is named, and the others search (RET-7)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from pipelines.domain.errors import StoreError
from pipelines.domain.ranking import Channel
from pipelines.indexes.graph.graph import EdgeArrays
from pipelines.retrieval.channels.following import DegreeChannel, GraphChannel, Vocabulary
from pipelines.retrieval.channels.run import Among, Channels, FollowingChannel, Hits, Ranked, SearchChannel
from pipelines.retrieval.channels.searching import DenseChannel, TriggerChannel, Triggered
from pipelines.retrieval.settings import RetrievalSettings
from pipelines.retrieval.snapshot.ports import OpenGeneration, QueryEncoder, TextIndex

log = logging.getLogger(__name__)

ENCODERS = (Channel.DENSE, Channel.DENSE_2, Channel.DENSE_3)
"""The channel of each encoder, in their order."""


Opened = TypeVar("Opened")


class Openings:
    """What was opened of one generation: who opens it again in the same way gets what was opened before.

    Names and phrases of a hundred thousand contents take a second or two to read, which searchers under other beliefs
    or settings need not spend again. Channels hold nothing of a search, so that searchers may share them; opening is
    for one thread at a time.

    Examples:
        >>> openings, generation = Openings(), object()
        >>> openings.of(generation, "names", 3, lambda: "read"), openings.of(generation, "names", 3, lambda: "again")
        ('read', 'read')
        >>> openings.of(generation, "names", 4, lambda: "read otherwise"), openings.of(object(), "names", 4, str)
        ('read otherwise', '')
    """

    def __init__(self) -> None:
        self._generation: object = None
        self._opened: dict[str, tuple[object, Any]] = {}

    def of(self, generation: object, what: str, way: object, opening: Callable[[], Opened]) -> Opened:
        """What `opening` gives, now or when it was asked for last.

        Args:
            what: Names what is opened; of each, what was opened last is held.
            way: All that it depends on beside the generation; equal values open alike.

        Raises:
            StoreError: The generation has no such thing.
        """
        if generation is not self._generation:
            self._generation, self._opened = generation, {}
        if what not in self._opened or self._opened[what][0] != way:
            self._opened[what] = (way, opening())
        opened: Opened = self._opened[what][1]
        return opened


def open_channels(
    generation: OpenGeneration,
    encoders: Sequence[QueryEncoder],
    settings: RetrievalSettings,
    openings: Openings | None = None,
) -> Channels:
    """The configured channels over one generation; a dense one only where there is an encoder for it.

    Args:
        openings: What was opened before; all is opened anew where it is None.
    """
    opening = _Opening(generation, encoders, settings, openings or Openings())
    wanted = [channel for channel in settings.channels if channel not in ENCODERS[len(encoders) :]]
    searching: dict[Channel, SearchChannel] = {}
    following: dict[Channel, FollowingChannel] = {}
    missing: dict[str, str] = {}
    for channel in dict.fromkeys(wanted):
        try:
            if channel in _FOLLOWING:
                following[channel] = opening.of(channel, *_FOLLOWING[channel](opening))
            else:
                searching[channel] = opening.of(channel, *_SEARCHING[channel](opening))
        except StoreError as error:
            log.warning("without channel %s: %s", channel.value, error)
            missing[channel.value] = str(error)
    return Channels(searching, following, missing)


Way: TypeAlias = tuple[object, Callable[[], Opened]]
"""What of the settings a channel depends on, and what opens it under that alone."""


@dataclass(frozen=True)
class _Opening:
    generation: OpenGeneration
    encoders: Sequence[QueryEncoder]
    settings: RetrievalSettings
    openings: Openings

    def of(self, channel: Channel, way: object, opening: Callable[[], Opened]) -> Opened:
        return self.openings.of(self.generation, channel.value, way, opening)

    @cached_property
    def edges(self) -> EdgeArrays:
        return self.generation.graph.arrays()

    def dense(self, place: int) -> Way[SearchChannel]:
        encoder, batch = self.encoders[place], self.settings.encode_batch
        # Only the default encoder's tokens are kept.
        compared = self.settings.rerank.late_interaction and not place

        def opened() -> SearchChannel:
            index = self.generation.dense(encoder.name)
            tokens = self.generation.tokens(encoder.name) if compared else None
            return DenseChannel(encoder, index, batch, tokens=tokens)

        return (encoder, batch, compared), opened

    def lexical(self) -> Way[SearchChannel]:
        threads = self.settings.lexical_threads
        return threads, lambda: LexicalChannel(self.generation.lexical, threads)

    def triggers(self) -> Way[SearchChannel]:
        words = self.settings.query_max_terms

        def opened() -> SearchChannel:
            phrases = self.generation.chunks.trigger_phrases()
            return TriggerChannel((Triggered(*phrase) for phrase in phrases), most_words=words)

        return words, opened

    def graph(self) -> Way[FollowingChannel]:
        tuned, words = self.settings.graph, self.settings.query_max_terms

        def opened() -> FollowingChannel:
            spellings = self.generation.graph.spellings()
            names = Vocabulary(spellings, longest=tuned.name_words, shortest=tuned.name_characters, most_words=words)
            return GraphChannel(self.edges, names, tuned)

        return (tuned, words), opened

    def degree(self) -> Way[FollowingChannel]:
        tuned = self.settings.degree

        def opened() -> FollowingChannel:
            excluded = self.generation.chunks.rows_of_tiers(tuned.excluded_tiers)
            return DegreeChannel(self.edges, tuned, excluded=excluded)

        return tuned, opened


_SEARCHING: Mapping[Channel, Callable[[_Opening], Way[SearchChannel]]] = MappingProxyType(
    {
        **{channel: partial(_Opening.dense, place=place) for place, channel in enumerate(ENCODERS)},
        Channel.LEXICAL: _Opening.lexical,
        Channel.TRIGGERS: _Opening.triggers,
    }
)

_FOLLOWING: Mapping[Channel, Callable[[_Opening], Way[FollowingChannel]]] = MappingProxyType(
    {Channel.GRAPH: _Opening.graph, Channel.DEGREE: _Opening.degree}
)


class LexicalChannel:
    """Searches the text index; a batch of queries shares its threads."""

    def __init__(self, index: TextIndex, threads: int) -> None:
        self._index = index
        self._threads = threads

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """The `depth` best contents of each text."""
        hits = self._index.search_many(texts, depth, self._threads, among)
        return [Ranked(Hits(rows, scores)) for rows, scores in hits]
