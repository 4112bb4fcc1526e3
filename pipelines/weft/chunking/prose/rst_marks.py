"""What in a reStructuredText source is markup and no words (ING-40), and where it points to (ING-14)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from weft.chunking.prose.outline import Span, inside, joined, merged
from weft.chunking.units.splitting import decoded

_TO = re.compile(rb"\s*<[^<>]{1,300}>\Z")
_FIELD = re.compile(rb"\A\s*(?P<mark>(?::(?:orphan|nocomments|nosearch|tocdepth|no-[a-z-]+):[^\n]*\n?)+)")
_BUILT_IN = frozenset({b"version", b"release", b"today"})
# Text that a name stands for, a colon that announces a literal block, escapes; not in literal text or roles.
_SIGN = re.compile(
    rb"(?P<literal>``(?:[^`\n]|\n(?!\s*\n)|`(?!`)){1,500}``|:[\w:+.-]{1,60}:`[^`]{1,400}`)"
    rb"|(?<![\w|`])\|(?P<name>[^\s|](?:[^|\n]{0,80}[^\s|])?)\|(?![\w|])"
    rb"|(?<![\w-])(?P<directive>\.\.[ ]+[\w:+.-]{1,60}::)|(?P<ends>::)(?=[ \t\r]*\n[ \t\r]*\n)"
    rb"|\\(?P<escaped>[\s!-/:-@\[-`{-~])"
)
# Lengths are bounded: each sign of a hostile page would read on to its end.
_LINK = re.compile(
    rb":(?P<role>[A-Za-z][\w.+:-]{0,60}):`(?P<named>[^`]{1,400})`"
    rb"|(?<![`\w:])`(?P<phrase>[^`]{1,400})`(?P<refers>__?)?(?!\w)"
    rb"|\[(?P<note>[#*\w.+:-]{1,80})\]_(?!\w)"
    rb"|(?<![\w`:.|-])(?P<word>\w[\w.+-]{0,80})_(?![\w`_])"
)
_TITLED = re.compile(r"^(.*?)\s*<([^<>]+)>$", re.DOTALL)
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_PLACES = frozenset({"ref", "numref", "term", "keyword", "option", "envvar", "token"})
_FILES = frozenset({"doc", "download"})
_SYMBOL = re.compile(
    "func|meth|class|mod|attr|exc|data|obj|const|macro|type|struct|enum|member|any|var|cmember|decorator"
)


@dataclass(slots=True)
class Explicit:
    """What blocks with two dots and whole lines say of the text between them."""

    literals: list[Span] = field(default_factory=list)  # spans in which there are no marks
    marks: list[Span] = field(default_factory=list)
    named: set[bytes] = field(default_factory=set)  # what words may refer to, in lower case
    stands: dict[bytes, bytes] = field(default_factory=dict)  # texts by the name that stands for them


def rst_marks(
    source: bytes, read: Explicit, references: Iterable[re.Match[bytes]]
) -> tuple[list[Span], Mapping[int, bytes]]:
    """Spans of marks, disjoint and in order; and what is shown in place of those that stand for a text."""
    code = sorted(read.literals)
    marks = [*read.marks, *(match.span("mark") for match in _FIELD.finditer(source))]
    for match in references:
        if not match["word"] or match["word"].lower() in read.named:  # a word may end so without pointing anywhere
            marks += _of_reference(match)
    outside = merged(source, marks)
    signs: list[Span] = []
    instead: dict[Span, bytes] = {}
    for match in _SIGN.finditer(source):
        sign = match.lastgroup
        if sign in {"literal", "directive", None} or inside(code, match.start()) or inside(outside, match.start()):
            continue
        if sign == "ends":
            first = source.rfind(b"\n", 0, match.start()) + 1
            alone = not source[first : match.start()].strip()
            last = source.find(b"\n", match.end()) + 1
            signs.append((first, last) if alone else (match.end() - 1, match.end()))
        elif sign == "escaped":
            signs.append((match.start(), match.end() if match["escaped"].isspace() else match.start() + 1))
        elif (name := match["name"]) in read.stands or name in _BUILT_IN:
            instead[match.span()] = read.stands.get(name, name)
    return sorted([*joined([*outside, *signs]), *instead]), {start: text for (start, _), text in instead.items()}


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
    return (match for match in _LINK.finditer(source) if not inside(spans, match.start()))


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
