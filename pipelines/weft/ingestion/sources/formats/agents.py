"""Sessions of coding agents: a JSON object a line, of Claude Code, Codex and the like (ING-28)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from weft.chunking.conversation.dialogue import Turn
from weft.ingestion.sources.formats.exports import by_role
from weft.ingestion.sources.formats.messages import ASSISTANT, USER, asked, call, merged, plain, result, words_of
from weft.ingestion.sources.formats.source import Readings, Source
from weft.ingestion.sources.transcripts import Session, clock, seconds_of

# What a program adds to what a person typed, in elements of its own.
_ADDED = re.compile(
    r"<(system-reminder|environment_context|user_instructions|permissions(?: instructions)?|command-\w+|ide_opened_file"
    r"|collaboration_mode|local-command-\w+|ide_selection|INSTRUCTIONS|turn_aborted)>.*?</\1>"
    r"|^# AGENTS\.md instructions.*\Z",
    re.DOTALL | re.MULTILINE,
)
# How a command that is a question to the model begins: of others the name comes first.
_COMMAND = re.compile(
    r"\A\s*<command-message>[^<]*</command-message>\s*<command-name>([^<]*)</command-name>"
    r"(?:\s*<command-args>(.*?)</command-args>)?",
    re.DOTALL,
)
_CALLS = {"function_call", "custom_tool_call", "local_shell_call", "web_search_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output"}


def read(source: Source) -> Readings:
    """A session in its newest branch; what agents below say to themselves is one of its own."""
    sides: dict[str, list[tuple[str, Turn]]] = {}
    tree = _Tree()
    title = name = None
    first: Any = None
    began: Any = None
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
        began = began or line.get("timestamp")
        turns = list(_turns(kind, body, line, source.dropped))
        place = tree.add(line, side, {turn.speaker for turn in turns})
        for turn in turns:
            first = first or line.get("timestamp")
            sides.setdefault(side, []).append((place, turn))
        yield None
    left = tree.left()
    for side, placed in sides.items():
        lines = tuple(merged(turn for place, turn in placed if place not in left))
        source.dropped["turns that were taken back"] += sum(place in left for place, _ in placed)
        own = f"{name or source.stem}/{side}" if side and len(sides) > 1 else name or source.stem
        heading = f"{title} (agents below)" if title and side and len(sides) > 1 else title or asked(lines)
        yield Session(own, lines, seconds_of(first or began), clock(first or began), title=heading)


class _Tree:
    """Places of a session, each below the one that it goes on from; of two below one the newest counts.

    A place is a question, or an answer with all that tools gave back to it: their results and the lines in between
    stand below one line, too, and are no branches.
    """

    def __init__(self) -> None:
        self._place_of: dict[str, str] = {}  # of each line
        self._above: dict[str, str] = {}

    def add(self, line: Mapping[str, Any], side: str, speakers: set[str]) -> str:
        """The place of a line of which these speak: what a tool gave back is a user's message that nobody says."""
        above = self._place_of.get(f"{side} {line.get('parentUuid')}", "")
        message = line.get("message")
        message = message if isinstance(message, Mapping) else {}
        own = f"{side} {message.get('id') or line.get('uuid')}"
        place = own if line.get("uuid") and message.get("role") in speakers else above
        self._place_of[f"{side} {line.get('uuid')}"] = place
        if place not in {above, ""}:
            self._above.setdefault(place, above)
        return place

    def left(self) -> set[str]:
        """The places of all branches but the newest."""
        newest: dict[str, str] = {}
        for at in reversed(self._above):
            place = at
            while (above := self._above.get(place)) and above not in newest:
                newest[above] = place
                place = above
        left: set[str] = set()
        for place, above in self._above.items():
            if above and (above in left or newest[above] != place):
                left.add(place)
        return left


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
        text = _ADDED.sub("", _COMMAND.sub(r"\1 \2", turn.text)).strip() if turn.speaker == USER else turn.text
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
