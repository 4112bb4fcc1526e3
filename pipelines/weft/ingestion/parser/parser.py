"""Cutting documents in a child process that can be killed, at about the price of cutting them here (ING-3)."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

from weft.chunking.chunker import CRASHED
from weft.chunking.prose.text import byte_length, chunk_plainly
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import Document, Rejection
from weft.domain.errors import WeftError
from weft.embedding.settings import EmbeddingSettings
from weft.ingestion.parser.child import LENGTH, OUT_OF_MEMORY, Confinement, Cut, Request, send
from weft.ingestion.settings import ParserSettings

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

        A document that takes the child down early is tried once more in a fresh one: the child may have been killed
        from outside.

        Raises:
            WeftError: No child can be started.
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
        if self._child is None:
            self._child = self._start()
        try:
            return self._child.cut(request)
        except BaseException:  # it is gone, or an answer is under way that nobody waits for
            self.close()
            raise

    def _start(self) -> _Child:
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
    """A running child, its pipes, and its limits as seen from outside.

    Raises:
        ChildDiedError: It did not come to be ready.
    """

    def __init__(self, confinement: Confinement) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the child lives
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from weft.ingestion.parser.child import main; main()"],
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
        try:
            self._answer(confinement, _START_S)
        except ChildDiedError:
            self.end()
            raise

    def cut(self, request: Request) -> Cut:
        """What became of a document.

        Raises:
            ChildDiedError: The child is gone.
        """
        cut: Cut = pickle.loads(self._answer(request, request.wall_s))  # noqa: S301  from a process of this same code
        return cut

    def _answer(self, message: Any, limit_s: float) -> bytes:
        begun = time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # it is gone: what it said before is still to be read
            send(self._in, pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
        inbox, used_bytes = bytearray(), 0
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
        return bytes(inbox[LENGTH.size :])

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
