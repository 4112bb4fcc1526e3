"""Where the front matter of a Markdown text begins and ends: YAML between dashes, TOML between plus signs, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

_FENCE = re.compile(r"\ufeff?(---|\+\+\+)[ \t]*\r?\n")
_JSON = re.compile(r"\ufeff?(?=\{\s*[\"}])")
_LINE_END = re.compile(r"[ \t]*(?:\r?\n|\Z)")
_ENDS: Mapping[str, re.Pattern[str]] = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]*(?:\r?\n|\Z)", re.MULTILINE),
}
# How it begins: two rules may stand in any Markdown.
_KEY = r"(?:\s*#[^\n]*\n|\s)*"
_BEGINNINGS: Mapping[str, re.Pattern[str]] = {
    "---": re.compile(_KEY + r"(?:[\w.\"'$@/-][\w ./()$@\"'-]*:(?:\s|$)|[{&*!])"),
    "+++": re.compile(_KEY + r"(?:[\w.\"'-][\w .\"'-]*=|\[)"),
}
_DESCRIPTION = re.compile(
    r"^[ \t]*\"?(?:description|summary|abstract)\"?[ \t]*[:=][ \t]*"
    r"(?:[>|][+-]?[ \t]*\r?\n(?P<block>(?:[ \t]+[^\n]*\n|[ \t\r]*\n)+)"
    r"|(?P<quote>[\"']?)(?P<line>(?![>|{\[])[^\n]*?)(?P=quote),?[ \t\r]*$)",
    re.MULTILINE,
)
_LOOK = 4096
_LONGEST_JSON = 65_536
_LANGUAGES = {"---": "YAML", "+++": "TOML"}


class Front(NamedTuple):
    """Front matter of a text."""

    language: str  # YAML, TOML or JSON
    start: int  # Where what it says stands
    end: int
    after: int  # where the text goes on


def front_of(text: str) -> Front | None:
    r"""The front matter at the head of a text; None where there is none.

    Examples:
        >>> front_of("---\na: 1\n---\nText."), front_of('{"a": 1}\n\nText.')
        (Front(language='YAML', start=4, end=9, after=13), Front(language='JSON', start=0, end=8, after=9))
        >>> front_of("---\n\nA rule, and another one.\n\n---\n")
    """
    opening = _FENCE.match(text)
    if opening is None:
        return _json_of(text)
    fence, start = opening[1], opening.end()
    closing = _ENDS[fence].search(text, start)
    if closing is None or not _BEGINNINGS[fence].match(text[start : min(closing.start(), start + _LOOK)]):
        return None
    return Front(_LANGUAGES[fence], start, closing.start(), closing.end())


def description_in(text: str, front: Front) -> tuple[int, int] | None:
    r"""Where front matter says in words what the text is about: the only part of it that is read as text.

    Examples:
        >>> text = "---\ntitle: A\ndescription: 'What it is.'\n---\n# A\n"
        >>> text[slice(*description_in(text, front_of(text)))]
        'What it is.'
    """
    match = _DESCRIPTION.search(text, front.start, front.end)
    if match is None:
        return None
    name = "block" if match["block"] else "line"
    return match.span(name) if match[name].strip() else None


def _json_of(text: str) -> Front | None:
    opening = _JSON.match(text)
    if opening is None:
        return None
    try:
        _, length = json.JSONDecoder().raw_decode(text[opening.end() : opening.end() + _LONGEST_JSON])
    except (ValueError, RecursionError):
        return None
    line_end = _LINE_END.match(text, opening.end() + length)
    return None if line_end is None else Front("JSON", opening.end(), opening.end() + length, line_end.end())
