"""Lists of links: tables of contents, indexes, which lead to what is looked for and explain nothing (RET-13)."""

from __future__ import annotations

import re

_LINK = re.compile(
    r"!?\[(?P<text>(?:[^][]|\[[^][]*\])*)\](?:\([^()\s]*(?:\s[^()]*)?\)|\[[^][]*\])"  # of Markdown
    r"|\[\[(?P<wiki>[^][]+)\]\]|<<(?P<cross>[^<>]+)>>|`(?P<rest>[^`<>]+)<[^<>]+>`_|:\w+:`(?P<role>[^`]+)`"
)
_HEADING = re.compile(r"(?m)^\s*(?:#+|=+)\s.*$")
_LETTERS = re.compile(r"[^\W_]+")


def is_link_list(text: str) -> bool:
    """Whether most of what a text says, below its headings, are links: in Markdown, AsciiDoc, reST or a wiki.

    Examples:
        >>> is_link_list("- [Codes](#codes) - [E_ONE](#e_one)"), is_link_list("[a](#a)")
        (True, False)
        >>> is_link_list("- [uv](#uv): installs packages - [ty](#ty): checks the types of them")
        False
    """
    if not any(mark in text for mark in ("](", "][", "[[", "<<", "`")):
        return False
    prose = _HEADING.sub("", text)
    links = [_letters("".join(filter(None, match.groups()))) for match in _LINK.finditer(prose)]
    return len(links) > 1 and sum(links) > _letters(_LINK.sub(" ", prose))


def _letters(text: str) -> int:
    return sum(map(len, _LETTERS.findall(text)))
