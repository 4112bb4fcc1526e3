"""How large chunks are cut, and what counts as a token (ING-11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

TokenCounter = Callable[[str], int]
"""Length of a text in the encoder's own tokens, special tokens not counted."""


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """The sizing snapshot of one domain, in the encoder's tokens.

    Attributes:
        max_tokens: No chunk is longer: a unit above it is split.
        target_tokens: What parts, windows and sections are filled up to.
        min_tokens: A last part below it joins the one before where the two fit together.
        overlap_tokens: What neighbouring windows of unstructured text share.
        list_tokens: A list up to this length stays whole; None: up to the target.
        paragraph_tokens: A paragraph above this length is a unit of its own; None: none is.
    """

    max_tokens: int
    target_tokens: int
    min_tokens: int
    overlap_tokens: int
    list_tokens: int | None = None
    paragraph_tokens: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.overlap_tokens < self.target_tokens <= self.max_tokens or self.min_tokens < 0:
            raise ValueError(f"expected 0 <= overlap < target <= max and min >= 0 tokens, got {self}")

    def capped(self, limit: int) -> ChunkSizes:
        """The same sizes under an encoder's limit of at least 2 tokens: its window, less what it adds itself.

        Examples:
            >>> sizes = ChunkSizes(max_tokens=4096, target_tokens=300, min_tokens=30, overlap_tokens=50).capped(254)
            >>> sizes.max_tokens, sizes.target_tokens, sizes.overlap_tokens
            (254, 254, 50)
        """
        target = min(self.target_tokens, limit)
        overlap = min(self.overlap_tokens, target // 2)
        return replace(self, max_tokens=min(self.max_tokens, limit), target_tokens=target, overlap_tokens=overlap)

    @property
    def snapshot(self) -> tuple[str, ...]:
        """The sizes as "name=value" pairs, kept on every chunk that they made."""
        return (
            f"max={self.max_tokens}",
            f"target={self.target_tokens}",
            f"min={self.min_tokens}",
            f"overlap={self.overlap_tokens}",
        )
