"""The process that cuts documents into chunks: it may hang, eat memory or crash, and is then killed (ING-3).

It reads requests from its standard input and answers them in order, until that ends. The kernel holds it to its
limits, even when the process that started it is gone: an alarm ends it when a document has cost too much computing
or too much time, and memory above its limit is refused. It imports chunking and the tokenizer, no model.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from pipelines.chunking.chunker import CHUNKERS, Chunkers, chunk_or_fallback, chunkers_with
from pipelines.chunking.conversation.session import Similarity
from pipelines.chunking.prose.text import chunk_plainly
from pipelines.chunking.units.sizes import TokenCounter
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.embedding.tokens import load_token_counter
from pipelines.embedding.word_vectors import load_word_vectors
from pipelines.ingestion.parser.protocol import LENGTH, OUT_OF_MEMORY, Confinement, Cut, Request

_CHARACTERS_PER_TOKEN = 64  # at most
_PIECE = 1 << 16  # characters: longer texts are counted piece by piece, since an encoding takes 300 bytes a token


def main() -> None:
    """Answer requests until there are no more."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not come between the answers
    told: Confinement = _received(requests)
    count = bounded(load_token_counter(told.embedding))
    chunkers = chunkers_with(_when_needed(told.embedding))
    _confine(told.memory_bytes)
    gc.freeze()
    _send(answers, b"")
    try:
        _serve(requests, answers, count, chunkers, told.answer_bytes)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _when_needed(settings: EmbeddingSettings) -> Similarity:
    """Word vectors, which only conversations need, read at the first of them."""

    def similarity(texts: Sequence[str]) -> np.ndarray:
        return load_word_vectors(settings)(texts)

    return similarity


def _serve(requests: BinaryIO, answers: BinaryIO, count: TokenCounter, chunkers: Chunkers, answer_bytes: int) -> None:
    while (request := _received(requests)) is not None:
        _allow(request.cpu_s, request.wall_s)
        answer = pickle.dumps(cut(request, count, chunkers), pickle.HIGHEST_PROTOCOL)
        if len(answer) > answer_bytes:
            raise MemoryError
        _allow(0.0, 0.0)
        _send(answers, answer)


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


def _allow(cpu_s: float, wall_s: float) -> None:
    """Be ended by the kernel after so much computing, or so much time; 0 lifts both limits."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.setitimer(signal.ITIMER_REAL, wall_s)


def _confine(memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _received(source: BinaryIO) -> Any:
    header = source.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    # Written by the process that started this one.
    return pickle.loads(source.read(LENGTH.unpack(header)[0]))  # noqa: S301


def _send(sink: BinaryIO, message: bytes) -> None:
    sink.write(LENGTH.pack(len(message)))
    sink.write(message)
    sink.flush()


if __name__ == "__main__":
    main()
