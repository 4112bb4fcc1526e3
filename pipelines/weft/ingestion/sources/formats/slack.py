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
_RICH = {"rich_text_section", "rich_text_preformatted", "rich_text_quote"}
_MOST_DEPTH = 8  # of blocks in blocks
_WORD = re.compile(r"[^\W_]+")
_MARKUP = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


def read(source: Source) -> Readings:
    """A day of a channel as one session; each thread stands together, as a topic, where it was begun."""
    messages = _objects(json.loads(source.file.read(source.limit + 1)))
    names = _names(source)
    day, channel = source.stem, source.names[-2] if len(source.names) > 1 else ""
    lines = tuple(_lines([*_begun_before(messages, source), *messages], names, source.dropped))
    first = next((each.get("ts") for each in messages), None)
    title = _persons(source, channel, names) or f"#{channel}"
    yield Session(day, lines, _seconds(first), day, conversation=channel or None, title=title if channel else None)


def _listed(source: Source, name: str) -> list[Mapping[str, Any]]:
    """The objects of a list beside a day; none where it is not there."""
    try:
        value = json.loads(source.beside.get(name, b"[]"))
    except (ValueError, RecursionError):
        return []
    return _objects(value)


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _begun_before(messages: Sequence[Mapping[str, Any]], source: Source) -> Iterator[Mapping[str, Any]]:
    """What began the threads of earlier days that somebody replies to on this one."""
    wanted = {str(each["thread_ts"]) for each in messages if each.get("thread_ts")}
    wanted -= {str(each.get("ts")) for each in messages}
    earlier = (each for name in source.beside if name[:1].isdigit() for each in _listed(source, name))
    yield from {stamp: each for each in earlier if (stamp := str(each.get("ts"))) in wanted}.values()


def _persons(source: Source, channel: str, names: Mapping[str, str]) -> str:
    """Who speaks in a direct message; nobody of a channel."""
    for each in (*_listed(source, "dms.json"), *_listed(source, "mpims.json")):
        members = each.get("members")
        if channel in (each.get("id"), each.get("name")) and isinstance(members, list):
            return ", ".join(names.get(str(member), str(member)) for member in members)
    return ""


def _names(source: Source) -> dict[str, str]:
    """Names of users by their ids; none where the file of users is not there."""
    return {str(each["id"]): _name(each) for each in _listed(source, "users.json") if each.get("id")}


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
    profile, bot = message.get("user_profile"), message.get("bot_profile")
    own = profile.get("real_name") if isinstance(profile, Mapping) else None
    called = message.get("username") or (bot.get("name") if isinstance(bot, Mapping) else None)
    name = names.get(str(user)) or own or called or user or "unknown"
    text = _words(message.get("text"), names)
    words = set(_WORD.findall(text))  # blocks often say the same, marked up otherwise
    parts = [text, *(each for each in _blocks(message, names) if not words.issuperset(_WORD.findall(each)))]
    parts += _attachments(message, names)
    for each in _objects(message.get("files")):
        title, shown = _first(each, "title", "name"), _first(each, "plain_text", "preview")
        dropped["pictures and files"] += not shown
        parts += [f"[file: {title}]" if title else "", shown]
    text = "\n".join(dict.fromkeys(filter(None, parts)))
    return Turn(plain(str(name)), text, clock(_seconds(message.get("ts"))), str(message.get("ts"))) if text else None


def _first(holder: Mapping[str, Any], *keys: str) -> str:
    return next((text for key in keys if isinstance(holder.get(key), str) and (text := plain(holder[key]))), "")


def _blocks(holder: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    return (_words(text, names) for text in _texts(holder.get("blocks")))


def _texts(block: Any, depth: int = 0) -> Iterator[str]:
    """Texts of blocks; elements of a section of rich text are one."""
    if isinstance(block, str):
        yield block
    elif isinstance(block, list) and depth < _MOST_DEPTH:
        for each in block:
            yield from _texts(each, depth + 1)
    elif isinstance(block, Mapping) and str(block.get("type")) in _RICH:
        yield "".join(map(_element, _objects(block.get("elements"))))
    elif isinstance(block, Mapping) and depth < _MOST_DEPTH and block.get("type") != "actions":
        for key in ("text", "fields", "elements"):
            yield from _texts(block.get(key), depth + 1)


def _element(element: Mapping[str, Any]) -> str:
    user = element.get("user_id")
    return str(element.get("text") or element.get("url") or (f"<@{user}>" if user else ""))


def _attachments(message: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    for each in _objects(message.get("attachments")):
        parts = [_words(each.get(key), names) for key in ("pretext", "title", "text")]
        pairs = (
            [_words(field.get(key), names) for key in ("title", "value")] for field in _objects(each.get("fields"))
        )
        parts += (": ".join(filter(None, pair)) for pair in pairs)
        parts += _blocks(each, names)
        yield from parts if any(parts) else [_words(each.get("fallback"), names)]


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
