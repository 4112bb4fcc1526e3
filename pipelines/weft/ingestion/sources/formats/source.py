"""What a reader of a format is given, and what it gives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from weft.ingestion.sources.transcripts import Session


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is open for reading, and what of it is not taken over."""

    file: IO[bytes]  # at its beginning, and can be sought
    names: Sequence[str]  # from the root to the file
    limit: int  # bytes of one record, characters of one text
    beside: Mapping[str, bytes]  # what the files hold that it is read with, by their names
    dropped: Counter[str] = field(default_factory=Counter)  # how many of what, in words

    @property
    def stem(self) -> str:
        """The file's name without its ending."""
        return self.names[-1].rpartition(".")[0] or self.names[-1]

    def objects(self) -> Iterator[Mapping[str, Any]]:
        """The JSON objects of a file that has one a line; lines that are none, or too long, are counted."""
        while line := self.file.readline(self.limit + 1):
            if len(line) > self.limit:
                self.dropped["lines too long to be read"] += 1
                while line and not line.endswith(b"\n"):
                    line = self.file.readline(self.limit)
                continue
            try:
                value = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError):
                self.dropped["lines that are no JSON"] += 1
                continue
            if isinstance(value, Mapping):
                yield value


@dataclass(frozen=True, slots=True)
class Written:
    """A document as Markdown."""

    text: str
    title: str | None = None
    authors: tuple[str, ...] = ()
    time: float | None = None  # when it was changed last, in seconds since the epoch, as it says itself
    facts: Mapping[str, str] = field(default_factory=dict)


Readings = Iterator[Session | Written | None]
"""What a reader gives: sessions, or one document; None after a step of work that gave nothing yet."""


class FormatError(Exception):
    """A file is not what it seems, or says nothing; `reason` is a stable code."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
