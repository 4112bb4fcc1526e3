"""Rules of one ignore file, whose matching takes time that grows with the length of a path alone (ING-3, ING-40)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipelines.ingestion.git.pattern import UnmatchableError, expression, name_expression

IGNORE_FILE = ".gitignore"
IGNORE_FILE_BYTES = 1 << 20
"""Longer files are not obeyed."""

_MOST_WILDCARDS = 2_000  # rules with wildcards of one file: every path is compared with all of them
_RULE_BYTES = 4_096  # of a rule with wildcards: no path of a system is longer
_WILDCARD = re.compile(rb"[*?\[\\]")
_FOLDER = b"\0"  # behind the path of a folder: no name holds it
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class IgnoreRules:
    r"""What one file, whose folder is the base of all paths, says about them: the last rule that matches counts.

    Args:
        data: The file's bytes. Lines end with LF, whatever else a text editor takes for an end.
        ignore_case: Letters of ASCII match in upper and lower case, as `core.ignoreCase` has it.

    Examples:
        >>> rules = IgnoreRules(b"*\n!*/\n!*.h\n")
        >>> [rules.verdict(path, is_folder=folder) for path, folder in ((b"a.c", False), (b"a.h", False), (b"b", True))]
        [True, False, False]
        >>> IgnoreRules(b"*a*a*a*a*a*a*b").verdict(b"a" * 250 + b"c", is_folder=False) is None
        True
    """

    def __init__(self, data: bytes, *, ignore_case: bool = False) -> None:
        self._ignore_case = ignore_case
        self._rules = list(_rules(data))
        self._names, self._paths = _Matcher(), _Matcher()
        left = _MOST_WILDCARDS
        for number, rule in enumerate(self._rules):
            matcher = self._paths if rule.has_slash else self._names
            wildcard = _WILDCARD.search(rule.text)
            if wildcard is None:
                matcher.literals[self._cased(rule.text) + rule.end] = number
            elif left and len(rule.text) <= _RULE_BYTES:
                left -= 1
                matcher.add(rule, wildcard.start(), number, ignore_case=ignore_case)
        for matcher in (self._names, self._paths):
            matcher.close()

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self._rules)

    def verdict(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Whether a path is ignored (True), taken back in (False), or not spoken of (None)."""
        path = self._cased(path)
        end = _FOLDER if is_folder else b""
        number = max(self._paths.last(path, end), self._names.last(path.rpartition(b"/")[2], end))
        return None if number < 0 else not self._rules[number].negated

    def _cased(self, text: bytes) -> bytes:
        return text.lower() if self._ignore_case else text


@dataclass(frozen=True, slots=True)
class _Rule:
    text: bytes
    negated: bool
    folders_only: bool
    has_slash: bool

    @property
    def end(self) -> bytes:
        """What a path must end with."""
        return _FOLDER if self.folders_only else b""


@dataclass(slots=True)
class _Matcher:
    """Numbers of rules by what they match: texts without wildcards, and one expression of all others."""

    literals: dict[bytes, int] = field(default_factory=dict)
    _numbers: list[int] = field(default_factory=list)
    _expressions: list[bytes] = field(default_factory=list)
    _compiled: re.Pattern[bytes] | None = None

    def add(self, rule: _Rule, start: int, number: int, *, ignore_case: bool) -> None:
        try:
            if rule.has_slash:
                matched = expression(rule.text, start=start, ignore_case=ignore_case)
            else:
                matched = name_expression(rule.text, ignore_case=ignore_case)
        except UnmatchableError:
            return
        self._numbers.append(number)
        self._expressions.append(b"(%s%s)" % (matched, rb"\x00" if rule.folders_only else rb"\x00?"))

    def close(self) -> None:
        """Make one expression of all, the last rule first."""
        self._numbers.reverse()
        if self._expressions:
            self._compiled = re.compile(b"(?:%s)\\Z" % b"|".join(reversed(self._expressions)))

    def last(self, path: bytes, end: bytes) -> int:
        """The number of the last rule that matches, -1 if none does."""
        number = max(self.literals.get(path, -1), self.literals.get(path + end, -1))
        matched = self._compiled.match(path + end) if self._compiled is not None else None
        return max(number, self._numbers[matched.lastindex - 1]) if matched and matched.lastindex else number


def _rules(data: bytes) -> Iterator[_Rule]:
    for line in data.removeprefix(_BYTE_ORDER_MARK).split(b"\n"):
        if line and not line.startswith(b"#"):
            text = _trimmed(line.removesuffix(b"\r").partition(b"\0")[0])
            negated = text.startswith(b"!")
            text = text.removeprefix(b"!")
            folders_only = text.endswith(b"/")
            text = text.removesuffix(b"/")
            if text:
                yield _Rule(text.removeprefix(b"/"), negated, folders_only, b"/" in text)


def _trimmed(line: bytes) -> bytes:
    """A line without the blanks at its end; one behind a backslash stays."""
    text = line.rstrip(b" ")
    escaped = (len(text) - len(text.rstrip(b"\\"))) % 2 == 1 and text != line
    return text + b" " if escaped else text


def excluded(path: bytes, rules: Sequence[tuple[int, IgnoreRules]], *, is_folder: bool) -> bool:
    """Whether the last of some files that says anything about a path excludes it.

    Args:
        rules: With each file, how many bytes of the path lead to its folder.
    """
    for offset, one in reversed(rules):
        verdict = one.verdict(path[offset:], is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False
