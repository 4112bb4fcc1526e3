"""What a session remembers for itself between two requests (LRN-15)."""

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
        shift: How far each recent query lay from those before it, oldest first: a leap is a change of topic.
        queries: Embeddings of the recent queries, oldest first.
        shown: Content hashes of the results it was given, those given last at the end, each once.

    Examples:
        >>> memory = SessionMemory().asked((0.6, 0.8), shift=0.0, window=2).asked((1.0, 0.0), shift=0.4, window=2)
        >>> SessionMemory.from_json(memory.to_json()) == memory
        True
    """

    draws: int = 0
    shift: tuple[float, ...] = ()
    queries: tuple[tuple[float, ...], ...] = ()
    shown: tuple[str, ...] = ()

    def asked(self, embedding: tuple[float, ...], *, shift: float, window: int) -> SessionMemory:
        """After one more query; the newest `window` >= 1 are kept."""
        if window < 1:
            raise ValueError(f"expected a window of at least 1 query, got {window}")
        return replace(self, shift=(*self.shift, shift)[-window:], queries=(*self.queries, embedding)[-window:])

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
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CorruptionError(f"expected a session's memory, found: {error}; start the session anew") from error
        if not all(map(math.isfinite, [*memory.shift, *(value for query in memory.queries for value in query)])):
            raise CorruptionError("expected a session's memory, found numbers that are none; start the session anew")
        return memory
