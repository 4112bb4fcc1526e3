"""Sources: a folder tree, a file, a BEIR corpus. Listing is cheap and ordered; each item can be read anywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.domain.documents import ContentType, Document, Domain, Rejection
from pipelines.domain.errors import SourceError
from pipelines.ingestion import corpus, tree
from pipelines.ingestion.content_types import Kind, kind_of
from pipelines.ingestion.settings import IngestSettings, TrustSettings

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


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


SourceItem = FileItem | RecordsItem
"""What one task reads: a small picklable value."""


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
        yield _read_file(item, settings, domain)
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


def _read_file(item: FileItem, settings: IngestSettings, domain: Domain | None) -> Document | Rejection:
    try:
        data, modified_at = tree.read_bytes(
            Path(item.root), item.path, limit=settings.max_file_bytes, max_depth=settings.max_depth
        )
    except tree.UnreadableError as error:
        return error.rejection(item.uri)
    if b"\0" in data:
        return Rejection(item.uri, "binary", f"expected text, found a zero byte at {data.index(0)}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Rejection(item.uri, "undecodable", f"expected UTF-8, found byte {data[error.start]:#x} at {error.start}")
    kind = kind_of(item.path[-1], text)
    return Document(
        uri=item.uri,
        content_type=kind.content_type,
        domain=domain or kind.domain,
        text=text,
        language=kind.language,
        modified_at=modified_at,
        trust_level=_trust(kind, settings.trust),
        metadata={"folder": item.uri.rpartition("/")[0]},
    )


def _trust(kind: Kind, trust: TrustSettings) -> int:
    if kind.domain is Domain.CODE:
        return trust.code
    return trust.document if kind.content_type is ContentType.MARKDOWN else trust.text
