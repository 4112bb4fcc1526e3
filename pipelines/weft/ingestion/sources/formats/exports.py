"""Exports of assistants: ChatGPT's trees of messages, Claude's lists, and lists of messages by role (ING-28)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ijson

from weft.chunking.conversation.dialogue import Turn
from weft.ingestion.sources.formats.messages import ASSISTANT, asked, call, merged, plain, result, words_of
from weft.ingestion.sources.formats.source import FormatError, Readings, Source
from weft.ingestion.sources.transcripts import Session, clock, seconds_of, sessions_in

_MOST_STEPS = 32  # of tools and thoughts between a question and its answer
_HIDDEN = frozenset({"system", "developer"})  # what they say is an instruction, no turn
_THOUGHTS = frozenset({"thoughts", "reasoning_recap"})
_INSTRUCTIONS = frozenset({"user_editable_context", "model_editable_context"})
# what ChatGPT shows as a link, in characters of its own; of a thing that has a name the name stays
_MARKS = re.compile(r'\ue200(?:entity\ue202\["[^"\ue201]*","([^"\ue201]*)")?[^\ue200\ue201]*\ue201')
_OUTPUTS = frozenset({"execution_output", "tether_browsing_display", "tether_quote", "sonic_webpage", "system_error"})


def read(source: Source) -> Readings:
    """A session for each conversation, and for what each other branch of it says by itself."""
    for value in _values(source):
        before = len(source.dropped)
        sessions = list(_of(value, source.dropped))
        if not sessions and len(source.dropped) == before:
            source.dropped["conversations without a turn"] += 1
        yield from sessions
        yield None


def _values(source: Source) -> Iterator[Any]:
    """Conversations of a list, one at a time; the only one of a file that is no list."""
    if source.names[-1].endswith((".jsonl", ".ndjson")):
        yield from source.objects()
        return
    head = source.file.read(source.limit + 1).lstrip(b"\xef\xbb\xbf \t\r\n")
    if len(head) <= source.limit:
        try:
            value = json.loads(head)
        except RecursionError as error:
            raise FormatError("too_deep", "expected conversations, found values nested without end") from error
        value = _inner(value)
        yield from value if isinstance(value, list) and not _are_by_role(value) else [value]
        return
    source.file.seek(0)
    if source.file.read(3) != b"\xef\xbb\xbf":
        source.file.seek(0)
    places = ("item",) if head.startswith(b"[") else ("conversations.item", "sessions.item", "messages")
    for place in places:
        empty = True
        for value in ijson.items(source.file, place, use_float=True):
            empty = False
            yield {"messages": value} if place == "messages" else value
        if not empty:
            return
        source.file.seek(0)


def _inner(value: Any) -> Any:
    listed = value.get("conversations") if isinstance(value, Mapping) else None
    return listed if isinstance(listed, list) else value


def _of(value: Any, dropped: Counter[str]) -> Iterator[Session]:
    if isinstance(value, Mapping) and isinstance(value.get("mapping"), Mapping):
        yield from _tree(value, dropped)
    elif isinstance(value, Mapping) and isinstance(value.get("chat_messages"), list):
        yield from _claude(value, dropped)
    elif isinstance(value, Mapping) and _are_by_role(value.get("messages")):
        name = _text(value.get("id")) or _text(value.get("conversation_id")) or "1"
        yield from _session(name, by_role(value["messages"], dropped), value)
    elif _are_by_role(value):
        yield from _session("1", by_role(value, dropped), {})
    else:
        yield from sessions_in(value)


def _session(name: str, turns: Iterator[Turn], value: Mapping[str, Any], title: str | None = None) -> Iterator[Session]:
    """A session of turns that say something; none where none does."""
    lines = tuple(merged(turns))
    if not lines:
        return
    first = next((line.time for line in lines if isinstance(line, Turn) and line.time), None)
    stated = next((value[key] for key in ("create_time", "created_at", "time") if value.get(key) is not None), first)
    title = title or _text(value.get("title")) or _text(value.get("name")) or asked(lines)
    yield Session(name, lines, seconds_of(stated), clock(stated), title=title)


# ChatGPT: `mapping` is a tree of messages by their ids; `current_node` is the last one of the branch that is shown.


def _tree(value: Mapping[str, Any], dropped: Counter[str]) -> Iterator[Session]:
    nodes = {name: node for name, node in value["mapping"].items() if isinstance(node, Mapping)}
    name = _text(value.get("conversation_id")) or _text(value.get("id")) or "1"
    seen: set[str] = set()
    leaves = [node for node in nodes if not any(child in nodes for child in _children(nodes[node]))]
    current = value.get("current_node")
    last = max(leaves, key=lambda leaf: _time(nodes[leaf]), default=None)
    current = current if isinstance(current, str) and current in nodes else last
    if current is None:
        return
    shown = _branch(nodes, current, seen)
    yield from _session(name, _messages(nodes, shown, dropped), value)
    title = _text(value.get("title")) or "Conversation"
    for leaf in leaves:
        own = _branch(nodes, leaf, seen)
        if own:
            turns = _messages(nodes, [*_asked(nodes, own[0]), *own], dropped)
            yield from _session(f"{name}/{own[0]}", turns, {}, f"{title} (another branch)")


def _branch(nodes: Mapping[str, Any], leaf: str, seen: set[str]) -> list[str]:
    """Messages from a leaf up to those that another branch has, the first one first; a circle ends where it began."""
    branch: list[str] = []
    at: Any = leaf
    while isinstance(at, str) and at in nodes and at not in seen:
        seen.add(at)
        branch.append(at)
        at = nodes[at].get("parent")
    return branch[::-1]


def _asked(nodes: Mapping[str, Any], first: str) -> list[str]:
    """The question that a branch answers, where it begins with an answer: the two are never apart."""
    at: Any = first
    for _ in range(_MOST_STEPS):
        message = nodes[at].get("message")
        author = message.get("author") if isinstance(message, Mapping) else None
        if isinstance(author, Mapping) and author.get("role") == "user":
            return [] if at == first else [at]
        at = nodes[at].get("parent")
        if not isinstance(at, str) or at not in nodes:
            break
    return []


def _children(node: Mapping[str, Any]) -> Sequence[Any]:
    children = node.get("children")
    return children if isinstance(children, list) else ()


def _time(node: Mapping[str, Any]) -> float:
    message = node.get("message")
    return (seconds_of(message.get("create_time")) if isinstance(message, Mapping) else None) or 0.0


def _messages(nodes: Mapping[str, Any], branch: Sequence[str], dropped: Counter[str]) -> Iterator[Turn]:
    for name in branch:
        message = nodes[name].get("message")
        if not isinstance(message, Mapping):
            continue
        author, facts = message.get("author"), message.get("metadata")
        role = author.get("role") if isinstance(author, Mapping) else None
        hidden = isinstance(facts, Mapping) and facts.get("is_visually_hidden_from_conversation")
        content = message.get("content")
        if role in _HIDDEN or hidden or message.get("weight") == 0.0:
            dropped["system prompts and hidden messages"] += bool(words_of(_parts(content), Counter()))
            continue
        text = _chatgpt_text(content, role == "tool", message.get("recipient"), dropped)
        if text and isinstance(role, str):
            yield Turn(ASSISTANT if role == "tool" else role, text, clock(message.get("create_time")), name)


def _chatgpt_text(content: Any, is_tool: bool, recipient: Any, dropped: Counter[str]) -> str:
    if not isinstance(content, Mapping):
        return words_of(content, dropped)
    kind = content.get("content_type")
    if kind in _THOUGHTS or kind in _INSTRUCTIONS:
        dropped["thoughts" if kind in _THOUGHTS else "system prompts and hidden messages"] += 1
        return ""
    text = _MARKS.sub(r"\1", words_of(_parts(content), dropped))
    if is_tool or kind in _OUTPUTS:
        return result(text)
    if isinstance(recipient, str) and recipient != "all":
        return call(recipient, text)
    if kind == "code" and text:
        language = content.get("language")
        return f"```{language if isinstance(language, str) and language != 'unknown' else ''}\n{text}\n```"
    return text


def _parts(content: Any) -> Any:
    if not isinstance(content, Mapping):
        return content
    return content.get("parts") or content.get("text") or content.get("result") or content.get("content")


# Claude: `chat_messages` in order; what was pasted is an attachment with its text.


def _claude(value: Mapping[str, Any], dropped: Counter[str]) -> Iterator[Session]:
    name = _text(value.get("uuid")) or _text(value.get("id")) or "1"
    yield from _session(name, _claude_turns(value["chat_messages"], dropped), value)


def _claude_turns(messages: Sequence[Any], dropped: Counter[str]) -> Iterator[Turn]:
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        sender = _text(message.get("sender")) or _text(message.get("role"))
        words = words_of(message.get("content"), dropped) or words_of(message.get("text"), dropped)
        parts = [words, *_attached(message, dropped)]
        text = "\n\n".join(filter(None, parts))
        if sender and text and sender not in _HIDDEN:
            yield Turn(sender, text, clock(message.get("created_at")), _text(message.get("uuid")))


def _attached(message: Mapping[str, Any], dropped: Counter[str]) -> Iterator[str]:
    for key in ("attachments", "files", "files_v2"):
        for one in message.get(key) or () if isinstance(message.get(key), list) else ():
            name = _text(one.get("file_name")) if isinstance(one, Mapping) else None
            text = one.get("extracted_content") if isinstance(one, Mapping) else None
            if isinstance(text, str) and text.strip():
                yield f"[{name or 'attachment'}]\n{plain(text)}"
            elif key != "files_v2":
                dropped["pictures and files"] += 1


# Messages by role, as OpenAI's and Anthropic's interfaces take them.


def _are_by_role(value: Any) -> bool:
    """Whether a value lists messages of roles, one of which is a tool's, calls one, or instructs."""
    if not isinstance(value, list) or not all(isinstance(each, Mapping) and "role" in each for each in value):
        return False
    return any(
        each["role"] in {*_HIDDEN, "tool", "function"}
        or each.get("tool_calls")
        or (isinstance(each.get("content"), list) and each["role"] == ASSISTANT)
        for each in value
    )


def by_role(messages: Sequence[Any], dropped: Counter[str]) -> Iterator[Turn]:
    """Turns of messages of which each names its role; what tools answer is the assistant's."""
    for message in messages:
        role = _text(message.get("role")) if isinstance(message, Mapping) else None
        if role is None or role in _HIDDEN:
            dropped["system prompts and hidden messages"] += role is not None
            continue
        content = message.get("content")
        text = words_of(content, dropped)
        if role in {"tool", "function"}:
            role, text = ASSISTANT, result(text)
        elif role == "user" and _is_of_tools(content):
            role = ASSISTANT
        calls = message.get("tool_calls")
        called = [_function(each) for each in calls] if isinstance(calls, list) else []
        text = "\n\n".join(filter(None, [text, *called]))
        if text:
            stated = next((message[key] for key in ("timestamp", "created_at", "time") if message.get(key)), None)
            yield Turn(role, text, clock(stated), _text(message.get("id")))


def _is_of_tools(content: Any) -> bool:
    """Whether a message of the user's is nothing but what tools gave back."""
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(each, Mapping) and each.get("type") == "tool_result" for each in content)
    )


def _function(each: Any) -> str:
    function = each.get("function") if isinstance(each, Mapping) else None
    return call(function.get("name"), function.get("arguments")) if isinstance(function, Mapping) else ""


def _text(value: Any) -> str | None:
    return plain(value) or None if isinstance(value, str) else None
