"""Sources: a folder tree, a file, a BEIR corpus. Listing is cheap and ordered; each item can be read anywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pipelines.domain.documents import Document, Domain, Rejection
from pipelines.domain.errors import SourceError
from pipelines.ingestion import corpus, tree
from pipelines.ingestion.files import read_file
from pipelines.ingestion.items import FileItem, RecordsItem, SourceItem, StoredItem
from pipelines.ingestion.settings import IngestSettings
from pipelines.ingestion.stored import read_stored

__all__ = ["FileItem", "RecordsItem", "SourceItem", "list_items", "read_item", "read_source"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def list_items(path: Path, settings: IngestSettings) -> list[SourceItem]:
    """Items of a source in a fixed order; no content of a tree is read, a corpus is read once to find its lines.

    Raises:
        SourceError: There is no such source, or it cannot be opened at all.
    """
    try:
        if path.is_dir():
            return list(_files(path, settings))
        if not path.is_file():
            raise SourceError(f"source {path}: expected a folder or a regular file, found none; check the path")
        if path.name.endswith(corpus.SUFFIXES):
            return list(_records(path, settings))
    except OSError as error:
        raise SourceError(f"source {path}: cannot be read: {error.strerror or error}") from error
    actual = path.resolve()  # the user named it, so it may be a link; nothing below a root may
    return [_file(actual.parent, (actual.name,))]


def read_item(item: SourceItem, settings: IngestSettings, *, domain: Domain | None) -> Iterator[Document | Rejection]:
    """Documents of one item, or why there are none; never raises because of an item's content.

    Args:
        domain: Overrides the domain that the content type would give.
    """
    if isinstance(item, FileItem):
        yield from read_file(item, settings, domain)
        return
    if isinstance(item, StoredItem):
        yield from read_stored(item, domain)
        return
    try:
        yield from corpus.records(
            Path(item.path),
            offset=item.offset,
            first_line=item.first_line,
            count=item.count,
            limit=settings.max_file_bytes,
            trust=settings.trust.corpus,
            domain=domain,
        )
    except OSError as error:
        yield Rejection(f"{corpus.corpus_name(Path(item.path))}:line {item.first_line}", "unreadable", str(error))


def read_source(path: Path, settings: IngestSettings, *, domain: Domain | None) -> Iterator[Document | Rejection]:
    """Every document of a source, and every item that could not become one, in order.

    Raises:
        SourceError: There is no such source, or it cannot be opened at all.
    """
    for item in list_items(path, settings):
        yield from read_item(item, settings, domain=domain)


def _files(root: Path, settings: IngestSettings) -> Iterator[FileItem]:
    with os.scandir(root):
        pass  # a root that cannot be listed is an error of the source, not of an item
    actual = root.resolve()
    for path in tree.listed(actual, skipped=settings.skipped_names, max_depth=settings.max_depth):
        yield _file(actual, path)


def _file(root: Path, path: tuple[str, ...]) -> FileItem:
    return FileItem(str(root), path, "/".join(_escaped(name) for name in (root.name, *path)))


def _escaped(name: str) -> str:
    r"""A file name as text: bytes that are not UTF-8, control characters and backslashes in `\x` form.

    Examples:
        >>> _escaped("caf\udce9\n")
        'caf\\xe9\\x0a'
    """
    text = os.fsencode(name.replace("\\", "\\\\")).decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def _records(path: Path, settings: IngestSettings) -> Iterator[RecordsItem]:
    stride = settings.records_per_item
    offsets, lines = corpus.line_offsets(path, limit=settings.max_file_bytes, stride=stride)
    merged = 1
    if path.name.endswith(".gz"):
        merged = -(-len(offsets) // settings.items_per_compressed_corpus) or 1
    for index in range(0, len(offsets), merged):
        first = index * stride
        yield RecordsItem(str(path.resolve()), offsets[index], first + 1, min(stride * merged, lines - first))
