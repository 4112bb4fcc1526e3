"""WhatsApp's chats as text, of Android and iOS, in the dates of many countries (ING-28)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, pairwise

from weft.chunking.conversation.dialogue import Line, Turn
from weft.ingestion.sources.encodings import decoded
from weft.ingestion.sources.formats.source import Readings, Source
from weft.ingestion.sources.transcripts import Session, is_severity

_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")  # of the direction of writing, without a width
_BLANKS = re.compile("[\u00a0\u202f]")
_HALF = r"(?:[ap]\.? ?m\.?|午前|午後|上午|下午|오전|오후)"
START = re.compile(
    r"^(?P<bracket>\[)?(?P<date>\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\.?),?\s+"
    rf"(?:(?:klo|kl\.|um|à|a las|at|às|alle|saat)\s+)?(?P<before>{_HALF})?\s*"
    rf"(?P<hour>\d{{1,2}})[:.h](?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?\s*(?P<after>{_HALF})?(?:\s*Uhr)?"
    r"(?(bracket)\]|\s+[-–])\s+(?P<rest>.*)$",
    re.IGNORECASE,
)
_SENDER = re.compile(r"~?\s*(?P<name>[^:]{1,80}?):(?:\s|$)")
_OMITTED = re.compile(  # what stands for a picture or a file that is not in the export, in the larger languages
    r"<[^<>]{0,60}(?:omitted|attached|omitid|omess|omis|ocult|ausgeschlossen|angehängt|weggelaten|adjunto|anexado|allegato|joint"
    r"|utelämn|udeladt|pominięt|без медиа|опущен|省略|생략)[^<>]{0,60}>"
    r"|(?:image|video|audio|sticker|gif|document|contact card|photo|voice message|bild|imagen|foto|immagine|vídeo|audio"
    r"|documento|immagine|afbeelding) (?:omitted|weggelassen|omitid[oa]|omess[oa]|absente?|weggelaten|ocultad[oa])"
    r"|\S+\.\w{2,5} \((?:file attached|Datei angehängt|archivo adjunto|arquivo anexado|file allegato|fichier joint)\)",
    re.IGNORECASE,
)
_EDITED = re.compile(r"\s*<[^<>]{0,40}(?:edited|bearbeitet|editad|modificat|modifié)[^<>]{0,20}>\s*$", re.IGNORECASE)
_NOTICE = re.compile("[^\n]*?: \u200e")  # a mark after the sender, whatever the language
_LOOKED_AT = 40  # lines that decide


def is_chat(text: str) -> bool:
    """Whether a text begins as a chat of WhatsApp does: most lines with a date and a time, several with a sender."""
    lines = [_clean(line) for line in text.splitlines()[:_LOOKED_AT]]
    starts = [match for line in lines if (match := START.match(line))]
    spoken = [match for match in starts if _SENDER.match(match["rest"])]
    styles = {(bool(match["bracket"]), re.sub(r"\d", "", match["date"])) for match in starts}
    filled = sum(bool(line.strip()) for line in lines)
    first = next((line for line in lines if line.strip()), "")
    if not START.match(first) or len(spoken) < 2 or 5 * len(starts) < filled or len(styles) != 1:
        return False
    senders = [match["name"] for each in spoken if (match := _SENDER.match(each["rest"]))]
    return not any(is_severity(word) for name in senders for word in name.split())


@dataclass(frozen=True, slots=True)
class _Message:
    date: tuple[int, int, int]  # as the file has it: three numbers whose order its country decides
    clock: tuple[int, int, int]
    sender: str  # empty for a notice of the program
    text: str


def read(source: Source) -> Readings:
    """A session for each month, with a topic for each day."""
    text, _ = decoded(source.file.read(32 * source.limit))
    messages = list(_messages(text, source.dropped))
    order = _order([message.date for message in messages])
    dated = [(_moment(message, order), message) for message in messages]
    for month, group in groupby(dated, key=lambda each: each[0] and each[0].strftime("%Y-%m")):
        of_month = list(group)
        moment = of_month[0][0]
        title = f"WhatsApp chat {_chat(source.stem)}".rstrip()
        lines = tuple(_by_day(of_month))
        yield Session(month or "1", lines, moment.timestamp() if moment else None, month or None, title=title)


def _chat(stem: str) -> str:
    return re.sub(r"(?i)^_?chat$|^whatsapp[ _-]*chat[ _-]*(?:with|mit|con|com|avec)?[ _-]*", "", stem).strip()


def _by_day(messages: Sequence[tuple[datetime | None, _Message]]) -> Iterator[Line]:
    for day, group in groupby(messages, key=lambda each: each[0] and each[0].strftime("%Y-%m-%d")):
        yield day or ""
        for moment, message in group:
            shown = moment.strftime("%Y-%m-%d %H:%M:%S") if moment else None
            yield Turn(message.sender, message.text, shown)


def _messages(text: str, dropped: Counter[str]) -> Iterator[_Message]:
    """Messages with all their lines; notices of the program, and what stands for pictures, are left out."""
    last: _Message | None = None
    for raw in text.splitlines():
        line = _clean(raw)
        match = START.match(line)
        if match is None:
            last = last and replace(last, text=f"{last.text}\n{line}")
            continue
        yield from _spoken(last, dropped)
        sender = _SENDER.match(match["rest"])
        words = match["rest"][sender.end() :] if sender else match["rest"]
        if _NOTICE.match(raw):  # of iOS, and what stands for a picture there
            dropped["notices"] += bool(words.strip())
            words = ""
        last = _Message(_numbers(match["date"]), _clock(match), sender["name"].strip() if sender else "", words)
    yield from _spoken(last, dropped)


def _spoken(message: _Message | None, dropped: Counter[str]) -> Iterator[_Message]:
    if message is None:
        return
    text = _EDITED.sub("", _OMITTED.sub("", message.text)).strip()
    dropped["pictures and files"] += len(_OMITTED.findall(message.text))
    dropped["notices"] += not message.sender
    if message.sender and text:
        yield replace(message, text=text)


def _clean(line: str) -> str:
    return _BLANKS.sub(" ", _MARKS.sub("", line)).rstrip()


def _numbers(date: str) -> tuple[int, int, int]:
    one, two, three = (int(each) for each in re.findall(r"\d+", date)[:3])
    return one, two, three


def _clock(match: re.Match[str]) -> tuple[int, int, int]:
    hour, half = int(match["hour"]), (match["before"] or match["after"] or "").lower()
    if half:
        late = half[0] == "p" or half in {"午後", "下午", "오후"}
        hour = hour % 12 + 12 * late
    return hour, int(match["minute"]), int(match["second"] or 0)


def _order(dates: Sequence[tuple[int, int, int]]) -> tuple[int, int, int]:
    """Where year, month and day stand in the dates of a file: a number above 12 is no month, and time runs forward.

    Examples:
        >>> _order([(1, 2, 24), (1, 25, 24)]), _order([(1, 2, 2024), (3, 2, 2024)]), _order([(2024, 2, 1)])
        ((2, 0, 1), (2, 1, 0), (0, 1, 2))
    """
    if any(first > 31 for first, _, _ in dates):
        return 0, 1, 2
    orders = [(2, 1, 0), (2, 0, 1)]  # most countries put the day first
    fitting = [order for order in orders if all(date[order[1]] <= 12 for date in dates)] or orders

    def backward(order: tuple[int, int, int]) -> int:
        days = [tuple(date[place] for place in order) for date in dates]
        return sum(later < earlier for earlier, later in pairwise(days))

    def gap(order: tuple[int, int, int]) -> int:
        days = [400 * date[order[0]] + 31 * date[order[1]] + date[order[2]] for date in dates]
        return max(days, default=0) - min(days, default=0)

    return min(fitting, key=lambda order: (backward(order), gap(order)))


def _moment(message: _Message, order: tuple[int, int, int]) -> datetime | None:
    year, month, day = (message.date[place] for place in order)
    try:
        return datetime(year + 2000 * (year < 100), month, day, *message.clock, tzinfo=UTC)
    except ValueError:
        return None
