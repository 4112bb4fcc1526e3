"""One file of a tree: its bytes, its text, and the documents in it (ING-1, ING-2, ING-3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from weft.chunking.paper.paper import MARKDOWN, paper_facts
from weft.domain.documents import COMMITTED_AT, ContentType, Document, Domain, Rejection
from weft.ingestion.git.safe_files import VANISHED, UnreadableError, read_bytes
from weft.ingestion.git.times import Commit
from weft.ingestion.metadata.assigned import trust_of
from weft.ingestion.metadata.declared import MOST_BYTES, DeclarationError, Declared, read_sidecar, with_declared
from weft.ingestion.metadata.front_matter import front_matter
from weft.ingestion.settings import IngestSettings
from weft.ingestion.sources import transcripts
from weft.ingestion.sources.content_types import kind_of, paper_as_markdown
from weft.ingestion.sources.items import FileItem, escaped

BAD_SIDECAR = "bad_sidecar"
BAD_FRONT_MATTER = "bad_front_matter"
PRIVATE_KEY = "private_key"

_PRIVATE_KEY = re.compile(r"^-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.MULTILINE)
_KEY_SUFFIX = ".pem"  # of files where a key may follow certificates; elsewhere one that is quoted is no secret
_LONE_RETURN = re.compile(r"\r(?!\n)")  # ends a line, too; as a line feed it takes as many bytes


def read_file(item: FileItem, settings: IngestSettings, domain: Domain | None) -> Iterator[Document | Rejection]:
    """Documents of one file, or why there are none, and what declares nothing of them that could be read.

    Never raises because of the content of a file.
    """
    try:
        data, modified_at = read_bytes(Path(item.root), item.path, limit=settings.max_file_bytes)
        text = _text(data)
    except UnreadableError as error:
        yield error.rejection(item.uri)
        return
    if settings.secret_files and _holds_private_key(item.path[-1], text):
        detail = "expected no private key, found one; ingest.secret_files=[] indexes such files"
        yield Rejection(item.uri, PRIVATE_KEY, detail)
        return
    commit = item.commit if item.commit is not None and item.commit.is_of(data) else None
    kind = kind_of(item.path[-1], text)
    document = Document(
        uri=item.uri,
        content_type=kind.content_type,
        domain=domain or kind.domain,
        text=text,
        language=kind.language,
        modified_at=modified_at if commit is None else commit.time,
        trust_level=settings.trust.standard,
        authors=(commit.author,) if commit is not None and commit.author else (),
        metadata={"folder": item.uri.rpartition("/")[0], **_later_commit(item, commit, modified_at)},
    )
    facts, rejections = _declared_facts(document, item)
    yield from rejections
    for one in facts:
        document = with_declared(document, one)
    authors = next((one.authors for one in reversed(facts) if one.authors), None)
    of_source = None if item.source is None else item.source.trust
    has_trust = any(one.trust is not None for one in facts)
    for part in expanded(document):
        if isinstance(part, Rejection):
            yield part
            continue
        level = trust_of(part, item.path[:-1], as_of=item.as_of, settings=settings.trust)
        trust = part.trust_level if has_trust else level if of_source is None else of_source
        yield replace(part, authors=authors or part.authors, trust_level=trust)  # a paper names its own authors


def _later_commit(item: FileItem, commit: Commit | None, modified_at: float) -> dict[str, str]:
    """The fact that a file holds less than what was committed of it after it was changed; empty where it does not."""
    if item.commit is None or item.commit is commit or item.commit.time <= modified_at:
        return {}
    return {COMMITTED_AT: datetime.fromtimestamp(item.commit.time, UTC).isoformat()}


def _declared_facts(document: Document, item: FileItem) -> tuple[list[Declared], list[Rejection]]:
    """What the head of a document and the file beside it declare, the sidecar last, and what of it cannot be read."""
    facts: list[Declared] = []
    rejections: list[Rejection] = []
    if document.content_type in {ContentType.MARKDOWN, ContentType.PAPER}:
        try:
            declared = front_matter(document.text)
            facts += [] if declared is None else [declared]
        except DeclarationError as error:
            rejections.append(Rejection(document.uri, BAD_FRONT_MATTER, str(error)))
    if item.sidecar is not None:
        uri = sidecar_uri(item)
        try:
            data, _ = read_bytes(Path(item.root), (*item.path[:-1], item.sidecar), limit=MOST_BYTES)
            declared, problems = read_sidecar(data)
            facts.append(declared)
            rejections += [Rejection(uri, BAD_SIDECAR, "; ".join(problems))] if problems else []
        except UnreadableError as error:
            gone = error.reason == VANISHED
            detail = Rejection(uri, BAD_SIDECAR, f"{error.reason}: {error}")
            rejections.append(error.rejection(uri) if gone else detail)
        except DeclarationError as error:
            rejections.append(Rejection(uri, BAD_SIDECAR, str(error)))
    return facts, rejections


def sidecar_uri(item: FileItem) -> str:
    """What names the sidecar of a file that has one."""
    return f"{item.uri.rpartition('/')[0]}/{escaped(item.sidecar or '')}"


def expanded(document: Document) -> Iterator[Document | Rejection]:
    """The documents that a file holds: a transcript one per session, most others one, which is the file itself."""
    if document.content_type is not ContentType.CONVERSATION:
        yield _paper(document) if document.content_type is ContentType.PAPER else document
        return
    for session in transcripts.sessions(document.text, document.uri):
        if isinstance(session, Rejection):
            yield session
            continue
        yield replace(
            document,
            uri=session.uri,
            text=session.text,
            title=session.title,
            modified_at=document.modified_at if session.time is None else session.time,
            metadata={**document.metadata, **session.metadata},
        )


def _paper(document: Document) -> Document:
    """A paper with its title, its authors and its numbers, where nothing else declared them; JSON as Markdown."""
    if document.language == "json":
        document = replace(document, text=paper_as_markdown(document.text) or document.text, language=MARKDOWN)
    facts = paper_facts(document.text, document.language or MARKDOWN)
    return replace(
        document,
        title=document.title or facts.title,
        authors=facts.authors or document.authors,
        metadata={**facts.numbers, **document.metadata},
    )


def _holds_private_key(name: str, text: str) -> bool:
    within = _PRIVATE_KEY.search(text) if name.endswith(_KEY_SUFFIX) else _PRIVATE_KEY.match(text.lstrip())
    return within is not None


def _text(data: bytes) -> str:
    if b"\0" in data:
        raise UnreadableError("binary", f"expected text, found a zero byte at {data.index(0)}")
    try:
        return _LONE_RETURN.sub("\n", data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        detail = f"expected UTF-8, found byte {data[error.start]:#x} at {error.start}"
        raise UnreadableError("undecodable", detail) from error
