"""One file of a tree: its bytes, its text, and the documents in it (ING-1, ING-2, ING-3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pipelines.domain.documents import ContentType, Document, Domain, Rejection
from pipelines.ingestion import transcripts, tree
from pipelines.ingestion.content_types import Kind, kind_of
from pipelines.ingestion.items import FileItem
from pipelines.ingestion.settings import IngestSettings, TrustSettings


def read_file(item: FileItem, settings: IngestSettings, domain: Domain | None) -> Iterator[Document | Rejection]:
    """Documents of one file, or why there are none; never raises because of its content."""
    try:
        data, modified_at = tree.read_bytes(
            Path(item.root), item.path, limit=settings.max_file_bytes, max_depth=settings.max_depth
        )
        text = _text(data)
    except tree.UnreadableError as error:
        yield error.rejection(item.uri)
        return
    kind = kind_of(item.path[-1], text)
    document = Document(
        uri=item.uri,
        content_type=kind.content_type,
        domain=domain or kind.domain,
        text=text,
        language=kind.language,
        modified_at=modified_at,
        trust_level=_trust(kind, settings.trust),
        metadata={"folder": item.uri.rpartition("/")[0]},
    )
    yield from expanded(document)


def expanded(document: Document) -> Iterator[Document | Rejection]:
    """The documents that a file holds: a transcript one per session, most others one, which is the file itself."""
    if document.content_type is not ContentType.CONVERSATION:
        yield document
        return
    for session in transcripts.sessions(document.text, document.uri):
        yield replace(
            document,
            uri=session.uri,
            text=session.text,
            title=session.title,
            modified_at=document.modified_at if session.time is None else session.time,
            metadata={**document.metadata, **session.metadata},
        )


def _text(data: bytes) -> str:
    if b"\0" in data:
        raise tree.UnreadableError("binary", f"expected text, found a zero byte at {data.index(0)}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        detail = f"expected UTF-8, found byte {data[error.start]:#x} at {error.start}"
        raise tree.UnreadableError("undecodable", detail) from error


def _trust(kind: Kind, trust: TrustSettings) -> int:
    if kind.domain is Domain.CODE:
        return trust.code
    return trust.document if kind.content_type is ContentType.MARKDOWN else trust.text
