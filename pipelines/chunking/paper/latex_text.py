r"""Text of LaTeX: comments out of the way, arguments, what a heading says without its commands."""

from __future__ import annotations

import re
import unicodedata

_LONGEST_ARGUMENT = 4000  # bytes: a title or a list of authors whose brace is never closed ends here
_HIDDEN = re.compile(
    rb"\\(?:\\|%)|(?P<comment>%[^\n]*)|\\verb\*?(?P<sign>[^A-Za-z\s*])[^\n]{0,300}?(?P=sign)"
    rb"|\\begin\s{0,3}\{(?P<name>verbatim\*?|lstlisting|minted|Verbatim|comment|filecontents\*?)\}"
)
_BRACE = re.compile(rb"\\.|[{}]|\n[ \t\r]*\n", re.DOTALL)
_ASIDE = re.compile(
    r"\\(?:thanks|footnote|footnotemark|inst|label|orcidlink|vspace|hspace)\*?(?:\[[^\]]{0,80}\])?\{[^{}]{0,600}\}"
)
_COMMENT = re.compile(r"(?<!\\)%[^\n]*")
_ACCENT = re.compile(r"\\([\"'`^~=.])(?:\{([A-Za-z])\}|([A-Za-z]))")
_COMMAND = re.compile(r"\\[A-Za-z@]{1,40}\*?(?:\[[^\]]{0,80}\])?|\\[,;:!> ]")
_ESCAPED = re.compile(r"\\([&%$#_{}])")


def masked(source: bytes) -> bytes:
    r"""The source with every byte of comments and verbatim text as `%`, line ends kept: offsets stay.

    Examples:
        >>> masked(b"a 5\\% % \\section{no}\nb")
        b'a 5\\% %%%%%%%%%%%%%%\nb'
    """
    parts: list[bytes] = []
    endless: set[bytes] = set()
    done = 0
    for match in _HIDDEN.finditer(source):
        start, end = match.span()
        if start < done:
            continue
        if match["comment"] or match["sign"]:
            parts += [source[done:start], b"%" * (end - start)]
            done = end
        elif match["name"] and match["name"] not in endless:
            close = source.find(b"\\end{" + match["name"] + b"}", end)
            if close < 0:
                endless.add(match["name"])
                continue
            parts += [source[done:end], re.sub(rb"[^\n]", b"%", source[end:close])]
            done = close
    return b"".join([*parts, source[done:]])


def balanced(source: bytes, start: int) -> int:
    r"""The offset after the brace that closes the one at `start`; after its line where none does before a blank line.

    Examples:
        >>> balanced(b"{a {b} \\} c} d", 0)
        12
    """
    depth = 0
    for match in _BRACE.finditer(source, start, min(len(source), start + _LONGEST_ARGUMENT)):
        if match[0][:1] == b"\n":
            break
        depth += {b"{": 1, b"}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    line = source.find(b"\n", start)
    return line if line >= 0 else len(source)


def plain(text: str) -> str:
    r"""What a piece of LaTeX says: without commands, comments and asides.

    Examples:
        >>> plain(r"{On \emph{Long} Reeds\thanks{Paid.} \& M\"{a}rz~5}")
        'On Long Reeds & März 5'
    """
    text = _ASIDE.sub("", _COMMENT.sub("", text))
    text = _ACCENT.sub(_accented, text)
    text = _COMMAND.sub(" ", text.replace("\\\\", " ").replace("~", " "))
    text = re.sub(r"(?<!\\)[{}$]", "", text)
    return " ".join(_ESCAPED.sub(r"\1", text).split())


_COMBINING = {'"': 0x308, "'": 0x301, "`": 0x300, "^": 0x302, "~": 0x303, "=": 0x304, ".": 0x307}


def _accented(match: re.Match[str]) -> str:
    letter = match[2] or match[3]
    return unicodedata.normalize("NFC", letter + chr(_COMBINING[match[1]]))
