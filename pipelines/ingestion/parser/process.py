"""A running parser child: its pipes, its limits as seen from outside, and what its death means (ING-3)."""

from __future__ import annotations

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
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, cast

from pipelines.chunking.chunker import CRASHED
from pipelines.ingestion.parser.protocol import (
    LENGTH,
    MEMORY,
    OUT_OF_MEMORY,
    TIMEOUT,
    Confinement,
    Cut,
    Request,
    framed,
)

_GRACE_S = 2.0  # beyond a document's wall limit, at which the kernel should have ended the child
_LOOK_EVERY_S = 0.1  # at the memory of a child that takes its time
_BLOCK = 1 << 18  # bytes read or written at a time
_LAST_WORDS_BYTES = 4096
_AHEAD = 2  # requests under way, so that the child need not wait for the next one
_REFUSED = ("memory allocation", "failed to allocate", "MemoryError", "bad_alloc")  # last words of Rust, C and Python


class ChildDiedError(Exception):
    """The child is gone, or had to be killed, while it worked on a document; `reason` is a stable code.

    Attributes:
        elapsed_s: How long it had worked on that document.
    """

    def __init__(self, reason: str, detail: str, elapsed_s: float) -> None:
        super().__init__(detail)
        self.reason = reason
        self.elapsed_s = elapsed_s


class ParserProcess:
    """A running child and the pipes to it.

    Raises:
        ChildDiedError: It did not come to be ready.
    """

    def __init__(self, confinement: Confinement, start_s: float) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the child lives
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pipelines.ingestion.parser.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(),
            bufsize=0,
        )
        self.end = weakref.finalize(self, _end, self._process, self._errors)
        self._in = cast("IO[bytes]", self._process.stdin).fileno()
        self._out = cast("IO[bytes]", self._process.stdout).fileno()
        for descriptor in (self._in, self._out):
            os.set_blocking(descriptor, False)
        self._outbox = memoryview(b"")
        self._inbox = bytearray()
        self._memory_bytes = confinement.memory_bytes
        self._seen_bytes = 0
        try:
            list(self._exchange([(framed(confinement), start_s)]))
        except ChildDiedError:
            self.end()
            raise

    def answers(self, requests: Iterable[Request]) -> Iterator[Cut]:
        """Answers to requests, in order.

        Raises:
            ChildDiedError: It is gone; it worked on the first request that has no answer.
        """
        for answer in self._exchange((framed(request), request.wall_s) for request in requests):
            cut: Cut = pickle.loads(answer)  # noqa: S301  written by a process of this same code
            yield cut

    def _exchange(self, messages: Iterable[tuple[bytes, float]]) -> Iterator[bytes]:
        """Send messages a little ahead of their answers, each of which may take as long as its message says."""
        waiting = iter(messages)
        limits: deque[float] = deque()
        while True:
            begun = time.monotonic()
            while not self._outbox and len(limits) < _AHEAD and (message := next(waiting, None)) is not None:
                self._outbox = memoryview(message[0])
                limits.append(message[1])
            if not limits:
                return
            while (answer := self._taken()) is None:
                self._pump(begun, limits[0])
            limits.popleft()
            self._seen_bytes = 0
            yield answer

    def _pump(self, begun: float, limit_s: float) -> None:
        """Move bytes, one way or both."""
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if self._outbox:
            poll.register(self._in, select.POLLOUT)
        ready = dict(poll.poll(_LOOK_EVERY_S * 1000))
        if not ready:
            self._seen_bytes = max(self._seen_bytes, _address_space(self._process.pid))
            if time.monotonic() > begun + limit_s + _GRACE_S:
                raise ChildDiedError(TIMEOUT, f"expected an answer within {limit_s:.1f} s, found none", limit_s)
        if self._in in ready:
            self._write()
        if self._out in ready:
            data = os.read(self._out, _BLOCK)
            if not data:
                raise self._death(time.monotonic() - begun)
            self._inbox += data

    def _write(self) -> None:
        try:
            self._outbox = self._outbox[os.write(self._in, self._outbox[:_BLOCK]) :]
        except BrokenPipeError:
            self._outbox = memoryview(b"")  # it is gone; what it said before is still to be read

    def _taken(self) -> bytes | None:
        """The next answer, if it is here as a whole."""
        if len(self._inbox) < LENGTH.size:
            return None
        end = LENGTH.size + LENGTH.unpack_from(self._inbox)[0]
        if len(self._inbox) < end:
            return None
        answer = bytes(self._inbox[LENGTH.size : end])
        del self._inbox[:end]
        return answer

    def _death(self, elapsed_s: float) -> ChildDiedError:
        self._process.kill()
        status = self._process.wait()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _LAST_WORDS_BYTES))
        words = self._errors.read().decode("utf-8", "replace").strip()
        if status in {-signal.SIGPROF, -signal.SIGALRM}:
            detail = f"expected chunks within the limit of time, found none after {elapsed_s:.1f} s"
            return ChildDiedError(TIMEOUT, detail, elapsed_s)
        # Native code that is refused memory often crashes on the null pointer, at a doubling that was one too many.
        refused = any(words_of_refusal in words for words_of_refusal in _REFUSED)
        if refused or status == OUT_OF_MEMORY or self._seen_bytes > self._memory_bytes / 3:
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
    single = dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX"), "1")
    return {**os.environ, **single, "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": path}


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, errors):
        if stream is not None:
            stream.close()
