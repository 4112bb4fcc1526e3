"""Chunks that say little of what their document is about, found by the night (CON-5).

A document's summary is the mean of its chunks' unit vectors. Nothing is removed: searches of everything pass over what
is thinned, and whoever names a place, or words that must be held, finds it where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from weft.catalog.catalog import Catalog
from weft.consolidation.improvement import Improvement
from weft.consolidation.night import NightContext, NightSettings, StepResult, When
from weft.consolidation.settings import ThinningSettings
from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash
from weft.domain.links import Relation, RelationSource
from weft.indexes.generation import Generation
from weft.indexes.graph.graph import CROSS_REFERENCES, RELATIONS, EdgeKind
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.evidence import Evidence
from weft.learning.observe.verdicts import is_good
from weft.learning.parameters import ACCURATE, INCLUSION, REFERENCE
from weft.learning.thinned import NOTHING_THINNED, Thinned
from weft.learning.uses import Uses
from weft.retrieval.snapshot.relations import resolve_relations

MEASURE = "recall_at_20"
"""What may fall by no more than is stated."""

LEAST_CHUNKS = 2
"""That stay of every document (CON-5)."""

_EXAMPLES = 10  # that a report shows
_BLOCK = 1 << 16  # vectors read at once
_USES = frozenset({INCLUSION, REFERENCE, ACCURATE})  # beside outcomes; being found is no use


@dataclass(frozen=True, slots=True)
class ContentDocuments:
    """Where contents stand: int64 (places,) each, by place."""

    content: Ints  # row of the content
    document: Ints  # number of the document


@dataclass(frozen=True, slots=True)
class ThinnedExample:
    """A chunk that is passed over, as a report shows it."""

    content: ContentHash
    cosine: float  # to the mean of its document's chunks
    document: str
    chunks: int  # of that document
    text: str


@dataclass(frozen=True, slots=True)
class Thinning:
    """What a night found."""

    thinned: Thinned = NOTHING_THINNED  # what becomes passed over
    proposed: Thinned = NOTHING_THINNED  # what would be, were the loss small enough; the same, where it is
    candidates: int = 0  # contents that are far from every document they stand in
    staying: int = 0  # of these, those that stay: anchored, used, or among the last of their document
    recall: Sequence[Improvement] = ()  # by whose questions these are, before and after
    examples: Sequence[ThinnedExample] = ()  # the furthest first

    def counts(self) -> dict[str, float]:
        """What a report counts."""
        measured = {
            f"{one.source}_{MEASURE}_{when}": interval.mean
            for one in self.recall
            for when, interval in (("before", one.before), ("after", one.after))
        }
        return {
            "candidates": self.candidates,
            "staying": self.staying,
            "thinned": len(self.thinned),
            "waiting": len(self.proposed) - len(self.thinned),
            **measured,
        }

    def checked(self, recall: Sequence[Improvement], settings: ThinningSettings) -> Thinning:
        """The same where recall stays; else it is only proposed: it fell too far, or no question measured it."""
        some = [one for one in recall if one.measure == MEASURE]
        stays = bool(some) and all(one.after.mean >= (1.0 - settings.most_loss) * one.before.mean for one in some)
        return replace(self, thinned=self.proposed if stays else NOTHING_THINNED, recall=some)


class FindThinned:
    """Finds chunks that are far from their documents, where that is on, and passes over them where recall bears it."""

    name: ClassVar[str] = "thinning"
    says: ClassVar[str] = "looking for chunks far from what their documents are about"
    when: ClassVar[When] = When.FRESH

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`."""
        if not context.has_generation:
            return StepResult()
        learned, rules = context.learned, context.settings.consolidation.thinning
        aliases = learned.part(ContentAliases) or NO_ALIASES
        thinning = thinning_in(context.catalog, learned.evidence, aliases, context.settings)
        if thinning.proposed and (recall := context.night.recall) is not None:
            whole, thinner = (learned.with_part(Thinned, some) for some in (None, thinning.proposed))
            thinning = thinning.checked(recall(whole, thinner), rules)
        former = context.candidate.live.part(Thinned) or NOTHING_THINNED
        outcome = "are passed over" if thinning.thinned else "are only proposed, for what recall would lose"
        about = f"{len(thinning.proposed):,} chunks far from what their documents are about {outcome}"
        return StepResult(
            part=thinning.thinned,
            counts={
                "proposed": len(thinning.proposed - former),
                "restored": len(former - thinning.thinned),
                **thinning.counts(),
            },
            applied=len(thinning.thinned - former),
            examples=[asdict(each) for each in thinning.examples],
            note=about if thinning.proposed else "",
        )


def thinning_in(catalog: Catalog, evidence: Evidence, aliases: ContentAliases, settings: NightSettings) -> Thinning:
    """What of the live generation could be passed over, given what became of contents and which are one."""
    rules = settings.consolidation.thinning
    if not rules.enabled:
        return Thinning()
    with closing(catalog.open_live()) as generation:
        if not generation.encoders:
            return Thinning()
        content, _, document = generation.chunks.occurrence_arrays(np.arange(len(generation.contents)))
        places, dense = ContentDocuments(content, document), generation.dense(next(iter(generation.manifest.dense)))
        nearness = far_contents(places, dense.vectors, least=LEAST_CHUNKS)
        stays = protected_contents(generation, catalog.relations(), settings)
        rows = generation.chunks.rows_of(sorted(used(evidence, aliases)))
        stays[rows[rows >= 0]] = True
        gone = thinnable(places, nearness, stays, rules)
        return thinning_of(gone, nearness, generation.contents, _described(generation, nearness), rules)


def far_contents(
    content_documents: ContentDocuments, vectors: Callable[[Ints], NDArray[np.float32]], *, least: int
) -> Floats:
    """Cosine of each content to the mean of its document's chunks, of several documents the greatest.

    Args:
        vectors: Unit rows of contents, float32 (n, dimension).
        least: Chunks that a document has at most for its contents to count as near: nothing of it would be passed over.

    Returns:
        float64 (contents,) in [−1, 1].
    """
    sizes = np.bincount(content_documents.document)
    contents = int(content_documents.content.max(initial=-1)) + 1
    nearest = np.full(contents, -1.0)
    np.maximum.at(nearest, content_documents.content, np.where(sizes[content_documents.document] > least, -1.0, 1.0))
    large = np.flatnonzero(sizes[content_documents.document] > least)
    if not len(large):
        return nearest
    some = large[np.argsort(content_documents.document[large], kind="stable")]
    ordered = content_documents.document[some]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    begin = 0
    while begin < len(starts):
        # Whole documents, as many as fit a block.
        end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + _BLOCK)))
        stop = len(some) if end >= len(starts) else int(starts[end])
        places = some[starts[begin] : stop]
        unit = vectors(content_documents.content[places]).astype(np.float64)
        bounds = starts[begin : min(end, len(starts))] - starts[begin]
        sums = np.add.reduceat(unit, bounds, axis=0)
        lengths = np.linalg.norm(sums, axis=1)
        means = sums / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        counts = np.diff(np.append(bounds, len(places)))
        cosines = np.einsum("ij,ij->i", unit, np.repeat(means, counts, axis=0))
        np.maximum.at(nearest, content_documents.content[places], np.round(cosines, 6))
        begin = end
    return nearest


def thinnable(
    content_documents: ContentDocuments, nearness: Floats, stays: Flags, settings: ThinningSettings
) -> list[int]:
    """Rows that can be passed over, the furthest first, ties by row, so that enough of every document stay.

    Args:
        nearness: See `far_contents`.
        stays: bool (contents,), those that never go.
    """
    rows = np.flatnonzero((nearness < settings.least_cosine) & ~stays)
    order = np.argsort(content_documents.content, kind="stable")
    owners, documents = content_documents.content[order], content_documents.document[order]
    left = np.bincount(documents)
    gone: list[int] = []
    for row in rows[np.lexsort((rows, nearness[rows]))].tolist():
        begin, end = np.searchsorted(owners, [row, row + 1])
        numbers, places = np.unique(documents[begin:end], return_counts=True)
        if np.all(left[numbers] - places >= LEAST_CHUNKS):
            left[numbers] -= places
            gone.append(row)
    return gone


def used(evidence: Evidence, aliases: ContentAliases = NO_ALIASES) -> frozenset[ContentHash]:
    """Contents that somebody used or praised, and all that stand for one another with one of them."""
    uses = Uses.of(evidence.usage).columns()
    speaks = np.array([is_good(name) is True or name in _USES for name in uses.bin.values], dtype=bool)
    codes = np.unique(uses.content.codes[speaks[uses.bin.codes]]).tolist() if len(speaks) else []
    named = {aliases.of(uses.content.values[code]) for code in codes}
    return frozenset(named | {member for each in named for member in aliases.members(each)})


def thinning_of(
    rows: Sequence[int],
    nearness: Floats,
    contents: Sequence[ContentHash],
    describe: Callable[[Sequence[int]], Sequence[ThinnedExample]],
    settings: ThinningSettings,
) -> Thinning:
    """What a night proposes: nothing of it counts before it is `checked`."""
    candidates = int((nearness < settings.least_cosine).sum())
    return Thinning(
        proposed=Thinned(contents[row] for row in rows),
        candidates=candidates,
        staying=candidates - len(rows),
        examples=describe(rows[:_EXAMPLES]),
    )


def protected_contents(generation: Generation, declared: Sequence[Relation], settings: NightSettings) -> Flags:
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
