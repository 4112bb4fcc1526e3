"""Slack's export: a folder for each channel, in it a file of messages for each day, and `users.json` above (ING-28)."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.chunking.conversation.dialogue import Line, Turn
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.source import Readings, Source
from weft.ingestion.sources.transcripts import Session, clock, seconds_of

_NOTICES = re.compile(r"(?:channel|group|bot|pinned|unpinned|huddle|reminder|app)_\w+|(?:tombstone|sh_room_created)")
_SPOKEN = {"bot_message", "thread_broadcast", "me_message", "file_comment", "channel_topic", "channel_purpose"}
_MOST_DEPTH = 8  # of blocks in blocks
_MARKUP = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


def read(source: Source) -> Readings:
    """A day of a channel as one session; each thread stands together, as a topic, where it was begun."""
    messages = json.loads(source.file.read(source.limit + 1))
    messages = [each for each in messages if isinstance(each, Mapping)] if isinstance(messages, list) else []
    names = _names(source)
    day, channel = source.stem, source.names[-2] if len(source.names) > 1 else ""
    lines = tuple(_lines(messages, names, source.dropped))
    first = next((each.get("ts") for each in messages), None)
    yield Session(
        day, lines, _seconds(first), day, conversation=channel or None, title=f"#{channel}" if channel else None
    )


def _names(source: Source) -> dict[str, str]:
    """Names of users by their ids; none where the file of users is not there."""
    try:
        users = json.loads(source.beside or b"[]")
    except (ValueError, RecursionError):
        users = []
    return {str(each["id"]): _name(each) for each in users if isinstance(each, Mapping) and each.get("id")}


def _name(user: Mapping[str, Any]) -> str:
    profile = user.get("profile")
    profile = profile if isinstance(profile, Mapping) else {}
    stated = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"), user.get("name"))
    return next((plain(each) for each in stated if isinstance(each, str) and each.strip()), str(user["id"]))


def _lines(messages: Sequence[Mapping[str, Any]], names: Mapping[str, str], dropped: Counter[str]) -> Iterator[Line]:
    here = {each.get("ts") for each in messages}
    replies: dict[Any, list[Mapping[str, Any]]] = {}
    starts = []
    for each in sorted(messages, key=lambda each: _seconds(each.get("ts")) or 0.0):
        thread = each.get("thread_ts")
        if thread not in {None, each.get("ts")} and thread in here:
            replies.setdefault(thread, []).append(each)
        else:
            starts.append(each)
    apart = False
    for each in starts:
        turns = [turn for one in (each, *replies.get(each.get("ts"), ())) if (turn := _turn(one, names, dropped))]
        is_thread = bool(replies.get(each.get("ts"))) and len(turns) > 1
        if turns and (is_thread or apart):
            yield f"Thread: {' '.join(turns[0].text.split())[:80]}" if is_thread else ""
        yield from turns
        apart = is_thread if turns else apart


def _turn(message: Mapping[str, Any], names: Mapping[str, str], dropped: Counter[str]) -> Turn | None:
    kind = message.get("subtype")
    if isinstance(kind, str) and kind not in _SPOKEN and _NOTICES.fullmatch(kind):
        dropped["notices"] += 1
        return None
    user = message.get("user") or message.get("bot_id")
    profile = message.get("user_profile")
    own = profile.get("real_name") if isinstance(profile, Mapping) else None
    name = names.get(str(user)) or own or message.get("username") or user or "unknown"
    files = message.get("files")
    dropped["pictures and files"] += len(files) if isinstance(files, list) else 0
    shared = [each.get("name") or each.get("title") for each in files or () if isinstance(each, Mapping)]
    parts = [_words(message.get("text"), names), *_attachments(message, names)]
    if not any(parts):  # programs say what they say in blocks alone
        parts = [_words(text, names) for text in _texts(message.get("blocks"))]
    parts += [f"[file: {plain(each)}]" for each in shared if isinstance(each, str)]
    text = "\n".join(dict.fromkeys(filter(None, parts)))
    return Turn(plain(str(name)), text, clock(_seconds(message.get("ts"))), str(message.get("ts"))) if text else None


def _texts(block: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(block, str):
        yield block
    elif isinstance(block, list) and depth < _MOST_DEPTH:
        for each in block:
            yield from _texts(each, depth + 1)
    elif isinstance(block, Mapping) and depth < _MOST_DEPTH:
        for key in ("text", "fields", "elements"):
            yield from _texts(block.get(key), depth + 1)


def _attachments(message: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    attachments = message.get("attachments")
    for each in attachments if isinstance(attachments, list) else ():
        if isinstance(each, Mapping):
            yield _words(each.get("text") or each.get("fallback") or each.get("title"), names)


def _words(text: Any, names: Mapping[str, str]) -> str:
    """A text with names for ids, and without Slack's brackets."""

    def shown(match: re.Match[str]) -> str:
        mark, target, label = match.groups()
        if mark == "@":
            return f"@{names.get(target) or label or target}"
        if mark == "#":
            return f"#{label or target}"
        if mark == "!":
            return label or f"@{target.partition('^')[0]}"
        return f"{label} ({target})" if label and label != target and label not in target else target

    return html.unescape(_MARKUP.sub(shown, plain(text))) if isinstance(text, str) else ""


def _seconds(stamp: Any) -> float | None:
    try:
        return seconds_of(float(stamp))
    except (TypeError, ValueError):
        return None
