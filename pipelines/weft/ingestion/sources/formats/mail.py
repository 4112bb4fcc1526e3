"""Mail: a box of messages (mbox), or one (`.eml`); a thread is a conversation (ING-28)."""

from __future__ import annotations

import email.policy
import email.utils
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from itertools import chain

from weft.chunking.conversation.dialogue import Turn
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.pages import text_of
from weft.ingestion.sources.formats.source import Readings, Source
from weft.ingestion.sources.transcripts import Session, clock, seconds_of

_MOST_NOTICE = 500  # characters that may say no more than that a page is shown elsewhere
_READ = 262_144  # bytes of a message: its texts stand before what is attached
_MOST_TEXT = 32  # texts of the length limit: what a box may hold of text, all in memory until its threads are known
_QUOTE = re.compile(r"^[ \t]{0,3}>")
_INTRODUCTION = re.compile(  # of what is quoted: a line with a date or an address that ends in a colon, or two such
    r"^[^\n]{0,200}(?:\d{1,4}[./:-]\d{1,2}|@|wrote|schrieb|écrit|escribió|escreveu|scritto)[^\n]{0,200}"
    r"(?:\n[^\n]{0,80})?(?:wrote|schrieb|écrit|a écrit|escribió|escreveu|ha scritto|skrev|:)?\s*:\s*$"
)
_ORIGINAL = re.compile(
    r"^(?:-{2,}\s*(?:Original Message|Ursprüngliche Nachricht|Message d'origine|Mensaje original"
    r"|(?P<forward>Forwarded message))\s*-{2,}|_{20,}|(?P<begins>Begin forwarded message:))\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_FIELD = re.compile(r"[*|\s]{0,8}[^\W\d_][\w -]{0,20}[*|\s]{0,4}[:：][*|\s]{0,8}(.{0,500})$")
_FEWEST_FIELDS = 3  # that head an original
_SIGNATURE = re.compile(r"^--[ \t]?$", re.MULTILINE)
_PREFIX = r"(?:(?P<reply>re|aw|antw|sv|vs|odp)|(?P<forward>fwd?|wg|tr|rv|enc))(?:\[\d+\])?\s*:\s*"
_LIST = r"\[[^\[\]]{1,40}\]\s*"
_KIND = re.compile(rf"\s*(?:{_LIST})*{_PREFIX}", re.IGNORECASE)
_SUBJECT = re.compile(rf"^\s*(?:{_PREFIX}|{_LIST})+", re.IGNORECASE)
_IDS = re.compile(r"<([^<>\s]{1,300})>")
_PARSER = BytesParser(policy=email.policy.default)


@dataclass(slots=True)
class _Thread:
    subject: str
    turns: list[tuple[float, Turn]] = field(default_factory=list)
    first: str = ""  # the id of its first message
    attached: int = 0


def read(source: Source) -> Readings:
    """A session for each thread, in the order of their first messages; what replies quote is left out."""
    threads: dict[str, _Thread] = {}  # by the ids of messages, and by subjects
    size = 0
    for data in _messages(source):
        if size > _MOST_TEXT * source.limit:
            source.dropped["messages beyond the most text"] += 1
            continue
        message = _PARSER.parsebytes(data)
        size += _add(threads, message, source.dropped)
        yield None
    for thread in {id(each): each for each in threads.values()}.values():
        turns = [turn for _, turn in sorted(thread.turns, key=lambda each: each[0])]
        first = min((moment for moment, _ in thread.turns), default=0.0)
        if turns:
            yield Session(
                thread.first, tuple(turns), first or None, clock(first or None), title=thread.subject or "Mail"
            )


def _messages(source: Source) -> Iterator[bytes]:
    """The messages of a box as far as they are read; a line that begins with "From " after a blank one begins one."""
    lines: list[bytes] = []
    size, blank = 0, True
    while line := source.file.readline(65_536):
        if blank and line.startswith(b"From "):
            if lines:
                yield b"".join(lines)
            lines, size = [], 0
        elif size < _READ:
            lines.append(line[1:] if line.startswith(b">From ") else line)
            size += len(line)
        blank = not line.strip()
    if lines:
        yield b"".join(lines)


def _add(threads: dict[str, _Thread], message: EmailMessage, dropped: Counter[str]) -> int:
    """Add a message to its thread; how long its text is."""
    subject = _header(message, "Subject")
    plain_subject = _SUBJECT.sub("", subject).strip()
    own = next(iter(_IDS.findall(_header(message, "Message-ID"))), "")
    above = _IDS.findall(f"{_header(message, 'References')} {_header(message, 'In-Reply-To')}")
    thread = next((threads[each] for each in (own, *reversed(above)) if each in threads), None)
    by_subject = f"subject:{plain_subject.casefold()}"
    kind = _KIND.match(subject)
    if thread is None and plain_subject and not above and kind is not None and kind["reply"]:
        thread = threads.get(by_subject)
    date = _date(message)
    text = _text(message, subject, dropped)
    if thread is None:
        thread = _Thread(plain_subject, first=own or f"{plain_subject[:60] or 'mail'} {clock(date) or ''}".strip())
    for key in filter(None, (own, by_subject if plain_subject else "", *above)):
        threads.setdefault(key, thread)
    threads.setdefault(f"own:{id(thread)}", thread)
    if text:
        thread.turns.append((date or 0.0, Turn(_sender(message), text, clock(date), own or None)))
    else:
        dropped["messages without a text"] += 1
    return len(text)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return plain(" ".join(str(message.get(name, "")).split()))
    except Exception:  # noqa: BLE001  the parser of headers raises whatever hostile ones make it
        return ""


def _sender(message: EmailMessage) -> str:
    name, address = email.utils.parseaddr(_header(message, "From"))
    return name or address or "unknown"


def _date(message: EmailMessage) -> float | None:
    try:
        return seconds_of(email.utils.parsedate_to_datetime(_header(message, "Date")).timestamp())
    except (TypeError, ValueError, OverflowError):
        return None


def _text(message: EmailMessage, subject: str, dropped: Counter[str]) -> str:
    """What a message says by itself: its plain text, or that of its page if this has more to tell than it repeats."""
    plains: list[str] = []
    pages: list[str] = []
    for part in message.walk():
        if part.is_multipart():
            continue
        kind = part.get_content_type()
        if part.get_content_disposition() == "attachment" or kind not in {"text/plain", "text/html"}:
            dropped["pictures and files"] += 1
            continue
        (plains if kind == "text/plain" else pages).append(_decoded(part))
    text = "\n\n".join(filter(None, map(str.strip, plains)))
    if pages and len(text) <= _MOST_NOTICE:
        shown = "\n\n".join(text_of(page) for page in pages)
        words = set(text.split())
        text = shown if len(set(shown.split()) - words) > len(words) else text
    return _own(plain(text), dropped, subject)


def _decoded(part: EmailMessage) -> str:
    data = part.get_payload(decode=True)
    data = data if isinstance(data, bytes) else b""
    for charset in (part.get_content_charset() or "utf-8", "utf-8"):
        try:
            return data.decode(charset)
        except (LookupError, UnicodeDecodeError):
            continue
    return data.decode("latin-1")


def _own(text: str, dropped: Counter[str], subject: str = "") -> str:
    """A text without what it quotes and without its signature; a forward is kept, and what quotes and says nothing."""
    whole, left_out = re.sub(r"^[ \t]{0,3}> ?", "", text, flags=re.MULTILINE).strip(), Counter[str]()
    kind, mark = _KIND.match(subject), _ORIGINAL.search(text)
    at = min(mark.start() if mark else len(text), _original(text, subject) if kind else len(text))
    if (kind and kind["forward"]) or (mark and mark.start() == at and (mark["forward"] or mark["begins"])):
        return whole
    signature = _SIGNATURE.search(text, 0, at)
    for end, name in ((at, "quotations"), (signature.start() if signature else len(text), "signatures")):
        if end < len(text) and text[:end].strip():
            left_out[name] += 1
            text = text[:end]
    lines: list[str] = []
    quoting = False
    for line in chain(text.split("\n"), [""]):
        is_quote = _QUOTE.match(line) is not None
        if is_quote and not quoting:
            left_out["quotations"] += 1
            while lines and not lines[-1].strip():
                lines.pop()
            for count in (2, 1):
                if len(lines) >= count and _INTRODUCTION.match("\n".join(lines[-count:]).strip()):
                    del lines[-count:]
                    break
        if not is_quote:
            lines.append(line)
        quoting = is_quote or (quoting and not line.strip())
    own = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    dropped.update(left_out if own else ())
    return own or whole


def _original(text: str, subject: str) -> int:
    """Where the head of a mail that is replied to begins: fields one below the other, one of which is the subject."""
    title = _SUBJECT.sub("", subject).strip().casefold()
    at = start = fields = 0
    titled = False
    for line in text.split("\n"):
        field = _FIELD.match(line)
        if field is None:
            fields, titled = 0, False
        else:
            start = start if fields else at
            fields += 1
            titled = titled or _SUBJECT.sub("", field[1]).strip("*| \t\r").casefold() == title
            if titled and fields >= _FEWEST_FIELDS:
                return start
        at += len(line) + 1
    return len(text)
