"""What all adapters share: where they search, and what a framework is told of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from weft.domain.ranking import Answer, Query, RankedResult


class SearchSource(Protocol):
    """Answers queries: an opened `weft.Searcher`, or a `weft.Client`."""

    def search(self, query: Query) -> Answer:
        """The answer to a query."""

    async def asearch(self, query: Query) -> Answer:
        """The same, beside an event loop."""


class Emits(Protocol):
    """Takes what was shown: a `weft.Producer`, or a query log. A client needs none: its service says it."""

    def emit(self, answer: Answer) -> None:
        """Say what was shown; it never waits, and never fails."""


class PassageFinder:
    """Asks, and says what was shown."""

    def __init__(self, searches: SearchSource, emits: Emits | None, fields: Mapping[str, Any]) -> None:
        """Describe what is asked.

        Args:
            fields: Of every query, by the names of `weft.Query`, such as `principal`, `session_id` and `domain`.

        Raises:
            ValueError: A field is unknown, or of another type.
        """
        self._searches = searches
        self._emits = emits
        self._fields = dict(fields)
        self._query("", 1)

    def find(self, text: str, k: int) -> Answer:
        """The answer to a question."""
        return self._shown(self._searches.search(self._query(text, k)))

    async def afind(self, text: str, k: int) -> Answer:
        """The same, beside an event loop."""
        return self._shown(await self._searches.asearch(self._query(text, k)))

    def _query(self, text: str, k: int) -> Query:
        try:
            return Query(text=text, k=k, **self._fields)
        except TypeError as error:
            raise ValueError(f"expected fields of weft.Query, found {sorted(self._fields)}: {error}") from error

    def _shown(self, answer: Answer) -> Answer:
        if self._emits is not None:
            self._emits.emit(answer)
        return answer


def metadata_of(answer: Answer, result: RankedResult) -> dict[str, Any]:
    """What is known of a result in plain types. Feedback on it takes its `token` and its `content_hash`."""
    return {
        "uri": result.uris[0],
        "start_line": result.start_line,
        "end_line": result.end_line,
        "title": result.title,
        "rank": result.rank,
        "score": result.score,
        "probability": result.probability,
        "doubtful": result.doubtful,
        "why": result.why,
        "domain": result.domain.value,
        "content_hash": result.content_hash,
        "query_id": answer.query.query_id,
        "token": answer.token,
    }


FOR_MODELS = frozenset({"uri", "title"})
"""What of it a language model is shown, where a framework shows it metadata: where a text is from."""
