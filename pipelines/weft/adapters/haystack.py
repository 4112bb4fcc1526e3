"""A component for Haystack (extra `haystack`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haystack import Document, component

from weft.adapters.passages import Emits, PassageFinder, SearchSource, metadata_of
from weft.domain.ranking import Answer


@component
class WeftDocumentRetriever:
    """Finds documents by a searcher or a service, and says what was shown.

    A pipeline that holds one is not written to YAML: what it searches is open.
    """

    def __init__(
        self,
        searches: SearchSource,
        *,
        top_k: int = 10,
        producer: Emits | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        """Make a component.

        Args:
            searches: An opened `weft.Searcher`, or a `weft.Client`.
            top_k: Documents.
            producer: Takes what was shown; a client needs none, since its service says it.
            fields: Of every query, by the names of `weft.Query`.
        """
        self._passages = PassageFinder(searches, producer, fields or {})
        self._top_k = top_k

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]  # an extra
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Find documents, best first; `top_k` of them, or as many as the component was made for."""
        return {"documents": _documents(self._passages.find(query, top_k or self._top_k))}

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]  # an extra
    async def run_async(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """The same, beside an event loop."""
        return {"documents": _documents(await self._passages.afind(query, top_k or self._top_k))}


def _documents(answer: Answer) -> list[Document]:
    return [
        Document(id=each.content_hash, content=each.text, meta=metadata_of(answer, each), score=each.score)
        for each in answer.results
    ]
