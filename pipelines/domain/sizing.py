"""What a chunk's size says: how long it came out, and the learned sizes that made it so (ING-11)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Annotated

from msgspec import Meta, Struct, structs

from pipelines.domain.chunks import Chunk, ChunkLabel

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
    """What the sizing snapshot of a chunk says about it; None where no learned size decided over it.

    The snapshot's pairs are "max", "target", "min", "overlap", "before", "after" (tokens), "overflow" and "learned"
    (the learned version that put these sizes in force); and of this chunk alone, "leading" and "trailing" (tokens of
    its context) and "split" (the strategy that made it, absent for a unit that was not above the limit).
    """
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
    """A snapshot's "name=value" pairs by name.

    Examples:
        >>> pairs_of(("max=254", "overflow=sentence"))
        {'max': '254', 'overflow': 'sentence'}
    """
    return {name: value for name, _, value in (pair.partition("=") for pair in snapshot)}


def _tokens(value: str | None) -> int | None:
    """A positive number of tokens; None where there are none."""
    return int(value) if value and value.isdigit() and int(value) > 0 else None
