"""What a session remembers for itself between two requests (LRN-15), and when it should change its model (LRN-8)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from pipelines.domain.errors import CorruptionError


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """State of a session that is no evidence: nobody else learns from it.

    Attributes:
        draws: How many times weights were drawn for it; the next draw is seeded by this (Thompson).
        shift: How far each recent query lay from those of its topic before it, oldest first; a leap is none of them.
        queries: Embeddings of the topic's recent queries, oldest first.
        shown: Content hashes of the results it was given, those given last at the end, each once.
        changed: The topic has changed, and the new one has no history of its own yet.

    Examples:
        >>> memory = SessionMemory().asked((0.6, 0.8), shift=None, window=2).asked((1.0, 0.0), shift=0.4, window=2)
        >>> SessionMemory.from_json(memory.to_json()) == memory
        True
    """

    draws: int = 0
    shift: tuple[float, ...] = ()
    queries: tuple[tuple[float, ...], ...] = ()
    shown: tuple[str, ...] = ()
    changed: bool = False

    def asked(self, embedding: tuple[float, ...], *, shift: float | None, window: int) -> SessionMemory:
        """After one more query of the same topic; the newest `window` >= 1 are kept.

        Args:
            shift: How far it lies from those before it; None where there are none.
        """
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
        """After results were given; the newest `limit` >= 0 of all are remembered.

        Examples:
            >>> SessionMemory().given(["a", "b"], limit=3).given(["c", "a"], limit=3).shown
            ('b', 'c', 'a')
        """
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
        """The memory that `to_json` wrote.

        Raises:
            CorruptionError: It wrote something else.
        """
        try:
            stored = json.loads(text)
            memory = cls(
                draws=int(stored["draws"]),
                shift=tuple(float(value) for value in stored["shift"]),
                queries=tuple(tuple(float(value) for value in query) for query in stored["queries"]),
                shown=tuple(str(value) for value in stored.get("shown", ())),  # memories of older sessions hold none
                changed=bool(stored.get("changed", False)),  # nor this
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CorruptionError(f"expected a session's memory, found: {error}; start the session anew") from error
        if not all(map(math.isfinite, [*memory.shift, *(value for query in memory.queries for value in query)])):
            raise CorruptionError("expected a session's memory, found numbers that are none; start the session anew")
        return memory


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOff:
    """When a conversation should go on with another model, by how that model's quality was judged (LRN-8).

    Attributes:
        turn: The one that it is at.
        quality, low, high: Expected at that turn, in [0, 1], and its credible interval.
        threshold: Quality below which starting over is worth the trouble.
        at: First turn at which quality is expected to be below it; None where it is not within sight.
        earliest, latest: The same for the lower and the upper bound of the interval.
    """

    model: str
    turn: int
    quality: float
    low: float
    high: float
    threshold: float
    at: int | None
    earliest: int | None
    latest: int | None

    @property
    def due(self) -> bool:
        """Whether that turn has come."""
        return self.at is not None and self.turn >= self.at
