"""How large chunks are cut, and what counts as a token (ING-11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pipelines.domain.documents import ContentType, Document, Domain
from pipelines.domain.sizing import AS_STATED, Overflow

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
        context_before: Budget of what stands before a unit's own text; None for half of the target, and then only
            in parts of a unit that was split.
        context_after: Budget of what follows it from its next sibling; 0 for nothing.
        overflow: What becomes of a unit above `max_tokens`.
        learned: The learned version that put these sizes in force.
        list_tokens: A list up to this length stays whole; None: up to the target.
        paragraph_tokens: A paragraph above this length is a unit of its own; None: none is.
        whole_tokens: A configuration file below this length stays whole; None: below the target.
        nested_tokens: A nested object above this length is a unit of its own; None: above the minimum.
        topics: What ends a topic of a conversation; None: its own markers alone.
    """

    max_tokens: int
    target_tokens: int
    min_tokens: int
    overlap_tokens: int
    context_before: int | None = None
    context_after: int = 0
    overflow: Overflow = Overflow.RECURSIVE
    learned: str = AS_STATED
    list_tokens: int | None = None
    paragraph_tokens: int | None = None
    whole_tokens: int | None = None
    nested_tokens: int | None = None
    topics: TopicRules | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.overlap_tokens < self.target_tokens <= self.max_tokens or self.min_tokens < 0:
            raise ValueError(f"expected 0 <= overlap < target <= max and min >= 0 tokens, got {self}")
        if (self.context_before or 0) < 0 or self.context_after < 0:
            raise ValueError(f"expected budgets for context >= 0 tokens, got {self}")

    def capped(self, limit: int) -> ChunkSizes:
        """The same sizes under an encoder's limit of at least 2 tokens: its window, less what it adds itself.

        Examples:
            >>> capped = ChunkSizes(4096, 300, 30, 50).capped(254)
            >>> capped.max_tokens, capped.target_tokens, capped.min_tokens, capped.overlap_tokens
            (254, 254, 30, 50)
        """
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
        """The sizes as "name=value" pairs, kept on every chunk that they made; see `domain.sizing.made_by`."""
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
class SizesInForce:
    """The sizes that one run of indexing cuts with.

    Attributes:
        record: Sizes of records by domain: stated, never learned, since their author cut them.
    """

    domains: Mapping[Domain, ChunkSizes]
    record: Mapping[Domain, ChunkSizes]

    def sizes_of(self, document: Document) -> ChunkSizes:
        """Sizes for one document; a record stays whole up to a limit of its own."""
        stated = self.record if document.content_type is ContentType.RECORD else self.domains
        return stated[document.domain]


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What ends a topic, besides a line that says so.

    Attributes:
        distance: Two neighbouring turns further apart than this cosine distance, in [0, 2], are of different topics.
        phrases: A turn that begins with one of these begins a topic.
    """

    distance: float
    phrases: tuple[str, ...] = ()
