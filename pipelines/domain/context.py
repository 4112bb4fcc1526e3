"""What is handed over with a result, so that it can be understood where it stands (RET-16)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pipelines.domain.ids import ChunkId


class Reach(StrEnum):
    """How far around a result its context goes."""

    CHUNK = "chunk"  # the chunk alone: it carries its own leading context
    SIBLINGS = "siblings"  # what stands beside it
    PARENT = "parent"  # what it is part of
    LEVEL_UP = "level_up"  # what that is part of, too
    REFERENCES = "references"  # what it points to, and what points to it
    HIERARCHY = "hierarchy"  # everything from the file's head down to it, and what it depends on


class Role(StrEnum):
    """What a part is to the result; the order is the one in which parts are shown."""

    HEADER = "header"  # the head of the file
    TYPE = "type"  # the type, section or session that it belongs to, outermost first
    CHUNK = "chunk"  # the result itself
    SIBLING = "sibling"
    DEPENDENCY = "dependency"  # what it points to
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
    """A result with what surrounds it.

    Attributes:
        parts: In the order in which they are read.
        left_out: Parts that the budget had no room for, or that stand in the context of a better result.
    """

    reach: Reach
    parts: tuple[ContextPart, ...]
    left_out: int = 0

    @property
    def tokens(self) -> int:
        """Length of all parts, in the encoder's own tokens."""
        return sum(part.tokens for part in self.parts)

    @property
    def text(self) -> str:
        """All parts as one text."""
        return "\n\n".join(part.text for part in self.parts)
