"""Statements of SQL by its lexical rules, which its dialects share; no grammar knows them all (ING-32).

A statement ends at a semicolon that stands in no quotes, no comment, no body between dollar signs, and not between
BEGIN or CASE and END. It ends at the mark that MySQL's DELIMITER sets, and at a line of GO or of a slash: where one
follows, a routine runs up to it. A quote that nothing closes runs to the end of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.chunking.units.splitting import decoded

_ESCAPED = (
    rb"\\(?P=quote)(?=\w)|\\(?!(?P=quote)\w)",
    rb"\\.?",
)  # by whether a file is of MySQL, where \ always escapes
_TOKENS = [
    re.compile(
        rb"""(?P<comment>--[^\n]*|^[ \t]*\#(?=\s)[^\n]*
            |/\*(?!!)(?:[^*/]|\*(?!/)|/(?!\*[\s*])|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))*+(?:\*/|\Z))
        |(?P<text>(?P<quote>['"`])(?:(?!(?P=quote))[^\\]|(?P=quote){2}|%s)*+(?:(?P=quote)|\Z)
            |(?<![\w$])\$(?P<tag>[a-z_]\w*+|)\$(?:.*?\$(?P=tag)\$|.*))
        |^[ \t]*(?P<delimiter>DELIMITER[ \t]+(?P<mark>\S+)[^\n]*)
        |(?P<line>^[ \t]*(?:GO(?:[ \t]+\d+)?|/)[ \t;]*\r?$|^\\[^\n]*
            |FROM\s+STDIN\b[^;\n]*;[^\n]*\n(?:.*?^\\\.[^\n]*|.*))
        |(?P<open>BEGIN(?!\s*(?:[;,)=<>]|(?:TRAN|TRANSACTION|WORK|ISOLATION|READ|DEFERRED|IMMEDIATE|EXCLUSIVE|FROM
            |IS|IN|AS|AND|OR|BETWEEN)\b))|CASE)\b
        |(?P<inner>END[ \t]+(?:IF|LOOP|WHILE|REPEAT|FOR)\b)|(?P<close>END(?:[ \t]+CASE)?\b)
        |(?P<word>[\w.@\#:]+)|(?P<sign>\S)"""
        % escaped,
        re.VERBOSE | re.IGNORECASE | re.DOTALL | re.MULTILINE,
    )
    for escaped in _ESCAPED
]
_SEPARATOR = re.compile(rb"^[ \t]*(?:GO|/)[ \t;]*\r?$", re.MULTILINE | re.IGNORECASE)
# MySQL hides what other servers do not know in comments that it reads: /*!50003 TRIGGER */
_BLANK, _HIDING = rb"(?:\s|/\*!\d*|\*/)++", re.compile(r"/\*!\d*|\*/")
_PART = rb"(?:\"[^\"\n]+\"|`[^`\n]+`|\[[^\]\n]+\]|[\w$\#@\x80-\xff]+)"
_NAME = rb"(?!(?:ON|FOR|AUTHORIZATION)\b)(?P<name>" + _PART + rb"(?:\s*\.\s*" + _PART + rb")*)"
_DEFINES = re.compile(
    rb"(?:CREATE|(?P<altered>ALTER)(?=[^;]{0,2000}?\bAS\b))_(?:(?!(?:AS|ON|FOR)\b)[^\s(;]++_){0,8}?"
    rb"(?P<kind>(?P<routine>FUNCTION|PROC(?:EDURE)?|TRIGGER|PACKAGE(?:_BODY)?|EVENT)|MATERIALIZED_VIEW|VIEW|TABLE|INDEX"
    rb"|TYPE(?:_BODY)?|SCHEMA|SEQUENCE|DATABASE|ROLE|EXTENSION|DOMAIN|AGGREGATE|POLICY|RULE|SYNONYM)_"
    rb"(?:CONCURRENTLY_)?(?:IF_NOT_EXISTS_)?".replace(b"_", _BLANK)
    + _NAME,
    re.IGNORECASE,
)
_ALTERS = re.compile(
    rb"(?:ALTER_(?:FOREIGN_)?TABLE|COMMENT_ON_TABLE)_(?:IF_EXISTS_)?(?:ONLY_)?".replace(b"_", _BLANK) + _NAME,
    re.IGNORECASE,
)
_CALLED = re.compile(  # how tools that make functions of queries name them: sqlc, aiosql, HugSQL, PgTyped
    rb"^[ \t]*(?:--|/\*|\#)[ \t]*(?:name:|[:@]name[ \t])[ \t]*(?P<name>[\w.-]+)"
    rb"[^\w\s]*(?:[ \t]+:[^\n]*)?[ \t]*(?:\*/|\r?$)",
    re.MULTILINE,
)
_BODY = re.compile(rb"\s(?:AS|BEGIN|IS(?!\s+(?:NOT\s+)?NULL))\b|\$\w*\$|;", re.IGNORECASE)
_COLUMNS = re.compile(_BODY.pattern + rb"|\(", re.IGNORECASE)
_REMARK = re.compile(rb"--[^\n]*")
_LONGEST_SIGNATURE = 2000


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """A statement, and what it defines."""

    start: int
    end: int
    kind: str = "code"
    name: str = ""
    place: int = 0  # of the name
    signature: str = ""
    table: str = ""  # what it changes, where it defines nothing
    paired: bool = True  # whether its brackets are


def statements_of(source: bytes) -> Iterator[SqlStatement]:
    r"""The statements of a source in order; comments and DELIMITER lines stand between them.

    Examples:
        >>> [(each.kind, each.name) for each in statements_of(b"BEGIN; -- ;\nCREATE TABLE a.b (c text DEFAULT ';');")]
        [('code', ''), ('table', 'a.b')]
    """
    before = 0
    for start, end, paired in _spans(source):
        yield replace(_statement(source, before, start, end), paired=paired)
        before = end


def _spans(source: bytes) -> list[tuple[int, int, bool]]:
    tokens, separated = _TOKENS[b"`" in source], max((each.start() for each in _SEPARATOR.finditer(source)), default=-1)
    spans: list[tuple[int, int, bool]] = []
    mark, start, at, nesting, nests = b";", -1, 0, _Nesting(), True
    while (match := tokens.search(source, at)) is not None or (nesting.depth and nests):
        if match is None:  # a word was no bracket: none counts from here on
            at, start, nesting, nests = start, -1, _Nesting(), False
            continue
        kind, place, at = match.lastgroup, match.start(), match.end()
        mark = match["mark"] or mark
        if kind == "comment" or (kind == "delimiter" and mark != b";"):
            continue
        if kind not in {"delimiter", "line"}:
            marked = source.startswith(mark, place)
            if marked and mark == b";":
                marked = not (nests and nesting.depth) and not (place < separated and _is_routine(source, start))
            if not marked:
                start = place if start < 0 else start
                nesting.take(kind, match[0])
                continue
            at = place + len(mark)
        if start < 0 and spans:
            spans[-1] = spans[-1][0], at, spans[-1][2]
        else:
            spans.append((place if start < 0 else start, at, nesting.paired))
        start, nesting = -1, _Nesting()
    return spans if start < 0 else [*spans, (start, len(source.rstrip()), nesting.paired)]


@dataclass(slots=True)
class _Nesting:
    """How deep a place of a statement is."""

    depth: int = 0  # in BEGIN or CASE
    brackets: int = 0
    closed: int = 0  # brackets that nothing opened

    @property
    def paired(self) -> bool:
        """Whether all brackets so far are."""
        return not (self.brackets or self.closed)

    def take(self, kind: str | None, token: bytes) -> None:
        """Goes on behind a token; BEGIN in brackets is the name of a column."""
        self.closed += token == b")" and not self.brackets
        self.brackets = max(0, self.brackets + (token == b"(") - (token == b")"))
        if kind == "open" and (not self.brackets or token[:1] in b"Cc"):
            self.depth += 1
        elif kind == "close":
            self.depth = max(0, self.depth - 1)


def _is_routine(source: bytes, start: int) -> bool:
    match = _DEFINES.match(source, max(start, 0))
    return match is not None and match["routine"] is not None


def _statement(source: bytes, before: int, start: int, end: int) -> SqlStatement:
    hidden = re.match(_BLANK, source[start:end])
    at = start + (hidden.end() if hidden is not None else 0)
    if (match := _DEFINES.match(source, at, end)) is not None:
        kind = "_".join(_HIDING.sub(" ", decoded(match["kind"])).lower().split())
        body = (_COLUMNS if kind == "table" else _BODY).search(source, match.end(), end)
        head = decoded(_REMARK.sub(b"", source[start : body.start() if body is not None else end]))
        signature = " ".join(_HIDING.sub(" ", head).split())[:_LONGEST_SIGNATURE]
        kind = "procedure" if kind == "proc" else kind
        return SqlStatement(start, end, kind, _plain(match["name"]), match.start("name"), signature)
    if (match := _CALLED.search(source, before, start)) is not None:
        return SqlStatement(start, end, "query", decoded(match["name"]), match.start("name"))
    altered = _ALTERS.match(source, at, end)
    return SqlStatement(start, end, table=_plain(altered["name"]) if altered is not None else "")


def _plain(name: bytes) -> str:
    """A name without its quotes: no schema is a type."""
    return ".".join(decoded(part).strip('"`[]') for part in re.findall(_PART, name))
