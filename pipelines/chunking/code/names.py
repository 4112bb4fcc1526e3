"""Names in source code, as dotted words whatever their language puts between them."""

from __future__ import annotations

import re

LONGEST_NAME = 200
"""Bytes of a name that are looked at: in a chain of calls, every callee holds all before it."""

GENERIC = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_PLAIN = re.compile(r"[\w$.~@#]+")
_LAST_WORD = re.compile(r"([\w$]+)[^\w$]*$")


def dotted(name: bytes) -> str:
    """A qualified name with dots between its words; of a member of what is no plain name, that after a dot.

    Examples:
        >>> dotted(b"std::vec::Vec<u8>"), dotted(b"self->x"), dotted(b"f(a).c"), dotted(b"a?.b")
        ('std.vec.Vec', 'self.x', '.c', 'a.b')
    """
    text = name.decode("utf-8", "ignore")
    if text.isidentifier():
        return text
    text = text.replace("->", ".").replace("::", ".").replace("?.", ".")
    if "operator" in text:
        return "".join(text.split())
    for _ in range(3):
        text = GENERIC.sub("", text)
    text = "".join(text.split()).replace("..", ".").strip(".*&()")
    if _PLAIN.fullmatch(text):
        return text
    last = _LAST_WORD.search(text)
    return f".{last[1]}" if last else ""
