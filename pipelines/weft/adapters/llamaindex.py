"""A retriever for LlamaIndex (extra `llamaindex`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from weft.adapters.passages import FOR_MODELS, Emits, PassageFinder, SearchSource, metadata_of
from weft.domain.ranking import Answer


class WeftNodeRetriever(BaseRetriever):  # type: ignore[misc]  # an extra, which checkers need not have
    """Finds nodes by a searcher or a service, and says what was shown."""

    def __init__(
        self,
        searches: SearchSource,
        *,
        k: int = 10,
        producer: Emits | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        """Make a retriever.

        Args:
            searches: An opened `weft.Searcher`, or a `weft.Client`.
            k: Nodes.
            producer: Takes what was shown; a client needs none, since its service says it.
            fields: Of every query, by the names of `weft.Query`.
        """
        super().__init__()
        self._passages = PassageFinder(searches, producer, fields or {})
        self._k = k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._passages.find(query_bundle.query_str, self._k))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._passages.afind(query_bundle.query_str, self._k))


def _nodes(answer: Answer) -> list[NodeWithScore]:
    nodes = []
    for each in answer.results:
        facts = metadata_of(answer, each)
        hidden = sorted(facts.keys() - FOR_MODELS)
        node = TextNode(
            id_=each.content_hash,
            text=each.text,
            metadata=facts,
            excluded_llm_metadata_keys=hidden,
            excluded_embed_metadata_keys=hidden,
        )
        nodes.append(NodeWithScore(node=node, score=each.score))
    return nodes
