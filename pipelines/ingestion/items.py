"""Items of sources: what one task reads, as small picklable values in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileItem:
    """One file of a tree.

    Attributes:
        root: The folder that nothing is read outside of.
        path: Names from the root to the file, as the system gives them (surrogates for bytes that are not UTF-8).
        uri: The root's name and the path, always encodable.
    """

    root: str
    path: tuple[str, ...]
    uri: str


@dataclass(frozen=True, slots=True)
class RecordsItem:
    """Neighbouring lines of a corpus file.

    Attributes:
        offset: Where the first of them begins in the decompressed file.
        first_line: Its number, from 1.
        count: How many lines.
    """

    path: str
    offset: int
    first_line: int
    count: int


@dataclass(frozen=True, slots=True)
class StoredItem:
    """Neighbouring documents of a generation.

    Attributes:
        folder: Where its documents and texts lie, row by row in the same groups.
        group: The row group.
        first, count: Rows in it.
    """

    folder: str
    group: int
    first: int
    count: int


SourceItem = FileItem | RecordsItem | StoredItem
"""What one task reads."""
