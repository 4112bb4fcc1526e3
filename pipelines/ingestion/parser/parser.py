"""Cutting documents in a child process that can be killed, at about the price of cutting them here (ING-3)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipelines.chunking.prose.text import byte_length, chunk_plainly
from pipelines.chunking.units.sizes import ChunkSizes
from pipelines.domain.documents import Document, Rejection
from pipelines.domain.errors import WeftError
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.ingestion.parser.process import ChildDiedError, ParserProcess
from pipelines.ingestion.parser.protocol import TIMEOUT, Confinement, Cut, Request
from pipelines.ingestion.settings import ParserSettings

_STARTS = 3  # of a child, before its not starting counts as an error of the machine


class Parser:
    """Cuts documents into chunks in one child process, which is started anew only when it died.

    A document that takes the child down early is tried once more in a fresh one: the child may have been killed from
    outside. If that fails too it is cut into plain line windows, and its note tells why.

    Args:
        embedding: Of the tokenizer that chunking measures with.
    """

    def __init__(self, settings: ParserSettings, embedding: EmbeddingSettings) -> None:
        self._settings = settings
        self._confinement = Confinement(embedding, settings.memory_bytes, settings.answer_bytes)
        self._running: list[ParserProcess] = []

    def cut(self, documents: Sequence[tuple[Document, ChunkSizes]]) -> Iterator[Cut]:
        """Chunks of each document, in order, with a note where they are plain windows.

        Raises:
            WeftError: No child can be started.
        """
        requests = [Request(document, sizes, *self._limits(self._settings.cpu_s)) for document, sizes in documents]
        done = 0
        while done < len(requests):
            try:
                for answer in self._answers(requests[done:]):
                    yield answer
                    done += 1
            except ChildDiedError as death:
                yield self._mended(requests[done], death)
                done += 1

    def close(self) -> None:
        """End the child; the next document would start another."""
        while self._running:
            self._running.pop().end()

    def _answers(self, requests: Sequence[Request]) -> Iterator[Cut]:
        if not self._running:
            self._running.append(self._started())
        finished = False
        try:
            yield from self._running[0].answers(requests)
            finished = True
        finally:
            if not finished:  # it is gone, or answers are under way that nobody waits for
                self.close()

    def _started(self) -> ParserProcess:
        for _ in range(_STARTS - 1):
            with contextlib.suppress(ChildDiedError):  # killed from outside before it could say anything
                return ParserProcess(self._confinement, self._settings.start_s)
        try:
            return ParserProcess(self._confinement, self._settings.start_s)
        except ChildDiedError as death:
            limit = self._settings.start_s
            raise WeftError(
                f"expected the parser's child to start within {limit} s, found: {death}: raise ingest.parser.start_s "
                "where the machine is busy, or ingest.parser.memory_bytes where it lacks memory"
            ) from death

    def _answer(self, request: Request) -> Cut:
        (answer,) = self._answers([request])
        return answer

    def _mended(self, request: Request, death: ChildDiedError) -> Cut:
        if death.reason != TIMEOUT and death.elapsed_s < request.cpu_s / 2:
            try:
                return self._answer(request)
            except ChildDiedError as again:
                death = again
        note = Rejection(request.document.uri, death.reason, str(death))
        try:
            cpu_s, wall_s = self._limits(self._settings.windows_s)
            chunks, _ = self._answer(replace(request, cpu_s=cpu_s, wall_s=wall_s, plainly=True))
        except ChildDiedError:
            chunks = chunk_plainly(request.document, request.sizes, byte_length)  # cannot fail, and takes no time
        return chunks, note

    def _limits(self, cpu_s: float) -> tuple[float, float]:
        """Processor time and time."""
        return cpu_s, cpu_s * self._settings.wall_per_cpu
