"""Counts that providers gave, kept below the store: searches read them as they read what is live (CIT-1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from weft.domain.errors import CorruptionError
from weft.domain.links import WorkCounts
from weft.runtime.storage.working_copy import replace_table

CITATIONS_FILE = "cache/citations.json"
"""Replaced atomically; whoever deletes it has the next nights ask again."""

CitationCounts = Mapping[str, WorkCounts]
"""What is known of works, by `str` of each."""

_Stamp = tuple[int, int, int]


class CitationFile:
    """Reads and replaces the counts of one store; a file that did not change is not read again."""

    def __init__(self, root: Path) -> None:
        self.path = root / CITATIONS_FILE
        self._root = root
        self._held: tuple[_Stamp, dict[str, WorkCounts]] | None = None

    def read(self) -> CitationCounts:
        """Everything counted; nothing in a store whose providers are off. The same object while nothing changed."""
        try:
            status = self.path.stat()
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if self._held is None or self._held[0] != stamp:
                self._held = stamp, msgspec.json.decode(self.path.read_bytes(), type=dict[str, WorkCounts])
        except FileNotFoundError:
            return NO_CITATION_COUNTS
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CorruptionError(f"{self.path}: expected counts of works, found: {error}; remove it") from error
        return self._held[1]

    def write(self, works: CitationCounts) -> None:
        """Replace everything."""
        data = msgspec.json.encode(dict(sorted(works.items()))) + b"\n"
        replace_table(self._root, CITATIONS_FILE, lambda _: data)


NO_CITATION_COUNTS: CitationCounts = {}
"""Of a store without counts."""
