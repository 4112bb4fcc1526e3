"""Which format a file is in, by its name and how it begins, and reading it (ING-28, ING-30, ING-31).

A format is a row of `FORMATS` and a module with one function, `read`. Files in a format are read in the parser's child:
most readers are libraries for what strangers wrote.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import IO, cast

from weft.domain.documents import Rejection
from weft.domain.errors import MissingExtraError
from weft.ingestion.git.safe_files import UnreadableError, opened_file, read_bytes
from weft.ingestion.sources.formats.source import FormatError, Source, Written
from weft.ingestion.sources.transcripts import Session, Transcript, is_structured, transcripts_of
from weft.runtime.extras import extras_named

LEFT_OUT = "left_out"
"""Noted of a file of which some was not taken over."""

HEAD_BYTES = 65_536
"""How much of a file tells its format."""

Read = Transcript | Written | Rejection
"""What a file in a format gives: sessions of conversations, or one document, and what could not be read."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A file to be read in its format."""

    format: str
    root: str  # the folder that nothing is read outside of
    path: tuple[str, ...]
    uri: str
    most_bytes: int  # of the file
    limit: int  # bytes of one record of it, characters of one text


Convert = Callable[[Conversion], Iterator[Read]]
"""What reads files in their formats: `convert` in this process, or a child that can be killed."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a kind of file is recognised and called."""

    called: str  # for people
    recognised: Callable[[str, bytes], bool]  # by its lower name and its first bytes
    # the paths of files that one is read with, by its own and what it holds
    beside: Callable[[tuple[str, ...], bytes], Iterable[tuple[str, ...]]] | None = None


def format_of(name: str, head: bytes, size: int = 0, limit: int = 0) -> str | None:
    """The format of a file by its name and its first bytes; None for what is read as text.

    Examples:
        >>> format_of("report.pdf", b"%PDF-1.7"), format_of("report.md", b"# Report")
        ('pdf', None)
    """
    lower = name.lower()
    form = next((name for name, each in FORMATS.items() if each.recognised(lower, head)), None)
    if form is None and size > limit and lower.endswith(".json") and is_structured(head.decode("utf-8", "replace")):
        return "exports"  # of any notation, too long to be read at once
    return form


def convert(conversion: Conversion) -> Iterator[Read]:
    """Documents of a file, one after the other, and what of it cannot be read, or is left out."""
    return (each for each in steps(conversion) if each is not None)


def steps(conversion: Conversion) -> Iterator[Read | None]:
    """The same, with None after each step of work that gave nothing yet."""
    name, uri = conversion.format, conversion.uri
    try:
        with extras_named():
            read = import_module(f"{__package__}.{name}").read
        with _opened(conversion) as file:
            source = Source(file, conversion.path, conversion.limit, _beside(conversion))
            yield from transcripts_of(_documents(read(source)), uri)
            left = {what: count for what, count in source.dropped.items() if count}
    except MissingExtraError as error:
        yield Rejection(uri, "missing_extra", str(error))
        return
    except UnreadableError as error:
        yield error.rejection(uri)
        return
    except FormatError as error:
        yield Rejection(uri, error.reason, str(error))
        return
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  libraries raise whatever a hostile file makes them
        problem = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        yield Rejection(uri, "unreadable_format", f"expected {FORMATS[name].called}, found {problem}")
        return
    if left:
        yield Rejection(uri, LEFT_OUT, ", ".join(f"{what}: {count:,}" for what, count in sorted(left.items())))


def digest_of(conversion: Conversion) -> str:
    """SHA-256 of all that a file is read from.

    Raises:
        UnreadableError: It cannot be read.
    """
    with _opened(conversion) as file:
        digest = hashlib.file_digest(cast("BufferedReader", file), "sha256")
    for name, data in _beside(conversion).items():
        digest.update(f"\0{name}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
    return digest.hexdigest()


def _opened(conversion: Conversion) -> AbstractContextManager[IO[bytes]]:
    return opened_file(Path(conversion.root), conversion.path, limit=conversion.most_bytes)


def _beside(conversion: Conversion) -> dict[str, bytes]:
    """What the files hold that one is read with, by their names; without those that are not there, or too much."""
    contents: dict[str, bytes] = {}
    if (paths := FORMATS[conversion.format].beside) is None:
        return contents
    left = 8 * conversion.limit
    with _opened(conversion) as file:
        data = file.read(conversion.limit + 1)
    for path in paths(conversion.path, data):
        with suppress(UnreadableError):
            contents[path[-1]] = read_bytes(Path(conversion.root), path, limit=left)[0]
            left -= len(contents[path[-1]])
    return contents


def _of_slack(path: tuple[str, ...], data: bytes) -> Iterator[tuple[str, ...]]:
    """Who takes part, and the days on which threads of a day began, wherever it was day then."""
    yield from ((*path[:-2], name) for name in ("users.json", "dms.json", "mpims.json"))
    began = {int(stamp) + hours * 3_600 for stamp in _THREAD.findall(data) for hours in (-12, 0, 14)}
    days = {f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}.json" for seconds in began} - {path[-1]}
    yield from ((*path[:-1], day) for day in sorted(days)[-_MOST_DAYS:])


def _suffix(*suffixes: str) -> Callable[[str, bytes], bool]:
    return lambda name, head: PurePosixPath(name).suffix in suffixes and head.startswith(b"PK")


def _is_workbook(name: str, head: bytes) -> bool:
    suffix = PurePosixPath(name).suffix
    former = suffix == ".xls" and head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
    return former or (suffix in {".xlsx", ".xlsm", ".xltx", ".xlsb", ".ods"} and head.startswith(b"PK"))


_EPUB = re.compile(rb"PK\x03\x04.{26}mimetypeapplication/epub\+zip", re.DOTALL)
_MAIL = re.compile(rb"\A(?:From \S[^\n]*\n)?(?:[!-9;-~]{1,76}:[ \t]?[^\n]*\n(?:[ \t][^\n]*\n)*){2,}", re.MULTILINE)
_BOX = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*From \S+[^\n]{0,200}\d{2}:\d{2}[^\n]{0,60}\n[!-9;-~]{1,76}:", re.MULTILINE)
_MAIL_FIELDS = re.compile(rb"^(?:From|Date|Message-ID):", re.MULTILINE | re.IGNORECASE)
_TREE = re.compile(rb'"mapping"\s*:\s*\{')
_TREE_NODE = re.compile(rb'"(?:current_node|parent|children)"\s*:')
_CLAUDE = re.compile(rb'"chat_messages"\s*:\s*\[')
_BY_ROLE = re.compile(
    rb'"role"\s*:\s*"(?:system|developer|tool|function)"|"tool_calls"\s*:\s*\[|"type"\s*:\s*"tool_(?:use|result)"'
)
_MESSAGES = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*(?:\[\s*\{|\{[^{}]{0,4000}"messages"\s*:|\{\s*"role"\s*:)')
_LISTED = re.compile(rb'"messages"\s*:\s*\[\s*\{')
_AGENT = re.compile(
    rb'"type"\s*:\s*"(?:session_meta|response_item|event_msg|turn_context|file-history-snapshot|queue-operation)"'
    rb'|"(?:leafUuid|parentUuid|isSidechain|sessionId)"\s*:'
    rb'|"type"\s*:\s*"(?:message|function_call|function_call_output)"[^\n]{0,4000}"(?:role|call_id)"\s*:'
)
_SLACK_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.json")
_SLACK = re.compile(rb'"ts"\s*:\s*"\d{9,11}\.\d+"')
_THREAD = re.compile(rb'"thread_ts"\s*:\s*"(\d{9,10})\.')
_MOST_DAYS = 100  # that a day of Slack is read with
_PROJECT = re.compile(rb'"prompt_template"\s*:')
_PROJECT_DOCS = re.compile(rb'"docs"\s*:\s*\[')
_NOTEBOOK = re.compile(rb'"(?:cells|worksheets|nbformat)"\s*:')


def _is_json(head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["}


def _is_export(name: str, head: bytes) -> bool:
    if not name.endswith((".json", ".jsonl", ".ndjson")) or not _is_json(head):
        return False
    tree = _TREE.search(head) and _TREE_NODE.search(head)
    listed = _MESSAGES.match(head) if name.endswith(".json") else _LISTED.search(head.partition(b"\n")[0])
    by_role = listed and _BY_ROLE.search(head)
    return bool(tree or _CLAUDE.search(head) or by_role)


def _is_of_an_agent(name: str, head: bytes) -> bool:
    if not name.endswith((".jsonl", ".ndjson")) or not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return False
    lines = head.split(b"\n")[:8]
    return any(_AGENT.search(line) for line in lines) or bool(
        re.match(rb'\s*\{[^{}\n]{0,2000}"role"\s*:', lines[0]) and _BY_ROLE.search(head)
    )


def _is_whatsapp(name: str, head: bytes) -> bool:
    if PurePosixPath(name).suffix not in {"", ".txt"} or not re.search(rb"\d", head[:40]):
        return False
    return bool(import_module(f"{__package__}.whatsapp").is_chat(head.decode("utf-8", "replace")))


def _is_mail(name: str, head: bytes) -> bool:
    named = PurePosixPath(name).suffix in {".mbox", ".eml", ".mbx", ".mail", ""}
    start = head[:8192].replace(b"\r\n", b"\n")
    if not named or not (_BOX.match(start) or (name.endswith(".eml") and _MAIL.match(start))):
        return False
    return _MAIL_FIELDS.search(start) is not None


FORMATS: Mapping[str, Format] = {
    "pdf": Format("a PDF", lambda _, head: head.lstrip()[:5] == b"%PDF-"),
    "docx": Format("a Word document", _suffix(".docx", ".docm", ".dotx")),
    "pptx": Format("a presentation", _suffix(".pptx", ".pptm", ".ppsx")),
    "xlsx": Format("a workbook", _is_workbook),
    "epub": Format(
        "a book", lambda name, head: bool(_EPUB.match(head)) or (name.endswith(".epub") and head[:2] == b"PK")
    ),
    "notebook": Format(
        "a notebook", lambda name, head: name.endswith(".ipynb") and _is_json(head) and bool(_NOTEBOOK.search(head))
    ),
    "slack": Format(
        "a day of Slack",
        lambda name, head: bool(_SLACK_DAY.fullmatch(name) and _is_json(head) and _SLACK.search(head)),
        beside=_of_slack,
    ),
    "projects": Format(
        "projects of Claude",
        lambda name, head: name.endswith(".json") and bool(_PROJECT.search(head) and _PROJECT_DOCS.search(head)),
    ),
    "exports": Format("conversations of an assistant", _is_export),
    "agents": Format("a session of a coding agent", _is_of_an_agent),
    "whatsapp": Format("a chat of WhatsApp", _is_whatsapp),
    "mail": Format("a box of mail", _is_mail),
}
"""Formats by the modules that read them, the surer ones first."""


def _documents(readings: Iterator[Session | Written | None]) -> Iterator[Session | Written | None]:
    for each in readings:
        if isinstance(each, Written) and not each.text.strip():
            raise FormatError("blank", "expected text, found none")
        yield each
