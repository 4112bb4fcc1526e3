"""What in a reStructuredText source is markup and no words (ING-40), and where it points to (ING-14)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from weft.chunking.prose.outline import Span, merged
from weft.chunking.units.splitting import decoded

_DIRECTIVE = re.compile(
    rb"^[ \t]*(?:(?:[-*+]|#\.|[0-9]{1,4}\.)[ \t]+)?"
    rb"(?P<mark>\.\.[ \t]+(?:\|[^|\n]{1,200}\|[ \t]+)?(?P<name>[A-Za-z][\w:+.-]{0,60}?)[ \t]?::[ \t]*)"
    rb"(?P<argument>[^\n]*)",
    re.MULTILINE,
)
_EXPLICIT = re.compile(rb"[ \t]*\.\.(?:\s|\Z)")
_LABEL = re.compile(rb"^[ \t]*(?:\.\.[ \t]+_[^\n]{1,300}:|__[ \t]+\S[^\n]{0,300})[ \t\r]*$", re.MULTILINE)
_NAMED = re.compile(rb"^[ \t]*\.\.[ \t]+_([^:`\n]{1,200}):", re.MULTILINE)
# A line of the text may begin with a role, :ref:`so`.
_OPTION = re.compile(rb"[ \t]+(?P<mark>:(?P<name>[\w-]{1,40}):(?=\s|\Z)[ \t]*)(?P<value>[^\n]*)\n?")
_TO = re.compile(rb"\s*<[^<>]{1,300}>\Z")
_FIELD = re.compile(rb"\A\s*(?P<mark>(?::(?:orphan|nocomments|nosearch|tocdepth|no-[a-z-]+):[^\n]*\n?)+)")
_DEFINITION = re.compile(
    rb"^[ \t]*\.\.[ \t]+\|(?P<name>[^|\n]{1,200})\|[ \t]+(?P<kind>[\w-]{1,40})::[ \t]*(?P<text>[^\n]*)\n?"
    rb"(?P<more>(?:[ \t]+\S[^\n]*(?:\n|\Z))*)",
    re.MULTILINE,
)
_ALT = re.compile(rb":alt:[ \t]*([^\n]*)")
_NOTE = re.compile(rb"^[ \t]*(?P<mark>\.\.[ \t]+)(?=\[[#*\w.+:-]{1,80}\][ \t\n])", re.MULTILINE)
_BUILT_IN = frozenset({b"version", b"release", b"today"})
# Text that a name stands for, a colon that announces a literal block, escapes; not in literal text or roles.
_SIGN = re.compile(
    rb"(?P<literal>``(?:[^`\n]|\n(?!\s*\n)|`(?!`)){1,500}``|:[\w:+.-]{1,60}:`[^`]{1,400}`)"
    rb"|(?<![\w|`])\|(?P<name>[^\s|](?:[^|\n]{0,80}[^\s|])?)\|(?![\w|])"
    rb"|(?<![\w-])(?P<directive>\.\.[ ]+[\w:+.-]{1,60}::)|(?P<ends>::)(?=[ \t\r]*\n[ \t\r]*\n)"
    rb"|\\(?P<escaped>[\s!-/:-@\[-`{-~])"
)
_CODE = frozenset(
    b"code code-block code-cell code-tab doctest ipython parsed-literal prompt sourcecode testcode testoutput".split()
)
# Nothing of these is for readers. Of the others the argument is, and the name of those that warn or date.
_HIDDEN = re.compile(
    rb"raw|index|highlight|(?:py:)?currentmodule|role|default-role|default-domain|meta|contents|sectnum|toctree|only"
    rb"|grid|container|class|rst-class|cssclass|ifconfig|testsetup|testcleanup|comment"
)
_SIGNED = re.compile(rb"[A-Z(.]")
_BODY = re.compile(rb"(?:[ \t\r]*\n)+(?P<indent>[ \t]*)\S")
_TELLING = re.compile(
    rb"note|tip|hint|important|warning|caution|danger|attention|error|seealso|deprecated|version(?:added|changed|removed)"
)
_DATED = re.compile(rb"deprecated|deprecated-removed|version(?:added|changed|removed)")
_PICTURE = frozenset({b"image", b"figure"})
_SHOWN_OPTIONS = frozenset({b"alt", b"caption", b"header"})

# Lengths are bounded: each sign of a hostile page would read on to its end.
_LINK = re.compile(
    rb":(?P<role>[A-Za-z][\w.+:-]{0,60}):`(?P<named>[^`]{1,400})`"
    rb"|(?<![`\w:])`(?P<phrase>[^`]{1,400})`(?P<refers>__?)?(?!\w)"
    rb"|\[(?P<note>[#*\w.+:-]{1,80})\]_(?!\w)"
    rb"|(?<![\w`:.|-])(?P<word>\w[\w.+-]{0,80})_(?![\w`_])"
)
_TITLED = re.compile(r"^(.*?)\s*<([^<>]+)>$", re.DOTALL)
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
INCLUDED = re.compile(rb"^[ \t]*\.\.[ \t]+(?:include|literalinclude)::[ \t]+(\S{1,500})", re.MULTILINE)
_PLACES = frozenset({"ref", "numref", "term", "keyword", "option", "envvar", "token"})
_FILES = frozenset({"doc", "download"})
_SYMBOL = re.compile(
    "func|meth|class|mod|attr|exc|data|obj|const|macro|type|struct|enum|member|any|var|cmember|decorator"
)


def rst_marks(
    source: bytes, literals: Sequence[Span], references: Iterable[re.Match[bytes]], rules: Iterable[Span] = ()
) -> tuple[list[Span], Mapping[int, bytes]]:
    """Spans of marks, disjoint and in order; and what is shown in place of those that stand for a text."""
    code = sorted(literals)
    marks = [*rules, *(span for span in code if _is_comment(source, *span))]
    marks += [match.span("mark") for pattern in (_FIELD, _NOTE) for match in pattern.finditer(source)]
    marks += [match.span() for match in _LABEL.finditer(source) if not _inside(code, match.start())]
    for match in _DIRECTIVE.finditer(source):
        if not _inside(code, match.start("mark")) and not _inside(code, match.start()):
            marks += _of_directive(source, match, code)
    named = {match[1].lower() for match in _NAMED.finditer(source)}
    for match in references:
        if not match["word"] or match["word"].lower() in named:  # a word may end so without pointing anywhere
            marks += _of_reference(match)
    definitions = [match for match in _DEFINITION.finditer(source) if not _inside(code, match.start())]
    texts = {match["name"]: _defined(match) for match in definitions}
    outside = merged(source, [*marks, *(match.span() for match in definitions)])
    instead: dict[int, bytes] = {}
    for match in _SIGN.finditer(source):
        sign = match.lastgroup
        if sign in {"literal", "directive", None} or _inside(code, match.start()) or _inside(outside, match.start()):
            continue
        if sign == "ends":
            first = source.rfind(b"\n", 0, match.start()) + 1
            alone = not source[first : match.start()].strip()
            last = source.find(b"\n", match.end()) + 1
            outside.append((first, last) if alone else (match.end() - 1, match.end()))
        elif sign == "escaped":
            outside.append((match.start(), match.end() if match["escaped"].isspace() else match.start() + 1))
        elif (name := match["name"]) in texts or name in _BUILT_IN:
            instead[match.start()] = texts.get(name, name)
            outside.append(match.span())
    return _apart(outside, instead), instead


def _defined(match: re.Match[bytes]) -> bytes:
    """The text that a name stands for: for a picture the words that stand for it, in other cases the name itself."""
    if match["kind"] == b"replace":
        return b" ".join((match["text"] + b" " + match["more"]).split())
    if match["kind"] in _PICTURE:
        alt = _ALT.search(match["more"])
        return alt[1].strip() if alt else b""
    name: bytes = match["name"]
    return name


def _apart(marks: Sequence[Span], texts: Collection[int]) -> list[Span]:
    """Marks in order, those that meet as one, but for those that stand for a text."""
    joined: list[Span] = []
    for start, end in sorted(marks):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif joined and start == joined[-1][1] and start not in texts and joined[-1][0] not in texts:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _is_comment(source: bytes, start: int, end: int) -> bool:
    return _EXPLICIT.match(source, start, end) is not None and _DIRECTIVE.match(source, start, end) is None


def _inside(code: Sequence[Span], position: int) -> bool:
    """Whether a position is inside one of the spans and not at its beginning."""
    before = bisect_right(code, position, key=lambda span: span[0]) - 1
    return before >= 0 and code[before][0] < position < code[before][1]


def is_style(argument: bytes, *, described: bool) -> bool:
    """Whether `.. class::` names styles of what follows, as docutils means it, and no class, as Sphinx does.

    Examples:
        >>> is_style(b"special", described=False), is_style(b"Heap(order)", described=False)
        (True, False)
    """
    return not _SIGNED.search(argument) and (not described or len(argument.split()) != 1)


def _is_described(source: bytes, match: re.Match[bytes]) -> bool:
    """Whether something stands below a directive that belongs to it."""
    below = _BODY.match(source, match.end())
    column = match.start("mark") - source.rfind(b"\n", 0, match.start("mark")) - 1
    return below is not None and len(below["indent"]) > column


def _of_directive(source: bytes, match: re.Match[bytes], code: Sequence[Span]) -> Iterator[Span]:
    name = match["name"]
    is_class = name == b"class" and not is_style(match["argument"], described=_is_described(source, match))
    if not is_class and _HIDDEN.fullmatch(name):
        before = bisect_right(code, match.start(), key=lambda span: span[0]) - 1
        whole = before >= 0 and code[before][0] == match.start() and name not in {b"toctree"}
        yield match.start("mark"), code[before][1] if whole else match.end()
    elif name not in _CODE:
        argument = match["argument"].strip()
        is_named = _TELLING.fullmatch(name) and (not argument or _DATED.fullmatch(name))
        yield match.start("mark"), match.start("name") if is_named else match.end("mark")
        if is_named:
            yield match.end("name"), match.end("mark") - (1 if argument else 0)
        if name in _PICTURE:
            yield match.span("argument")
    after = match.end() + 1
    while option := _OPTION.match(source, after):
        yield option.span("mark") if option["name"] in _SHOWN_OPTIONS else option.span()
        after = option.end()


def _of_reference(match: re.Match[bytes]) -> Iterator[Span]:
    """A role or a link without its signs and its target; `~` and `!` say how a name is shown."""
    if match.string[match.start() - 1 : match.start()] == b"`":  # an example of one, in ``literal`` text
        return
    if match["role"] or match["refers"]:
        name = "named" if match["role"] else "phrase"
        text = match[name]
        to = _TO.search(text)
        ends = to.start() if to and text[: to.start()].strip() else len(text)
        first = match.start(name) + (text[:1] in {b"~", b"!"})
        yield match.start(), first
        yield match.start(name) + ends, match.end()
        if ends == len(text) and to:  # `<address>`_
            yield first, match.start(name) + text.index(b"<") + 1
            yield match.end(name) - 1, match.end()
    elif match["word"] or match["note"]:
        yield match.end() - 1, match.end()


def references_in(source: bytes, literals: Sequence[tuple[int, int]]) -> Iterator[re.Match[bytes]]:
    """Every role, reference, note and word that may refer to another place, but for those in literals, in order."""
    spans = sorted(literals)
    for match in _LINK.finditer(source):
        before = bisect_right(spans, match.start(), key=lambda span: span[0])
        if before == 0 or spans[before - 1][1] <= match.start():
            yield match


def target_of(match: re.Match[bytes], anchors: set[str]) -> str | None:
    """What one of them points to; None where it is to nothing."""
    if match["role"]:
        return _role_target(decoded(match["role"]).rpartition(":")[2], decoded(match["named"]))
    if match["note"]:
        return decoded(match["note"])
    if match["word"]:
        label = label_of(decoded(match["word"]))
        return f"#{label}" if label in anchors else None
    if not match["refers"]:
        return None
    phrase = decoded(match["phrase"])
    titled = _TITLED.match(phrase)
    if titled:
        return None if _ELSEWHERE.match(titled.group(2)) or titled.group(2).endswith("_") else titled.group(2)
    return f"#{label_of(phrase)}" if label_of(phrase) in anchors else None


def _role_target(role: str, text: str) -> str | None:
    """What a role points to: a label in any document, a path, or a symbol."""
    titled = _TITLED.match(text)
    target = (titled.group(2) if titled else text).strip()
    if role in _PLACES:
        return label_of(target) or None
    if role in _FILES:
        return target
    if _SYMBOL.fullmatch(role):
        return target.lstrip("~!.").removesuffix("()") or None
    return None


def label_of(text: str) -> str:
    r"""The form in which a label or a title names its place: references differ in case, blanks and signs.

    Examples:
        >>> label_of("The  `Main` Loop")
        'the-main-loop'
    """
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-")
