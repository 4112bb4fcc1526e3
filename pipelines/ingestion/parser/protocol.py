"""What the parser and its child process say to each other: pickled messages, each after its length."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any

from pipelines.chunking.units.sizes import ChunkSizes
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document, Rejection
from pipelines.embedding.settings import EmbeddingSettings

LENGTH = struct.Struct(">Q")
"""What precedes every message: its length in bytes."""

OUT_OF_MEMORY = 77
"""Exit status after Python itself was refused memory."""

TIMEOUT = "parser_timeout"
MEMORY = "parser_memory"


@dataclass(frozen=True, slots=True)
class Confinement:
    """What the child is told first.

    Attributes:
        memory_bytes: Address space that it may have in all.
        answer_bytes: Longest message it may send back.
    """

    embedding: EmbeddingSettings
    memory_bytes: int
    answer_bytes: int


@dataclass(frozen=True, slots=True)
class Request:
    """One document to cut.

    Attributes:
        cpu_s: Processor time for it: the same on a busy machine as on an idle one, so that a generation does not depend
            on what else ran (ARC-9).
        wall_s: Time for it, whatever it waits for.
        plainly: Into plain line windows, without its own chunker.
    """

    document: Document
    sizes: ChunkSizes
    cpu_s: float
    wall_s: float
    plainly: bool = False


Cut = tuple[list[Chunk], Rejection | None]
"""What became of a document: its chunks, and why they are plain windows, if they are."""


def framed(value: Any) -> bytes:
    """A value as a message."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data
