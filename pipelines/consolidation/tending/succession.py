"""Pages that a later release of the same tree has in the place of others, found by the night (CON-4).

Two folders are releases of one tree where the later one has most pages of the other, under the same paths and in part
word for word, and later dates. What a page there says then supersedes what the page of the same path said. Nothing of
this follows from names or dates alone: copies of a few pages, translations and other projects share paths or titles,
and not most of a tree's pages with their lines.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from pipelines.consolidation.settings import SuccessionSettings
from pipelines.domain.documents import ContentType
from pipelines.domain.ids import ContentHash
from pipelines.domain.links import LinkKind, RelationSource
from pipelines.learning.edges import NO_EDGES, LearnedEdge, LearnedEdges
from pipelines.runtime.clock import SECONDS_PER_DAY

_EXAMPLES = 10  # that a report shows
_LEAST_PAGES = 3  # of one path: one or two, such as a README, many folders have
_LEAST_DAYS = 1.0  # that a page must be later: what was copied in one go has dates of one day, in whatever order
_NEIGHBOURS = 8  # folders next by date that a page is compared in, however many releases there are
_NUMBER = re.compile(r"\d+")
PROSE = frozenset({ContentType.MARKDOWN, ContentType.RST, ContentType.MARKUP, ContentType.PAPER, ContentType.TEXT})
"""What says how things are. Code and configuration of two releases, or of two hosts, may both be in use."""


class Page(NamedTuple):
    """A document, as far as it tells which other one it is a release of.

    Attributes:
        modified_at: Seconds since the epoch; None where that is not known.
    """

    uri: str
    title: str | None
    content_type: ContentType
    modified_at: float | None


class Passage(NamedTuple):
    """A content that stands in a page.

    Attributes:
        alone: Whether it stands in no other document.
    """

    content: ContentHash
    text: str
    alone: bool


Passages = Callable[[str], Sequence[Passage]]
"""The contents of a document, by its URI, in its order."""


@dataclass(frozen=True, slots=True)
class SuccessionExample:
    """A page and what supersedes it, by passages of both, as a report shows them.

    Attributes:
        overlap: Share of the lines of the shorter page that the other one has.
    """

    newer: str
    older: str
    overlap: float
    text: str
    older_text: str


@dataclass(frozen=True, slots=True)
class Successions:
    """What a night found.

    Attributes:
        edges: One of each pair of pages: from a content of the newer one alone to a content of the older one alone.
        superseded: Contents that stand in nothing but what something supersedes, found or declared.
        examples: Of every pair of trees, those first that have least in common.
    """

    edges: LearnedEdges = NO_EDGES
    superseded: Collection[ContentHash] = frozenset()
    examples: Sequence[SuccessionExample] = ()


FindSuccessions = Callable[[], Successions]
"""What supersedes what of what is live."""


class _Pair(NamedTuple):
    older: Page
    newer: Page


def find_successions(pages: Sequence[Page], passages: Passages, settings: SuccessionSettings) -> Successions:
    """The pages that others supersede, the same for the same pages, in whatever order they come.

    Time is n log n in pages; only pages are read that share their path with one of a tree which may be a release.

    Args:
        passages: Asked of pages alone.
    """
    prose = [page for page in pages if page.content_type in PROSE]
    sizes = Counter(folder for page in prose for folder in _folders(page.uri))
    edges: list[LearnedEdge] = []
    examples: list[SuccessionExample] = []
    for (older, newer), pairs in sorted(_by_trees(prose).items()):
        least = max(_LEAST_PAGES, settings.least_share * sizes[older])
        if len(pairs) < least or _counts_down(older, newer):
            continue
        read = [(pair, passages(pair.older.uri), passages(pair.newer.uri)) for pair in pairs]
        shares = [_overlap(_lines(old), _lines(new)) for _, old, new in read]
        if median(shares) < settings.least_overlap:
            continue
        for (pair, old, new), share in sorted(zip(read, shares, strict=True), key=lambda each: each[1]):
            if share < settings.least_overlap and pair.older.title != pair.newer.title:
                continue
            if (ends := _ends(old, new)) is not None:
                before, after = ends
                edges.append(LearnedEdge(after.content, LinkKind.SUPERSEDES, before.content, RelationSource.AUTO))
                examples.append(SuccessionExample(pair.newer.uri, pair.older.uri, share, after.text, before.text))
    return Successions(LearnedEdges.of(edges), frozenset(), tuple(examples[:_EXAMPLES]))


def _folders(uri: str) -> Iterator[str]:
    """Every folder above a document."""
    folder, _, _ = uri.rpartition("/")
    while folder:
        yield folder
        folder, _, _ = folder.rpartition("/")


def _counts_down(older: str, newer: str) -> bool:
    """Whether names that are versions say the opposite of dates, as where the earlier release was copied later.

    Examples:
        >>> [_counts_down("docs/shop-2.10", each) for each in ("docs/shop-2.9", "docs/shop-3", "docs/bank-1")]
        [True, False, False]
    """
    (word, numbers), (other, others) = (
        (_NUMBER.split(name, maxsplit=1)[0], [int(number) for number in _NUMBER.findall(name)])
        for name in (folder.rpartition("/")[2] for folder in (older, newer))
    )
    return word == other and numbers > others


def _by_trees(pages: Sequence[Page]) -> Mapping[tuple[str, str], Sequence[_Pair]]:
    """Pages of one path in two folders that stand side by side, the later one last, by these folders."""
    places: defaultdict[tuple[str, str], list[tuple[str, Page]]] = defaultdict(list)
    for page in pages:
        if page.modified_at is not None:
            for folder in _folders(page.uri):
                above, _, _ = folder.rpartition("/")
                places[above, page.uri[len(folder) :]].append((folder, page))
    pairs: defaultdict[tuple[str, str], list[_Pair]] = defaultdict(list)
    for some in places.values():
        if len(some) > 1:
            in_order = sorted(some, key=lambda each: (_date(each[1]), each[1].uri))
            for at, (folder, page) in enumerate(in_order):
                for other, later in in_order[at + 1 : at + 1 + _NEIGHBOURS]:
                    if _date(later) - _date(page) >= _LEAST_DAYS * SECONDS_PER_DAY:
                        pairs[folder, other].append(_Pair(page, later))
    return {trees: sorted(some) for trees, some in pairs.items() if len(some) > len(pairs.get(trees[::-1], ()))}


def _date(page: Page) -> float:
    return page.modified_at or 0.0


def _lines(passages: Iterable[Passage]) -> frozenset[str]:
    stripped = (line.strip() for passage in passages for line in passage.text.splitlines())
    return frozenset(line for line in stripped if line)


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, min(len(one), len(other)))


def _ends(old: Sequence[Passage], new: Sequence[Passage]) -> tuple[Passage, Passage] | None:
    """A content of each page that stands in no other, those with most lines in common; None where one has none."""
    before, after = ([each for each in page if each.alone] for page in (old, new))
    if not before or not after:
        return None
    lines = [(_lines([each]), each) for each in after]
    first = before[0]
    own = _lines([first])
    return first, max(lines, key=lambda each: len(own & each[0]))[1]
