"""What in a query may be a name or a path, by how it is written; what is called so is looked up (RET-22)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from weft.indexes.text.words import STOP_WORDS, stream

_OPENING, _CLOSING = "\"'`<([{“‘*@", "\"'`>)]}”’,;:!?*…"
_LINE = re.compile(
    r"(?P<path>.*?)(?::(?P<colon>\d+)(?::\d+)?|#L(?P<anchor>\d+)(?:-L?\d+)?|\((?P<round>\d+)(?:,\s*\d+)?)\W*$"
)
_BEHIND = re.compile(
    r"\W*\s+line\s+(\d+)\b(?:\s*,\s*in\b)?"
)  # of a traceback of Python: `File "a.py", line 12, in name`
_BEFORE = re.compile(r"(?i)(?:^|\s)(in|inside|within|from|of|file|at|see|open)\W*$")

_NAME = re.compile(r"(?<![\w$@])[^\W\d][\w$]*(?:(?:\.|::|->|\#)~?[^\W\d][\w$]*)*[?!]?")
_JOINT = re.compile(r"\.|::|->|#")
_HUMP = re.compile(r"(?<=[a-z0-9])[A-Z]|(?<=[A-Z])[A-Z](?=[a-z])")
_SELVES = frozenset({"self", "this", "cls", "super", "Self"})


@dataclass(frozen=True, slots=True)
class MentionedPath:
    """A path as it stands in a query, and where a line is named, that."""

    typed: str
    parts: tuple[str, ...]  # from the outermost folder that is named to the file
    absolute: bool  # whether it begins where a machine's folders do
    line: int | None
    stated: bool  # whether a word before it says that it is a place: "in celery/app/task.py"


@dataclass(frozen=True, slots=True)
class MentionedName:
    """A name as it stands in a query."""

    typed: str
    parts: tuple[str, ...]  # what qualifies it, and the name itself
    called: bool  # whether a bracket follows, as in calls and signatures
    marked: bool  # whether it is written as no word is: in several words, qualified, or in quotation marks
    capital: bool  # whether it begins with a capital though no sentence begins with it


def paths_in(text: str, is_file: Callable[[str], bool]) -> tuple[tuple[MentionedPath, ...], str]:
    """The paths in a text, of which the last part is a file's name, and the text without them.

    A word without a dot or slash is a path only where there is nothing else.

    Examples:
        >>> files = {"task.py", "Makefile", "expire.c"}
        >>> found, rest = paths_in('File "/x/app/task.py", line 12, in retry', files.__contains__)
        >>> [(each.parts, each.line, each.absolute) for each in found], rest
        ([(('x', 'app', 'task.py'), 12, True)], 'retry')
        >>> found, rest = paths_in("retry in app/task.py:12", files.__contains__)
        >>> [(each.parts, each.line, each.stated) for each in found], rest
        ([(('app', 'task.py'), 12, True)], 'retry')
        >>> paths_in("the Makefile of expire", files.__contains__)[0], paths_in("Makefile", files.__contains__)[1]
        ((), '')
    """
    if " " not in text and (alone := _path(text, is_file, lone=True)) is not None:
        return (alone,), ""
    paths: list[MentionedPath] = []
    rest, end = "", 0
    for match in re.finditer(r"\S+", text):
        if match.start() < end or (path := _path(match[0], is_file)) is None:
            continue
        before = text[end : match.start()]
        stop, line, stated = match.end(), path.line, _BEFORE.search(before)
        if line is None and (behind := _BEHIND.match(text, stop - len(match[0]) + len(match[0].rstrip(_CLOSING)))):
            stop, line = behind.end(), int(behind[1])
        paths.append(MentionedPath(path.typed, path.parts, path.absolute, line, stated is not None))
        rest += before[: stated.start()] if stated else before
        end = stop
    return tuple(paths), " ".join((rest + text[end:]).split())


def _path(token: str, is_file: Callable[[str], bool], *, lone: bool = False) -> MentionedPath | None:
    typed = token.strip().lstrip(_OPENING).rstrip(_CLOSING + ".")
    line, numbered = None, _LINE.fullmatch(token.strip().lstrip(_OPENING))
    if numbered is not None:
        typed, line = numbered["path"], int(numbered["colon"] or numbered["anchor"] or numbered["round"])
    if not (lone or "/" in typed or "\\" in typed or "." in typed):
        return None
    parts = tuple(part for part in re.split(r"[/\\]+", typed) if part not in {"", ".", "..", "…", "..."})
    if not parts or not is_file(parts[-1]):
        return None
    absolute = re.match(r"[/\\~…]|\.{2,}|[A-Za-z]:|\w+://", typed) is not None
    return MentionedPath(typed, parts, absolute, line, stated=False)


def names_in(text: str) -> tuple[MentionedName, ...]:
    """The words of a text that may be names, without those between brackets: what a function takes says little.

    Examples:
        >>> [(each.parts, each.called) for each in names_in("static int name(struct flock *x)")]
        [(('static',), False), (('int',), False), (('name',), True)]
        >>> [(each.typed, each.marked) for each in names_in("does Class.method or ns::name call `it`, maxAge?")]
        [('does', False), ('Class.method', True), ('or', False), ('ns::name', True), ('call', False), ('it', True), \
('maxAge', True)]
    """
    names: list[MentionedName] = []
    text = _without_arguments(text)
    for match in _NAME.finditer(text):
        typed = match[0] if match[0][-1] not in "?!" else match[0][:-1]
        parts = tuple(part for part in _JOINT.split(typed) if part and part not in _SELVES)
        if not parts:
            continue
        called = text.startswith("(", match.start() + len(typed))
        quoted = text[match.start() - 1 : match.start()] in {"`", '"', "“"} and match.start() > 0
        marked = called or quoted or len(parts) > 1 or "_" in typed.strip("_") or _HUMP.search(typed) is not None
        begins = match.start() == 0 or text[: match.start()].rstrip()[-1:] in {".", "?", "!", ":"}
        names.append(MentionedName(typed, parts, called, marked, typed[0].isupper() and not begins))
    return tuple(names)


def _without_arguments(text: str) -> str:
    """A text in which what stands in brackets right behind a name is left out, and what follows a brace."""
    letters, depth = [], 0
    for at, letter in enumerate(text):
        opens = letter == "(" and (depth > 0 or (at > 0 and (text[at - 1].isalnum() or text[at - 1] in "_$?!>")))
        if depth == 0 or (depth == 1 and letter == ")"):
            letters.append(letter)
        depth += opens
        if letter == ")" and depth:
            depth -= 1
    return "".join(letters)


def other_words(text: str) -> tuple[str, ...]:
    """The words of a text that say something, in lower case."""
    return tuple(word for word in stream(text) if word not in STOP_WORDS and word[0].isalnum())
