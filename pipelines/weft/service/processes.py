"""Search processes behind one queue: what waits is bounded, and what waits together is answered together (OPS-5)."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from multiprocessing.connection import Connection
from typing import Any, Protocol

from weft.domain import errors
from weft.domain.ranking import Query
from weft.service import worker
from weft.service.problems import RefusedError
from weft.service.worker import (
    ENCODER,
    REPLIES,
    Failed,
    Form,
    Job,
    Locate,
    Read,
    Ready,
    Reply,
    Rerank,
    Search,
    SentAnswer,
)
from weft.settings import Settings

log = logging.getLogger(__name__)

TOGETHER = 8
"""Queries of different requests that a process answers at a time: more would have the first one wait for the last."""

GATHER_S = 0.006
"""That a process which answered several at a time waits for as many: who was answered together mostly asks again."""

HUNG_S = 60.0
"""After which a process that does not answer is ended."""

FIRST_DEATHS = 3
"""Processes in a row that may end before they are ready; then the service says why, and tries again more slowly."""

_AGAIN_S = 30.0
_PRELOADED = ("weft.service.worker", "weft.embedding.encoders.encoder", "weft.embedding.encoders.int8_models")
"""What every search process imports: imported once, in the process that they are forked from, it lies there once."""


class Searches(Protocol):
    """Answers searches, wherever that happens; called from the event loop."""

    @property
    def trouble(self) -> str | None:
        """Why nothing is answered now; None where it is."""

    @property
    def waiting(self) -> int:
        """Jobs that wait for a process."""

    @property
    def restarts(self) -> int:
        """Processes that had to be started anew."""

    @property
    def recalled(self) -> int:
        """Query texts whose vectors were remembered."""

    @property
    def computed(self) -> int:
        """Query texts that were encoded."""

    async def start(self) -> None:
        """Get ready to answer, in the background."""

    async def close(self) -> None:
        """Answer what is under way, and end."""

    async def search(self, queries: Sequence[Query], form: Form, *, record: bool = True) -> Sequence[SentAnswer]:
        """What is found for queries, all from one snapshot; `RefusedError` where it cannot be had in time."""

    async def rerank(self, query: str, documents: Sequence[str]) -> Sequence[float]:
        """How well each text answers a query, in [0, 1]."""

    async def locate(self, name: str) -> str:
        """The URI of a place that somebody names; `StoreError` where there is none."""

    async def content(self, content_hash: str) -> bytes:
        """A content and everywhere it stands, in JSON; `StoreError` where none of that hash is live."""


@dataclass
class _Waiting:
    job: Job
    done: asyncio.Future[Any]


@dataclass
class _Process:
    process: multiprocessing.process.BaseProcess
    connection: Connection
    ready: bool = False
    busy: list[_Waiting] = field(default_factory=list)
    hung: asyncio.TimerHandle | None = None
    expects: int = 1  # searches it had at a time last
    gathering: bool = False  # fewer than these wait for more, for a moment


class SearchProcesses:
    """Processes that each hold a searcher over the same store; one queue feeds whichever is free."""

    def __init__(self, settings: Settings, *, count: int, reports: bool, shards: int = 0) -> None:
        """Describe them; `start` begins.

        Args:
            reports: Whether what is shown goes to the feedback topic.
            shards: Deployments that shards are searched in; 0 where these processes do.
        """
        self._settings = settings
        self._count = count
        self._stated = {"reports": reports, "shards": shards}
        self._most = settings.serve.waiting
        self._timeout_s = settings.serve.timeout_s
        self._queue: deque[_Waiting] = deque()
        self._processes: list[_Process] = []
        self._trouble = "search processes are starting"
        self._restarts = 0
        self._recalled = 0
        self._computed = 0
        self._deaths = 0
        self._closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(_PRELOADED))
        self._context = context

    @property
    def trouble(self) -> str | None:
        """Why nothing is answered now; None where it is."""
        return None if any(each.ready for each in self._processes) and not self._closing else self._trouble

    @property
    def waiting(self) -> int:
        """Jobs that wait for a process."""
        return len(self._queue)

    @property
    def restarts(self) -> int:
        """Processes that had to be started anew."""
        return self._restarts

    @property
    def recalled(self) -> int:
        """Query texts whose vectors were remembered."""
        return self._recalled

    @property
    def computed(self) -> int:
        """Query texts that were encoded."""
        return self._computed

    async def start(self) -> None:
        """Begin all processes; they become ready by themselves."""
        await asyncio.gather(*(self._begin() for _ in range(self._count)))

    async def close(self) -> None:
        """End all processes once they have answered what they have; what waits is refused."""
        self._closing, self._trouble = True, "the service is ending"
        for waiting in self._queue:
            _fail(waiting, _ending())
        self._queue.clear()
        while any(each.busy for each in self._processes):
            await asyncio.sleep(0.01)
        loop = asyncio.get_running_loop()
        for each in self._processes:
            loop.remove_reader(each.connection.fileno())
            each.connection.close()
        for each in self._processes:
            await asyncio.to_thread(each.process.join, 10.0)
            if each.process.is_alive():
                each.process.kill()
        self._processes.clear()

    async def search(self, queries: Sequence[Query], form: Form, *, record: bool = True) -> Sequence[SentAnswer]:
        """What is found for queries, all from one snapshot; `RefusedError` where it cannot be had in time."""
        many = len(queries)
        answers: Sequence[SentAnswer] = await self._ask(Search(queries, [form] * many, [record] * many))
        return answers

    async def rerank(self, query: str, documents: Sequence[str]) -> Sequence[float]:
        """How well each text answers a query, in [0, 1]."""
        scores: Sequence[float] = (await self._ask(Rerank(query, documents))).scores
        return scores

    async def locate(self, name: str) -> str:
        """The URI of a place that somebody names; `StoreError` where there is none."""
        uri: str = (await self._ask(Locate(name))).uri
        return uri

    async def content(self, content_hash: str) -> bytes:
        """A content and everywhere it stands, in JSON; `StoreError` where none of that hash is live."""
        body: bytes = (await self._ask(Read(content_hash))).body
        return body

    async def _ask(self, job: Job) -> Any:
        if (trouble := self.trouble) is not None:
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, f"expected a process that searches, found none: {trouble}"
            )
        if len(self._queue) >= self._most:
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"expected fewer than {self._most} searches that wait, found {len(self._queue)}: ask again in a moment",
            )
        waiting = _Waiting(job, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._feed()
        try:
            return await asyncio.wait_for(waiting.done, self._timeout_s)
        except TimeoutError:
            raise RefusedError(
                HTTPStatus.GATEWAY_TIMEOUT, f"expected an answer within {self._timeout_s:g} s, found none"
            ) from None
        finally:
            if waiting in self._queue:
                self._queue.remove(waiting)

    def _feed(self) -> None:
        """Give what waits to processes that are free; each takes its share, so that all have something to do."""
        waiting = len(self._queue)
        free = [
            each
            for each in self._processes
            if each.ready and not each.busy and (waiting >= each.expects or not each.gathering)
        ]
        for number, process in enumerate(free):
            if not self._queue:
                return
            share = -(-len(self._queue) // (len(free) - number))
            taken = [self._queue.popleft()]
            while (
                self._queue
                and len(taken) < min(share, TOGETHER)
                and all(isinstance(each.job, Search) for each in (taken[0], self._queue[0]))
            ):
                taken.append(self._queue.popleft())
            self._send(process, taken)

    def _send(self, process: _Process, taken: list[_Waiting]) -> None:
        job = taken[0].job
        if isinstance(job, Search) and len(taken) > 1:
            searches = [each.job for each in taken if isinstance(each.job, Search)]
            job = Search(
                [query for each in searches for query in each.queries],
                [form for each in searches for form in each.forms],
                [recorded for each in searches for recorded in each.recorded],
            )
        process.busy, process.expects = taken, len(taken)
        process.hung = asyncio.get_running_loop().call_later(HUNG_S, process.process.kill)
        try:
            process.connection.send_bytes(ENCODER.encode(job))
        except OSError:
            self._died(process)

    async def _begin(self) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=worker.run, args=(theirs, self._settings), kwargs=self._stated, daemon=True
        )
        await asyncio.to_thread(process.start)  # the first one waits for the fork server, which imports for seconds
        theirs.close()
        each = _Process(process, ours)
        self._processes.append(each)
        asyncio.get_running_loop().add_reader(ours.fileno(), self._receive, each)
        os.set_blocking(ours.fileno(), True)  # uvloop has it not block: of a long reply it would read a part

    def _receive(self, process: _Process) -> None:
        try:
            reply = REPLIES.decode(process.connection.recv_bytes())
        except (EOFError, OSError):
            self._died(process)
            return
        if isinstance(reply, Ready):
            process.ready, self._deaths = True, 0
            log.info("a search process is ready, over generation %s", reply.generation)
        elif not process.ready and isinstance(reply, Failed):
            self._trouble = reply.message
        else:
            self._answered(process, reply)
        self._feed()

    def _answered(self, process: _Process, reply: Reply) -> None:
        taken, process.busy = process.busy, []
        if process.expects > 1:
            process.gathering = True
            asyncio.get_running_loop().call_later(GATHER_S, self._gathered, process)
        if process.hung is not None:
            process.hung.cancel()
        if isinstance(reply, Failed):
            if len(taken) > 1:  # one of them is to blame: each is asked for by itself
                for each in reversed(taken):
                    self._queue.appendleft(each)
                self._send(process, [self._queue.popleft()])
                return
            _fail(taken[0], _error_of(reply))
            return
        if not isinstance(reply, worker.Searched):
            _finish(taken[0], reply)
            return
        self._recalled += reply.recalled
        self._computed += reply.computed
        rest = list(reply.answers)
        for each in taken:
            assert isinstance(each.job, Search)
            count = len(each.job.queries)
            _finish(each, rest[:count])
            del rest[:count]

    def _gathered(self, process: _Process) -> None:
        process.gathering = False
        self._feed()

    def _died(self, process: _Process) -> None:
        if process not in self._processes:
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(process.connection.fileno())
        process.connection.close()
        self._processes.remove(process)
        if process.hung is not None:
            process.hung.cancel()
        for each in process.busy:
            _fail(
                each,
                RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "expected an answer, found the process ended: ask again"),
            )
        if self._closing:
            return
        log.warning("a search process ended with %s: another one is started", process.process.exitcode)
        self._restarts += 1
        self._deaths += not process.ready
        again = loop.create_task(self._begin_again(_AGAIN_S if self._deaths >= FIRST_DEATHS else 0.0))
        self._tasks.add(again)
        again.add_done_callback(self._tasks.discard)

    async def _begin_again(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        if not self._closing:
            await self._begin()


def _finish(waiting: _Waiting, result: object) -> None:
    if not waiting.done.done():
        waiting.done.set_result(result)


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.done.done():
        waiting.done.set_exception(error)


def _ending() -> RefusedError:
    return RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "expected a service, found it ending: ask again in a moment")


def _error_of(failed: Failed) -> Exception:
    """What a process failed with, as it was raised there."""
    kind = getattr(errors, failed.kind, None)
    if kind is errors.InvalidEventError or kind is errors.InvalidLessonError:
        return RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, failed.message)
    if isinstance(kind, type) and issubclass(kind, errors.WeftError):
        return kind(failed.message)
    if failed.kind == ValueError.__name__:
        return RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, failed.message)
    return RuntimeError(f"{failed.kind}: {failed.message}")
