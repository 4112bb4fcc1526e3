"""CON-2: which contents stand in no document together, beside comparing the documents of each pair."""

from __future__ import annotations

from typing import cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weft.consolidation.steps.duplicates import GenerationContents
from weft.domain.ids import content_hash
from weft.indexes.chunk_store import ChunkStore


class ContentDocuments:
    """Contents by row, each with the numbers of the documents that it stands in, place by place."""

    def __init__(self, documents: list[list[int]]) -> None:
        self.documents = documents

    def occurrence_arrays(self, _rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        owner = np.repeat(np.arange(len(self.documents)), [len(each) for each in self.documents])
        every = np.array([number for each in self.documents for number in each], dtype=np.int64)
        return owner, np.arange(len(every)), every


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=5), min_size=2, max_size=6), st.data())
def test_apart_are_those_without_a_document_of_both(documents: list[list[int]], data: st.DataObject) -> None:
    """CON-2: in any order, whichever stands in more places, several times in one document or once."""
    contents = sorted(content_hash(str(number)) for number in range(len(documents)))
    rows = st.integers(0, len(documents) - 1)
    pairs = data.draw(st.lists(st.tuples(rows, rows), max_size=8))
    memory = GenerationContents(contents, cast("ChunkStore", ContentDocuments(documents)))
    apart = memory.in_distinct_documents(np.array(pairs, dtype=np.int64).reshape(-1, 2))
    assert apart.tolist() == [set(documents[one]).isdisjoint(documents[other]) for one, other in pairs]
