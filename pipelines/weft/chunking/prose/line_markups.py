"""Markups that are read by their lines, as data: AsciiDoc, Org, manual pages, Perl's POD (ING-6, ING-40)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from weft.chunking.prose.outline import Span

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


def _roff_signs(text: bytes) -> Iterator[tuple[Span, bytes]]:
    """Macros and escapes of manual pages: an option of mdoc is shown with its dash."""
    for line in _ROFF_LINE.finditer(text):
        if line["macro"] in _SILENT:
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
    signs=lambda _source: _roff_signs,
    interrupting=True,
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


def filled(text: bytes, signs: Callable[[bytes], Iterator[tuple[Span, bytes]]]) -> bytes:
    """A text with what is shown for its signs."""
    parts, at = [], 0
    for (start, end), replacement in sorted(signs(text)):
        if start >= at:
            parts += [text[at:start], replacement]
            at = end
    return b"".join([*parts, text[at:]])
