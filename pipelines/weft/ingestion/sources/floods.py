"""Files that programs write for programs, of which one short piece stands for all (ING-33).

A lock file has a hundred pieces that all look alike, a minified script three hundred that nobody reads; both would
stand between what people wrote. Of generated code the piece names what it defines, so that its names are found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from weft.domain.documents import ContentType
from weft.ingestion.metadata.assigned import says_generated

_LOCK = re.compile(
    r".*[-.]lock(?:b|file)?(?:\.(?:json|ya?ml|toml|hcl))?|npm-shrinkwrap\.json"
    r"|.*\.(?:sum|resolved|freeze|(?:md5|sha\d+)(?:sums?)?)|(?:md5|sha\d+)sums?(?:\.txt)?",
    re.IGNORECASE,
)
_ARMOUR = re.compile(  # up to a line of words, such as that of its end
    r"^-----BEGIN ([A-Z0-9 ]{1,40})-----[ \t\r]*(?:\n(?:[\w-]+: [^\n]*|\S*[ \t\r]*)$)*", re.MULTILINE
)
_DRAWN_TEXT = re.compile(r"<(title|desc|text)\b[^<>]{0,300}>(.{0,300}?)</\1>", re.DOTALL | re.IGNORECASE)
_POINTER = re.compile(r"version https://git-lfs\.github\.com/spec/v\d+\n")
_BUNDLE = re.compile(r"^/\*{6}/.*// webpackBootstrap$", re.MULTILINE)
_WORD = re.compile(r"(?<![^\W_])[^\W\d_]{2,}(?![^\W_])")
_KEY = re.compile(r'"[^"\n]{0,100}"\s{0,9}:')
_DEFINED = re.compile(
    r"^[ \t]{0,8}(?:(?:export|default|public|private|protected|static|final|abstract|async|pub|partial|sealed)\s+)*"
    r"(?:def|class|func|function|fn|type|interface|struct|enum|message|service|trait|object|protocol)\s+"
    r"(?:\([^()\n]{0,80}\)\s*)?([A-Za-z_]\w*)",
    re.MULTILINE,
)
_INSERTED = re.compile(r"^(?:INSERT INTO|\(\d+,|\d+\t)", re.MULTILINE)
_HEAD = 4_096  # characters in which a program that bundles scripts says so
_TAG = re.compile(r"<[^>]*>")
_LEAST = 4_096  # characters: what is shorter fills no page
_LONG_LINE = 500  # characters that no line has which somebody wrote by hand
_PACKED_LINE = 200  # the same where hardly a blank is left
_FEW_BLANKS_OF_CODE = 0.1
_IN_LONG_LINES = 0.9  # share of a text in such lines, from which on a program laid it out
_FEW_BLANKS = 0.05  # share of blanks, below which a text in long lines says nothing in words: prose has .15
_NO_BLANKS = 0.02  # the same of a text in any lines
_FEW_WORDS = 0.05  # share of what is no blank in words, below which a text is data: code has .6, tests of matrices .1
_REPEATED = 20  # times that the keys of records are named on average, and are no words then
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
    armoured = list(_ARMOUR.finditer(text)) if "-----BEGIN " in text else []
    if 2 * sum(len(each[0].split()) for each in armoured) > len(text.split()):
        return next((kind for kind in ("signature", "key") if kind.upper() in armoured[0][1]), "certificate")
    if len(text) < _LEAST:
        return None
    if _LOCK.fullmatch(name):
        return "lock file"
    return _laid_out_by_a_program(name, text, content_type, language)


def _laid_out_by_a_program(name: str, text: str, content_type: ContentType, language: str | None) -> str | None:
    lower, blanks = name.lower(), sum(map(text.count, " \t\n")) / len(text)
    if lower.endswith(".snap") or (lower.endswith(".map") and text.startswith("{")):
        return "snapshot" if lower.endswith(".snap") else "source map"
    if content_type is ContentType.CODE:
        packed = _PACKED_LINE if blanks < _FEW_BLANKS_OF_CODE else _LONG_LINE
        generated = says_generated(text, content_type) or lower.endswith((".designer.cs", ".designer.vb"))
        minified = _in_lines_of(packed, text) >= _IN_LONG_LINES or _BUNDLE.search(text[:_HEAD])
        dumped = lower.endswith(".sql") and 2 * len(_INSERTED.findall(text)) >= text.count("\n")
        is_data = dumped or _has_few_words(text)
        return "minified" if minified else "generated code" if generated else "data" if is_data else None
    if content_type is ContentType.CONFIGURATION:
        in_long = blanks < _FEW_BLANKS and _in_lines_of(_LONG_LINE, text) >= _IN_LONG_LINES
        return "data" if in_long or says_generated(text, content_type) or _has_few_words(text) else None
    is_prose = content_type is ContentType.TEXT and language is None and text.isascii()
    is_records = is_prose and text.lstrip()[:1] in {"{", "["} and _has_few_words(text)
    return "data" if is_records or (is_prose and blanks < _NO_BLANKS) else None


def _in_lines_of(least: int, text: str) -> float:
    """Share of a text in lines of at least so many characters."""
    return sum(len(line) for line in text.splitlines() if len(line) >= least) / len(text)


def _has_few_words(text: str) -> bool:
    """Whether a text is numbers, hashes and punctuation, but for the keys of its records."""
    keys = _KEY.findall(text)
    if len(keys) >= _REPEATED * len(set(keys)):
        text = _KEY.sub("", text)
    return sum(map(len, _WORD.findall(text))) < _FEW_WORDS * len("".join(text.split()))


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
        shown = (
            "" if what in {"lock file", "certificate", "signature", "key", "Git LFS pointer"} else text[:_SHOWN].strip()
        )
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
