"""Items of sources: what one task reads, as small picklable values in a fixed order."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import ClassVar

from weft.ingestion.git.times import Commit
from weft.ingestion.settings import SourceSettings

RECORDS_PER_ITEM = 64
"""Lines of a corpus, or rows of a table, that one task reads: a second or two of an encoder's time."""


@dataclass(frozen=True, slots=True)
class FileItem:
    """One file of a tree."""

    root: str  # the folder that nothing is read outside of
    # names from the root to the file, as the system gives them (surrogates for bytes that are not UTF-8)
    path: tuple[str, ...]
    uri: str  # the root's name and the path, always encodable
    sidecar: str | None = field(default=None, compare=False)  # name of the file beside it that declares facts about it
    # the last one that touched it, where the tree is a repository
    commit: Commit | None = field(default=None, compare=False)
    # the newest change in its source, in seconds since the epoch: what ages are measured from
    as_of: float | None = field(default=None, compare=False)
    size: int = field(default=0, compare=False)  # in bytes, when it was listed: how much work it is
    source: SourceSettings | None = field(default=None, compare=False)  # what its source declares
    origin: str | None = field(default=None, compare=False)  # URL of the objects that its source was brought from
    count: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class RecordsItem:
    """Neighbouring lines of a corpus file."""

    path: str
    offset: int  # where the first of them begins in the decompressed file
    first_line: int  # its number, from 1
    count: int  # how many lines
    size: int = field(default=0, compare=False)  # in bytes, decompressed: how much work they are
    source: SourceSettings | None = field(default=None, compare=False)  # what its source declares
    origin: str | None = field(default=None, compare=False)  # URL of the objects that its source was brought from


@dataclass(frozen=True, slots=True)
class StoredItem:
    """Neighbouring documents of a generation."""

    folder: str  # where its documents and texts lie, row by row in the same groups
    group: int  # the row group
    first: int  # Rows in it
    count: int
    # of these rows, in bytes, if they were all alike: how much work they are
    size: int = field(default=0, compare=False)
    prefixes: tuple[str, ...] = ()  # how the URIs of the wanted ones begin; none for all


@dataclass(frozen=True, slots=True)
class RowsItem:
    """Neighbouring rows of a Parquet file."""

    path: str
    # of the file, without its ending, for what has no name of its own; with as many folders above it as tell it
    # from others of its name in the same run
    name: str
    group: int  # the row group
    first: int  # Rows in it
    count: int
    # of these rows, in bytes, if they were all alike: how much work they are
    size: int = field(default=0, compare=False)
    source: SourceSettings | None = field(default=None, compare=False)  # what its source declares
    origin: str | None = field(default=None, compare=False)  # URL of the objects that its source was brought from


SourceItem = FileItem | RecordsItem | RowsItem | StoredItem
"""What one task reads."""


def escaped(name: str) -> str:
    r"""A file name as text: bytes that are not UTF-8, control characters and backslashes in `\x` form.

    Examples:
        >>> escaped("caf\udce9\n")
        'caf\\xe9\\x0a'
    """
    text = os.fsencode(name.replace("\\", "\\\\")).decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def table_name(path: Path, folders: int) -> str:
    """A table's name without its ending, after so many of the folders that it lies in; always encodable.

    Examples:
        >>> table_name(Path("/data/a/rows.parquet"), 1), table_name(Path("/rows.parquet"), 1)
        ('a/rows', 'rows')
    """
    above = [escaped(name) for name in path.parent.parts if name != path.anchor]
    return "/".join([*above[len(above) - min(folders, len(above)) :], escaped(path.name.removesuffix(TABLE_SUFFIX))])


def with_distinct_names(items: Sequence[SourceItem]) -> list[SourceItem]:
    """The same items; tables of one name are named with the fewest folders that distinguish them."""
    paths: defaultdict[str, set[Path]] = defaultdict(set)
    for item in items:
        if isinstance(item, RowsItem):
            paths[item.name].add(Path(item.path))
    names: dict[str, str] = {}
    for same in paths.values():
        folders = next(n for n in count() if len({table_name(path, n) for path in same}) == len(same))
        names |= {str(path): table_name(path, folders) for path in same}
    return [replace(item, name=names[item.path]) if isinstance(item, RowsItem) else item for item in items]


def begins_with(uri: str, prefixes: Iterable[str]) -> bool:
    """Whether a URI is one of a source: what ends with no separator is the URI of a single file."""
    return any(uri.startswith(one) if one.endswith(("/", ":")) else uri == one for one in prefixes)


TABLE_SUFFIX = ".parquet"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
