"""How large chunks are, in tokens of the encoder, and how what is too long is cut: windows, a digest (ING-10 to 12)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from weft.domain.chunks import AS_STATED, Overflow
from weft.domain.documents import ContentType, Document, Domain

TokenCounter = Callable[[str], int]
"""Length of a text in the encoder's own tokens, special tokens not counted."""

Cutter = Callable[[bytes, int, int], Iterable[int]]
"""Boundaries inside a span of a source, in order: (source, start, end) to byte offsets between start and end."""

# A full stop, or its kin, with closing quotes and blanks, unless a lower-case word follows; or a blank line.
_SENTENCE_END = re.compile(rb"[.!?][\"')\]]*\s+(?![a-z\s])|\xe3\x80\x82|\xef\xbc[\x81\x9f]|\n[ \t\r]*\n\s*")
# What ends in a full stop and does not end a sentence, read backwards from that full stop: initials, abbreviations.
_ABBREVIATION = re.compile(
    rb"(?:\A|\n)[ \t]*\d{1,3}$|(?:^|[\s(\[~])(?:[A-Z]|e\.g|i\.e|et al|cf|vs|resp|approx|ca|viz|Dr|Mr|Mrs|Ms|Prof|St|pp"
    rb"|[Ff]igs?|[Tt]ab|[Ee]qs?|[Ss]ec[st]?|[Cc]h|[Nn]o|[Vv]ol|[Rr]efs?|[Tt]hm|[Dd]ef)$"
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_LONGEST_ABBREVIATION = 8  # bytes, with the blank before it


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What ends a topic, besides a line that says so."""

    # two neighbouring turns further apart than this cosine distance, in [0, 2], are of different topics
    distance: float
    phrases: tuple[str, ...] = ()  # A turn that begins with one of these begins a topic


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """The sizing snapshot of one domain, in the encoder's tokens."""

    max_tokens: int  # no chunk is longer: a unit above it is split
    target_tokens: int  # what parts, windows and sections are filled up to
    min_tokens: int  # A last part below it joins the one before where the two fit together
    overlap_tokens: int  # what neighbouring windows of unstructured text share
    # budget of what stands before a unit's own text; None for half of the target, and then only in parts of a
    # unit that was split
    context_before: int | None = None
    context_after: int = 0  # budget of what follows it from its next sibling; 0 for nothing
    overflow: Overflow = Overflow.RECURSIVE  # what becomes of a unit above `max_tokens`
    learned: str = AS_STATED  # the learned version that put these sizes in force
    list_tokens: int | None = None  # A list up to this length stays whole; None: up to the target
    paragraph_tokens: int | None = None  # A paragraph above this length is a unit of its own; None: none is
    whole_tokens: int | None = None  # A configuration file below this length stays whole; None: below the target
    read_tokens: int | None = None  # Of a record, what the encoder reads; None: all of it
    nested_tokens: int | None = None  # A nested object above this length is a unit of its own; None: above the minimum
    topics: TopicRules | None = None  # what ends a topic of a conversation; None: its own markers alone

    def __post_init__(self) -> None:
        if not 0 <= self.overlap_tokens < self.target_tokens <= self.max_tokens or self.min_tokens < 0:
            raise ValueError(f"expected 0 <= overlap < target <= max and min >= 0 tokens, got {self}")
        if (self.context_before or 0) < 0 or self.context_after < 0:
            raise ValueError(f"expected budgets for context >= 0 tokens, got {self}")

    def capped(self, limit: int) -> ChunkSizes:
        """The same sizes under an encoder's limit of at least 2 tokens: its window, less what it adds itself."""
        target = min(self.target_tokens, limit)
        return replace(
            self,
            max_tokens=min(self.max_tokens, limit),
            target_tokens=target,
            overlap_tokens=min(self.overlap_tokens, target // 2),
        )

    @property
    def leading_budget(self) -> int:
        """Tokens that leading context may take: never more than half of the target."""
        half = self.target_tokens // 2
        return half if self.context_before is None else min(self.context_before, half)

    @property
    def trailing_budget(self) -> int:
        """Tokens that trailing context may take: never more than a quarter of the target."""
        return min(self.context_after, self.target_tokens // 4)

    @property
    def snapshot(self) -> tuple[str, ...]:
        """The sizes as "name=value" pairs, kept on every chunk that they made; see `domain.chunks.made_by`."""
        return (
            f"max={self.max_tokens}",
            f"target={self.target_tokens}",
            f"min={self.min_tokens}",
            f"overlap={self.overlap_tokens}",
            f"before={self.leading_budget}",
            f"after={self.trailing_budget}",
            f"overflow={self.overflow.value}",
            f"learned={self.learned}",
        )


@dataclass(frozen=True, slots=True)
class ActiveSizes:
    """The sizes that one run of indexing cuts with."""

    domains: Mapping[Domain, ChunkSizes]
    # Sizes of records by domain: stated, never learned, since their author cut them. So a record stays whole even where
    # it is longer than the encoder reads, and its end is embedded in windows.
    record: Mapping[Domain, ChunkSizes]

    def sizes_of(self, document: Document) -> ChunkSizes:
        """Sizes for one document; a record stays whole up to a limit of its own."""
        stated = self.record if document.content_type is ContentType.RECORD else self.domains
        return stated[document.domain]


class TokenMeter:
    """Tokens of spans of one source, each counted once, and only where a bound on bytes cannot decide.

    A token stands for at least one byte, so a span of n bytes has at most n tokens.
    """

    def __init__(self, source: bytes, count_tokens: TokenCounter) -> None:
        self.source = source
        self.count = count_tokens
        self._contexts: dict[str, int] = {"": 0}
        self._spans: dict[tuple[int, int], int] = {}

    def tokens(self, start: int, end: int) -> int:
        """Exact number of tokens of a span."""
        span = (start, end)
        if span not in self._spans:
            self._spans[span] = self.count(decoded(self.shown(start, end)))
        return self._spans[span]

    def shown(self, start: int, end: int) -> bytes:
        """What of a span readers see: all of it."""
        return self.source[start:end]

    def length(self, start: int, end: int) -> int:
        """Bytes of what readers see of a span: at least the number of its tokens."""
        return end - start

    def fits(self, start: int, end: int, limit: int) -> bool:
        """Whether a span has at most `limit` tokens."""
        return self.length(start, end) <= limit or self.tokens(start, end) <= limit

    def of_context(self, context: str) -> int:
        """Exact number of tokens that a context takes in front of a chunk, with the line end after it."""
        if context not in self._contexts:
            self._contexts[context] = self.count(f"{context}\n")
        return self._contexts[context]


class SizedText(TokenMeter):
    """The text of a document, with the sizes that it is cut to."""

    def __init__(self, text: str, sizes: ChunkSizes, count_tokens: TokenCounter) -> None:
        super().__init__(encoded(text), count_tokens)
        self.sizes = sizes


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where a span may be cut."""

    positions: tuple[int, ...]  # byte offsets, strictly rising, from the span's start to its end
    # those at which neighbouring windows may overlap, since no unit of meaning ends there
    soft: frozenset[int] = frozenset()

    @classmethod
    def between(cls, start: int, end: int, inner: Iterable[int] = (), *, soft: bool = False) -> Cuts:
        """Cuts of a span, from positions in any order of which those outside it are left out."""
        inside = sorted({position for position in inner if start < position < end})
        return cls((start, *inside, end), frozenset(inside) if soft else frozenset())

    def around(self, position: int) -> tuple[int, int]:
        """The piece that holds a position of the span."""
        after = min(max(bisect_right(self.positions, position), 1), len(self.positions) - 1)
        return self.positions[after - 1], self.positions[after]

    def refined(self, meter: TokenMeter, cutter: Cutter, limit: int) -> Cuts:
        """The same cuts, and finer ones inside every piece of more than `limit` tokens; the finer ones are soft."""
        positions = [self.positions[0]]
        soft = set(self.soft)
        for start, end in pairwise(self.positions):
            if not meter.fits(start, end, limit):
                finer = [position for position in cutter(meter.source, start, end) if start < position < end]
                positions += finer
                soft.update(finer)
            positions.append(end)
        return Cuts(tuple(positions), frozenset(soft))


def windows(text: SizedText, cuts: Cuts, *, reserved: int = 0) -> list[tuple[int, int]]:
    """Spans of at most `target` tokens between cuts, in order, which together cover everything.

    A piece above the target is a span of its own. Spans that meet at a soft cut share up to `overlap` tokens. A last
    span that adds less than the minimum joins the one before, if both fit into the maximum. Otherwise a last span below
    the minimum is lengthened by the end of the one before. Both share that end if the cut between them is soft.
    """
    positions, sizes = cuts.positions, text.sizes
    weights = [text.tokens(start, end) for start, end in pairwise(positions)]
    budget = sizes.target_tokens - reserved
    spans: list[tuple[int, int]] = []  # half-open ranges of pieces
    first = 0
    # Filled greedily from the front: all but the last window are as full as the next piece allows, so that only the
    # last one can be short.
    while True:
        last, used = first + 1, weights[first]
        while last < len(weights) and used + weights[last] <= budget:
            used += weights[last]
            last += 1
        spans.append((first, last))
        if last == len(weights):
            break
        first = _overlapping(cuts, weights, spans[-1], budget, sizes.overlap_tokens)
    if len(spans) > 1:
        spans[-2:] = _mended(cuts, weights, spans[-2:], sizes.min_tokens, sizes.max_tokens - reserved)
    return [(positions[first], positions[last]) for first, last in spans]


def _overlapping(cuts: Cuts, weights: Sequence[int], span: tuple[int, int], budget: int, overlap: int) -> int:
    first, last = span
    # The next window holds at least one new piece, so its repeated part must leave room for that; and where a context
    # takes most of the room, it must not leave so little that every window repeats the one before.
    allowed = min(overlap, budget // 2, budget - weights[last])
    start, repeated = last, 0
    while (
        start > first + 1
        and cuts.positions[start] in cuts.soft
        and cuts.positions[start - 1] in cuts.soft
        and repeated + weights[start - 1] <= allowed
    ):
        start -= 1
        repeated += weights[start]
    return start


def _mended(
    cuts: Cuts, weights: Sequence[int], spans: Sequence[tuple[int, int]], minimum: int, maximum: int
) -> list[tuple[int, int]]:
    """The last two spans, joined or evened out where the last one is too short."""
    (first, middle), (start, last) = spans
    if sum(weights[middle:last]) < minimum and sum(weights[first:last]) <= maximum:
        return [(first, last)]
    shared = cuts.positions[start] in cuts.soft
    short, long = sum(weights[start:last]), sum(weights[first:middle])
    # Pieces go from the one before to the last one: as a share of both where its end is soft, else only as far as that
    # leaves the one before above the minimum, too.
    while short < minimum and start > first + 1 and short + weights[start - 1] <= maximum:
        if shared and cuts.positions[start - 1] not in cuts.soft:
            break
        if not shared and long - weights[start - 1] < minimum:
            break
        start -= 1
        short += weights[start]
        long -= weights[start]
    return [(first, middle if shared else start), (start, last)]


def sentences(source: bytes, start: int, end: int) -> Iterable[int]:
    """Where sentences and paragraphs begin inside a span."""
    for match in _SENTENCE_END.finditer(source, start, end):
        before = source[max(start, match.start() - _LONGEST_ABBREVIATION) : match.start()]
        if source[match.start()] != ord(".") or not _ABBREVIATION.search(before):
            yield match.end()


def lines(source: bytes, start: int, end: int) -> Iterable[int]:
    """Where lines begin inside a span."""
    position = source.find(b"\n", start, end) + 1
    while position:
        yield position
        position = source.find(b"\n", position, end) + 1


def strides(length: int) -> Cutter:
    """Cuts every `length` bytes or a little before, at the last blank in reach or else between two characters."""

    def cut(source: bytes, start: int, end: int) -> Iterable[int]:
        position = start
        while end - position > length:
            blank = source.rfind(b" ", position + length // 2, position + length)
            position = blank + 1 if blank >= 0 else character_start(source, position + length, position)
            yield position

    return cut


def character_start(source: bytes, position: int, floor: int) -> int:
    """The last position at or before `position`, and behind `floor`, at which a character begins.

    Examples:
        >>> character_start("a😀b".encode(), 4, 0)
        1
    """
    back = position
    while back > floor + 1 and source[back] & 0xC0 == 0x80:  # a continuation byte of UTF-8
        back -= 1
    return position if source[back] & 0xC0 == 0x80 else back


def encoded(text: str) -> bytes:
    """A document's UTF-8 form, in which spans are measured; lone surrogates keep three bytes of their own."""
    return text.encode("utf-8", "surrogatepass")


def decoded(data: bytes) -> str:
    """The text of a span."""
    return data.decode("utf-8", "surrogatepass")


def digest(meter: TokenMeter, start: int, end: int, budget: int) -> str:
    """Sentences of a span, in their order, that say most about it within `budget` tokens; lines where there are none.

    SumBasic (Vanderwende et al., Information Processing & Management 2007): the sentence whose words are the most
    probable on average is taken, then its words count squared, so that what was said is not said again.
    """
    source = meter.source
    cuts = Cuts.between(start, end, sentences(source, start, end)).refined(meter, lines, budget)
    spans = list(pairwise(cuts.refined(meter, strides(max(4, budget)), budget).positions))
    words = [_WORD.findall(decoded(source[first:last]).lower()) for first, last in spans]
    chosen = _most_telling(words, [meter.tokens(*span) + 1 for span in spans], budget)  # 1: the line end after it
    extract = "\n".join(decoded(source[slice(*spans[place])]).strip() for place in chosen)
    # Of a text without any words its first bytes stay: each is at most one token.
    return extract or source[start:end].strip()[: max(1, budget)].decode("utf-8", "ignore")


def _most_telling(words: Sequence[Sequence[str]], costs: Sequence[int], budget: int) -> list[int]:
    """Places of the chosen sentences, in order."""
    counts = Counter(word for each in words for word in each)
    probability = {word: count / counts.total() for word, count in counts.items()}
    waiting = {place for place, each in enumerate(words) if each}
    chosen: list[int] = []
    while waiting:
        best = max(waiting, key=lambda place: (fmean(probability[word] for word in words[place]), -place))
        waiting.remove(best)
        budget -= costs[best]
        if budget < 0:
            break
        chosen.append(best)
        for word in set(words[best]):
            probability[word] **= 2
    return sorted(chosen)
