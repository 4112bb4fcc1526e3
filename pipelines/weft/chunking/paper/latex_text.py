"""What a piece of LaTeX says, and where an argument ends."""

from __future__ import annotations

import re
from unicodedata import normalize

from weft.chunking.units.splitting import decoded

_LONGEST_ARGUMENT = 4000  # bytes: a title or a list of authors whose brace is never closed ends here
_BRACE = re.compile(rb"\\.|[{}]|\n[ \t\r]*\n", re.DOTALL)
_ASIDE = re.compile(
    r"\\(?:thanks|footnote|footnotemark|inst|label|orcidlink|vspace|hspace)\*?(?:\[[^\]]{0,80}\])?\{[^{}]{0,600}\}"
)
_COMMENTED = re.compile(r"(?<!\\)%[^\n]*")
_ACCENT = re.compile(r"\\([\"'`^~=.])(?:\{([A-Za-z])\}|([A-Za-z]))")
_ANY_COMMAND = re.compile(r"\\[A-Za-z@]{1,40}\*?(?:\[[^\]]{0,80}\])?|\\[,;:!> ]")
_ESCAPED = re.compile(r"\\([&%$#_{}])")
_COMBINING = {
    '"': 0x308,
    "'": 0x301,
    "`": 0x300,
    "^": 0x302,
    "~": 0x303,
    "=": 0x304,
    ".": 0x307,
}  # code points of accents


def argument_end(source: bytes, start: int) -> int:
    r"""The offset after the brace that closes the one at `start`; after its line where none does before a blank line.

    Examples:
        >>> argument_end(b"{a {b} \\} c} d", 0)
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


def argument_text(source: bytes, start: int) -> str:
    """What the argument says whose brace opens at `start`."""
    return plain_text(decoded(source[start : argument_end(source, start)]))


def plain_text(text: str) -> str:
    r"""What a piece of LaTeX says: without commands, comments and asides.

    Examples:
        >>> plain_text(r"{On \emph{Long} Reeds\thanks{Paid.} \& M\"{a}rz~5}")
        'On Long Reeds & März 5'
    """
    text = _ASIDE.sub("", _COMMENTED.sub("", text))
    text = _ACCENT.sub(lambda match: normalize("NFC", (match[2] or match[3]) + chr(_COMBINING[match[1]])), text)
    text = _ANY_COMMAND.sub(" ", text.replace("\\\\", " ").replace("~", " "))
    text = re.sub(r"(?<!\\)[{}$]", "", text)
    return " ".join(_ESCAPED.sub(r"\1", text).split())
