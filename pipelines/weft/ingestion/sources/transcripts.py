"""Transcripts of conversations: several notations, one document per session (ING-1, ING-8).

Understood are LoCoMo's JSON (Maharana et al., ACL 2024), a plain one, `{"sessions": [{"id", "time", "turns":
[{"speaker", "text", "time"}]}]}`, a bare list of turns, one turn a line, and chat logs, `Name: text` a line.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, pairwise
from typing import Any, TypeVar

from weft.chunking.conversation.dialogue import Line, Turn, written
from weft.domain.documents import Rejection
from weft.ingestion.metadata.assigned import epoch_seconds, moment_seconds

T = TypeVar("T")

# Chat logs: plain text in which a turn begins with the name of its speaker.

_NAME = r"[^\W\d_][\w.'’ -]{0,38}[\w.)]|[^\W\d_]"
_CLOCK = r"(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[,T ]{0,2})?\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?: ?[AaPp]\.?[Mm]\.?|Z)?"
_TURN = re.compile(
    rf"(?:\[?(?P<time>{_CLOCK})\]?\s*(?:[-–]\s*)?)?"
    rf"(?:<(?P<nick>[^<>\n]{{1,40}})>\s+(?![<:])|(?P<name>{_NAME})(?:\s*[(\[](?P<later>{_CLOCK})[)\]])?:(?:\s|\Z))"
)
_TOPIC = re.compile(r"(?:#{1,6}[ \t]+(?P<name>\S.*)|(?:-{3,}|={3,})\s*\Z)")
_SEVERITIES = frozenset(["debug", "info", "warning", "warn", "error", "fatal", "critical", "trace", "notice", "log"])
_NO_SPEAKERS = {
    *_SEVERITIES,
    *("note", "todo", "fixme"),
    *("file", "files", "copyright", "license", "comment", "package", "pin", "version", "name", "what", "when", "why"),
}
_SPOKEN = re.compile(r"\?(?:\s|$)|\bI(?:['’]\w+)?\b", re.MULTILINE)  # somebody asks, or says "I"
_FIELDS = 3  # names in one order again and again, from which on they are fields: two people take turns, too
_FEWEST_TURNS = 4
_LINE_END = re.compile(r"\r\n?|\n")  # a line that somebody wrote may hold what `str.splitlines` takes for an end
_MOST_SPEAKERS = 12
_FEWEST_RETURNING = 0.7  # share of the speakers who speak again after another: in lists of facts most names come once
_LEAST_SHARE = 0.4  # of the lines that are not blank
_LOOKED_AT = 400  # lines that decide
_CHARACTERS_LOOKED_AT = 160_000


def is_log(text: str, *, of_a_program: bool = False) -> bool:
    """Whether a text reads as a chat log, by its first lines.

    Args:
        of_a_program: Whether its name says that a program wrote it: then somebody has to ask, or to say "I".
    """
    head = [line for line in _LINE_END.split(text[:_CHARACTERS_LOOKED_AT])[:_LOOKED_AT] if line.strip()]
    speakers = [_speaker(match) for match, _ in _matched(head) if match is not None]
    if len(speakers) < _FEWEST_TURNS or len(speakers) < _LEAST_SHARE * len(head):
        return False
    in_order = [speaker for speaker, _ in groupby(speakers)]
    runs = Counter(in_order)
    returning = sum(times > 1 for times in runs.values())
    return (
        2 <= len(runs) <= _MOST_SPEAKERS
        and returning >= max(1.0, _FEWEST_RETURNING * len(runs))
        and not any(name.lower() in _NO_SPEAKERS or is_severity(name.partition(" ")[0]) for name in runs)
        and not _are_fields(in_order)
        and not ((of_a_program or all(len(name) == 1 for name in runs)) and not _SPOKEN.search("\n".join(head)))
    )


def is_severity(word: str) -> bool:
    """Whether a word is how a program says how bad something is."""
    return word.isupper() and word.lower() in _SEVERITIES


def _are_fields(in_order: Sequence[str]) -> bool:
    """Whether names follow each other in one order again and again, some left out, as those of fields do.

    Examples:
        >>> _are_fields("N E D S N E S N E D".split()), _are_fields("Ann Bob Cid Bob Ann Cid".split())
        (True, False)
    """
    places = {name: place for place, name in enumerate(dict.fromkeys(in_order))}
    return len(places) >= _FIELDS and all(
        places[one] < places[other] or places[other] == 0 for one, other in pairwise(in_order)
    )


def lines_of(text: str) -> list[Line]:
    """Turns and topics of a chat log; none where the text is something else."""
    if not is_log(text):
        return []
    lines: list[Line] = []
    turn: list[str] = []  # lines of the last one
    for match, line in _matched(_LINE_END.split(text)):
        topic = _TOPIC.match(line) if match is None else None
        if match is not None:
            _finish(lines, turn)
            lines.append(Turn(_speaker(match), "", match["time"] or match["later"]))
            turn = [line[match.end() :]]
        elif topic is not None:
            _finish(lines, turn)
            lines.append((topic["name"] or "").strip())
        elif lines and isinstance(lines[-1], Turn):
            turn.append(line)
        elif line.strip():
            lines.append(line.strip())
    _finish(lines, turn)
    return lines


def _finish(lines: list[Line], turn: list[str]) -> None:
    if lines and isinstance(lines[-1], Turn):
        lines[-1] = replace(lines[-1], text="\n".join(turn).rstrip())


def _matched(lines: list[str]) -> Iterator[tuple[re.Match[str] | None, str]]:
    """Every line with the start of the turn on it; none inside a fence of code."""
    fenced = False
    for line in lines:
        match = None if fenced else _TURN.match(line)
        if line.count("```") % 2 == 1:
            fenced = not fenced
        yield match, line


def _speaker(match: re.Match[str]) -> str:
    speaker: str = match["nick"] or match["name"]
    return speaker.strip()


_HINT = re.compile(r'"(?:speaker|role|sender|from|author)"\s*:')
_SESSION_KEY = re.compile(r"session_(\d{1,18})\Z")
_SPEAKERS = ("speaker", "role", "sender", "from", "author")
_INSTRUCTING = frozenset({"system", "developer"})  # what they say is an instruction, no turn
_TEXTS = ("text", "content", "message", "value", "body")
_TURN_IDS = ("dia_id", "turn_id", "id", "uuid")
_TIMES = ("time", "timestamp", "created_at", "date", "date_time", "ts", "create_time")
_TURN_LISTS = ("turns", "messages", "conversation", "dialogue", "conversations", "utterances")
_SESSION_IDS = ("id", "session_id", "session", "conversation_id")
_LONGEST_PART = 500_000  # characters of a session that are one document: far more than people say at one sitting
_BLANK_LONGEST = 1_000  # characters in which a structure begins
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Session:
    """One sitting of a conversation; without lines where it cannot be read."""

    name: str  # of its own among the sessions of the file
    lines: tuple[Line, ...]
    time: float | None = None  # When it began, in seconds since the epoch, and as the file says it
    time_text: str | None = None
    conversation: str | None = None  # which conversation it belongs to, where a file holds several
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session as a document: what `sessions` gives."""

    uri: str
    title: str
    text: str
    time: float | None
    # "session", "speakers", "time", "conversation" and "turns", the turns' own ids in order, one a word
    metadata: Mapping[str, str]


def recognised(text: str, *, of_a_program: bool = False) -> bool:
    """Whether a text is a transcript in a notation that `sessions` understands; see `is_log`."""
    value = _structured(text)
    return (
        is_log(text, of_a_program=of_a_program)
        if value is None
        else any(session.lines for session in sessions_in(value))
    )


def is_of_turns(line: str) -> bool:
    """Whether a line of a JSONL file is a turn or a session, rather than a record of a corpus.

    Examples:
        >>> is_of_turns('{"role": "user", "content": "Why?"}'), is_of_turns('{"_id": "1", "text": "Because."}')
        (True, False)
    """
    return recognised(f"[{line}]")


def sessions(text: str, uri: str) -> Iterator[Transcript | Rejection]:
    """Every session of a transcript that holds a turn, in order; none where the text is no transcript."""
    return transcripts_of(_sessions(text), uri)


def transcripts_of(sessions: Iterable[Session | T], uri: str) -> Iterator[Transcript | Rejection | T]:
    """Sessions as documents, in order, and what is none as it is; very long ones in parts of whole turns."""
    seen: dict[str, int] = {}
    for session in sessions:
        if not isinstance(session, Session):
            yield session
            continue
        name = _word(session.name)
        seen[name] = seen.get(name, 0) + 1
        place = f"{uri}#{name}" if seen[name] == 1 else f"{uri}#{name}~{seen[name]}"
        if not session.lines:
            yield Rejection(place, "invalid_record", "expected turns that each name a speaker and a text, found others")
        for number, part in enumerate(_parts(session), start=1):
            own = place if number == 1 else f"{place}/part-{number}"
            yield Transcript(own, _title(part), written(part.lines), part.time, _metadata(part))


def _parts(session: Session) -> Iterator[Session]:
    """A session in parts that a chunker reads in time; a turn longer than one goes on in the next."""
    lines: list[Line] = []
    size = 0
    for line in session.lines:
        for piece in _pieces(line):
            length = len(piece.text if isinstance(piece, Turn) else piece)
            if lines and size + length > _LONGEST_PART:
                yield replace(session, lines=tuple(lines))
                lines, size = [], 0
            lines.append(piece)
            size += length
    if lines:
        yield replace(session, lines=tuple(lines))


def _pieces(line: Line) -> Iterator[Line]:
    if not isinstance(line, Turn) or len(line.text) <= _LONGEST_PART:
        yield line
        return
    start = 0
    while start < len(line.text):
        end = start + _LONGEST_PART
        at = line.text.rfind("\n", start + 1, end) if end < len(line.text) else -1
        end = at if at > 0 else end
        yield replace(line, text=line.text[start:end])
        start = end


def _sessions(text: str) -> Iterable[Session]:
    value = _structured(text)
    if value is not None:
        return sessions_in(value)
    lines = lines_of(text)
    return [Session("1", tuple(lines))] if lines else []


def is_structured(text: str) -> bool:
    """Whether a text begins as JSON that may tell who spoke."""
    return text[:_BLANK_LONGEST].lstrip("\ufeff \t\r\n")[:1] in {"{", "["} and _HINT.search(text) is not None


def _structured(text: str) -> Any:
    """The JSON value of a text that may tell who spoke; None elsewhere: a chat log may begin with a bracket too."""
    return _parsed(text) if is_structured(text) else None


def _parsed(text: str) -> Any:
    """The value of a JSON text, or the list of those of its lines; None where it is neither."""
    try:
        return json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        pass
    try:
        return [json.loads(line) for line in text.lstrip("\ufeff").split("\n") if line.strip()]
    except (ValueError, RecursionError):
        return None


def sessions_in(value: Any) -> Iterator[Session]:
    """Sessions of a JSON value in a plain notation, without lines those that cannot be read; none of another value."""
    if isinstance(value, dict):
        yield from _of_object(value)
    elif isinstance(value, list) and _are_turns(value):
        yield from _by_session(value)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        for item in value:
            yield from _of_object(item)


def _of_object(value: Mapping[str, Any]) -> Iterator[Session]:
    conversation = value.get("conversation")
    if isinstance(conversation, dict):
        yield from _locomo(conversation, _text(value.get("sample_id")))
    elif any(_SESSION_KEY.match(key) and isinstance(value[key], list) for key in value):
        yield from _locomo(value, _text(value.get("sample_id")))
    elif isinstance(value.get("sessions"), list):
        shared = _first_text(value, ("conversation_id", "id", "title"))
        for number, item in enumerate(value["sessions"], start=1):
            yield from _generic(item, str(number), shared)
    else:
        yield from _generic(value, "1", None)


def _locomo(conversation: Mapping[str, Any], name: str | None) -> Iterator[Session]:
    numbered = sorted((int(match.group(1)), key) for key in conversation if (match := _SESSION_KEY.match(key)))
    for number, key in numbered:
        if isinstance(conversation[key], list) and conversation[key]:
            time = conversation.get(f"{key}_date_time")
            session = f"{name}:session_{number}" if name else f"session_{number}"
            yield _session(session, conversation[key], time, name)


def _generic(item: Any, number: str, conversation: str | None) -> Iterator[Session]:
    if isinstance(item, list):
        item = {"turns": item}
    if not isinstance(item, dict):
        return
    turns = next((item[key] for key in _TURN_LISTS if isinstance(item.get(key), list)), None)
    if turns:
        name = _first_text(item, _SESSION_IDS) or number
        yield _session(name, turns, _first(item, _TIMES), conversation, _text(item.get("title")))


def _by_session(turns: Sequence[Mapping[str, Any]]) -> Iterator[Session]:
    """A bare list of turns: one session, or one for each id of a session that the turns name."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for turn in turns:
        groups.setdefault(_first_text(turn, ("session_id", "session", "conversation_id")) or "1", []).append(turn)
    for name, group in groups.items():
        yield _session(name, group, None, None)


def _session(name: str, turns: Sequence[Any], time: Any, conversation: str | None, title: str | None = None) -> Session:
    if not _are_turns(turns):
        return Session(name, ())
    lines = tuple(_lines(turns))
    first = next((_first(turn, _TIMES) for turn in turns if _first(turn, _TIMES) is not None), None)
    stated = time if time is not None else first
    return Session(name, lines, seconds_of(stated), _text(stated), conversation, title)


def _are_turns(items: Sequence[Any]) -> bool:
    """Whether every item says who spoke and what; markers between them are allowed."""
    turns = [item for item in items if isinstance(item, dict) and _first_text(item, _SPEAKERS) is not None]
    markers = [item for item in items if isinstance(item, dict) and _text(item.get("topic")) and item not in turns]
    return (
        bool(turns)
        and len(turns) + len(markers) == len(items)
        and all(_text_of_turn(turn) is not None for turn in turns)
    )


def _lines(turns: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    for turn in turns:
        if (topic := _text(turn.get("topic"))) is not None:
            yield topic
        speaker = _first_text(turn, _SPEAKERS)
        if speaker is not None and speaker.casefold() not in _INSTRUCTING:
            time = _first(turn, _TIMES)
            yield Turn(speaker, _text_of_turn(turn) or "", clock(time), _first_text(turn, _TURN_IDS))


def _text_of_turn(turn: Mapping[str, Any]) -> str | None:
    """What a turn says: its text, the texts of its parts, and what a picture shows."""
    content = _first(turn, _TEXTS)
    if isinstance(content, list):
        parts = [
            part.get("text") if isinstance(part, dict) else part for part in content if isinstance(part, str | dict)
        ]
        content = "\n\n".join(text for part in parts if (text := _text(part)))
    text = _text(content)
    caption = _text(turn.get("blip_caption"))
    if text is None or caption is None:
        return text
    return f"{text} [shares image: {caption}]".lstrip()


def _first(item: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((item[key] for key in keys if item.get(key) is not None), None)


def _first_text(item: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    return next((text for key in keys if (text := _text(item.get(key))) is not None), None)


def _text(value: Any) -> str | None:
    """A string, or a number as one; lone surrogates, which JSON may escape, become the replacement character."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def seconds_of(value: Any) -> float | None:
    """A time as seconds since the epoch: a number, ISO 8601 or LoCoMo's "1:56 pm on 8 May, 2023"; UTC if unsaid.

    Examples:
        >>> seconds_of("1:56 pm on 8 May, 2023") == seconds_of("2023-05-08T13:56:00Z") == seconds_of(1683554160000)
        True
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return epoch_seconds(value)
    moment = _moment(value) if isinstance(value, str) else None
    return None if moment is None else moment_seconds(moment)


def _moment(text: str) -> datetime | None:
    for parse in (datetime.fromisoformat, lambda stated: datetime.strptime(stated, _LOCOMO_TIME)):
        try:
            return parse(text.strip())
        except ValueError:
            continue
    return None


def clock(value: Any) -> str | None:
    """The time of a turn to the second, in UTC; as the file says it where that is not understood."""
    seconds = seconds_of(value)
    if seconds is None:
        return _text(value)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _title(session: Session) -> str:
    speakers = " and ".join(_speakers(session)[:_NAMED])
    heading = session.title or f"Conversation {_word(session.name)}"
    return ", ".join(part for part in (f"{heading}: {speakers}", session.time_text) if part)


_NAMED = 4  # speakers whose names stand in a title


def _speakers(session: Session) -> list[str]:
    return list(dict.fromkeys(line.speaker for line in session.lines if isinstance(line, Turn)))


def _metadata(session: Session) -> dict[str, str]:
    turns = [line for line in session.lines if isinstance(line, Turn)]
    facts = {
        "session": session.name,
        "speakers": ", ".join(_speakers(session)),
        "time": session.time_text,
        "conversation": session.conversation,
        "turns": " ".join(_word(turn.turn_id or "-") for turn in turns) if any(t.turn_id for t in turns) else None,
    }
    return {name: value for name, value in facts.items() if value}


def _word(name: str) -> str:
    return "_".join(name.split()) or "-"
