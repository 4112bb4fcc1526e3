"""Edges between contents that lie near each other or were used together, found by the night (CON-3).

Near ones are of different documents and not linked otherwise (source `auto`); what was used together follows from the
evidence alone (source `learned`). Both are part of the learned version: a roll-back takes them away.

The strength of what was used together is a Hebbian one, from the evidence of use alone. Two contents were used
together where one principal found both good for one question on one day. How much that is, is the lesser of their
masses, one use at most. Uses fade with the days that others are used on: while nothing is used, nothing fades. So the
same evidence gives the same strengths whenever it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import polars as pl

from weft.consolidation.night import NightContext, StepResult, When
from weft.consolidation.settings import LinkSettings
from weft.consolidation.steps.duplicates import ContentReader, GenerationContents
from weft.domain.arrays import Flags, Ints
from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash
from weft.domain.links import LinkKind, Relation, RelationSource
from weft.indexes.dense.close_pairs import Rows, close_pairs
from weft.indexes.generation import Generation
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.edges import NO_EDGES, LearnedEdge, LearnedEdges
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.verdicts import is_good
from weft.learning.recency import recency
from weft.learning.uses import Uses
from weft.retrieval.snapshot.relations import resolve_relations
from weft.runtime.clock import day_of

_EXAMPLES = 5  # of each kind that a report shows
_NEIGHBOURS = 5  # nearest contents of each that are compared

LINKS = (LinkKind.SIMILAR, LinkKind.CO_USED)
"""Kinds of edges that this step finds."""

Pair = tuple[ContentHash, ContentHash]
"""Two contents in ascending order."""

_TOGETHER = ("day", "who", "why")  # a principal's question of one day


@dataclass(frozen=True, slots=True)
class ExistingEdges:
    """What joins contents already, and is not joined anew."""

    # Between which the generation or a person has an edge, int64 (pairs, 2), in ascending order within a pair
    rows: Ints
    aliases: ContentAliases = NO_ALIASES
    contradictions: LearnedEdges = NO_EDGES  # That tonight found

    def has(self, contents: Sequence[ContentHash], pairs: Ints) -> Flags:
        """Which pairs of rows, int64 (pairs, 2), it joins; and those of aliases, which nobody is shown."""
        size = max(1, len(contents))
        linked: Flags = np.isin(pairs[:, 0] * size + pairs[:, 1], self.rows[:, 0] * size + self.rows[:, 1])
        opposed = {(each.content, each.target) for each in self.contradictions.edges}
        hidden = self.aliases.representatives.keys()
        named = ((contents[one], contents[other]) for one, other in pairs.tolist())
        hides = np.array([both in opposed or not hidden.isdisjoint(both) for both in named], dtype=bool)
        either: Flags = linked | hides
        return either


@dataclass(frozen=True, slots=True)
class LinkExample:
    """Both ends of a link, as a report shows them."""

    kind: str
    source: str
    content: ContentHash
    other: ContentHash
    strength: float  # in (0, 1]: the cosine of similar ones, of others how much they were used together
    text: str
    other_text: str


@dataclass(frozen=True, slots=True)
class Links:
    """What a night found."""

    edges: LearnedEdges = NO_EDGES
    examples: Sequence[LinkExample] = ()  # the strongest of each kind

    def counts(self) -> dict[str, float]:
        """Edges by kind."""
        return {kind.value: sum(each.kind is kind for each in self.edges.edges) for kind in LINKS}


class FindLinks:
    """Finds what is similar in the live generation, and what was used together."""

    name: ClassVar[str] = "links"
    says: ClassVar[str] = "linking what is similar and what was used together"
    when: ClassVar[When] = When.FRESH

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`; aliases and contradictions of the night are not linked."""
        if not context.has_generation:
            return StepResult()
        learned, catalog, rules = context.learned, context.catalog, context.settings.consolidation.links
        former = learned.part(LearnedEdges) or NO_EDGES
        opposed = former.of_kinds((LinkKind.CONTRADICTS,))
        with closing(catalog.open_live()) as generation:
            memory = GenerationContents(generation.contents, generation.chunks)
            linked = _linked(generation, catalog.relations())
            joined = ExistingEdges(linked, learned.part(ContentAliases) or NO_ALIASES, opposed)
            today, vectors = day_of(context.night.now), partial(_vectors, generation)
            links = find_links(memory, vectors, joined, learned.evidence, rules, today=today)
        counts, changes = links.counts(), links.edges.changes(context.candidate.live.part(LearnedEdges))
        note = f"{counts['similar']:,} pairs are similar, {counts['co_used']:,} were used together"
        return StepResult(
            part=former.instead(LINKS, links.edges),
            counts={"proposed": len(changes.added), **counts},
            examples=[asdict(each) for each in links.examples],
            note=note if len(links.edges) else "",
        )


def _vectors(generation: Generation) -> Rows:
    """The vector of each content by the encoder that its graph is built with; none where it has no encoder."""
    if not generation.encoders:
        return np.zeros((0, 1), np.float32)
    vectors: Rows = generation.dense(min(generation.encoders))
    return vectors


def _linked(generation: Generation, relations: Sequence[Relation]) -> Ints:
    """Pairs of contents that an edge of the generation or of the store joins, as rows."""
    try:
        edges = resolve_relations(generation, relations).extend_edges(
            generation.graph.arrays(), dict.fromkeys(RelationSource, 1.0)
        )
    except StoreError:  # built without a graph
        return np.zeros((0, 2), np.int64)
    ends = np.stack([edges.source, edges.target], axis=1)
    return np.unique(np.sort(ends[edges.target < edges.contents], axis=1), axis=0)


def find_links(
    memory: ContentReader,
    vectors: Callable[[], Rows],
    joined: ExistingEdges,
    evidence: Evidence,
    settings: LinkSettings,
    *,
    today: int,
) -> Links:
    """The links of all contents, the same for the same contents and evidence, in whatever order they come.

    Time is that of `close_pairs`, nearly linear in contents, and linear in evidence.

    Args:
        vectors: Unit rows of the contents, float32 (n, dimension); asked for where similar ones are wanted.
        today: Days since the epoch.
    """
    edges = LearnedEdges.of(
        [
            *_similar(memory, vectors, joined, settings),
            *_used_together(memory.contents, joined.aliases, evidence, settings, today=today),
        ]
    )
    return Links(edges, _examples(memory, edges))


def _similar(
    memory: ContentReader, vectors: Callable[[], Rows], joined: ExistingEdges, settings: LinkSettings
) -> list[LearnedEdge]:
    if settings.least_cosine > 1.0:
        return []
    pairs, cosines = close_pairs(vectors(), least=settings.least_cosine, neighbours=_NEIGHBOURS)
    contents = memory.contents
    fresh = ~joined.has(contents, pairs)
    fresh[fresh] = memory.in_distinct_documents(pairs[fresh])
    return [
        LearnedEdge(contents[one], LinkKind.SIMILAR, contents[other], RelationSource.AUTO, round(cosine * MICRO))
        for (one, other), cosine in zip(pairs[fresh].tolist(), cosines[fresh].tolist(), strict=True)
    ]


def _used_together(
    contents: Sequence[ContentHash], aliases: ContentAliases, evidence: Evidence, settings: LinkSettings, *, today: int
) -> list[LearnedEdge]:
    live = set(contents)

    def named(content: ContentHash) -> ContentHash | None:
        return leader if (leader := aliases.of(content)) in live else None

    uses = co_uses(
        evidence, named=named, half_life_days=settings.half_life_days, together=settings.together, today=today
    )
    least = settings.least_uses * MICRO
    return [
        LearnedEdge(one, LinkKind.CO_USED, other, RelationSource.LEARNED, by_use)
        for (one, other), micro in uses.items()
        if micro >= least and (by_use := strength(micro, half_uses=settings.half_uses))
    ]


def _examples(memory: ContentReader, edges: LearnedEdges) -> list[LinkExample]:
    shown = [
        each
        for kind in reversed(LINKS)
        for each in sorted(
            (one for one in edges.edges if one.kind is kind), key=lambda one: (-one.micro, one.content, one.target)
        )[:_EXAMPLES]
    ]
    if not shown:
        return []
    ends = {end for each in shown for end in (each.content, each.target)}
    rows = [row for row, content in enumerate(memory.contents) if content in ends]
    texts = dict(zip((memory.contents[row] for row in rows), memory.texts(rows), strict=True))
    return [
        LinkExample(
            each.kind.value,
            each.source.value,
            each.content,
            each.target,
            each.micro / MICRO,
            texts[each.content],
            texts[each.target],
        )
        for each in shown
    ]


def co_uses(
    evidence: Evidence,
    *,
    named: Callable[[ContentHash], ContentHash | None],
    half_life_days: float,  # after which a use counts half
    together: int,
    today: int,  # the newest day that counts as one, days since the epoch: what claims to be later moves nothing else
) -> dict[Pair, int]:
    """How much pairs of contents were used together, in micro-units, as it counts on the newest day of use."""
    uses = Uses.of(evidence.usage).columns()
    if not len(uses.day):
        return {}
    good = np.array([is_good(word) is True for word in uses.bin.values], dtype=bool)[uses.bin.codes]
    names = pl.Series([named(ContentHash(word)) for word in uses.content.values], dtype=pl.String)
    newest, days = min(int(uses.day.max()), today), np.unique(uses.day).tolist()
    counts = {day: recency(newest - day, half_life_days) for day in days}
    columns = {"day": uses.day, "who": uses.principal.codes, "why": uses.question.codes, "micro": uses.micro}
    masses = (
        pl.LazyFrame({**columns, "content": names.gather(uses.content.codes)})
        .filter(pl.Series(good & (uses.micro > 0) & ~uses.question.holds("")), pl.col("content").is_not_null())
        .group_by(*_TOGETHER, "content")
        .agg(pl.sum("micro"))
        .filter(pl.len().over(_TOGETHER) > 1)
        .sort("micro", "content", descending=[True, False])
        .group_by(_TOGETHER, maintain_order=True)
        .head(together)
    )
    lesser = pl.min_horizontal("micro", "micro_right", pl.lit(MICRO))
    pairs = (
        masses.join(masses, on=_TOGETHER)
        .filter(pl.col("content") < pl.col("content_right"))
        .group_by("content", "content_right")
        .agg((lesser * pl.col("day").replace_strict(counts)).round(mode="half_to_even").cast(pl.Int64).sum())
        .filter(pl.col("micro") != 0)
        .sort("content", "content_right")
        .collect(engine="streaming")
    )
    return {(ContentHash(one), ContentHash(other)): micro for one, other, micro in pairs.iter_rows()}


def strength(micro: int, *, half_uses: float) -> int:
    """How strong an edge is by so much use, in [0, `MICRO`]: n / (n + half), so that each further use adds less."""
    half = round(half_uses * MICRO)
    return (2 * MICRO * micro + micro + half) // (2 * (micro + half)) if micro > 0 else 0
