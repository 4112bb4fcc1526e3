"""What of the live generation a night could pass over (CON-5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from weft.catalog.catalog import Catalog
from weft.consolidation.tending.thinning import (
    LEAST_CHUNKS,
    ContentDocuments,
    FindThinned,
    ThinnedExample,
    Thinning,
    far_contents,
    thinnable,
    thinning_of,
    used,
)
from weft.domain.arrays import Flags, Floats
from weft.domain.errors import StoreError
from weft.domain.links import Relation, RelationSource
from weft.indexes.generation import Generation
from weft.indexes.graph.graph import CROSS_REFERENCES, RELATIONS, EdgeKind
from weft.learning.aliases import ContentAliases
from weft.learning.evidence import Evidence
from weft.retrieval.snapshot.relations import resolve_relations
from weft.settings import Settings


def thinning_finder(settings: Settings) -> FindThinned | None:
    """Finds chunks that are far from their documents; none where that is off; None where nothing is live."""
    catalog, rules = Catalog(Path(settings.storage.root)), settings.consolidation.thinning
    if catalog.pointer().generation is None:
        return None

    def find(evidence: Evidence, aliases: ContentAliases) -> Thinning:
        if not rules.enabled:
            return Thinning()
        with closing(catalog.open_live()) as generation:
            content, _, document = generation.chunks.occurrence_arrays(np.arange(len(generation.contents)))
            content_documents, dense = (
                ContentDocuments(content, document),
                generation.dense(next(iter(generation.manifest.dense))),
            )
            nearness = far_contents(content_documents, dense.vectors, least=LEAST_CHUNKS)
            stays = protected_contents(generation, catalog.relations(), settings)
            rows = generation.chunks.rows_of(sorted(used(evidence, aliases)))
            stays[rows[rows >= 0]] = True
            gone = thinnable(content_documents, nearness, stays, rules)
            return thinning_of(gone, nearness, generation.contents, _described(generation, nearness), rules)

    return find


def protected_contents(generation: Generation, declared: Sequence[Relation], settings: Settings) -> Flags:
    """Contents that something holds where they are, bool (contents,).

    A chunk is anchored where it is the first of its document, has a label or defines a symbol, something leads to it
    (a link, a call, a citation), it is an end of a causal relation, or its document declares phrases that it answers
    to, or that it always holds.
    """
    chunks, size = generation.chunks, len(generation.contents)
    content, place, _ = chunks.occurrence_arrays(np.arange(size))
    table = chunks.table("chunks").select(["sequence", "anchor", "symbol"])
    first = table["sequence"].to_numpy() == 0
    named = [column.is_valid().to_numpy(zero_copy_only=False) for column in (table["anchor"], table["symbol"])]
    holds = np.zeros(size, dtype=bool)
    holds[content[(first | named[0] | named[1])[place]]] = True
    for _, rows in chunks.trigger_phrases():
        holds[list(rows)] = True
    holds[list(chunks.rows_of_tiers(settings.retrieval.degree.excluded_tiers))] = True
    try:
        strengths = dict.fromkeys(RelationSource, 1.0)
        edges = resolve_relations(generation, declared).extend_edges(generation.graph.arrays(), strengths)
    except StoreError:  # built without a graph
        return holds
    kinds = list(EdgeKind)
    leads = np.isin(edges.kind, [kinds.index(kind) for kind in CROSS_REFERENCES - {EdgeKind.SIMILAR}])
    leads &= edges.source != edges.target
    causal = np.isin(edges.kind, [kinds.index(kind) for kind in RELATIONS])
    for ends in (edges.target[leads], edges.target[causal], edges.source[causal]):
        holds[ends[ends < size]] = True
    return holds


def _described(generation: Generation, nearness: Floats) -> Callable[[Sequence[int]], Sequence[ThinnedExample]]:
    def describe(rows: Sequence[int]) -> list[ThinnedExample]:
        return [
            ThinnedExample(
                content=one.content_hash,
                cosine=float(nearness[row]),
                document=one.occurrences[0].uri,
                chunks=len(generation.chunks.rows_of_document(one.occurrences[0].uri)),
                text=one.text,
            )
            for row, one in zip(rows, generation.chunks.contents(rows), strict=True)
        ]

    return describe
