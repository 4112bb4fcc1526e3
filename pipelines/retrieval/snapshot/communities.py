"""Communities of a generation's graph as a filter: of contents, where other filters are of documents (GRA-2)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pipelines.domain.errors import StoreError
from pipelines.indexes.chunk_store import StoredDocument
from pipelines.retrieval.snapshot.ports import OpenGeneration

COMMUNITY = "community"
"""Name under which a content's community in the graph is asked for, unless documents declare facts of that name."""


def declares_community(documents: Iterable[StoredDocument]) -> bool:
    """Whether documents mean something else by it."""
    return any(COMMUNITY in document.metadata for document in documents)


def communities_of(generation: OpenGeneration) -> np.ndarray | None:
    """Number of each content's community; None where the generation was built without."""
    try:
        return generation.graph.communities()
    except StoreError:
        return None
