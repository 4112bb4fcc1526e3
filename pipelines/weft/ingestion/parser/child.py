"""The process that cuts documents into chunks: it may hang, eat memory or crash, and is then killed (ING-3).

It answers pickled requests from its standard input, one after the other. The kernel holds it to its limits, even when
its parent is gone: an alarm ends it when a document costs too much computing or time, and memory above its limit is
refused. It imports chunking and the tokenizer, no model.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from weft.chunking.chunker import CHUNKERS, Chunkers, chunk_or_fallback, chunkers_with
from weft.chunking.prose.text import chunk_plainly
from weft.chunking.units.splitting import ChunkSizes, TokenCounter
from weft.domain.chunks import Chunk
from weft.domain.documents import Document, Rejection
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import load_token_counter
from weft.embedding.word_vectors import load_word_vectors

LENGTH = struct.Struct(">Q")
"""What precedes every message: its length in bytes."""

OUT_OF_MEMORY = 77
"""Exit status after Python itself was refused memory."""

Cut = tuple[list[Chunk], Rejection | None]
"""What became of a document: its chunks, and why they are plain windows, if they are."""

_CHARACTERS_PER_TOKEN = 64  # at most
_PIECE = 1 << 16  # characters: longer texts are counted piece by piece, since an encoding takes 300 bytes a token
_ANSWER_SHARE = 4  # of the address space one answer may take a quarter


@dataclass(frozen=True, slots=True)
class Confinement:
    """The first message: what measures chunks, and how much address space the child may have."""

    embedding: EmbeddingSettings
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Request:
    """One document to cut."""

    document: Document
    sizes: ChunkSizes
    # processor time for it: the same on a busy machine as on an idle one, so that a generation does not depend on
    # what else ran (ARC-9)
    cpu_s: float
    wall_s: float  # time for it, whatever it waits for
    plainly: bool = False  # into plain line windows, without its own chunker


def main() -> None:
    """Answer requests until there are no more."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not come between the answers
    confinement: Confinement = _receive(requests)
    count = bounded(load_token_counter(confinement.embedding))

    def similarity(texts: Sequence[str]) -> np.ndarray:
        return load_word_vectors(confinement.embedding)(texts)  # only conversations need them

    chunkers = chunkers_with(similarity)
    # Set once all is loaded: from here on what is refused is a document's doing, and no import of ours fails by it.
    # Frozen, what was loaded is not walked by the collector for each document.
    resource.setrlimit(resource.RLIMIT_AS, (confinement.memory_bytes, confinement.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()
    send(answers, b"")
    try:
        while (request := _receive(requests)) is not None:
            _limit_time(request.cpu_s, request.wall_s)
            answer = pickle.dumps(cut(request, count, chunkers), pickle.HIGHEST_PROTOCOL)
            if len(answer) > confinement.memory_bytes // _ANSWER_SHARE:
                raise MemoryError
            _limit_time(0.0, 0.0)
            send(answers, answer)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def cut(request: Request, count: TokenCounter, chunkers: Chunkers = CHUNKERS) -> Cut:
    """Chunks of a document; plain windows and a note where its own chunker raises.

    Raises:
        MemoryError: There is not enough; this process should end.
    """
    document, sizes = request.document, request.sizes
    if request.plainly:
        return chunk_plainly(document, sizes, count), None
    return chunk_or_fallback(document, sizes, count, chunkers)


def bounded(count: TokenCounter) -> TokenCounter:
    """The same counter, with bounds on its memory and on the length of a chunk.

    Long texts are cut at a line end or blank, where tokens end too. A text counts at least one token for every 64
    characters: an encoder that knows no token for a word takes megabytes without a blank for a single one.
    """

    def counted(text: str) -> int:
        total, start = 0, 0
        while len(text) - start > _PIECE:
            end = max(text.rfind("\n", start, start + _PIECE), text.rfind(" ", start, start + _PIECE))
            end = end if end > start else start + _PIECE
            total += count(text[start:end])
            start = end
        return max(total + count(text[start:] if start else text), len(text) // _CHARACTERS_PER_TOKEN)

    return counted


def send(sink: IO[bytes], message: bytes) -> None:
    """Write a message after its length."""
    sink.write(LENGTH.pack(len(message)))
    sink.write(message)
    sink.flush()


def _receive(source: IO[bytes]) -> Any:
    """The next message; None where there is none left."""
    header = source.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    # Written by the process that started this one.
    return pickle.loads(source.read(LENGTH.unpack(header)[0]))  # noqa: S301


def _limit_time(cpu_s: float, wall_s: float) -> None:
    """Have the kernel end this process after so much computing, or so much time; 0 lifts both limits."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.setitimer(signal.ITIMER_REAL, wall_s)
