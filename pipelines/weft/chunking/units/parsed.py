"""What a parser finds in a document: units before they have an identity, and what it knows besides (ING-13)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

from weft.domain.chunks import Overflow
from weft.domain.links import Link

Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedUnit:
    """One unit of a document before it has an identity."""

    start: int  # Span in the source; the spans of all units together cover the document
    end: int
    path: str  # names that lead to the unit, such as "class:A/method:f"; need not be unique
    kind: str
    level: int
    # paths of the units that hold this one, innermost first: its parent is the nearest unit before it of the
    # first of these paths that there is
    parents: tuple[str, ...] = ()
    context: str = ""  # what stands before the unit's own text in its chunk
    part_context: str = ""  # the same for its second and later parts, should it be split
    part_kind: str = "part"  # the kind of those parts
    share: float = 1.0  # share of the whole unit that this part of it holds
    heading_path: tuple[str, ...] = ()
    anchor: str | None = None
    symbol: str | None = None
    signature: str | None = None
    # the strategy that made it a part of a unit above the hard limit; None where it is whole
    split: Overflow | None = None
    text: str | None = None  # what its chunk says instead of the text it stands for
    # path of the unit this one belongs with, wherever in the document that stands; its own path where only its
    # parts belong with it
    bundle_path: str | None = None
    # what it points to as a whole, whatever its parts hold; the links in a text are found by place
    links: tuple[Link, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    # paths and symbols of the units that were joined to it, for being too small to stand alone
    further_paths: tuple[str, ...] = ()
    further_symbols: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that it answers to, its own first."""
        return (self.path, *self.further_paths)


class Head(NamedTuple):
    """What stands at the head of a long table or fence, and above every piece of the rest of it."""

    start: int  # Span of the rest in the source
    end: int
    text: str  # the header row of a table; what opens a fence and names its language


@dataclass(frozen=True, slots=True)
class NamePositions(Generic[Value]):
    """Names or links in a source by where they stand, in source order."""

    offsets: Sequence[int] = ()
    values: Sequence[Value] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, Value]]) -> NamePositions[Value]:
        """Positions from (byte offset, value) pairs in any order; those at one offset keep their order."""
        ordered = sorted(pairs, key=lambda pair: pair[0])
        return cls([offset for offset, _ in ordered], [value for _, value in ordered])

    def within(self, start: int, end: int) -> tuple[Value, ...]:
        """Values in a span, each once, by first appearance."""
        first, last = bisect_left(self.offsets, start), bisect_left(self.offsets, end)
        return tuple(dict.fromkeys(self.values[first:last]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What a parser knows about spans of a source besides its units."""

    defines: NamePositions[str] = field(default_factory=NamePositions)
    references: NamePositions[str] = field(default_factory=NamePositions)
    links: NamePositions[Link] = field(default_factory=NamePositions)
    errors: Sequence[tuple[int, int]] = ()  # spans of syntax errors, disjoint and in order
    # spans of markup that is no words, disjoint and in order, and what texts of chunks say in place of each
    marks: Sequence[tuple[int, int, bytes]] = ()

    def shown(self, source: bytes, start: int, end: int) -> bytes:
        """A span of the source without its marks."""
        first, last = (
            bisect_right(self.marks, start, key=itemgetter(1)),
            bisect_left(self.marks, end, key=itemgetter(0)),
        )
        parts: list[bytes] = []
        at = start
        for opens, closes, instead in self.marks[first:last]:
            parts += [source[at : max(opens, at)], instead if start <= opens else b""]
            at = min(closes, end)
        return b"".join([*parts, source[at:end]])

    def quality(self, start: int, end: int) -> float:
        """Share of a span's bytes outside syntax errors."""
        before = bisect_right(self.errors, start, key=lambda error: error[1])
        after = bisect_left(self.errors, end, key=lambda error: error[0])
        wrong = sum(max(0, min(end, last) - max(start, first)) for first, last in self.errors[before:after])
        return 1.0 - wrong / (end - start) if wrong else 1.0


NO_FACTS = SourceFacts()
