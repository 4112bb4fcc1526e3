"""The writing side of the query log: a bounded queue, a thread of its own, whole files (EVA-3)."""

from __future__ import annotations

import hashlib
import logging
import math
import queue
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.errors import StoreError
from weft.domain.ranking import Answer
from weft.evaluation.queries.days import QUERY_LOG, day_folder, keep_days, merge_small, put_file
from weft.evaluation.queries.schema import QUERIES, row_of
from weft.evaluation.settings import QueryLogSettings
from weft.runtime.clock import Clock, day_of, system_clock
from weft.runtime.storage.errors import advice_on

log = logging.getLogger(__name__)

QUEUE = 1_000
"""Answers that may wait to be written; what comes on top is dropped and counted."""

FLUSH_ROWS = 500
"""Rows of one file: enough to compress well, and some 1.5 MB to lose with a crash."""

FLUSH_S = 10.0
"""After which rows are written though they are few, in seconds: what a crash may lose."""

_CLOSE_S = 10.0  # that closing waits for the last rows
_TEXT_CHARACTERS = 4_096  # kept of a query's text
_Row = tuple[int, pa.RecordBatch]  # with its day


class QueryLog:
    """Takes note of answers; no search ever waits for it. Shared by threads.

    A file is written whole and renamed into place, so a crash loses at most what waits, and damages nothing.
    """

    def __init__(
        self,
        root: Path,
        settings: QueryLogSettings,
        *,
        clock: Clock = system_clock,
        waiting: int = QUEUE,
        flush_rows: int = FLUSH_ROWS,
        flush_s: float = FLUSH_S,
    ) -> None:
        self.logged = 0
        self.dropped = 0
        self.lost = 0
        self._folder = root / QUERY_LOG
        self._settings = settings
        self._clock = clock
        self._flush_rows = flush_rows
        self._flush_s = flush_s
        self._queue: queue.Queue[tuple[Answer, float] | None] = queue.Queue(waiting)
        self._tidied: int | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def emit(self, answer: Answer) -> None:
        """Log the answer, if its query is in the sample and the queue has room; returns at once and never raises."""
        if not sampled(answer.query.query_id, self._settings.sample):
            return
        try:
            if self._closed:
                raise queue.Full  # nobody writes any more
            self._queue.put_nowait((answer, self._clock()))
            self._start()
        except queue.Full:
            with self._lock:
                self.dropped += 1

    def close(self) -> None:
        """Write what waits, for at most ten seconds."""
        self._closed = True
        if self._thread is None:
            return
        try:
            self._queue.put(None, timeout=_CLOSE_S)
        except queue.Full:
            log.warning("query log: %d answers were still waiting", self._queue.qsize())
            return
        self._thread.join(_CLOSE_S)

    def __enter__(self) -> QueryLog:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _start(self) -> None:
        # With the first answer: who only measures or reads starts no thread.
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_on, name="query-log", daemon=True)
                self._thread.start()

    def _write_on(self) -> None:
        rows: list[_Row] = []
        due, ended = math.inf, False
        while not ended:
            with suppress(queue.Empty):
                item = self._queue.get(timeout=max(0.0, min(due - time.monotonic(), self._flush_s)))
                ended = item is None
                if item is not None:
                    self._add(rows, *item)
                    due = min(due, time.monotonic() + self._flush_s)
            if rows and (ended or len(rows) >= self._flush_rows or time.monotonic() >= due):
                self._flush(rows)
                rows, due = [], math.inf

    def _add(self, rows: list[_Row], answer: Answer, at: float) -> None:
        try:
            row = row_of(answer, at=at, characters=_TEXT_CHARACTERS)
            # One at a time: turning many rows into columns at once would hold the interpreter, and with it searches.
            rows.append((day_of(at), pa.RecordBatch.from_pylist([row], schema=QUERIES)))
        except (ValueError, TypeError, LookupError, AttributeError, pa.ArrowException) as error:
            self.lost += 1
            log.warning("query %s not logged: %s", answer.query.query_id, error)

    def _flush(self, rows: Sequence[_Row]) -> None:
        by_day: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
        for day, batch in rows:
            by_day[day].append(batch)
        for day, some in sorted(by_day.items()):
            try:
                write_table(day_folder(self._folder, day), pa.Table.from_batches(some).combine_chunks())
                self.logged += len(some)
            except (OSError, ValueError, pa.ArrowException, StoreError) as error:
                self.lost += len(some)
                log.warning("query log: %d rows lost: %s: %s", len(some), error, advice_on(error))
            self._tidy(day)

    def _tidy(self, day: int) -> None:
        try:
            if self._tidied != day:
                self._tidied = day
                keep_days(self._folder, self._settings.keep_days, today=day)
            merge_small(day_folder(self._folder, day))
        except (OSError, pa.ArrowException, StoreError) as error:
            log.warning("query log: small files stay: %s", error)


def sampled(query_id: str, share: float) -> bool:
    """Whether a query is in the sample: decided by its id alone, so that whoever sees it decides alike."""
    digest = hashlib.sha256(query_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < share * 2.0**64


def write_rows(folder: Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> Path:
    """Write rows as one whole Parquet file of a folder, under a name of its own."""
    return write_table(folder, pa.Table.from_pylist(list(rows), schema=schema))


def write_table(folder: Path, table: pa.Table) -> Path:
    """Write a table as one whole Parquet file of a folder, under a name of its own."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    path = folder / f"{uuid.uuid4().hex}.parquet"
    put_file(path, sink.getvalue().to_pybytes())
    return path
