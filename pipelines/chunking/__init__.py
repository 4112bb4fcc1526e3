"""Documents into semantic units: parsing only, no I/O, no clock."""

from pipelines.chunking.chunker import CHUNKERS, Chunker, chunk_document, chunk_or_fallback
from pipelines.chunking.sizes import ChunkSizes, TokenCounter

__all__ = ["CHUNKERS", "ChunkSizes", "Chunker", "TokenCounter", "chunk_document", "chunk_or_fallback"]
