"""What a query was taken to ask for, what that changed (RET-1 … RET-6), and what its session remembers (LRN-15)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from weft.domain.errors import CorruptionError


class QueryType(StrEnum):
    """What kind of answer a query wants."""

    SPECIFIC = "specific"  # this one thing
    EXPLORATORY = "exploratory"  # what there is
    HOW = "how_does_it_work"  # how parts play together
    DEBUG = "debug"  # why something fails


class Complexity(StrEnum):
    """How much work a query is worth."""

    SIMPLE = "simple"
    MODERATE = "moderate"
    COMPLEX = "complex"


@dataclass(frozen=True, slots=True)
class Variant:
    """A further text that is searched beside the query."""

    text: str
    source: str  # where its terms come from: "feedback" of the first results, or "neighbours" of entities it names


@dataclass(frozen=True, slots=True)
class InferredFilter:
    """A filter that the query's text seems to ask for."""

    name: str
    value: str
    confidence: float  # how sure that is, in [0, 1]
    applied: bool  # whether it left documents out


@dataclass(frozen=True, slots=True)
class Shift:
    """How far a query lies from those its session asked before."""

    distance: float  # 1 − cosine to the centroid of the recent queries, in [0, 2]
    threshold: float  # above it the topic has changed
    recent: bool = False  # the topic changed some queries ago, and the new one has no history of its own yet

    @property
    def happened(self) -> bool:
        """Whether the topic has changed."""
        return self.distance > self.threshold

    @property
    def dampens(self) -> bool:
        """Whether what was learned before is about another topic."""
        return self.happened or self.recent


@dataclass(frozen=True, slots=True, kw_only=True)
class Understanding:
    """How a query was read."""

    type: QueryType
    confidence: float  # in the type, in [0, 1]
    cues: tuple[str, ...] = ()  # what in the text spoke for the type
    complexity: Complexity = Complexity.MODERATE
    limit: int  # results and channels that the router would give: what an adaptive query gets
    variants: tuple[Variant, ...] = ()  # texts searched beside it
    filters: tuple[InferredFilter, ...] = ()  # what its text seems to ask for beyond its explicit filters
    # what reads like a filter in it, "name:value", though no document has that: words like all others
    unknown: tuple[str, ...] = ()
    # filters in force, "name:value", for which nothing was found: each that no document has, or else all of them,
    # joined by "and", which no document has together
    unmet: tuple[str, ...] = ()
    # phrases in quotation marks, +words and -words that were followed, as they are typed (RET-22)
    signs: tuple[str, ...] = ()
    # those that are taken as plain words: no text has what they, and those before them, ask for
    unheld: tuple[str, ...] = ()
    # names and paths in it of what is there, as they are typed (RET-22)
    named: tuple[str, ...] = ()
    home: str | None = None  # the domain that its agent searches unless it asks for more, where that was applied
    shift: Shift | None = None  # none without a session's earlier queries
    # content hashes that learned triggers still on trial would lead to, with the trigger (RET-17)
    shadowed: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's own types."""
        shift = self.shift
        return {
            "type": self.type.value,
            "confidence": self.confidence,
            "cues": list(self.cues),
            "complexity": self.complexity.value,
            "limit": self.limit,
            "variants": [{"text": variant.text, "source": variant.source} for variant in self.variants],
            "filters": [asdict(each) for each in self.filters],
            "unknown_filters": list(self.unknown),
            "unmet_filters": list(self.unmet),
            "signs": list(self.signs),
            "unheld_signs": list(self.unheld),
            "named": list(self.named),
            "home": self.home,
            "triggers_on_trial": dict(self.shadowed),
            "shift": None if shift is None else {**asdict(shift), "happened": shift.happened},
        }


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """State of a session that is no evidence: nobody else learns from it."""

    draws: int = 0  # how many times weights were drawn for it; the next draw is seeded by this (Thompson)
    # how far each recent query lay from those of its topic before it, oldest first; a leap is none of them
    shift: tuple[float, ...] = ()
    queries: tuple[tuple[float, ...], ...] = ()  # embeddings of the topic's recent queries, oldest first
    shown: tuple[str, ...] = ()  # content hashes of the results it was given, those given last at the end, each once
    changed: bool = False  # the topic has changed, and the new one has no history of its own yet

    def asked(self, embedding: tuple[float, ...], *, shift: float | None, window: int) -> SessionMemory:
        """After one more query of the same topic; the newest `window` >= 1 are kept."""
        if window < 1:
            raise ValueError(f"expected a window of at least 1 query, got {window}")
        distances = self.shift if shift is None else (*self.shift, shift)
        return replace(self, shift=distances[-window:], queries=(*self.queries, embedding)[-window:])

    def leapt(self, embedding: tuple[float, ...]) -> SessionMemory:
        """After a first query of another topic: those of the former one are no measure for it.

        Examples:
            >>> memory = SessionMemory().asked((1.0, 0.0), shift=None, window=2).leapt((0.0, 1.0))
            >>> memory.queries, memory.shift, memory.changed
            (((0.0, 1.0),), (), True)
        """
        return replace(self, queries=(embedding,), changed=True)

    def settled(self) -> SessionMemory:
        """After the topic has a history of its own."""
        return replace(self, changed=False)

    def given(self, content_hashes: Iterable[str], *, limit: int) -> SessionMemory:
        """After results were given; the newest `limit` >= 0 of all are remembered."""
        again = dict.fromkeys(content_hashes)
        everything = [*(each for each in self.shown if each not in again), *again]
        return replace(self, shown=tuple(everything[max(0, len(everything) - limit) :]))

    def drawn(self) -> SessionMemory:
        """After one more draw of weights."""
        return replace(self, draws=self.draws + 1)

    def to_json(self) -> str:
        """Exactly this memory: every float is written so that it reads back as the same bits."""
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> SessionMemory:
        """The memory that `to_json` wrote."""
        try:
            stored = json.loads(text)
            memory = cls(
                draws=int(stored["draws"]),
                shift=tuple(float(value) for value in stored["shift"]),
                queries=tuple(tuple(float(value) for value in query) for query in stored["queries"]),
                shown=tuple(str(value) for value in stored["shown"]),
                changed=bool(stored["changed"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CorruptionError(f"expected a session's memory, found: {error}; start the session anew") from error
        if not all(map(math.isfinite, [*memory.shift, *(value for query in memory.queries for value in query)])):
            raise CorruptionError("expected a session's memory, found numbers that are none; start the session anew")
        return memory


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOff:
    """When a conversation should go on with another model, by how that model's quality was judged (LRN-8)."""

    model: str
    turn: int  # the one that it is at
    quality: float  # Expected at that turn, in [0, 1], and its credible interval
    low: float
    high: float
    threshold: float  # quality below which starting over is worth the trouble
    at: int | None  # first turn at which quality is expected to be below it; None where it is not within sight
    earliest: int | None  # The same for the lower and the upper bound of the interval
    latest: int | None

    @property
    def due(self) -> bool:
        """Whether that turn has come."""
        return self.at is not None and self.turn >= self.at
