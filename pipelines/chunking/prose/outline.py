"""What a reader finds in a document with headings: its blocks, and names, links and facts by place (ING-6, ING-7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pipelines.chunking.units.hierarchy import NamePositions
from pipelines.domain.links import Link

ANCHOR = "anchor"
HEADING = "heading"
LIST = "list"
PARAGRAPH = "paragraph"
PREAMBLE = "preamble"
WHOLE = "whole"  # a fence, a table, a directive: cut at lines alone
DEEPEST = 3  # the level of paragraphs and of what stands apart


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document.

    Attributes:
        rank: From 1 for the widest sections; 0 for the title of a document that says which its title is.
        anchor: The identifier that the text gives it.
    """

    rank: int
    title: str
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a document: what lies between two of them belongs to the first.

    Attributes:
        kind: What it is: `PARAGRAPH` and `LIST` have cuts inside, `HEADING` and `ANCHOR` stay with what follows.
        heading: What a heading that opens a section says.
        inner: The items of a list, the blocks of a quote: where it is cut when it is too long.
        uncut: Spans inside it that no cut between sentences falls into, disjoint and in order.
        special: Whether it is a unit of its own where its section is too long to stay whole.
        name: What tells it apart from others of its kind.
    """

    start: int
    end: int
    kind: str = PARAGRAPH
    heading: Heading | None = None
    inner: tuple[Block, ...] = ()
    uncut: tuple[tuple[int, int], ...] = ()
    special: bool = False
    name: str | None = None

    @property
    def leads(self) -> bool:
        """Whether it stays with the block after it."""
        return self.kind in {HEADING, ANCHOR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What a reader finds in a document.

    Attributes:
        blocks: At the top level, in order, disjoint.
        front: Length of the front matter in bytes.
        anchors: Names by which places are referred to.
        notes: Facts about places, as name and value.
    """

    blocks: Sequence[Block]
    front: int = 0
    anchors: NamePositions[str] = field(default_factory=NamePositions)
    links: NamePositions[Link] = field(default_factory=NamePositions)
    notes: NamePositions[tuple[str, str]] = field(default_factory=NamePositions)
