"""Chunks: the semantic units of a document, where each stands in it, what made its size and what its text names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct, structs

from weft.domain.ids import ChunkId, ContentHash
from weft.domain.links import Link

JOINED = "joined"
"""The attribute that names further symbols whose definitions are in a chunk whole, a line each (ING-38)."""

LINK_LIST = "link_list"
"""The attribute of a chunk most of which are links: it leads to what is looked for, and explains nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One unit of one document (ING-13)."""

    chunk_id: ChunkId
    content_hash: ContentHash  # identity of `text`
    uri: str
    text: str  # what is searched, embedded and shown; carries its own leading context (heading path, signature)
    kind: str  # the unit's form: "function", "method", "class", "section", "window" …
    level: int  # 0 whole document or preamble … 3 block
    sequence: int  # position among the document's chunks, from 0, in source order
    parent_id: ChunkId | None
    previous_id: ChunkId | None
    next_id: ChunkId | None
    start_byte: int  # half-open span in the document's UTF-8 text
    end_byte: int
    # first line that is read and last line, from 1, inclusive: markup above it, such as the anchor of a heading, is not
    # where one starts to read
    start_line: int
    end_line: int
    heading_path: tuple[str, ...] = ()
    anchor: str | None = None
    symbol: str | None = None
    signature: str | None = None
    defines: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    # the unit this one belongs with, so that they are shown together: the type of a method or of fields
    bundle: ChunkId | None = None
    links: tuple[Link, ...] = ()  # what the text points to, by name
    # facts about this unit by name, such as its speakers, its time, or the references that it cites
    attributes: Mapping[str, str] = field(default_factory=dict)
    # share of the unit that this chunk holds, in (0, 1]; below 1 for parts of an oversized unit
    completeness: float = 1.0
    parse_quality: float = 1.0  # share of the unit's bytes outside syntax errors, in [0, 1]
    tokens: int  # length of `text` in the encoder's own tokens
    characters: int
    sizing: tuple[str, ...] = ()  # the sizes in force when it was cut, as "name=value" pairs (ING-11)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Its symbol, and those of the pieces that were joined to it."""
        further = self.attributes.get(JOINED, "").split("\n")
        return tuple(name for name in (self.symbol, *further) if name)


class ChunkLevel(StrEnum):
    """What chunks can be asked for by (ING-39)."""

    DOCUMENT = "document"
    SECTION = "section"
    CLASS = "class"
    FUNCTION = "function"
    BLOCK = "block"


class ChunkLabel(NamedTuple):
    """What is said of a chunk that is a result; the fields are those of `Chunk`."""

    chunk_id: ChunkId
    kind: str
    symbol: str | None
    heading_path: tuple[str, ...]
    start_line: int
    end_line: int
    tokens: int
    sizing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of a text that names something."""

    start: int  # half-open span in characters of the chunk's text
    end: int
    text: str
    label: str
    # how sure the find is, in [0, 1]: where that was measured, the share of finds at least so sure that are right,
    # otherwise what the model says
    score: float


Tokens = Annotated[int, Meta(ge=1, le=1_000_000)]

AS_STATED = "stated"
"""The `learned` of sizes that no belief decides: those of records, which their author cut."""


class Overflow(StrEnum):
    """What becomes of a unit above the hard limit."""

    RECURSIVE = "recursive"  # split at the next semantic level, then at ever finer ones
    SENTENCE = "sentence"  # split between sentences, wherever the unit holds prose
    TRUNCATE = "truncate"  # its beginning stays, a summary stands for the rest


class MadeBy(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The size of one chunk and the learned sizes behind it: what an outcome of that chunk is evidence about (LRN-9).

    Attributes:
        tokens: Length of the chunk.
        target: The target in force when it was cut; None where it was not cut by learned sizes.
        minimum: The minimum in force; None as above.
        before: The budget for leading context in force; None where the chunk has no such context.
        after: The same for trailing context.
        overflow: The strategy that made it; None for a unit that was whole.
    """

    tokens: Tokens
    target: Tokens | None = None
    minimum: Tokens | None = None
    before: Tokens | None = None
    after: Tokens | None = None
    overflow: Overflow | None = None


def made_by(chunk: Chunk | ChunkLabel) -> MadeBy | None:
    """What the sizing snapshot of a chunk says about it; None where no learned size decided over it."""
    made = _sizes_of(tuple(chunk.sizing))
    return None if made is None or chunk.tokens < 1 else structs.replace(made, tokens=chunk.tokens)


@lru_cache(maxsize=256)
def _sizes_of(snapshot: tuple[str, ...]) -> MadeBy | None:
    """The learned sizes of a snapshot, of a chunk of one token; the same ones are in force for many chunks."""
    pairs = pairs_of(snapshot)
    if pairs.get("learned", AS_STATED) == AS_STATED:
        return None
    return MadeBy(
        tokens=1,
        target=_tokens(pairs.get("target")),
        minimum=_tokens(pairs.get("min")),
        before=_tokens(pairs.get("before")) if _tokens(pairs.get("leading")) else None,
        after=_tokens(pairs.get("after")) if _tokens(pairs.get("trailing")) else None,
        overflow=Overflow(pairs["split"]) if "split" in pairs else None,
    )


def pairs_of(snapshot: Iterable[str]) -> dict[str, str]:
    """A snapshot's "name=value" pairs by name."""
    return {name: value for name, _, value in (pair.partition("=") for pair in snapshot)}


def _tokens(value: str | None) -> int | None:
    """A positive number of tokens; None where there are none."""
    return int(value) if value and value.isdigit() and int(value) > 0 else None


class Reach(StrEnum):
    """How far around a result its context goes."""

    CHUNK = "chunk"  # the chunk alone: it carries its own leading context
    SIBLINGS = "siblings"  # what stands beside it
    PARENT = "parent"  # what it is part of
    LEVEL_UP = "level_up"  # what that is part of, too
    # the head of its file, its type, what it points to, and what tests it or points to it otherwise
    REFERENCES = "references"
    HIERARCHY = "hierarchy"  # everything from the file's head down to it, and what it depends on


class Role(StrEnum):
    """What a part is to the result; the order is the one in which parts are shown."""

    HEADER = "header"  # the head of the file
    TYPE = "type"  # the type, section or session that it belongs to, outermost first
    CHUNK = "chunk"  # the result itself
    SIBLING = "sibling"
    DEPENDENCY = "dependency"  # what it points to: what it calls first
    TEST = "test"  # what tests it
    USER = "user"  # what points to it


@dataclass(frozen=True, slots=True)
class ContextPart:
    """One chunk in a context."""

    role: Role
    chunk_id: ChunkId
    uri: str
    start_line: int
    end_line: int
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Context:
    """A result with what surrounds it."""

    reach: Reach
    parts: tuple[ContextPart, ...]  # in the order in which they are read
    left_out: int = 0  # parts that the budget had no room for, or that stand in the context of a better result

    @property
    def tokens(self) -> int:
        """Length of all parts, in the encoder's own tokens."""
        return sum(part.tokens for part in self.parts)

    @property
    def text(self) -> str:
        """All parts as one text."""
        return "\n\n".join(part.text for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's own types."""
        parts = [{**asdict(part), "role": part.role.value} for part in self.parts]
        return {"reach": self.reach.value, "tokens": self.tokens, "left_out": self.left_out, "parts": parts}
