"""Rules of ignore files, matched in time linear in a path (ING-3, ING-40).

A rule is read byte by byte, as git reads it: `?` is one byte, and names need not be text.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

IGNORE_FILE = ".gitignore"
IGNORE_FILE_BYTES = 1 << 20
"""Longer files are not obeyed."""

_MOST_WILDCARDS = 2_000  # rules with wildcards of one file: every path is compared with all of them
_RULE_BYTES = 4_096  # of a rule with wildcards: no path of a system is longer
_WILDCARD = re.compile(rb"[*?\[\\]")
_FOLDER = b"\0"  # behind the path of a folder: no name holds it
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_STAR = b"*"  # any bytes of one name
_FOLDERS = b"**/"  # any number of folders
_A_FOLDER = b"**\\/"  # at least one of them: git gives an escaped slash no shortcut
_REST = b"**"  # whatever is left of a path

_INSIDE_NAME = rb"[^/\x00]"  # a zero byte marks the end of a folder's path
_ASCII = range(128)
_LOWER, _UPPER = frozenset(string.ascii_lowercase.encode()), frozenset(string.ascii_uppercase.encode())
_DIGITS = frozenset(string.digits.encode())
_CLASSES = {
    b"alnum": _LOWER | _UPPER | _DIGITS,
    b"alpha": _LOWER | _UPPER,
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset(byte for byte in _ASCII if byte < 32 or byte == 127),
    b"digit": _DIGITS,
    b"graph": frozenset(byte for byte in _ASCII if 32 < byte < 127),
    b"lower": _LOWER,
    b"print": frozenset(byte for byte in _ASCII if 32 <= byte < 127),
    b"punct": frozenset(string.punctuation.encode()),
    b"space": frozenset(b" \t\n\r"),
    b"upper": _UPPER,
    b"xdigit": frozenset(string.hexdigits.encode()),
}


class UnmatchableError(ValueError):
    """A rule that no path can match, such as one whose bracket is never closed."""


class IgnoreRules:
    r"""What one file, whose folder is the base of all paths, says about them: the last rule that matches counts.

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
    """Whether the last of some files that says anything about a path excludes it."""
    for offset, one in reversed(rules):
        verdict = one.verdict(path[offset:], is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def expression(rule: bytes, *, start: int, ignore_case: bool) -> bytes:
    r"""A regular expression, without groups, for a rule with slashes; it matches from a path's first byte.

    What follows a star, up to the next one, has a fixed length. So the first place where it is found is as good as any
    later one, and nothing is tried twice.

    Raises:
        UnmatchableError: No path can match.

    Examples:
        >>> import re
        >>> one = re.compile(expression(b"docs/**/*.md", start=5, ignore_case=False) + rb"\Z")
        >>> [bool(one.match(path)) for path in (b"docs/a.md", b"docs/x/y/a.md", b"docs/a.txt")]
        [True, True, False]
    """
    literal = rule[:start].lower() if ignore_case else rule[:start]
    return _joined([*_literals(literal), *_tokens(rule, start, across=True, ignore_case=ignore_case)])


def name_expression(rule: bytes, *, ignore_case: bool) -> bytes:
    """The same for a rule without slashes, which names are matched with: two stars are one."""
    return _joined(list(_tokens(rule, 0, across=False, ignore_case=ignore_case)))


def _literals(text: bytes) -> Iterator[bytes]:
    return (_one_of({byte}) for byte in text)


def _tokens(rule: bytes, start: int, *, across: bool, ignore_case: bool) -> Iterator[bytes]:
    at = start
    while at < len(rule):
        byte = rule[at]
        if byte == ord("*"):
            end = next((place for place in range(at, len(rule)) if rule[place] != byte), len(rule))
            token = _stars(rule, at, end, start) if across and end - at > 1 else _STAR
            at = end + max(0, len(token) - len(_REST))
            yield token
            continue
        if byte == ord("["):
            members, at = _bracket(rule, at + 1, ignore_case=ignore_case)
            yield _one_of(members - {ord("/")})
        elif byte == ord("?"):
            yield _INSIDE_NAME
        elif byte == ord("\\"):
            at += 1
            if at == len(rule):
                raise UnmatchableError("a backslash ends the rule")
            yield _one_of({rule[at]})
        else:
            yield from _literals(rule[at : at + 1].lower() if ignore_case else rule[at : at + 1])
        at += 1


def _stars(rule: bytes, at: int, end: int, start: int) -> bytes:
    """What two stars or more stand for: folders only where slashes or the ends of the rule enclose them."""
    if at > start and rule[at - 1] != ord("/"):
        return _STAR
    if end == len(rule):
        return _REST
    if rule[end] == ord("/"):
        return _FOLDERS
    return _A_FOLDER if rule[end : end + 2] == b"\\/" else _STAR


def _bracket(rule: bytes, at: int, *, ignore_case: bool) -> tuple[set[int], int]:
    """The bytes that a bracket stands for, and the place of its end."""
    negated = rule[at : at + 1] in {b"!", b"^"}
    at += negated
    members: set[int] = set()
    before = 0
    first = True
    while first or rule[at : at + 1] != b"]":
        first = False
        if _byte(rule, at) == ord("-") and before and rule[at + 1 : at + 2] not in {b"", b"]"}:
            last, at = _escaped(rule, at + 1)
            members |= _between(before, last, ignore_case=ignore_case)
            before = 0
        elif rule[at : at + 2] == b"[:" and (end := _class_end(rule, at)) is not None:
            members |= _members_of(rule[at + 2 : end - 1], ignore_case=ignore_case)
            before, at = 0, end
        else:
            before, at = _escaped(rule, at)
            members.add(before)
        at += 1
    return set(range(256)) - members if negated else members, at


def _byte(rule: bytes, at: int) -> int:
    if at >= len(rule):
        raise UnmatchableError("a bracket is never closed")
    return rule[at]


def _escaped(rule: bytes, at: int) -> tuple[int, int]:
    """A byte of a bracket, and its place, behind a backslash if there is one."""
    at += _byte(rule, at) == ord("\\")
    return _byte(rule, at), at


def _class_end(rule: bytes, at: int) -> int | None:
    """Where the bracket of `[:alpha:]` ends; None where the text is no class."""
    end = rule.find(b"]", at + 2)
    if end < 0:
        raise UnmatchableError("a bracket is never closed")
    return end if end > at + 2 and rule[end - 1] == ord(":") else None


def _members_of(name: bytes, *, ignore_case: bool) -> frozenset[int]:
    if name not in _CLASSES:
        raise UnmatchableError("there is no such class")
    return _LOWER | _UPPER if ignore_case and name == b"upper" else _CLASSES[name]


def _between(first: int, last: int, *, ignore_case: bool) -> set[int]:
    members = set(range(first, last + 1))
    return members | {byte + 32 for byte in members & _UPPER} if ignore_case else members


def _one_of(members: Iterable[int]) -> bytes:
    allowed = sorted(set(members) - {0})
    if allowed == [ord("/")]:
        return b"/"
    return b"[%s]" % b"".join(rb"\x%02x" % byte for byte in allowed) if allowed else rb"(?!)"


def _joined(tokens: list[bytes]) -> bytes:
    """One expression for blocks of tokens with any number of folders between them."""
    blocks: list[list[bytes]] = [[]]
    opening = [b""]
    for token in tokens:
        if token in {_FOLDERS, _A_FOLDER}:
            opening.append(rb"(?:[^/\x00]*/)*?" if token == _FOLDERS else rb"(?:[^/\x00]*/)+?")
            blocks.append([])
        else:
            blocks[-1].append(token)
    pieces = [start + _block(block) for start, block in zip(opening, blocks, strict=True)]
    return b"".join(b"(?>%s)" % piece for piece in pieces[:-1]) + pieces[-1]


def _block(tokens: list[bytes]) -> bytes:
    segments = [b""]
    for token in tokens:
        if token == _STAR:
            segments.append(b"")
        else:
            segments[-1] += rb"[^\x00]*" if token == _REST else token
    if len(segments) == 1:
        return segments[0]
    middle = b"".join(rb"(?>[^/\x00]*?%s)" % segment for segment in segments[1:-1])
    return segments[0] + middle + rb"[^/\x00]*" + segments[-1]
