"""Where the parts of a generation lie in its folder."""

from __future__ import annotations

CHUNKS_FOLDER = "chunks"

VECTORS_FOLDER = "vectors"

LUCENE_FOLDER = "text/lucene"


def encoder_folder(encoder: str) -> str:
    """The folder name of an encoder.

    Examples:
        >>> encoder_folder("sentence-transformers/all-MiniLM-L6-v2")
        'sentence-transformers--all-MiniLM-L6-v2'
    """
    return encoder.replace("/", "--")
