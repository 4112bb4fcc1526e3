"""For tests of applications: a searcher over a handful of texts, and a producer whose events stay in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from weft.app.indexing import index
from weft.app.library import open_searcher
from weft.domain.events import AnyEvent
from weft.feedback.events.codec import decode
from weft.feedback.events.producer import FeedbackProducer
from weft.retrieval.searcher import Searcher
from weft.settings import load_settings


@contextmanager
def searcher_over(texts: Mapping[str, str], *, assignments: Sequence[str] = ()) -> Iterator[Searcher]:
    """A real searcher over texts by file name, such as {"notes/locks.md": "…"}, in a folder that is removed after.

    Args:
        assignments: Settings as "section.key=value"; entities are not looked for unless they say so.

    Raises:
        ValueError: A name leads out of the folder.
    """
    chosen = ["extraction.enabled=false", *assignments]
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "texts"
        for name, text in texts.items():
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ValueError(f"expected a name below the folder, found {name!r}")
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        index([source], Path(scratch) / "store", assignments=chosen)
        with open_searcher(Path(scratch) / "store", assignments=chosen) as searcher:
            yield searcher


class MemoryProducer(FeedbackProducer):
    """A producer whose events stay in memory, checked and encoded as those that are sent.

    Examples:
        >>> from weft import Query
        >>> producer = MemoryProducer()
        >>> _ = producer.selection(Query(text="how is a lock released"), "00" * 32, rank=1)
        >>> [type(event).__name__ for event in producer.events]
        ['Selection']
    """

    def __init__(self) -> None:
        self._memory = _Memory()
        super().__init__(self._memory)

    @property
    def events(self) -> list[AnyEvent]:
        """What was sent so far, as an updater reads it."""
        most = load_settings(environment={}).feedback.limits.event_bytes
        return [decode(value, max_bytes=most) for value in self._memory.values]


class _Memory:
    """A publisher without a broker."""

    waiting = lost = 0

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def send(self, key: bytes, value: bytes) -> None:  # noqa: ARG002  who reads it needs no key
        self.values.append(value)

    def flush(self) -> None:
        """All are there."""

    def close(self) -> int:
        """None is lost."""
        return 0
