"""Files that programs write for programs, of which one short piece stands for all (ING-33).

A lock file has a hundred pieces that all look alike, a minified script three hundred that nobody reads; both would
stand between what people wrote. Of generated code the piece names what it defines, so that its names are found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from weft.domain.documents import ContentType

_LOCK = re.compile(r".*[-.]lock(?:b|file)?(?:\.(?:json|ya?ml|toml))?|npm-shrinkwrap\.json|go\.sum", re.IGNORECASE)
_CERTIFICATE = re.compile(r"\s*-----BEGIN (?:CERTIFICATE|PUBLIC KEY|PGP )")
_DRAWN_TEXT = re.compile(r"<(title|desc|text)\b[^<>]{0,300}>(.{0,300}?)</\1>", re.DOTALL | re.IGNORECASE)
_POINTER = re.compile(r"version https://git-lfs\.github\.com/spec/v\d+\n")
_COMMENT = re.compile(r"^[ \t]*(?:#|//|/?\*|--|;|%|<!--|'|\"{3}|'{3})[^\n]*", re.MULTILINE)
_GENERATED = re.compile(
    r"@generated\b|\bgenerated\b.{0,200}\b(?:do not|don['’]t) (?:edit|modify|change)\b"
    r"|\b(?:code|file|module|class|stub)s? (?:is |was |has been |are )?"
    r"(?:auto[- ]?|automatically )?generated (?:by|from)\b"
    r"|\b(?:auto-?|automatically )generated (?:by|from|using|with)\b|\bgenerated (?:from \S+ )?by .{0,60}compiler",
    re.IGNORECASE | re.DOTALL,
)
_DEFINED = re.compile(
    r"^[ \t]{0,8}(?:(?:export|default|public|private|protected|static|final|abstract|async|pub|partial|sealed)\s+)*"
    r"(?:def|class|func|function|fn|type|interface|struct|enum|message|service|trait|object|protocol)\s+"
    r"(?:\([^()\n]{0,80}\)\s*)?([A-Za-z_]\w*)",
    re.MULTILINE,
)
_INSERTED = re.compile(r"^(?:INSERT INTO|\(\d+,|\d+\t)", re.MULTILINE)
_HEAD = 4_096  # characters in which a program says that it wrote a file
_TAG = re.compile(r"<[^>]*>")
_LEAST = 4_096  # characters: what is shorter fills no page
_LONG_LINE = 500  # characters that no line has which somebody wrote by hand
_IN_LONG_LINES = 0.9  # share of a text in such lines, from which on a program laid it out
_FEW_BLANKS = 0.05  # share of blanks, below which a text in long lines says nothing in words: prose has .15
_NO_BLANKS = 0.02  # the same of a text in any lines
_MOST_NAMES = 1_000  # characters of names that generated code defines
_SHOWN = 300  # characters of what is left out: a licence at the head names what it is
_LOOKED_AT = 65_536  # characters of a drawing in which its texts are looked for, whatever it holds


def flood_of(name: str, text: str, content_type: ContentType, language: str | None = None) -> str | None:
    r"""What kind of flood a file is, in words; None for one that people read.

    Examples:
        >>> flood_of("uv.lock", "[[package]]\n" * 400, ContentType.CONFIGURATION)
        'lock file'
        >>> flood_of("app.js", "var a=1;" * 1000, ContentType.CODE)
        'minified'
        >>> flood_of("app.js", "var a = 1;\n" * 1000, ContentType.CODE) is None
        True
    """
    if PurePosixPath(name.lower()).suffix == ".svg":
        return "drawing"
    if _POINTER.match(text):
        return "Git LFS pointer"
    if len(text) < _LEAST:
        return None
    if _LOCK.fullmatch(name):
        return "lock file"
    if _CERTIFICATE.match(text):
        return "certificate"
    return _laid_out_by_a_program(name, text, content_type, language)


def _laid_out_by_a_program(name: str, text: str, content_type: ContentType, language: str | None) -> str | None:
    suffix, blanks = PurePosixPath(name.lower()).suffix, sum(map(text.count, " \t\n")) / len(text)
    if suffix == ".map" and text.startswith("{"):
        return "source map"
    in_long = sum(len(line) for line in text.splitlines() if len(line) >= _LONG_LINE) / len(text)
    if content_type is ContentType.CODE:
        generated = _GENERATED.search("\n".join(_COMMENT.findall(text[:_HEAD])))
        dumped = suffix == ".sql" and 2 * len(_INSERTED.findall(text)) >= text.count("\n")
        return (
            "minified" if in_long >= _IN_LONG_LINES else "generated code" if generated else "data" if dumped else None
        )
    if content_type is ContentType.CONFIGURATION:
        return "data" if in_long >= _IN_LONG_LINES and blanks < _FEW_BLANKS else None
    is_prose = content_type is ContentType.TEXT and language is None
    return "data" if is_prose and text.isascii() and blanks < _NO_BLANKS else None


def in_short(name: str, what: str, text: str) -> str:
    r"""What stands for a flood: its name, what it is, how long, and what can be read of it.

    Examples:
        >>> in_short("logo.svg", "drawing", '<svg><title>A gannet</title><path d="M0 0"/></svg>')
        'logo.svg: drawing, 1 line.\nA gannet'
    """
    if what == "drawing":
        written = (_TAG.sub(" ", match[2]) for match in _DRAWN_TEXT.finditer(text[:_LOOKED_AT]))
        shown = "\n".join(" ".join(each.split()) for each in written)[:_SHOWN].strip()
    elif what == "generated code":
        shown = _named(dict.fromkeys(_DEFINED.findall(text)))
    else:
        shown = "" if what in {"lock file", "certificate", "Git LFS pointer"} else text[:_SHOWN].strip()
    lines = max(1, text.count("\n"))
    counted = "1 line" if lines == 1 else f"{lines:,} lines"
    return f"{name}: {what}, {counted}.\n{shown}".strip()


def _named(names: Iterable[str]) -> str:
    """As many names as are shown, the first ones first."""
    length = 0
    shown = []
    for name in names:
        length += len(name) + 2
        if length > _MOST_NAMES:
            break
        shown.append(name)
    return ", ".join(shown)
