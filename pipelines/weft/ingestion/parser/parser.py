"""FileRequest and cutting files in a child process that can be killed, at about the price of doing it here (ING-3)."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from weft.chunking.chunker import CHUNKERS, CRASHED, Chunkers, chunk_or_fallback, chunkers_with
from weft.chunking.prose.text import byte_length, chunk_plainly
from weft.chunking.units.splitting import ChunkSizes, TokenCounter
from weft.domain.chunks import Chunk
from weft.domain.documents import Document, Rejection
from weft.domain.errors import WeftError
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import load_token_counter
from weft.embedding.word_vectors import load_word_vectors
from weft.ingestion.settings import ParserSettings
from weft.ingestion.sources.formats.registry import Conversion, Read, steps

# The process that cuts documents into chunks: it may hang, eat memory or crash, and is then killed (ING-3).

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


@dataclass(frozen=True, slots=True)
class FileRequest:
    """One file to read in its format."""

    conversion: Conversion
    cpu_s: float  # processor time for each document in it, and for each step towards one
    wall_s: float  # the same in time, whatever it waits for


_BEAT = b""  # what is sent between documents that take their time, so that nobody takes the child for dead
_BEAT_EVERY_S = 1.0


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
            if isinstance(request, FileRequest):
                _answer_in_steps(request, answers, confinement.memory_bytes)
            else:
                _answer(cut(request, count, chunkers), answers, confinement.memory_bytes)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _answer(value: Any, answers: IO[bytes], memory_bytes: int) -> None:
    """Send a value, without a limit of time: whoever reads it may be busy."""
    answer = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    if len(answer) > memory_bytes // _ANSWER_SHARE:
        raise MemoryError
    _limit_time(0.0, 0.0)
    send(answers, answer)


def _answer_in_steps(request: FileRequest, answers: IO[bytes], memory_bytes: int) -> None:
    """Send the documents of a file as they come, and None after the last one."""
    beat = time.monotonic()
    for one in steps(request.conversion):
        if one is not None:
            _answer(one, answers, memory_bytes)
        elif time.monotonic() > beat + _BEAT_EVERY_S:
            _limit_time(0.0, 0.0)
            send(answers, _BEAT)
            beat = time.monotonic()
        _limit_time(request.cpu_s, request.wall_s)
    _answer(None, answers, memory_bytes)


def cut(request: Request, count: TokenCounter, chunkers: Chunkers = CHUNKERS) -> Cut:
    """Chunks of a document; plain windows and a note where its own chunker raises."""
    document, sizes = request.document, request.sizes
    if request.plainly:
        return chunk_plainly(document, sizes, count), None
    return chunk_or_fallback(document, sizes, count, chunkers)


def bounded(count: TokenCounter) -> TokenCounter:
    """The same counter, with bounds on its memory and on the length of a chunk.

    A text counts a token for every 64 characters at least: an encoder may know no token for a word of megabytes.
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


TIMEOUT = "parser_timeout"
MEMORY = "parser_memory"

_STARTS = 3  # of a child, before its not starting counts as an error of the machine
_START_S = 60.0
_WINDOWS_SHARE = 1 / 3  # of a document's processor time is for its plain windows; then bytes are counted, not tokens
_WALL_PER_CPU = 10.0  # time per processor time, at most: on a busy machine a process gets a part of a processor
_GRACE_S = 2.0  # beyond a document's wall limit, at which the kernel should have ended the child
_LOOK_EVERY_S = 0.1  # at the memory of a child that takes its time
_BLOCK = 1 << 18  # bytes read at a time
_LAST_WORDS_BYTES = 4096
_REFUSED = ("memory allocation", "failed to allocate", "MemoryError", "bad_alloc")  # last words of Rust, C and Python
_ONE_THREAD = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX")


class ChildDiedError(Exception):
    """The child is gone, or had to be killed, while it worked on a document; `reason` is a stable code."""

    def __init__(self, reason: str, detail: str, elapsed_s: float) -> None:
        super().__init__(detail)
        self.reason = reason
        self.elapsed_s = elapsed_s


class Parser:
    """Cuts documents into chunks in one child process, which is started anew only when it died."""

    def __init__(self, settings: ParserSettings, embedding: EmbeddingSettings) -> None:
        self._settings = settings
        self._confinement = Confinement(embedding, settings.memory_bytes)
        self._child: _Child | None = None

    def cut(self, document: Document, sizes: ChunkSizes) -> Cut:
        """Chunks of a document, with a note where they are plain windows.

        A document that takes the child down early is tried once more: the child may have been killed from outside.
        """
        cpu_s = self._settings.cpu_s
        request = Request(document, sizes, cpu_s, cpu_s * _WALL_PER_CPU)
        try:
            return self._ask(request)
        except ChildDiedError as error:
            death = error
        # A document that took all its time would take it again. One that died early may have met the machine's trouble.
        if death.reason != TIMEOUT and death.elapsed_s < cpu_s / 2:
            try:
                return self._ask(request)
            except ChildDiedError as error:
                death = error
        return self._windows(request), Rejection(document.uri, death.reason, str(death))

    def convert(self, conversion: Conversion) -> Iterator[Read]:
        """Documents of a file in a format, as they are read; what follows none of them is why there are no more.

        Nothing else may be asked before the last one is taken.
        """
        cpu_s = self._settings.cpu_s
        request = FileRequest(conversion, cpu_s, cpu_s * _WALL_PER_CPU)
        for is_last in (False, True):
            some = False
            try:
                self.start()
                for one in cast("_Child", self._child).convert(request):
                    some = True
                    yield one
                return
            except ChildDiedError as death:
                self.close()
                # As with documents: one that took its time would take it again.
                if some or is_last or death.reason == TIMEOUT or death.elapsed_s >= cpu_s / 2:
                    yield Rejection(conversion.uri, death.reason, str(death))
                    return
            except BaseException:
                self.close()
                raise

    def start(self) -> None:
        """Have a child; a document starts one, too."""
        if self._child is None:
            self._child = self._started()

    def close(self) -> None:
        """End the child; the next document would start another."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _windows(self, request: Request) -> list[Chunk]:
        cpu_s = request.cpu_s * _WINDOWS_SHARE
        try:
            return self._ask(replace(request, cpu_s=cpu_s, wall_s=cpu_s * _WALL_PER_CPU, plainly=True))[0]
        except ChildDiedError:
            return chunk_plainly(request.document, request.sizes, byte_length)  # cannot fail, and takes no time

    def _ask(self, request: Request) -> Cut:
        self.start()
        try:
            return cast("_Child", self._child).cut(request)
        except BaseException:  # it is gone, or an answer is under way that nobody waits for
            self.close()
            raise

    def _started(self) -> _Child:
        for _ in range(_STARTS - 1):
            with contextlib.suppress(ChildDiedError):  # killed from outside before it could say anything
                return _Child(self._confinement)
        try:
            return _Child(self._confinement)
        except ChildDiedError as death:
            raise WeftError(
                f"expected the parser's child to start within {_START_S} s, found: {death}: give the machine less to "
                "do at once, or raise ingest.parser.memory_bytes where it lacks memory"
            ) from death


class _Child:
    """A running child, its pipes, and its limits as seen from outside."""

    def __init__(self, confinement: Confinement) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the child lives
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from weft.ingestion.parser.parser import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(),
        )
        self.end = weakref.finalize(self, _end, self._process, self._errors)
        self._in, self._out = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._memory_bytes = confinement.memory_bytes
        self._inbox = bytearray()
        try:
            self._answer(confinement, _START_S)
        except ChildDiedError:
            self.end()
            raise

    def cut(self, request: Request) -> Cut:
        """What became of a document."""
        cut: Cut = pickle.loads(self._answer(request, request.wall_s))  # noqa: S301  from a process of this same code
        return cut

    def convert(self, request: FileRequest) -> Iterator[Read]:
        """Documents of a file, as they are read."""
        self._say(request)
        while True:
            answer = self._message(request.wall_s)
            if answer == _BEAT:
                continue
            one: Read | None = pickle.loads(answer)  # noqa: S301  from a process of this same code
            if one is None:
                return
            yield one

    def _answer(self, message: Any, limit_s: float) -> bytes:
        self._say(message)
        return self._message(limit_s)

    def _say(self, message: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # it is gone: what it said before is still to be read
            send(self._in, pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    def _message(self, limit_s: float) -> bytes:
        """The next message; it may come together with the beginning of the one after it."""
        begun = time.monotonic()
        inbox, used_bytes = self._inbox, 0
        while len(inbox) < LENGTH.size or len(inbox) < LENGTH.size + LENGTH.unpack_from(inbox)[0]:
            if self._poll.poll(_LOOK_EVERY_S * 1000):
                data = os.read(self._out.fileno(), _BLOCK)
                if not data:
                    raise self._death(time.monotonic() - begun, used_bytes)
                inbox += data
            else:
                # Looked at while it works: of a process that crashed nobody can ask how much it had.
                used_bytes = max(used_bytes, _address_space(self._process.pid))
                if time.monotonic() > begun + limit_s + _GRACE_S:
                    raise ChildDiedError(TIMEOUT, f"expected an answer within {limit_s:.1f} s, found none", limit_s)
        end = LENGTH.size + LENGTH.unpack_from(inbox)[0]
        message = bytes(inbox[LENGTH.size : end])
        del inbox[:end]
        return message

    def _death(self, elapsed_s: float, used_bytes: int) -> ChildDiedError:
        self._process.kill()
        status = self._process.wait()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _LAST_WORDS_BYTES))
        words = self._errors.read().decode("utf-8", "replace").strip()
        if status in {-signal.SIGPROF, -signal.SIGALRM}:
            detail = f"expected chunks within the limit of time, found none after {elapsed_s:.1f} s"
            return ChildDiedError(TIMEOUT, detail, elapsed_s)
        # Native code that is refused memory often crashes on the null pointer, at a doubling that was one too many.
        refused = any(refusal in words for refusal in _REFUSED)
        if refused or status == OUT_OF_MEMORY or used_bytes > self._memory_bytes / 3:
            detail = f"expected to need at most {self._memory_bytes} bytes of memory, found that more was asked for"
            return ChildDiedError(MEMORY, detail, elapsed_s)
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return ChildDiedError(CRASHED, f"the parser's process ended by {how}: {words[-200:]}".rstrip(": "), elapsed_s)


def _address_space(process: int) -> int:
    """Bytes of address space that a process has now; 0 where it has ended."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[0]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()


def _environment() -> dict[str, str]:
    """The child finds the same code, and does not start threads, whose memory would count against its limit."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    single = dict.fromkeys(_ONE_THREAD, "1")
    return {**os.environ, **single, "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": path}


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, errors):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):  # what was left in a buffer
                stream.close()
