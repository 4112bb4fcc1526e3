"""What is embedded for a chunk of each level: how much of it, and with how much of its surroundings (ING-19)."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.domain.chunks import Chunk

_BETWEEN_HEADINGS = " > "


def embedded_text(chunk: Chunk, parent: Chunk | None, title: str | None) -> str:
    """A chunk's text under what its level adds, in lines of their own; what the text holds already is not repeated.

    Level 0 stands alone; from level 1 on the heading path, or else the document's title, goes before it; from level 2
    on its signature; level 3 also takes what names its parent.
    """
    above = [] if chunk.level < 1 else [_BETWEEN_HEADINGS.join(chunk.heading_path) or title]
    if chunk.level >= 3 and parent is not None:
        above.append(parent.signature or _BETWEEN_HEADINGS.join(parent.heading_path) or parent.symbol)
    if chunk.level >= 2:
        above.append(chunk.signature)
    new = [line for line in dict.fromkeys(above) if line and line not in chunk.text]
    return "\n".join([*new, chunk.text])


def window(level: int, level_tokens: Sequence[int], limit: int) -> int:
    """How many tokens of a chunk of some level are embedded, at most what the encoder reads.

    Examples:
        >>> [window(level, (2048, 1024, 512, 512), 1000) for level in range(5)]
        [1000, 1000, 512, 512, 512]
    """
    return min(level_tokens[min(level, len(level_tokens) - 1)], limit)
