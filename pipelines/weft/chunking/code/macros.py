"""Macros of C and C++, which no grammar knows: what is parsed in their place, byte for byte (ING-5).

A macro is known by its shape, a word in capitals where the language has none:

- between `class`, `struct`, `union` or `enum` and a name with a body: `class BIRDS_API Heron {`
- before the type of a function: `BIRDS_API int depth(void)`
- behind the parameters of a function: `int depth(void) DEPRECATED(2);`
- in place of a function's head: `DEFINE_CALL(fly, int, metres)`, whose first word is a name, or the second of two
- on a line of its own: `GENERATED_BODY()`. Right above a declaration it belongs to that, as a comment does; otherwise
  it is a statement.

What a macro stands for is not known, so none defines anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_WORD = rb"\b[A-Z][A-Z\d_]+\b"
_MACRO = _WORD + rb"(?:[ \t]*\([^()\n]{0,400}\))?"
_TYPE_AND_NAME = rb"(?:[A-Za-z_][\w:]*(?:<[^()\n;]{0,200}>)?[ \t\n*&]+){1,6}~?[A-Za-z_][\w:~]*[ \t]*\("
_ATTRIBUTE = rb"(?:(?:alignas|__attribute__|__declspec)[ \t]*\((?:[^()\n]|\([^()\n]*\)){0,200}\)|\[\[[^\]\n]*\]\])"
_WORDS_BEFORE = rb"(?:static|inline|extern|virtual|constexpr|friend|explicit|template[ \t]*<[^;{}()\n]{0,200}>)"

_INSIDE = (
    re.compile(
        rb"(?<!\()\b(?:class|struct|union|enum)[ \t\n]+(?:" + _ATTRIBUTE + rb"[ \t\n]+)*((?:" + _MACRO + rb"[ \t\n]+)+)"
        rb"(?=[A-Za-z_][\w:]*(?:<[^;{}()]{0,200}>)?[ \t\n]*(?:final\b[ \t\n]*)?(?:\{|:(?!:|[ \t]*\d)))"
    ),
    re.compile(
        rb"^[ \t]*(?:" + _WORDS_BEFORE + rb"[ \t]+)*((?:" + _MACRO + rb"[ \t]+)+)(?=" + _TYPE_AND_NAME + rb")",
        re.MULTILINE,
    ),
    re.compile(
        rb"^(?![^\n]*\b(?:if|else|while|for|switch|return|do)\b)[ \t]*[A-Za-z_][^\n;{}=]{0,400}\)[ \t]*"
        rb"((?:" + _MACRO + rb"[ \t]*)+)(?=;|\n?[ \t]*\{)",
        re.MULTILINE,
    ),
)
_LINE = re.compile(rb"^[ \t]*((" + _WORD + rb")[ \t]*(?:\([^;{}#]{0,2000}?\))?)[ \t\r]*$", re.MULTILINE)
_AS_FUNCTION = re.compile(
    rb"^" + _WORD + rb"(\([ \t]*(?:[A-Za-z_]\w*[ \t]*,[ \t]*(?=\w+[ \t]*[,)]))?)[A-Za-z_]\w*[ \t]*"
    rb"(?:(\))[ \t\n]|(,[^;{}]{0,1000}\)))(?=[ \t\n]*\{)",
    re.MULTILINE,
)
_REMARK = re.compile(rb"//[^\n]*|/\*.*?\*/")
_DECLARES = re.compile(rb"[ \t]*[A-Za-z_~\[]")
_FOLLOWS = re.compile(rb"\s*(?:[A-Za-z_~#]|/[/*]|\[\[|\Z)")
_LONGEST_LINE = 2_000  # bytes before a macro that are looked at


class _Line(NamedTuple):
    """A macro on lines of its own."""

    line: int  # where its first line begins
    start: int
    word: int  # where its word ends
    end: int
    after: int  # where the line after it begins


def without_macros(source: bytes, *, heads: bool = False) -> tuple[bytes, list[tuple[int, int]]]:
    r"""What is parsed in place of the source, as long as it, and spans of macros that belong to what follows them.

    With `heads`, what a macro makes a function of is a function, which the grammar of C++ allows by itself.

    Examples:
        >>> without_macros(b"class BIRDS_API Heron {};")
        (b'class           Heron {};', [])
        >>> without_macros(b"UCLASS()\nclass Heron {};\nDONE()\n")
        (b'        \nclass Heron {};\nDONE; \n', [(0, 8)])
    """
    parsed = bytearray(source)
    lines = list(_own_lines(source))
    first_lines = {each.line for each in lines}
    above: list[tuple[int, int]] = []
    attached = -1  # where the first line of the last macro begins, if that belongs to what follows it
    for each in reversed(lines):
        declared = each.after not in first_lines and _DECLARES.match(source, each.after) is not None
        if declared or each.after == attached:
            _blank(parsed, each.start, each.end)
            above.append((each.start, each.end))
            attached = each.line
        else:
            _blank(parsed, each.word, each.end)
            parsed[each.word : each.word + 1] = b";" if each.word < len(source) else b""  # perhaps where the line ends
    for pattern in _INSIDE:
        for match in pattern.finditer(bytes(parsed)):
            _blank(parsed, *match.span(1))
    for match in _AS_FUNCTION.finditer(bytes(parsed)) if heads else ():
        _blank(parsed, *match.span(1))
        if match.end(2) > 0:  # where no argument follows, the blank after them closes the brackets
            parsed[match.start(2) : match.end(2) + 1] = b"()"
        else:
            _blank(parsed, match.start(3) + 1, match.end(3) - 1)
            parsed[match.start(3)] = ord("(")
    return bytes(parsed), above[::-1]


def _own_lines(source: bytes) -> Iterator[_Line]:
    """Macros on lines of their own, where a declaration or a statement may begin."""
    latest = -1  # where the line after the last of them begins
    for match in _LINE.finditer(source):
        start, end = match.span(1)
        if source.count(b"(", start, end) != source.count(b")", start, end):
            continue
        after = source.find(b"\n", end) + 1 or len(source)
        if (_ended(source, match.start()) or match.start() == latest) and _FOLLOWS.match(source, after):
            latest = after
            yield _Line(match.start(), start, match.end(2), end, after)


def _ended(source: bytes, position: int) -> bool:
    """Whether what stands before a line is whole, as far as its last line shows."""
    before = source[max(0, position - _LONGEST_LINE) : position].rstrip()
    line = before[before.rfind(b"\n") + 1 :]
    if line.lstrip().startswith((b"#", b"*")):
        return not line.endswith(b"\\")
    code = _REMARK.sub(b"", line).rstrip()
    return not code or code.endswith((b";", b"{", b"}", b":", b"*/"))


def _blank(parsed: bytearray, start: int, end: int) -> None:
    parsed[start:end] = re.sub(rb"[^\n]", b" ", bytes(parsed[start:end]))
