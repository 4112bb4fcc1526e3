"""Sessions of coding agents: a JSON object a line, of Claude Code, Codex and the like (ING-28)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from weft.chunking.conversation.dialogue import Turn
from weft.ingestion.sources.formats.exports import by_role
from weft.ingestion.sources.formats.messages import ASSISTANT, USER, call, merged, plain, result, words_of
from weft.ingestion.sources.formats.source import Readings, Source
from weft.ingestion.sources.transcripts import Session, clock, seconds_of

# What a program adds to what a person typed, in elements of its own.
_ADDED = re.compile(
    r"<(system-reminder|environment_context|user_instructions|permissions(?: instructions)?|command-\w+|ide_opened_file"
    r"|collaboration_mode|local-command-\w+|ide_selection|INSTRUCTIONS|turn_aborted)>.*?</\1>"
    r"|^# AGENTS\.md instructions.*\Z",
    re.DOTALL | re.MULTILINE,
)
_CALLS = {"function_call", "custom_tool_call", "local_shell_call", "web_search_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output"}


def read(source: Source) -> Readings:
    """A session; what agents below say to themselves is one of its own."""
    sides: dict[str, list[Turn]] = {}
    title = name = None
    first: Any = None
    for line in source.objects():
        kind, payload = line.get("type"), line.get("payload")
        body = payload if isinstance(payload, Mapping) and kind != "message" else line
        if kind in {"summary", "custom-title", "ai-title"}:
            title = next(
                (line[key] for key in ("summary", "customTitle", "aiTitle") if isinstance(line.get(key), str)), title
            )
        stated = body.get("id") if kind == "session_meta" else line.get("sessionId") or line.get("session_id")
        name = name or (stated if isinstance(stated, str) else None)
        side = "sidechain" if line.get("isSidechain") is True else ""
        for turn in _turns(kind, body, line, source.dropped):
            first = first or line.get("timestamp")
            sides.setdefault(side, []).append(turn)
        yield None
    for side, turns in sides.items():
        own = f"{name or source.stem}/{side}" if side and len(sides) > 1 else name or source.stem
        heading = title and (f"{title} (agents below)" if side and len(sides) > 1 else title)
        yield Session(own, tuple(merged(turns)), seconds_of(first), clock(first), title=heading)


def _turns(kind: Any, body: Mapping[str, Any], line: Mapping[str, Any], dropped: Counter[str]) -> Iterator[Turn]:
    time, message = clock(line.get("timestamp")), line.get("message")
    if line.get("isMeta") is True or line.get("isCompactSummary") is True:
        dropped["system prompts and hidden messages"] += 1
        return
    if isinstance(message, Mapping) and "role" in message:  # Claude Code, and agents that keep such messages in lines
        turns = by_role([message], dropped)
    elif kind in {"response_item", "message", None} and "role" in body:  # Codex, now and formerly, or a bare message
        turns = by_role([body], dropped)
    elif (body.get("type") if kind == "response_item" else kind) in _CALLS:
        asked = body.get("arguments", body.get("input", body.get("action")))
        turns = iter([Turn(ASSISTANT, call(body.get("name") or body.get("type"), asked))])
    elif (body.get("type") if kind == "response_item" else kind) in _OUTPUTS:
        turns = iter([Turn(ASSISTANT, result(_output(body.get("output"), dropped)))])
    else:
        dropped["thoughts"] += body.get("type") == "reasoning"
        return
    for turn in turns:
        text = _ADDED.sub("", turn.text).strip() if turn.speaker == USER else turn.text
        if text:
            identity = line.get("uuid")
            yield Turn(turn.speaker, text, time, identity if isinstance(identity, str) else None)


def _output(value: Any, dropped: Counter[str]) -> str:
    """What a call gave back; Codex writes some of it as JSON in a text."""
    if isinstance(value, str) and value.startswith('{"output"'):
        try:
            value = json.loads(value)["output"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return plain(value)
    return words_of(value.get("content", value.get("output")) if isinstance(value, Mapping) else value, dropped)
