"""What a message says: texts as they are, tools in a line, pictures and thoughts not at all (ING-28)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from weft.chunking.conversation.dialogue import Line, Turn
from weft.ingestion.sources.formats.blocks import fence

USER, ASSISTANT = "user", "assistant"
_SHOWN = 300  # characters of a tool's arguments, and of its result: what was asked of it, and how it began to answer
_ASKED = 80  # characters of a question that a session is called by
_TEXTS = frozenset({"text", "input_text", "output_text", "markdown", "audio_transcription"})
_WRITING = frozenset({"artifacts", "canmore.create_textdoc"})  # tools by which an assistant writes a document
_PROSE = frozenset({"", "document", "markdown", "plain"})  # types of such documents; all others are of code
_CALLS = frozenset({"tool_use", "tool-call", "tool_call", "function_call", "server_tool_use", "custom_tool_call"})
_RESULTS = frozenset(
    {"tool_result", "tool-result", "function_call_output", "custom_tool_call_output", "web_search_tool_result"}
)
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "thoughts", "reasoning_recap"})
_PICTURES = re.compile(r"image|audio|video|file|document|asset", re.IGNORECASE)
_BASE64 = re.compile(r"(?:data:[\w/+.-]{0,80};base64,)?[A-Za-z0-9+/=]{200,}")
_DATA_URI = re.compile(r"data:[\w/+.-]{1,80};base64,[A-Za-z0-9+/=\s]{16,}")
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_MOST_DEPTH = 6


def words_of(content: Any, dropped: Counter[str], *, depth: int = 0) -> str:
    r"""The words of a message's content: a text, or a list of blocks as Anthropic, OpenAI and others have them.

    Examples:
        >>> called = {"type": "tool_use", "name": "ls", "input": {"path": "/"}}
        >>> words_of([{"type": "text", "text": "Look."}, called], Counter())
        'Look.\n\n[ls: path=/]'
    """
    if isinstance(content, str):
        return plain(content)
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list) or depth > _MOST_DEPTH:
        return ""
    return "\n\n".join(filter(None, (_block(block, dropped, depth) for block in content)))


def _block(block: Any, dropped: Counter[str], depth: int) -> str:
    if not isinstance(block, Mapping):
        return plain(block) if isinstance(block, str) else ""
    kind, text = str(block.get("type") or block.get("content_type") or "text"), block.get("text")
    if kind in _CALLS:
        return call(block.get("name"), block.get("input", block.get("arguments")))
    if kind in _RESULTS:
        return result(words_of(block.get("content", block.get("output")), dropped, depth=depth + 1))
    if kind in _THOUGHTS or (_PICTURES.search(kind) and kind not in _TEXTS):
        dropped["thoughts" if kind in _THOUGHTS else "pictures and files"] += 1
        return ""
    if isinstance(text, str):
        return plain(text)
    return words_of(block.get("content", block.get("parts")), dropped, depth=depth + 1)


def plain(text: str) -> str:
    """A text that can be encoded, without what is a picture in letters."""
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").replace("\0", "\ufffd")
    return _DATA_URI.sub("[data]", text).replace("\r\n", "\n").strip()


def call(name: Any, arguments: Any) -> str:
    """A call of a tool in a line, above the whole document where it writes one.

    Examples:
        >>> call("Bash", '{"command": "make test"}'), call("Read", {"file": "a.py", "lines": 3})
        ('[Bash: command=make test]', '[Read: file=a.py lines=3]')
    """
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    if isinstance(arguments, Mapping):
        document = arguments.get("content")
        if isinstance(name, str) and name in _WRITING and isinstance(document, str):
            called = call(name, {key: arguments[key] for key in ("title", "name") if key in arguments})
            kind = re.split(r"[^\w+-]", str(arguments.get("language") or arguments.get("type") or ""))[-1]
            return f"{called}\n\n{plain(document) if kind in _PROSE else fence(plain(document), kind)}".strip()
        shown = " ".join(f"{key}={_inline(value)}" for key, value in list(arguments.items())[:8])
    else:
        shown = _inline(arguments)
    return f"[{name or 'tool'}: {_short(shown)}]" if shown else f"[{name or 'tool'}]"


def result(text: str) -> str:
    """What a tool gave back, as it begins, without what a program adds to it."""
    text = _REMINDER.sub("", text[: 64 * _SHOWN])
    return f"[result: {_short(text)}]" if text.strip() else ""


def _inline(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value[: 2 * _SHOWN]
    try:
        return json.dumps(value, ensure_ascii=False)[: 2 * _SHOWN]
    except (TypeError, ValueError, RecursionError):
        return ""


def _short(text: str) -> str:
    flat = " ".join(_BASE64.sub("[data]", plain(text[: 64 * _SHOWN])).split())
    return flat if len(flat) <= _SHOWN else f"{flat[:_SHOWN].rstrip()} …"


def merged(turns: Iterable[Line]) -> Iterator[Line]:
    """Turns, in which what the assistant says, calls and hears from tools until somebody else speaks is one."""
    last: Turn | None = None
    parts: list[str] = []
    for turn in turns:
        if last is not None and isinstance(turn, Turn) and turn.speaker == last.speaker == ASSISTANT:
            parts.append(turn.text)
            continue
        if last is not None:
            yield _joined(last, parts)
        last, parts = None, []
        if isinstance(turn, Turn) and turn.speaker == ASSISTANT:
            last, parts = turn, [turn.text]
        else:
            yield turn
    if last is not None:
        yield _joined(last, parts)


def asked(lines: Iterable[Line]) -> str | None:
    """What somebody asked first, in short: what a session without a title is called by."""
    text = next((line.text for line in lines if isinstance(line, Turn) and line.speaker != ASSISTANT), "")
    flat = " ".join(text[: 8 * _ASKED].split())
    return (flat if len(flat) <= _ASKED else f"{flat[:_ASKED].rstrip()} …") or None


def _joined(turn: Turn, parts: Iterable[str]) -> Turn:
    return Turn(turn.speaker, "\n\n".join(filter(None, parts)), turn.time, turn.turn_id)
