"""Near-duplicates across documents, found by the night: the best-supported content stands for the others (CON-2).

Candidates are neighbours by static vectors. What they say is compared before they count (`quality.statements`), and an
alias is compared with its representative itself, not with others of the class: nothing drifts along a chain.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weft.catalog.catalog import Catalog
from weft.consolidation.night import NightContext, NightSettings, StepResult, When
from weft.consolidation.settings import NearDuplicateSettings
from weft.consolidation.steps.succession import Successions
from weft.domain.arrays import Flags, Ints
from weft.domain.ids import ContentHash
from weft.embedding.static_vectors import static_vectors
from weft.indexes.chunk_store import ChunkStore
from weft.indexes.dense.close_pairs import close_pairs
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.evidence import Evidence
from weft.learning.observe.verdicts import is_good
from weft.learning.uses import Uses
from weft.quality.statements import Statements, WordLists

Floats = NDArray[np.float32]

_EXAMPLES = 10  # that a report shows
_NEIGHBOURS = 8  # nearest contents of each that are compared; larger groups are joined through others


class ContentReader(Protocol):
    """The contents that a night looks for near-duplicates in."""

    @property
    def contents(self) -> Sequence[ContentHash]:
        """Content hash by row, ascending."""

    def texts(self, rows: Sequence[int]) -> Iterable[str]:
        """The texts of contents at ascending rows, in their order."""

    def since(self) -> Sequence[float]:
        """When each was said first, seconds since the epoch; infinite where that is not known."""

    def in_distinct_documents(self, pairs: Ints) -> Flags:
        """Which pairs of rows, int64 (pairs, 2), stand in no document together."""


Vectors = Callable[[Iterable[str]], Floats]
"""Unit rows of texts, float32 (n, dimension): near where texts are."""


@dataclass(frozen=True, slots=True)
class Example:
    """An alias and what stands for it, as a report shows them."""

    alias: ContentHash
    representative: ContentHash
    cosine: float  # of their static vectors
    text: str
    representative_text: str


class NearPair(NamedTuple):
    """Two contents of different documents that lie near each other."""

    content: ContentHash  # In ascending order
    other: ContentHash
    cosine: float  # of their static vectors
    text: str
    other_text: str


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What a night found."""

    aliases: ContentAliases
    candidates: int  # pairs that lie near enough, of different documents
    refused: Sequence[NearPair]  # of these, pairs that do not say the same
    examples: Sequence[Example]  # of what matters most: contents that served most, then the pairs least alike


class FindDuplicates:
    """Finds near-duplicates in the live generation."""

    name: ClassVar[str] = "duplicates"
    says: ClassVar[str] = "looking for near-duplicates across documents"
    when: ClassVar[When] = When.FRESH

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`; what is superseded represents no other."""
        if not context.has_generation:
            return StepResult()
        successions = context.outcome(Successions)
        superseded = () if successions is None else successions.superseded
        return duplicates_result(
            duplicates_in(context.catalog, context.learned.evidence, superseded, context.settings), context
        )


def duplicates_result(duplicates: Duplicates, context: NightContext) -> StepResult:
    """What near-duplicates come to: aliases, beside those of the live version."""
    added, gone = map(len, duplicates.aliases.changes(context.candidate.live.part(ContentAliases)))
    return StepResult(
        part=duplicates.aliases,
        counts={
            "aliases": len(duplicates.aliases),
            "representatives": len(duplicates.aliases.classes()),
            "candidates": duplicates.candidates,
            "refused": len(duplicates.refused),
        },
        examples=[asdict(each) for each in duplicates.examples],
        note=f"{added:,} more aliases, {gone:,} fewer" if added or gone else "",
        outcome=duplicates,
    )


def duplicates_in(
    catalog: Catalog, evidence: Evidence, superseded: Collection[ContentHash], settings: NightSettings
) -> Duplicates:
    """Near-duplicates of the live generation, given what became of contents, and which of them are superseded."""
    vectors, lists, rules = static_vectors(settings.embedding), word_lists(settings), settings.consolidation.duplicates
    with closing(catalog.open_live()) as generation:
        memory = GenerationContents(generation.contents, generation.chunks)
        return find_duplicates(memory, vectors, evidence, lists, rules, superseded=superseded)


def word_lists(settings: NightSettings) -> WordLists:
    """Words in which near-duplicates must agree: those of questions, and of lessons."""
    rules, near, words = settings.consolidation.duplicates, settings.priors.near, settings.lessons.words
    return WordLists.of(
        near.negations,
        rules.absolutes,
        rules.numerals,
        rules.order,
        (*near.opposites, *words.opposites),
        near.idle_words,
        words.units,
        rules.conditions,
    )


def find_duplicates(
    memory: ContentReader,
    vectors: Vectors,
    evidence: Evidence,
    lists: WordLists,
    settings: NearDuplicateSettings,
    *,
    superseded: Collection[ContentHash] = (),  # contents that stand for no other that is not superseded itself
) -> Duplicates:
    """The aliases of all contents, the same for the same contents and evidence, in whatever order they come."""
    if settings.least_cosine > 1.0:
        return Duplicates(NO_ALIASES, 0, (), ())
    every = vectors(memory.texts(range(len(memory.contents))))
    pairs, cosines = close_pairs(every, least=settings.least_cosine, neighbours=_NEIGHBOURS)
    del every
    apart = memory.in_distinct_documents(pairs)
    rows = np.unique(pairs[apart]).tolist()
    texts = dict(zip(rows, memory.texts(rows), strict=True))
    near = {(a, b): cosine for (a, b), cosine in zip(pairs[apart].tolist(), cosines[apart].tolist(), strict=True)}
    says = ContentComparer(texts, lists, settings.least_overlap)
    edges = [pair for pair in near if says.same(*pair)]
    contents, support = memory.contents, support_of(evidence)
    leaders = represented(edges, _ranks(memory, support, superseded), says.same)
    named = {contents[row]: contents[leader] for row, leader in leaders.items()}

    def importance(pair: tuple[int, int]) -> tuple[int, float, str]:
        served = sum(support.get(contents[row], 0) for row in pair)
        return -served, near.get((min(pair), max(pair)), -1.0), contents[pair[0]]  # joined through others: least alike

    shown = sorted(leaders.items(), key=importance)[:_EXAMPLES]
    examples = [
        Example(contents[row], contents[leader], float(np.dot(*vectors(both))), *both)
        for row, leader in shown
        for both in [(texts[row], texts[leader])]
    ]
    alike = set(edges)
    refused = [
        NearPair(contents[a], contents[b], cosine, texts[a], texts[b])
        for (a, b), cosine in near.items()
        if (a, b) not in alike
    ]
    return Duplicates(ContentAliases(named) if named else NO_ALIASES, len(near), refused, examples)


class GenerationContents:
    """The contents of an opened generation."""

    def __init__(self, contents: Sequence[ContentHash], chunks: ChunkStore) -> None:
        self.contents = contents
        row, _, document = chunks.occurrence_arrays(np.arange(len(contents)))
        self._places = np.bincount(row, minlength=len(contents))
        self._stands = pl.DataFrame({"row": row, "document": document}).unique().lazy()
        self._chunks = chunks

    def texts(self, rows: Sequence[int]) -> Iterable[str]:
        """The texts of contents at ascending rows: those of their representatives."""
        return self._chunks.texts(rows)

    def since(self) -> Sequence[float]:
        """The earliest date of the documents that each content stands in."""
        modified = [math.inf if each.modified_at is None else each.modified_at for each in self._chunks.documents()]
        dates = pl.LazyFrame(
            {"document": range(len(modified)), "since": modified}, {"document": pl.Int64, "since": float}
        )
        earliest = self._stands.join(dates, on="document").group_by("row").agg(pl.min("since")).sort("row").collect()
        return earliest["since"].to_list()

    def in_distinct_documents(self, pairs: Ints) -> Flags:
        """Which pairs of rows stand in no document together."""
        swapped = self._places[pairs[:, 0]] > self._places[pairs[:, 1]]
        fewer, more = np.where(swapped[:, None], pairs[:, ::-1], pairs).T  # who stands in fewer places is looked up
        met = (
            pl.LazyFrame({"pair": np.arange(len(pairs)), "row": fewer, "more": more})
            .join(self._stands, on="row")
            .join(self._stands, left_on=["more", "document"], right_on=["row", "document"], how="semi")
            .select(pl.col("pair").unique())
            .collect(engine="streaming")
        )
        apart = np.ones(len(pairs), dtype=bool)
        apart[met["pair"].to_numpy()] = False
        return apart


class ContentComparer:
    """Compares what contents say; each is taken apart once, each pair compared once."""

    def __init__(self, texts: Mapping[int, str], lists: WordLists, least: float) -> None:
        self._texts, self._lists, self._least = texts, lists, least
        self._read: dict[int, Statements] = {}
        self._compared: dict[tuple[int, int], bool] = {}

    def same(self, one: int, other: int) -> bool:
        """Whether two contents say the same, by row."""
        pair = (min(one, other), max(one, other))
        if pair not in self._compared:
            first, second = (self._statements(row) for row in pair)
            self._compared[pair] = first.repeats(second, self._least)
        return self._compared[pair]

    def _statements(self, row: int) -> Statements:
        if row not in self._read:
            self._read[row] = Statements(self._texts[row], self._lists)
        return self._read[row]


def represented(
    edges: Iterable[tuple[int, int]], rank: Callable[[int], object], same: Callable[[int, int], bool]
) -> dict[int, int]:
    """The representative of each alias, by row.

    Of what hangs together the first by rank stands for all that say the same as it does; of the rest the next one does,
    until none is left.
    """
    leaders: dict[int, int] = {}
    for group in _connected(edges):
        waiting = sorted(group, key=rank)  # type: ignore[arg-type]  # ranks of one night compare
        while waiting:
            leader, *others = waiting
            aliases = {row for row in others if same(leader, row)}
            leaders |= dict.fromkeys(aliases, leader)
            waiting = [row for row in others if row not in aliases]
    return leaders


def _connected(edges: Iterable[tuple[int, int]]) -> list[list[int]]:
    parents: dict[int, int] = {}

    def root(row: int) -> int:
        while (parent := parents.setdefault(row, row)) != row:
            parents[row] = row = parents[parent]
        return row

    for one, other in edges:
        low, high = sorted((root(one), root(other)))
        parents[high] = low
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for row in sorted(parents):
        groups[root(row)].append(row)
    return list(groups.values())


def _ranks(
    memory: ContentReader, support: Mapping[str, int], superseded: Collection[ContentHash]
) -> Callable[[int], tuple[bool, int, float, str]]:
    """Rows by support, the best first, of equals what was there first, ties by content hash; superseded ones last."""
    contents, since = memory.contents, memory.since()
    return lambda row: (contents[row] in superseded, -support.get(contents[row], 0), since[row], contents[row])


def support_of(evidence: Evidence) -> dict[str, int]:
    """Good outcomes less bad ones of each content, in micro-units, whenever they were."""
    uses = Uses.of(evidence.usage).columns()
    good = [is_good(name) for name in uses.bin.values]
    signs = np.array([0 if each is None else 1 if each else -1 for each in good], dtype=np.int64)
    masses = pl.LazyFrame({"content": uses.content.codes, "micro": signs[uses.bin.codes] * uses.micro})
    support = masses.group_by("content").sum().filter(pl.col("micro") != 0).collect()
    return {uses.content.values[content]: micro for content, micro in support.iter_rows()}
