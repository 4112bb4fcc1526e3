"""Pages that a later release of the same tree has in the place of others, found by the night (CON-4).

Two folders are releases of one tree where the later one has most pages of the other, under the same paths and in part
word for word, and later dates. What a page there says then supersedes what the page of the same path said, in whatever
markup either is. A page that was moved or split is superseded by the new pages that say what it said. Nothing of this
follows from names or dates alone: copies of a few pages, translations and other projects share paths or titles, and not
most of a tree's pages with their phrases.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import median
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from weft.catalog.catalog import Catalog
from weft.consolidation.night import NightContext, StepResult, When
from weft.consolidation.settings import SuccessionSettings
from weft.domain.arrays import Flags, Ints
from weft.domain.documents import ContentType
from weft.domain.ids import ContentHash
from weft.domain.links import LinkKind, RelationSource
from weft.indexes.chunk_store import ChunkStore
from weft.learning.edges import NO_EDGES, LearnedEdge, LearnedEdges
from weft.retrieval.snapshot.ports import OpenGeneration
from weft.retrieval.snapshot.relations import resolve_relations
from weft.runtime.clock import SECONDS_PER_DAY

_EXAMPLES = 10  # that a report shows
_LEAST_PAGES = 3  # of one path: one or two, such as a README, many folders have
_LEAST_DAYS = 1.0  # that a page must be later: what was copied in one go has dates of one day, in whatever order
_NEIGHBOURS = 8  # folders next by date that a page is compared in, however many releases there are
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"\w+")
_PHRASE = 3  # words that stand side by side: longer ones lose pages whose examples were written anew
PROSE = frozenset({ContentType.MARKDOWN, ContentType.RST, ContentType.MARKUP, ContentType.PAPER, ContentType.TEXT})
"""What says how things are, and which folder is a release. Configuration of two hosts may both be in use."""


class Page(NamedTuple):
    """A document, as far as it tells which other one it is a release of."""

    uri: str
    title: str | None
    content_type: ContentType
    modified_at: float | None  # seconds since the epoch; None where that is not known


class Passage(NamedTuple):
    """A content that stands in a page."""

    content: ContentHash
    text: str
    alone: bool  # whether it stands in no other document


Passages = Callable[[str], Sequence[Passage]]
"""The contents of a document, by its URI, in its order."""


@dataclass(frozen=True, slots=True)
class SuccessionExample:
    """A page and what supersedes it, by passages of both, as a report shows them."""

    newer: str
    older: str
    overlap: float  # share of the phrases of the shorter page that the other one has
    text: str
    older_text: str


@dataclass(frozen=True, slots=True)
class Successions:
    """What a night found."""

    # one of each pair of pages: from a content of the newer one alone to a content of the older one alone
    edges: LearnedEdges = NO_EDGES
    # contents that stand in nothing but what something supersedes, found or declared
    superseded: Collection[ContentHash] = frozenset()
    examples: Sequence[SuccessionExample] = ()  # of every pair of trees, those first that have least in common


class FindSuccessions:
    """Finds pages that a later release of the same tree has in the place of others."""

    name: ClassVar[str] = "successions"
    says: ClassVar[str] = "looking for pages that later releases supersede"
    when: ClassVar[When] = When.FRESH

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`."""
        former = context.learned.part(LearnedEdges) or NO_EDGES
        if not context.has_generation:
            return StepResult()
        with closing(context.catalog.open_live()) as generation:
            chunks = generation.chunks
            pages = [Page(each.uri, each.title, each.content_type, each.modified_at) for each in chunks.documents()]
            rules = context.settings.consolidation.succession
            successions = find_successions(pages, PassageReader(chunks), rules)
            superseded = _superseded(generation, context.catalog, successions.edges)
        count, live = len(successions.edges), context.candidate.live.part(LearnedEdges)
        return StepResult(
            part=former.instead((LinkKind.SUPERSEDES,), successions.edges),
            counts={"proposed": len(successions.edges.changes(live).added), "superseding": count},
            examples=[asdict(each) for each in successions.examples],
            note=f"{count:,} pages are superseded" if count else "",
            outcome=replace(successions, superseded=superseded),
        )


Phrase = tuple[str, ...]
"""Words that stand side by side."""


class _Pair(NamedTuple):
    older: Page
    newer: Page


def find_successions(pages: Sequence[Page], passages: Passages, settings: SuccessionSettings) -> Successions:
    """The pages that others supersede, the same for the same pages, in whatever order they come.

    Time is n log n in pages; only pages of trees which may be releases are read.
    """
    prose = [page for page in pages if page.content_type in PROSE]
    sizes = Counter(folder for page in prose for folder in _folders(page.uri))
    code = _by_trees([page for page in pages if page.content_type is ContentType.CODE])
    edges: list[LearnedEdge] = []
    examples: list[SuccessionExample] = []
    for (older, newer), pairs in sorted(_by_trees(prose).items()):
        least = max(_LEAST_PAGES, settings.least_share * sizes[older])
        if len(pairs) < least or _counts_down(older, newer):
            continue
        read = _Reading(passages)
        if median(map(read.overlap, pairs)) < settings.least_overlap:
            continue
        stayed = [pair for pair in pairs if read.overlap(pair) >= settings.least_overlap or _same_title(pair)]
        stayed += [pair for pair in code.get((older, newer), ()) if read.overlap(pair) >= settings.least_overlap]
        trees = [[page for page in prose if page.uri.startswith(f"{tree}/")] for tree in (older, newer)]
        moved = _moved(*_left(trees, pairs, stayed), read, settings)
        for pair in sorted([*stayed, *moved], key=lambda each: (read.overlap(each), each)):
            if (ends := _ends(passages(pair.older.uri), passages(pair.newer.uri))) is not None:
                before, after = ends
                edges.append(LearnedEdge(after.content, LinkKind.SUPERSEDES, before.content, RelationSource.AUTO))
                share = read.overlap(pair)
                examples.append(SuccessionExample(pair.newer.uri, pair.older.uri, share, after.text, before.text))
    return Successions(LearnedEdges.of(edges), frozenset(), tuple(examples[:_EXAMPLES]))


class _Reading:
    """The phrases of pages, each page read once."""

    def __init__(self, passages: Passages) -> None:
        self._passages = passages
        self._read: dict[str, frozenset[Phrase]] = {}

    def phrases(self, page: Page) -> frozenset[Phrase]:
        if page.uri not in self._read:
            self._read[page.uri] = _phrases(self._passages(page.uri))
        return self._read[page.uri]

    def overlap(self, pair: _Pair) -> float:
        """Share of the phrases of the shorter page that the other one has."""
        one, other = self.phrases(pair.older), self.phrases(pair.newer)
        return len(one & other) / max(1, min(len(one), len(other)))


def _same_title(pair: _Pair) -> bool:
    return pair.older.title == pair.newer.title


def _left(
    trees: Sequence[Sequence[Page]], pairs: Sequence[_Pair], stayed: Sequence[_Pair]
) -> tuple[Sequence[Page], Sequence[Page]]:
    """Pages of the earlier tree that none of the same path supersedes, and pages that only the later tree has."""
    superseded, same = {pair.older for pair in stayed}, {pair.newer for pair in pairs}
    older, newer = ([page for page in tree if page.modified_at is not None] for tree in trees)
    return [page for page in older if page not in superseded], [page for page in newer if page not in same]


def _moved(
    older: Sequence[Page], newer: Sequence[Page], read: _Reading, settings: SuccessionSettings
) -> Iterator[_Pair]:
    """What became of pages that are not where they were: of each the new pages that have most of what it said.

    A new page counts where most of what it shares with the old one is in none that shares more with it: release notes
    of two versions have a frame in common.
    """
    holders: defaultdict[Phrase, list[Page]] = defaultdict(list)
    for page in sorted(newer):
        for phrase in read.phrases(page):
            holders[phrase].append(page)
    for page in sorted(older):
        shared = Counter(holder for phrase in read.phrases(page) for holder in holders.get(phrase, ()))
        covered: set[Phrase] = set()
        for holder, count in sorted(shared.items(), key=lambda each: (-each[1], each[0])):
            pair = _Pair(page, holder)
            fresh = (read.phrases(page) & read.phrases(holder)) - covered
            later = _date(holder) - _date(page) >= _LEAST_DAYS * SECONDS_PER_DAY
            if later and read.overlap(pair) >= settings.least_overlap and 2 * len(fresh) > count:
                covered |= fresh
                yield pair


def _folders(uri: str) -> Iterator[str]:
    """Every folder above a document."""
    folder, _, _ = uri.rpartition("/")
    while folder:
        yield folder
        folder, _, _ = folder.rpartition("/")


def _counts_down(older: str, newer: str) -> bool:
    """Whether names that are versions say the opposite of dates, as where the earlier release was copied later."""
    (word, numbers), (other, others) = (
        (_NUMBER.split(name, maxsplit=1)[0], [int(number) for number in _NUMBER.findall(name)])
        for name in (folder.rpartition("/")[2] for folder in (older, newer))
    )
    return word == other and numbers > others


def _by_trees(pages: Sequence[Page]) -> Mapping[tuple[str, str], Sequence[_Pair]]:
    """Pages of one path in two folders that stand side by side, the later one last, by these folders.

    The suffix may be another: documentation moves from one markup to another.
    """
    places: defaultdict[tuple[str, str], list[tuple[str, Page]]] = defaultdict(list)
    for page in pages:
        if page.modified_at is not None:
            for folder in _folders(page.uri):
                above, _, _ = folder.rpartition("/")
                places[above, _without_suffix(page.uri[len(folder) :])].append((folder, page))
    pairs: defaultdict[tuple[str, str], list[_Pair]] = defaultdict(list)
    for some in places.values():
        if len(some) > 1:
            in_order = sorted(some, key=lambda each: (_date(each[1]), each[1].uri))
            for at, (folder, page) in enumerate(in_order):
                for other, later in in_order[at + 1 : at + 1 + _NEIGHBOURS]:
                    if other != folder and _date(later) - _date(page) >= _LEAST_DAYS * SECONDS_PER_DAY:
                        pairs[folder, other].append(_Pair(page, later))
    return {trees: sorted(some) for trees, some in pairs.items() if len(some) > len(pairs.get(trees[::-1], ()))}


def _date(page: Page) -> float:
    return page.modified_at or 0.0


def _without_suffix(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return folder + slash + (name.rpartition(".")[0] or name)


def _phrases(passages: Iterable[Passage]) -> frozenset[Phrase]:
    """The words of passages, whatever marks and lines they stand in, as often as they stand side by side."""
    of_each = ([word.lower() for word in _WORD.findall(passage.text)] for passage in passages)
    return frozenset(
        tuple(words[at : at + _PHRASE]) for words in of_each for at in range(max(1, len(words) - _PHRASE + 1))
    )


def _ends(old: Sequence[Passage], new: Sequence[Passage]) -> tuple[Passage, Passage] | None:
    """A content of each page that stands in no other, those with most in common; None where one has none."""
    before, after = ([each for each in page if each.alone] for page in (old, new))
    if not before or not after:
        return None
    candidates = [(_phrases([each]), each) for each in after]
    first = before[0]
    own = _phrases([first])
    return first, max(candidates, key=lambda each: len(own & each[0]))[1]


def superseded_contents(catalog: Catalog, edges: LearnedEdges | None) -> Collection[ContentHash]:
    """Contents of the live generation that stand in nothing but what something supersedes."""
    with closing(catalog.open_live()) as generation:
        return _superseded(generation, catalog, edges or NO_EDGES)


def _superseded(generation: OpenGeneration, catalog: Catalog, edges: LearnedEdges) -> Collection[ContentHash]:
    chunks, newer = generation.chunks, edges.of_kinds((LinkKind.SUPERSEDES,))
    documents = resolve_relations(generation, catalog.relations(), newer).newer.documents
    stays = chunks.mask(lambda document: document.uri not in documents)
    return {chunks.hashes[row] for row in np.flatnonzero(~stays).tolist()}


class PassageReader:
    """Reads the contents of documents of an opened generation; where each stands is looked up once for all."""

    def __init__(self, chunks: ChunkStore) -> None:
        self._chunks = chunks

    def __call__(self, uri: str) -> Sequence[Passage]:
        """The contents of a document, in its order."""
        rows, places, first, alone = self._standings
        number = self._numbers[uri]
        here = slice(first[number], first[number + 1])
        texts = self._texts.take(pa.array(places[here])).to_pylist()
        return [
            Passage(self._chunks.hashes[row], text, alone=bool(alone[row]))
            for row, text in zip(rows[here].tolist(), texts, strict=True)
        ]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {each.uri: number for number, each in enumerate(self._chunks.documents())}

    @cached_property
    def _texts(self) -> Any:
        return self._chunks.table("chunks")["text"]

    @cached_property
    def _standings(self) -> tuple[Ints, Ints, Ints, Flags]:
        """Rows and places by document, where each document begins, and which contents stand in one document only."""
        row, place, document = self._chunks.occurrence_arrays(np.arange(len(self._chunks)))
        order = np.lexsort((place, document))
        first = np.searchsorted(document[order], np.arange(len(self._numbers) + 1))
        # Places of one content are ordered by document: it stands in several where the first and the last differ.
        begin = np.searchsorted(row, np.arange(len(self._chunks) + 1))
        alone = document[begin[:-1]] == document[begin[1:] - 1]
        return row[order], place[order], first, alone
