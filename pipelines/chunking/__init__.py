"""Documents into semantic units: parsing only, no I/O, no clock.

The parsers are imported when they are first asked for: settings, which every process reads, need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.chunking.chunker import CHUNKERS, Chunker, chunk_document, chunk_or_fallback
    from pipelines.chunking.sizes import ChunkSizes, TokenCounter

__all__ = ["CHUNKERS", "ChunkSizes", "Chunker", "TokenCounter", "chunk_document", "chunk_or_fallback"]

_SIZES = ("ChunkSizes", "TokenCounter")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'sizes' if name in _SIZES else 'chunker'}"), name)
