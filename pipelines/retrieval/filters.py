"""Which contents a query may find: explicit filters over document metadata, before ranking (RET-4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from pipelines.retrieval.ports import ContentStore, Standing

Ranking = Sequence[tuple[int, float]]
"""Row of a content and a channel's score (higher is better), best first, each row once."""

FOLDER = "folder"
"""The one fact that is a path: asking for a folder finds what lies anywhere below it."""

_BLOCK = 4096  # contents read at a time while a mask is made: bounds memory, changes nothing else
_MASKS = 64  # masks kept: one per filter in use; a bit per content each


class RowFilter:
    """Row masks of one generation, made on first use of a filter and kept.

    Making one reads every content once, so the first query with a new filter costs a scan of the generation.
    """

    def __init__(self, chunks: ContentStore, n_contents: int) -> None:
        self._chunks = chunks
        self._n_contents = n_contents
        self._mask = lru_cache(maxsize=_MASKS)(self._scan)

    def allowed(self, ranking: Ranking, filters: Mapping[str, str], depth: int) -> Ranking:
        """The first `depth` hits of a ranking that the filters let through."""
        if not filters:
            return ranking[:depth]
        mask = self._mask(tuple(sorted(filters.items())))
        return [hit for hit in ranking if mask[hit[0]]][:depth]

    def _scan(self, filters: tuple[tuple[str, str], ...]) -> np.ndarray:
        wanted = dict(filters)
        mask = np.zeros(self._n_contents, dtype=bool)
        for start in range(0, self._n_contents, _BLOCK):
            for content in self._chunks.contents(range(start, min(start + _BLOCK, self._n_contents))):
                mask[content.row] = any(matches(standing, wanted) for standing in content.occurrences)
        return mask


def matches(standing: Standing, filters: Mapping[str, str]) -> bool:
    """Whether a document has all the metadata asked for; one in a folder lies in all that hold that folder, too."""
    return all(_holds(name, standing.metadata.get(name), value) for name, value in filters.items())


def _holds(name: str, found: str | None, wanted: str) -> bool:
    if name == FOLDER and found is not None:
        return f"{found}/".startswith(f"{wanted.rstrip('/')}/")
    return found == wanted


def standings_of(standings: Sequence[Standing], filters: Mapping[str, str]) -> tuple[Standing, ...]:
    """The places of a content that the filters let through."""
    return tuple(standing for standing in standings if matches(standing, filters))
