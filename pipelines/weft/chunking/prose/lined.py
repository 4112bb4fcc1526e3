"""Markups that are read by their lines, as data: AsciiDoc, Org, manual pages, POD, Texinfo (ING-6, ING-40)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from weft.chunking.prose.heads import heads_of_lines
from weft.chunking.prose.outline import (
    ANCHOR,
    HEADING,
    LIST,
    PARAGRAPH,
    WHOLE,
    Block,
    Heading,
    Outline,
    Span,
    inside,
    merged,
)
from weft.chunking.units.splitting import decoded
from weft.domain.links import Link, LinkKind

_ALWAYS = dict(
    zip(
        b"sp nbsp empty lt gt amp plus vbar asterisk backtick tilde startsb endsb".split(),
        (b" ", b" ", b"", b"<", b">", b"&", b"+", b"|", b"*", b"`", b"~", b"[", b"]"),
        strict=True,
    )
)
"""What AsciiDoc has a name for."""

_CONTINUED = re.compile(rb"[ \t]+\\\r?\n[ \t]*")
_MOST_NAMED = 2_000  # bytes that a name may stand for, whatever others that names


@dataclass(frozen=True, slots=True)
class LineRules:
    """How a markup is read, by patterns of lines without their ends."""

    # its groups are `heading` with `title`, `whole_title` of the document, `code` that opens what stays as it is,
    # `comment` that opens what nobody reads, `hidden` lines, `leading` lines that belong to what follows, `row`
    # of a table, and `item` of a list. A line of none of them is text
    line: re.Pattern[bytes]
    closed: Mapping[bytes, bytes]  # what closes what a line opened, from the line
    # links; what is shown of one are the groups `text` and `plain`, where it leads `target` and `near`
    inline: re.Pattern[bytes]
    anchors: re.Pattern[bytes]  # names of places, in the only group that matched
    top: int  # signs before a heading of the widest sections
    ranks: Mapping[bytes, int] = field(default_factory=dict)  # of headings that are named, and not counted by signs
    # signs for which something else is shown, and what, from the source
    signs: Callable[[bytes], Callable[[bytes], Iterator[tuple[Span, bytes]]]] = lambda _: lambda _: iter(())
    interrupting: bool = False  # whether an item may begin right below a line of a paragraph
    framed: bool = False  # whether the lines that open and close what stays as it is are shown to nobody
    underlines: bytes = b""  # what a title of the first to the last rank may be underlined with


ASCIIDOC = LineRules(
    line=re.compile(
        rb"(?P<heading>={1,6}|\#{1,6})[ \t]+(?P<title>\S.*?)(?:[ \t]+(?P=heading))?$"
        rb"|(?P<code>-{4,}|\.{4,}|\+{4,}|[|,:!]={3,}|`{3}.*)$|(?P<comment>/{4,})$"
        rb"|(?P<hidden>//(?!/).*|:!?[A-Za-z0-9_][\w-]*!?:(?:[ \t].*)?|={4,}|\*{4,}|_{4,}|--"
        rb"|'{3,}|(?:ifn?def|ifeval|endif)::.*|\[(?:\[[^\]]+\]|\#[^\]]+|%[^\]]*|cols[^\]]*|options[^\]]*)\])$"
        rb"|(?P<leading>\[[^\]]*\]|\.[^\s.].*)$"
        rb"|(?P<item>[ \t]*(?:\*{1,5}|\.{1,5}|-|\d{1,9}\.)[ \t]+\S|\S[^\n]{0,200}?::(?:[ \t]|$))"
    ),
    closed={},
    inline=re.compile(
        rb"(?:xref|link|mailto):(?P<target>[^\s\[\]]{1,500})\[(?P<text>[^\]\n]{0,500})\]"
        rb"|<<(?P<near>[^<>,\n]{1,300})(?:,[ \t]*(?P<plain>[^<>\n]{0,300}))?>>"
        rb"|(?P<address>https?://[^\s\[\]]{1,500})\[(?P<named>[^\]\n]{1,500})\]"
        rb"|include::(?P<file>[^\s\[\]]{1,500})\[[^\]\n]{0,200}\]"
        rb"|(?P<picture>image|video|audio)::?[^\s\[\]]{1,500}\[\"?(?P<alt>[^\],\"\n]{0,300})[^\]\n]{0,300}\]"
        rb"|\b(?:kbd|btn|footnote|pass|stem|latexmath|asciimath):[a-z,]{0,20}\[(?P<inner>[^\]\n]{1,500})\]"
    ),
    anchors=re.compile(rb"^\[\[([^\],\n]{1,200})[^\]\n]*\]\]|^\[#([^\],.%\n]{1,200})[^\]\n]*\]", re.MULTILINE),
    top=2,
    signs=lambda source: partial(_names, given=_given(source)),
    underlines=b"=-~^+",
)

_GIVEN = re.compile(rb"^:(?P<name>\w[\w-]*):[ \t]+(?P<text>\S[^\n]*?(?:[ \t]\\\r?\n[^\n]*?)*)[ \t\r]*$", re.MULTILINE)
_NAMED = re.compile(rb"(?<!\\)\{(?P<name>\w[\w-]{0,60})\}")


def _given(source: bytes) -> Mapping[bytes, bytes]:
    """What names of AsciiDoc stand for, which may hold names that were given before."""
    given = dict(_ALWAYS)
    for match in _GIVEN.finditer(source):
        text = filled(_CONTINUED.sub(b" ", match["text"]), partial(_names, given=given))
        given[match["name"].lower()] = text[:_MOST_NAMED]
    return given


def _names(text: bytes, given: Mapping[bytes, bytes]) -> Iterator[tuple[Span, bytes]]:
    for match in _NAMED.finditer(text):
        if (replacement := given.get(match["name"].lower())) is not None:
            yield match.span(), replacement


ORG = LineRules(
    line=re.compile(
        rb"(?P<heading>\*+)[ \t]+(?P<state>(?:(?:TODO|DONE|NEXT|WAITING|CANCELLED)[ \t]+)?(?:\[\#\w\][ \t]+)?)"
        rb"(?P<title>\S.*?)(?P<tags>(?:[ \t]+:[\w@#%:]+:)?)[ \t]*$"
        rb"|(?i:\#\+title):[ \t]*(?P<whole_title>\S.*)$"
        rb"|(?P<code>[ \t]*(?i:\#\+begin_(?!comment|quote|center|verse)\w+).*)$"
        rb"|(?P<comment>[ \t]*(?:(?i:\#\+begin_comment).*|:(?!(?i:end):)[A-Za-z][\w-]*:))$"
        rb"|(?P<leading>[ \t]*(?i:\#\+caption:).*)$"
        rb"|(?P<hidden>[ \t]*(?:(?i:\#\+(?:begin|end)_(?:quote|center|verse))|\#(?:[ \t].*)?|\#\+[\w-]+:.*"
        rb"|(?:SCHEDULED|DEADLINE|CLOSED):.*))$"
        rb"|(?P<row>[ \t]*\|.*)$"
        rb"|(?P<item>[ \t]*(?:[-+]|\d{1,9}[.)])[ \t]+\S|[ \t]+\*[ \t]+\S)"
    ),
    closed={b"#+begin_": b"#+end_", b":": b":end:"},
    inline=re.compile(
        rb"\[\[(?P<target>[^\[\]\n]{1,500})\](?:\[(?P<text>[^\[\]\n]{1,500})\])?\]|(?P<place><<[^<>\n]{1,200}>>)"
    ),
    anchors=re.compile(
        rb"^[ \t]*:(?:CUSTOM_ID|ID):[ \t]*(\S{1,200})|<<([^<>\n]{1,200})>>", re.MULTILINE | re.IGNORECASE
    ),
    top=1,
    interrupting=True,
)

_CALLABLE = frozenset(
    b"Ad Ao Ap Aq Ar B BI BR Bo Bq Brq Cd Cm Dl Do Dq Dv Em Er Ev Fa Fl Fn Ft I IB IR Ic In Li Lk Mt Nd Nm No Ns Oc Oo "
    b"Op Pa Pf Po Pq Qc Ql Qq RB RI SB SM Sq Sx Sy Tn UR Va Vt Xc Xo Xr".split()
)
_ROFF_LINE = re.compile(rb"^[.'][ \t]*(?P<macro>[A-Za-z]{1,3})(?=\s|\Z)(?P<words>[^\n]*)", re.MULTILINE)
_WORD = re.compile(rb"\S+[ \t]*")
_ESCAPE = re.compile(
    rb"\\(?P<name>f(?:\[[^\]\n]{0,20}\]|\(..|.)|s[-+]?\d|\*?(?:\(..|\[[\w-]{1,20}\])|\*.|[-e&|^~ ,/c'`:%0])"
)
_ESCAPED = dict(
    zip(
        rb"- e ~ 0 ' ` aq dq bu em en hy lq rq oq cq rs ti ha ga co R".split(),
        rb"- \ _ _ ' ` ' ' * -- - - ' ' ' ' \ ~ ^ ` (c) (R)".replace(b"_", b"\xa0").split(b" "),
        strict=True,
    )
)


def _roff_signs(text: bytes, name: bytes) -> Iterator[tuple[Span, bytes]]:
    """Macros and escapes of manual pages: an option of mdoc is shown with its dash, what has no name by its name."""
    for line in _ROFF_LINE.finditer(text):
        if line["macro"] in _SILENT:
            continue
        if line["macro"] == b"Nm" and not line["words"].strip():
            yield line.span(), name
            continue
        at = line.start("words") + len(line["words"]) - len(line["words"].lstrip())
        yield (line.start(), at), b"-" if line["macro"] == b"Fl" else b""
        for word in _WORD.finditer(text, at, line.end()):
            replacement = word.group().strip()
            if replacement in _CALLABLE:
                yield word.span(), b"-" if replacement == b"Fl" else b""
            elif replacement[:1] == b'"' or replacement[-1:] == b'"':
                yield from (
                    ((word.start() + each.start(), word.start() + each.end()), b"")
                    for each in _QUOTE.finditer(replacement)
                )
    for sign in _ESCAPE.finditer(text):
        yield sign.span(), _ESCAPED.get(sign["name"].strip(b"*([]"), b"").replace(b"\xa0", b" ")


_QUOTE = re.compile(rb'^"|"$')
_NAME = re.compile(rb"^\.[ \t]*Nm[ \t]+(\S+)", re.MULTILINE)
_SILENT = frozenset(b"TH Dt Dd SH Sh SS Ss".split())
MAN = LineRules(
    line=re.compile(
        rb"\.[ \t]*(?P<heading>S[HhSs])[ \t]+\"?(?P<title>[^\s\"].*?)\"?$"
        rb"|\.[ \t]*(?:TH|Dt)[ \t]+\"?(?P<whole_title>[^\s\"]+)(?P<rest>.*)$"
        rb"|(?P<code>\.[ \t]*(?:nf|EX|Bd\b.*))$|(?P<comment>\.[ \t]*(?:ig|de1?\b.*))$"
        rb"|(?P<hidden>[.'][ \t]*(?:\\\".*|(?:PP|P|LP|Pp|br|sp|RS|RE|PD|ad|hy|nh|na|in|ti|ft|ne|ie|el|ds|nr|so|UE|ME|El"
        rb"|Bl|Os|Dd|Bk|Ek|fi|EE|Ed|ta|tr|ss|ll|pl|SP|TS|TE|ps|bp|rm|if\w*)\b.*|$))$"
        rb"|(?P<item>\.[ \t]*(?:TP|IP|TQ|HP|It)\b.*)"
    ),
    closed={b".nf": b".fi", b".ex": b".ee", b".bd": b".ed", b".ig": b"..", b".de": b".."},
    inline=re.compile(rb"(?P<target>(?!))"),
    anchors=re.compile(rb"((?!))"),
    top=1,
    ranks={b"SH": 1, b"Sh": 1, b"SS": 2, b"Ss": 2},
    signs=lambda source: partial(_roff_signs, name=(_NAME.search(source) or {1: b""})[1]),
    interrupting=True,
    framed=True,
)

_POD_SIGN = re.compile(
    rb"\b[BCFIS]<(?P<inner>[^<>\n]{1,300})>|\b[BCFIS]<{2,4}[ \t]+(?P<wide>[^\n]{1,300}?)[ \t]+>{2,4}"
    rb"|\bL<(?:(?P<text>[^<>|\n]{1,300})\|)?(?P<to>[^<>\n]{1,300})>|\b[XZ]<[^<>\n]{0,300}>"
    rb"|E<(?P<character>\w{1,8})>"
)
_CHARACTERS = {b"lt": b"<", b"gt": b">", b"verbar": b"|", b"sol": b"/"}


def _pod_signs(text: bytes) -> Iterator[tuple[Span, bytes]]:
    """Forms around words, without those around them."""
    for match in _POD_SIGN.finditer(text):
        shown = next((match[name] for name in ("inner", "wide", "text", "to") if match[name]), b"")
        yield match.span(), _CHARACTERS.get(match["character"], b"") if match["character"] else shown


POD = LineRules(
    line=re.compile(
        rb"=(?P<heading>head[1-6])[ \t]+(?P<title>\S.*)$|(?P<comment>=begin\b.*)$"
        rb"|(?P<hidden>=(?:over|back|cut|pod|encoding|for|end)\b.*)$|(?P<item>=item\b.*)"
    ),
    closed={b"=begin": b"=end"},
    inline=re.compile(rb"^(?P<picture>=item\b[ \t]*)", re.MULTILINE),
    anchors=re.compile(rb"((?!))"),
    top=1,
    ranks={b"head%d" % rank: rank for rank in range(1, 7)},
    signs=lambda _source: _pod_signs,
)


_TEXINFO_RANKS = {
    1: b"chapter unnumbered appendix majorheading chapheading",
    2: b"section unnumberedsec appendixsec heading",
    3: b"subsection unnumberedsubsec appendixsubsec subheading",
    4: b"subsubsection unnumberedsubsubsec appendixsubsubsec subsubheading",
}
_TEXINFO_CODE = b"example smallexample lisp smalllisp verbatim display smalldisplay format smallformat".split()
_TEXINFO_ASIDE = (
    b"copying detailmenu direntry docbook html ifdocbook ifhtml iftex ifxml ignore macro menu rmacro tex titlepage xml"
).split()
_TEXINFO_SIGN = re.compile(rb"@(?P<character>[@{}])|@(?P<name>\w+)\{|@[*:.!?/-]|\}")
_TEXINFO_NAMED = {b"dots": b"...", b"enddots": b"...", b"copyright": b"(c)", b"result": b"=>", b"minus": b"-"}


def _texinfo_signs(text: bytes) -> Iterator[tuple[Span, bytes]]:
    """Commands around words, without those around them."""
    for match in _TEXINFO_SIGN.finditer(text):
        yield match.span(), match["character"] or _TEXINFO_NAMED.get(match["name"], b"")


TEXINFO = LineRules(
    line=re.compile(
        rb"@(?P<heading>" + b"|".join(b" ".join(_TEXINFO_RANKS.values()).split()) + rb")[ \t]+(?P<title>\S.*)$"
        rb"|@settitle[ \t]+(?P<whole_title>\S.*)$"
        rb"|(?P<code>@(?:" + b"|".join(_TEXINFO_CODE) + rb"))\b|(?P<comment>@(?:" + b"|".join(_TEXINFO_ASIDE) + rb"))\b"
        rb"|(?P<item>@(?:item|itemx|def\w+)\b.*)|(?P<hidden>(?:@(?!\w+\{|[@{}*:])\w|\\input\b).*)$"
    ),
    closed={b"@" + name: b"@end " + name for name in (*_TEXINFO_CODE, *_TEXINFO_ASIDE)},
    inline=re.compile(rb"^(?P<picture>@(?:item|itemx|def\w+)\b[ \t]*)", re.MULTILINE),
    anchors=re.compile(rb"^@node[ \t]+([^,\n]{1,200})|@anchor\{([^{}\n]{1,200})\}", re.MULTILINE),
    top=1,
    ranks={name: rank for rank, names in _TEXINFO_RANKS.items() for name in names.split()},
    signs=lambda _source: _texinfo_signs,
    interrupting=True,
    framed=True,
)


def filled(text: bytes, signs: Callable[[bytes], Iterator[tuple[Span, bytes]]]) -> bytes:
    """A text with what is shown for its signs."""
    parts, at = [], 0
    for (start, end), replacement in sorted(signs(text)):
        if start >= at:
            parts += [text[at:start], replacement]
            at = end
    return b"".join([*parts, text[at:]])


_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)|//")
_UNDERLINE = re.compile(rb"([-=~^+])\1{2,}$")
_TITLE_SIGNS = 2  # by so many characters an underline may be longer or shorter than its title
_HIDDEN = "hidden"
_LEADING = "leading"
_ROW = "row"
_ITEM = "item"
_SHOWN = ("text", "plain", "named", "alt", "inner", "target", "near", "file")
"""What of a link or a picture is shown: the first of these that it has."""


class _Line(NamedTuple):
    start: int
    end: int
    text: bytes


def lined_outline(source: bytes, rules: LineRules) -> Outline:
    """Blocks of a source, with its links and anchors."""
    reader = _Reader(source, rules)
    blocks = reader.blocks()
    code = reader.code
    matches = [match for match in rules.inline.finditer(source) if not inside(code, match.start())]
    spans = merged(source, [*reader.marks, *(span for match in matches for span in _around(match))])
    signs = {
        span: text
        for span, text in _apart(reader.signs(source))
        if not inside(code, span[0]) and not inside(spans, span[0])
    }
    anchors = [(match.start(), decoded(match[match.lastindex or 0])) for match in rules.anchors.finditer(source)]
    return Outline(
        blocks=blocks,
        anchors=[*anchors, *reader.headings],
        links=[*filter(None, map(_link, matches))],
        notes=reader.notes,
        heads=heads_of_lines(source),
        marks={**dict.fromkeys(spans, b""), **signs},
    )


def _apart(signs: Iterable[tuple[Span, bytes]]) -> Iterator[tuple[Span, bytes]]:
    """Signs in order, without those inside others."""
    done = 0
    for (start, end), replacement in sorted(signs):
        if start >= done:
            yield (start, end), replacement
            done = end


class _Reader:
    """Reads the lines of a source, once."""

    def __init__(self, source: bytes, rules: LineRules) -> None:
        self.code: list[Span] = []
        self.marks: list[Span] = []
        self.headings: list[tuple[int, str]] = []
        self.notes: list[tuple[int, tuple[str, str]]] = []
        self.signs = rules.signs(source)
        self._rules = rules
        self._lines: list[_Line] = []
        start = 0
        for line in source.split(b"\n"):
            end = min(start + len(line) + 1, len(source))
            self._lines.append(_Line(start, end, line.rstrip()))
            start = end

    def blocks(self) -> list[Block]:
        """Blocks of the whole source."""
        blocks: list[Block] = []
        at = 0
        while at < len(self._lines):
            if not self._lines[at].text:
                at += 1
                continue
            block, at = self._block(at)
            blocks.append(block)
        return blocks

    def _kind(self, at: int) -> str | None:
        match = self._rules.line.match(self._lines[at].text) if self._lines[at].text else None
        kinds = ("heading", "whole_title", "code", "comment", "hidden", "leading", "row", "item")
        return None if match is None else next(kind for kind in kinds if match.groupdict().get(kind) is not None)

    def _block(self, at: int) -> tuple[Block, int]:
        kind = self._kind(at)
        line = self._lines[at]
        if self._is_underlined(at):
            return self._underlined(at), at + 2
        if kind in {"heading", "whole_title"}:
            return self._heading(at), at + 1
        if kind in {"code", "comment"}:
            return self._as_it_is(at, is_comment=kind == "comment")
        if kind in {_HIDDEN, _LEADING}:
            if kind == _HIDDEN:
                self.marks.append((line.start, line.end))
            return Block(line.start, line.end, ANCHOR), at + 1
        if kind == _ROW:
            after = self._while(at, lambda other: self._kind(other) == _ROW)
            return Block(*self._span(at, after), WHOLE), after
        return self._list(at) if kind == _ITEM else self._paragraph(at)

    def _as_it_is(self, at: int, *, is_comment: bool) -> tuple[Block, int]:
        """What stays as it is, or what nobody reads."""
        after = self._closing(at, needed=is_comment)
        span = self._span(at, after)
        if self._rules.framed and not is_comment:  # in it signs are signs
            self.marks += [self._span(at, at + 1), self._span(after - 1, after)]
        else:
            self.code.append(span)
            self.marks += [span] if is_comment else []
        return Block(*span, ANCHOR if is_comment else WHOLE), after

    def _is_underlined(self, at: int) -> bool:
        """Whether a line is a title with a line of signs below it, about as long."""
        text, under = (self._lines[place].text if place < len(self._lines) else b"" for place in (at, at + 1))
        return (
            under[:1] in (self._rules.underlines or b"\0")
            and _UNDERLINE.match(under) is not None
            and self._kind(at) is None
            and text[:1] not in {b" ", b"\t"}
            and re.search(rb"\w", text) is not None
            and abs(len(decoded(text)) - len(under)) <= _TITLE_SIGNS
        )

    def _underlined(self, at: int) -> Block:
        line, under = self._lines[at], self._lines[at + 1]
        self.marks.append((under.start, under.end))
        return self._titled(line.start, under.end, self._rules.underlines.index(under.text[:1]), line.text)

    def _titled(self, start: int, end: int, rank: int, text: bytes) -> Block:
        title = decoded(filled(text, self.signs)).strip()
        self.headings.append((start, "-".join(re.findall(r"\w+", title.lower()))))
        return Block(start, end, HEADING, heading=Heading(rank, title))

    def _heading(self, at: int) -> Block:
        line = self._lines[at]
        match = self._rules.line.match(line.text)
        if match is None:  # never: the line was told to be a heading
            return Block(line.start, line.end)
        groups = match.groupdict()
        shown = "title" if groups.get("title") else "whole_title"
        sign, first = groups.get("heading") or b"", match.start(shown)
        beside = [match.span(name) for name in ("state", "tags", "rest") if groups.get(name)]
        if sign in self._rules.ranks or shown == "whole_title":
            beside += [(0, first), (match.end(shown), len(line.text))]
        self.marks += [(line.start + start, line.start + end) for start, end in beside]
        if tags := groups.get("tags"):
            self.notes.append((line.start, ("tags", " ".join(decoded(tags).strip(" \t:").split(":")))))
        rank = self._rules.ranks.get(sign, len(sign) - self._rules.top + 1)
        return self._titled(line.start, line.end, max(rank, 0), groups[shown])

    def _closing(self, at: int, *, needed: bool) -> int:
        """The line after what closes what a line opens; where nothing does, the next if that is needed, or the last."""
        text = self._lines[at].text.strip().lower()
        closing = next((end for start, end in self._rules.closed.items() if text.startswith(start)), None)
        for after in range(at + 1, len(self._lines)):
            other = self._lines[after].text
            if text.startswith(b"```"):
                closes = other == text[:3]
            else:
                closes = other == text if closing is None else other.strip().lower().startswith(closing)
            if closes:
                return after + 1
            if needed and self._kind(after) == "heading":
                break
        return at + 1 if needed else len(self._lines)

    def _list(self, at: int) -> tuple[Block, int]:
        """Items, with what is indented below them, or follows them without a blank line."""
        first, items, start = at, [], at
        at += 1
        while at < len(self._lines):
            text = self._lines[at].text
            kind = self._kind(at)
            if kind == _ITEM:
                items.append(Block(*self._span(start, at), PARAGRAPH))
                start = at
            elif not text:
                following = self._while(at, lambda other: not self._lines[other].text)
                if following == len(self._lines) or not self._goes_on(following):
                    break
            elif kind is not None and text != b"+":
                break
            at += 1
        items.append(Block(*self._span(start, at), PARAGRAPH))
        return Block(*self._span(first, at), LIST, inner=tuple(items)), at

    def _goes_on(self, at: int) -> bool:
        """Whether a list goes on with a line after a blank one."""
        return self._kind(at) == _ITEM or (self._kind(at) is None and self._lines[at].text[:1] in b" \t")

    def _paragraph(self, at: int) -> tuple[Block, int]:
        goes_on = {None} if self._rules.interrupting else {None, _ITEM}
        after = self._while(at + 1, lambda other: bool(self._lines[other].text) and self._kind(other) in goes_on)
        return Block(*self._span(at, after), PARAGRAPH), after

    def _while(self, at: int, holds: Callable[[int], bool]) -> int:
        while at < len(self._lines) and holds(at):
            at += 1
        return at

    def _span(self, first: int, after: int) -> Span:
        return self._lines[first].start, self._lines[after - 1].end


def _link(match: re.Match[bytes]) -> tuple[int, Link] | None:
    groups = match.groupdict()
    name = next((key for key in ("target", "near", "file") if groups.get(key)), None)
    if name is None:
        return None
    target = decoded(groups[name]).removeprefix("file:").partition("::")[0].strip()
    if not target or _ELSEWHERE.match(target):
        return None
    return match.start(), Link(LinkKind.REFERENCES, f"#{target}" if name == "near" and "#" not in target else target)


def _around(match: re.Match[bytes]) -> Iterator[Span]:
    """What of a link is not shown: all but its text, or where it leads if it has none."""
    groups = match.groupdict()
    shown = next((key for key in _SHOWN if groups.get(key)), None)
    if shown is None and (groups.get("picture") or groups.get("place")):
        yield match.span()
    elif shown is not None:
        yield match.start(), match.start(shown)
        yield match.end(shown), match.end()
