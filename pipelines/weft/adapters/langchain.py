"""A retriever for LangChain (extra `langchain`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from weft.adapters.passages import PassageFinder, metadata_of
from weft.domain.ranking import Answer


class WeftRetriever(BaseRetriever):  # type: ignore[misc]  # an extra, which checkers need not have
    """Finds documents by a searcher or a service, and says what was shown.

    Attributes:
        searches: An opened `weft.Searcher`, or a `weft.Client`.
        k: Documents.
        producer: Takes what was shown; a client needs none, since its service says it.
        fields: Of every query, by the names of `weft.Query`.
    """

    searches: Any
    k: int = Field(default=10, ge=1, le=1000)
    producer: Any = None
    fields: Mapping[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:  # noqa: ARG002
        return _documents(self._passages.find(query, self.k))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        return _documents(await self._passages.afind(query, self.k))

    @cached_property
    def _passages(self) -> PassageFinder:
        return PassageFinder(self.searches, self.producer, self.fields)


def _documents(answer: Answer) -> list[Document]:
    return [
        Document(page_content=each.text, id=each.content_hash, metadata=metadata_of(answer, each))
        for each in answer.results
    ]
