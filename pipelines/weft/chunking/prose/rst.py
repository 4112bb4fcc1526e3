"""reStructuredText by headings, with directives, literal blocks and tables whole (ING-6).

Blocks are read line by line, each line once per depth: the reference parser gives no byte spans.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from weft.chunking.prose.heads import GRID, HEADER_END, Line, listed_head
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
    joined,
    merged,
)
from weft.chunking.units.parsed import Head
from weft.chunking.units.splitting import decoded
from weft.domain.links import Link, LinkKind

_TO = re.compile(rb"\s*<[^<>]{1,300}>\Z")
_UNSEEN = re.compile(rb"\A\s*(?P<mark>(?::(?:orphan|nocomments|nosearch|tocdepth|no-[a-z-]+):[^\n]*\n?)+)")
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


def _marks(source: bytes, read: _Reader, references: Iterable[re.Match[bytes]]) -> Mapping[Span, bytes]:
    """Spans of marks, disjoint; and what is shown in place of those that stand for a text."""
    code = sorted(read.literals)
    marks = [*read.marks, *(match.span("mark") for match in _UNSEEN.finditer(source))]
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
    return {**dict.fromkeys(joined([*outside, *signs]), b""), **instead}


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


def _target_of(match: re.Match[bytes], anchors: set[str]) -> str | None:
    """What one of them points to; None where it is to nothing."""
    if match["role"]:
        return _role_target(decoded(match["role"]).rpartition(":")[2], decoded(match["named"]))
    if match["note"]:
        return decoded(match["note"])
    if match["word"]:
        label = _label_of(decoded(match["word"]))
        return f"#{label}" if label in anchors else None
    if not match["refers"]:
        return None
    phrase = decoded(match["phrase"])
    titled = _TITLED.match(phrase)
    if titled:
        return None if _ELSEWHERE.match(titled.group(2)) or titled.group(2).endswith("_") else titled.group(2)
    return f"#{_label_of(phrase)}" if _label_of(phrase) in anchors else None


def _role_target(role: str, text: str) -> str | None:
    """What a role points to: a label in any document, a path, or a symbol."""
    titled = _TITLED.match(text)
    target = (titled.group(2) if titled else text).strip()
    if role in _PLACES:
        return _label_of(target) or None
    if role in _FILES:
        return target
    if _SYMBOL.fullmatch(role):
        return target.lstrip("~!.").removesuffix("()") or None
    return None


def _label_of(text: str) -> str:
    r"""The form in which a label or a title names its place: references differ in case, blanks and signs.

    Examples:
        >>> _label_of("The  `Main` Loop")
        'the-main-loop'
    """
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-")


_TAB = 8  # columns, as the language defines
_SHORTEST_RULE = 4  # signs: a shorter line under a longer title is text
_NOTE_CHARACTERS = 300  # of a reference are kept beside what cites it
_DEEPEST = 8  # what is nested deeper is not looked into
_ADORNMENT = re.compile(rb"([!-/:-@\[-`{-~])\1*$")
_EXPLICIT = re.compile(rb"\.\.(?:\s|$)")
_DIRECTIVE = re.compile(
    rb"\.\.\s+(?:\|(?P<stands>[^|]{1,200})\|\s+)?(?P<name>[A-Za-z][\w:+.-]{0,60}?)\s?::(?:\s+(?P<argument>.*))?$"
)
_LABEL = re.compile(rb"\.\.\s+_(`[^`]{1,200}`|(?:\\.|[^:\\]){1,200}):(?:\s+(.*))?$")
_NOTE = re.compile(rb"\.\.\s+\[([#*\w.+:-]{1,80})\](?:\s+(.*))?$")
_BULLET = re.compile(rb"(?:[-*+]|\xe2\x80\xa2|\xe2\x80\xa3|\xe2\x81\x83)(?:\s+|$)")
_NUMBER = re.compile(rb"\(?(?:[0-9]{1,9}|[A-Za-z]|[ivxlcdm]{1,8}|[IVXLCDM]{1,8}|#)[.)](?:\s+|$)")
_FIELD = re.compile(rb":(?![\s:])[^:`]{1,200}:(?:\s+|$)")
_HEADER_OPTION = re.compile(r"\A\s*:header:\s*")
_CODE = re.compile(
    "code(?:-block|-tab|-cell)?|sourcecode|parsed-literal|highlight|doctest|test(?:code|output|setup|cleanup)|prompt"
    "|ipython"
)
_RULES = re.compile(rb"=+(?:[ \t]+=+)+$")
_INLINE = re.compile(r":[\w.+:-]{1,60}:(?=`)|[`*|]{1,2}|\s?<[^<>]{1,300}>(?=`)")
# What these hold is cut at lines alone, and has no links; what the shown ones say is text nevertheless.
_LITERAL = re.compile(
    "code(?:-block|-tab|-cell)?|sourcecode|literalinclude|parsed-literal|math|table|(?:list|flat|csv)-table|figure"
    "|image|raw|doctest|testcode|testoutput|testsetup|testcleanup|productionlist|graphviz|digraph|graph|plot|ipython"
    "|prompt|toctree|include|highlight|role|index|autosummary"
)
_SHOWN = frozenset({"parsed-literal", "table", "list-table", "flat-table", "figure"})
# A line of the text may begin with a role, :ref:`so`.
_OPTION = re.compile(rb":(?P<name>[\w-]{1,40}):(?=\s|\Z)[ \t]*")
_SHOWN_OPTIONS = frozenset({b"alt", b"caption", b"header"})
# Nothing of these is for readers. Of the others the argument is, and the name of those that warn or date.
_HIDDEN = re.compile(
    rb"raw|index|highlight|(?:py:)?currentmodule|role|default-role|default-domain|meta|contents|sectnum|toctree|only"
    rb"|grid|container|class|rst-class|cssclass|ifconfig|testsetup|testcleanup|comment"
)
_SIGNED = re.compile(rb"[A-Z(.]")
_TELLING = re.compile(
    rb"note|tip|hint|important|warning|caution|danger|attention|error|seealso|deprecated|version(?:added|changed|removed)"
)
_DATED = re.compile(rb"deprecated|version(?:added|changed|removed)")
_PICTURES = frozenset({b"image", b"figure"})
_DESCRIPTION = re.compile(
    "(?:auto)?(?:function|class|method|staticmethod|classmethod|attribute|property|data|exception|decorator|module|describe"
    "|macro|type|struct|enum|member|var|option|confval|envvar|object|setting"
    "|directive)"
)


def rst_outline(source: bytes) -> Outline:
    """Blocks of a source; labels and titles are its anchors, roles and references its links."""
    reader = _Reader(source)
    blocks = reader.with_names_ahead(reader.blocks(0, len(reader.texts), 0))
    literals = sorted(reader.literals)
    references = [match for match in _LINK.finditer(source) if not inside(literals, match.start())]
    return Outline(
        blocks=blocks,
        anchors=reader.anchors,
        links=list(_links(reader, references)),
        notes=[
            (match.start(), (f"cite:{name}", reader.notes[name]))
            for match in references
            if match["note"] and (name := decoded(match["note"])) in reader.notes
        ],
        heads=sorted(reader.heads),
        marks=_marks(source, reader, references),
    )


def _links(reader: _Reader, references: Sequence[re.Match[bytes]]) -> Iterator[tuple[int, Link]]:
    anchors = {name for _, name in reader.anchors}
    for match in references:
        kind = LinkKind.CITES if match["note"] else LinkKind.REFERENCES
        target = _target_of(match, anchors)
        if target and not (kind is LinkKind.CITES and target not in reader.notes):
            yield match.start(), Link(kind, target)
    for at, name in reader.targets:
        yield at, Link(LinkKind.REFERENCES, name)


def _is_style(argument: bytes, *, described: bool) -> bool:
    """Whether `.. class::` names styles of what follows, as docutils means it, and no class, as Sphinx does.

    Examples:
        >>> _is_style(b"special", described=False), _is_style(b"Heap(order)", described=False)
        (True, False)
    """
    return not _SIGNED.search(argument) and (not described or len(argument.split()) != 1)


class _Reader:
    """Reads one source, once."""

    def __init__(self, source: bytes) -> None:
        self.literals: list[Span] = []  # spans in which there are no marks
        self.marks: list[Span] = []
        self.named: set[bytes] = set()  # what words may refer to, in lower case
        self.stands: dict[bytes, bytes] = {}  # texts by the name that stands for them
        self.anchors: list[tuple[int, str]] = []
        self.targets: list[tuple[int, str]] = []  # objects that are described, and files that are taken in
        self.notes: dict[str, str] = {}
        self.heads: list[Head] = []
        self.texts: list[bytes] = []
        self._starts: list[int] = []
        self._inks: list[int] = []  # where the text of each line begins
        self._indents: list[int] = []
        self._ranks: dict[tuple[bytes, bool], int] = {}
        start = 0
        for line in source.split(b"\n"):
            text = line.strip()
            blank = line[: len(line) - len(line.lstrip())]
            self.texts.append(text)
            self._starts.append(start)
            self._inks.append(start + len(blank))
            self._indents.append(len(blank.expandtabs(_TAB)) if b"\t" in blank else len(blank))
            start += len(line) + 1
        self._starts.append(len(source))
        self._source = source
        self._table_ends = self._ends_of_simple_tables()

    def _ends_of_simple_tables(self) -> list[int]:
        """For every line, the first at or after it that closes a simple table, rules before a blank line; or −1."""
        ends = [-1] * (len(self.texts) + 1)
        for line in range(len(self.texts) - 1, -1, -1):
            closes = (line + 1 == len(self.texts) or not self.texts[line + 1]) and _RULES.match(self.texts[line])
            ends[line] = line if closes else ends[line + 1]
        return ends

    def blocks(self, first: int, end: int, depth: int) -> list[Block]:
        """Blocks of a range of lines."""
        if depth > _DEEPEST:
            return []
        base = min((self._indents[line] for line in range(first, end) if self.texts[line]), default=0)
        blocks: list[Block] = []
        line = first
        literal = False
        while line < end:
            if not self.texts[line]:
                line += 1
                continue
            block, after = self._block(line, end, base, depth, literal=literal)
            literal = block.kind == PARAGRAPH and self.texts[after - 1].endswith(b"::")
            blocks.append(block)
            line = after
        return blocks

    def with_names_ahead(self, blocks: Sequence[Block]) -> list[Block]:
        """The blocks, of which those that only name the heading below them lead to it: `.. setting:: retries`."""
        named = list(blocks)
        title: frozenset[str] = frozenset()
        for at, block in reversed(list(enumerate(blocks))):
            if block.heading is not None:
                title = frozenset({block.heading.title, *block.heading.title.split()})
            elif title and self._argument_of(block) in title:
                named[at] = Block(block.start, block.end, ANCHOR)
                self.marks.append((block.start, block.end))
            elif block.kind != ANCHOR:
                title = frozenset()
        return named

    def _argument_of(self, block: Block) -> str | None:
        """What a directive says that is one line; None of anything else."""
        match = _DIRECTIVE.match(self._source[block.start : block.end].strip())
        return decoded(match["argument"] or b"").strip() if match else None

    def _block(self, line: int, end: int, base: int, depth: int, *, literal: bool) -> tuple[Block, int]:
        """The block that begins at a line, and the line after it."""
        text = self.texts[line]
        if self._indents[line] > base:
            after = self._reach(line, end, base)
            return self._literal(line, after) if literal else self._container(line, after, depth, "quote"), after
        if text.startswith(b">>>"):
            after = self._while(line, end, lambda other: bool(self.texts[other]))
            return self._literal(line, after), after
        if depth == 0 and (titled := self._title(line, end)) is not None:
            return titled
        return self._at_base(line, end, base, depth)

    def _at_base(self, line: int, end: int, base: int, depth: int) -> tuple[Block, int]:
        if _EXPLICIT.match(self.texts[line]):
            after = self._reach(line, end, base)
            return self._explicit(line, after, depth), after
        after = self._while(line, end, lambda other: self.texts[other].startswith(b"__ "))
        if after > line:  # targets without a name
            self._hide(line, after)
            return self._literal(line, after), after
        if (after := self._end_of_table(line, end)) > line:
            self._read_table(line, after)
            return self._span(line, after, WHOLE), after
        if (pattern := self._marker(line, end, base)) is not None:
            return self._list(line, end, base, depth, pattern)
        return self._paragraph(line, end, base, depth)

    def _span(self, line: int, after: int, kind: str, inner: Sequence[Block] = ()) -> Block:
        return Block(self._starts[line], self._starts[after], kind, inner=tuple(inner))

    def _reach(self, line: int, end: int, base: int) -> int:
        """The first line after one that is neither blank nor indented by more than `base`."""
        return self._while(line + 1, end, lambda other: not self.texts[other] or self._indents[other] > base)

    def _while(self, line: int, end: int, holds: Callable[[int], bool]) -> int:
        while line < end and holds(line):
            line += 1
        return line

    def _literal(self, line: int, after: int) -> Block:
        self.literals.append((self._starts[line], self._starts[after]))
        return self._span(line, after, WHOLE)

    def _container(self, line: int, after: int, depth: int, kind: str) -> Block:
        return self._span(line, after, kind, self.blocks(line, after, depth + 1))

    def _title(self, line: int, end: int) -> tuple[Block, int] | None:
        text, *following = self.texts[line : min(end, line + 3)]
        if _ADORNMENT.match(text):
            if (
                len(following) == 2
                and following[0]
                and following[1][:1] == text[:1]
                and len(text) > 1
                and _ADORNMENT.match(following[1])
            ):
                return self._heading(line, following[0], (text[:1], True), line + 3)
            # A line of signs between paragraphs divides them.
            apart = len(text) >= _SHORTEST_RULE and not (following and following[0])
            if not apart:
                return None
            self._rule(line)
            return self._span(line, line + 1, WHOLE), line + 1
        under = following[0] if following and self._indents[line + 1] == 0 == self._indents[line] else b""
        enough = len(under) >= min(_SHORTEST_RULE, len(decoded(text)))
        if enough and _ADORNMENT.match(under) and under not in {b"::", b".."}:
            return self._heading(line, text, (under[:1], False), line + 2)
        return None

    def _rule(self, line: int) -> None:
        self.marks.append((self._starts[line], self._starts[line + 1]))

    def _heading(self, line: int, title: bytes, style: tuple[bytes, bool], after: int) -> tuple[Block, int]:
        rank = self._ranks.setdefault(style, len(self._ranks) + 1)
        plain = _INLINE.sub("", decoded(title)).strip()
        self._rule(after - 1)
        if style[1]:
            self._rule(line)
        self.anchors.append((self._starts[line], _label_of(plain)))
        block = Block(self._starts[line], self._starts[after], HEADING, heading=Heading(rank, plain))
        return block, after

    def _end_of_table(self, line: int, end: int) -> int:
        """The line after the table that begins here; the line itself where none does."""
        if GRID.match(self.texts[line]):
            return self._while(line, end, lambda other: self.texts[other][:1] in {b"+", b"|"})
        if _RULES.match(self.texts[line]) and line < self._table_ends[line + 1] < end:
            return self._table_ends[line + 1] + 1
        if self.texts[line][:2] in {b"|", b"| "}:
            return self._while(line, end, lambda other: bool(self.texts[other]))
        return line

    def _read_table(self, line: int, after: int) -> None:
        """Note the header row of the table that begins at a line."""
        grid = GRID.match(self.texts[line])
        ends = HEADER_END if grid else _RULES
        last = self._while(line + 1, after, lambda other: not ends.match(self.texts[other]))
        if last + 1 < after and (grid or _RULES.match(self.texts[line])):
            self._head(last + 1, after, *range(line + 1, last))

    def _head(self, first: int, after: int, *lines: int) -> None:
        """Note what some lines say as the head of those that follow."""
        rows = (decoded(self._source[self._starts[line] : self._starts[line + 1]]).rstrip() for line in lines)
        if text := _HEADER_OPTION.sub("", "\n".join(filter(None, rows))).strip("\n"):
            self.heads.append(Head(self._starts[first], self._starts[after], text))

    def _marker(self, line: int, end: int, base: int) -> re.Pattern[bytes] | None:
        """How the items of the list look that begins here, if one does."""
        text = self.texts[line]
        pattern = next((one for one in (_BULLET, _NUMBER, _FIELD) if one.match(text)), None)
        goes_on = line + 1 < end and self.texts[line + 1] and self._indents[line + 1] <= base
        # "A. Name" at the start of a paragraph is no list: its next line would be indented.
        return None if pattern is _NUMBER and goes_on and not _NUMBER.match(self.texts[line + 1]) else pattern

    def _list(self, line: int, end: int, base: int, depth: int, pattern: re.Pattern[bytes]) -> tuple[Block, int]:
        items: list[Block] = []
        after = line
        while after < end and self._indents[after] == base and (marker := pattern.match(self.texts[after])):
            item = after
            after = self._reach(item, end, base)
            self._unmark(item, after, self.texts[item][marker.end() :])
            items.append(self._container(item, after, depth, "item"))
        return self._span(line, after, LIST, items), after

    def _unmark(self, line: int, after: int, rest: bytes) -> None:
        """Read the first line of an item or a directive as the rest of it is: without what marks it."""
        self._inks[line] += len(self.texts[line]) - len(rest.lstrip())
        self.texts[line] = rest.strip()
        self._indents[line] = min(
            (self._indents[other] for other in range(line + 1, after) if self.texts[other]),
            default=self._indents[line] + 1,
        )

    def _paragraph(self, line: int, end: int, base: int, depth: int) -> tuple[Block, int]:
        after = self._while(line + 1, end, lambda other: bool(self.texts[other]) and self._indents[other] == base)
        defines = after == line + 1 < end and self.texts[after] and self._indents[after] > base
        if not defines:
            return self._span(line, after, PARAGRAPH), after
        term = self._span(line, after, HEADING)
        reach = self._reach(line, end, base)
        return self._span(line, reach, "definition", [term, *self.blocks(after, reach, depth + 1)]), reach

    def _explicit(self, line: int, after: int, depth: int) -> Block:
        """What begins with two dots: a directive, a note, a label; anything else is a comment."""
        text = self.texts[line]
        start = self._starts[line]
        if directive := _DIRECTIVE.match(text):
            return self._directive(line, after, depth, directive)
        if note := _NOTE.match(text):
            reference = " ".join(decoded(self._source[start : self._starts[after]]).partition("]")[2].split())
            self.notes[decoded(note.group(1))] = reference[:_NOTE_CHARACTERS]
            self.marks.append((self._inks[line], self._inks[line] + note.start(1) - 1))
            return self._span(line, after, PARAGRAPH)
        self._hide(line, after)
        label = _LABEL.match(text)
        name = label.group(1).replace(b"\\", b"") if label else b"_"
        self.named.add(name.lower())
        if label is None or name == b"_" or (label.group(2) and not label.group(2).endswith(b"_")):
            return self._literal(line, after)
        self.anchors.append((start, _label_of(decoded(name))))
        return self._span(line, after, ANCHOR)

    def _hide(self, line: int, after: int) -> None:
        """Lines are not shown, but for what stands before the first."""
        start, ink = self._starts[line], self._inks[line]
        self.marks.append((ink if self._source[start:ink].strip() else start, self._starts[after]))

    def _directive(self, line: int, after: int, depth: int, match: re.Match[bytes]) -> Block:
        argument = match["argument"] or b""
        kind = decoded(match["name"]).rpartition(":")[2].lower()
        if match["stands"]:
            self._hide(line, after)
            self.stands[match["stands"]] = self._text_by_name(line, after, match)
            return self._span(line, after, WHOLE)
        styled = kind == "class" and _is_style(argument, described=any(self.texts[line + 1 : after]))
        if _HIDDEN.fullmatch(match["name"]) and (styled or kind != "class"):
            self._hide(line, after if _LITERAL.fullmatch(kind) and kind != "toctree" else line + 1)
        elif not _CODE.fullmatch(kind):
            self.marks += self._marks_of(line, match)
        self.marks += self._options(line + 1, after)
        if _LITERAL.fullmatch(kind):
            self._read_literal(line, after, kind)
            if kind in {"include", "literalinclude"}:
                self.targets += [(self._starts[line], decoded(file)) for file in argument.split()[:1]]
            return self._span(line, after, WHOLE) if kind in _SHOWN else self._literal(line, after)
        if styled or not _DESCRIPTION.fullmatch(kind):
            self._unmark(line, after, argument)
            return self._container(line, after, depth, "directive")
        signature = decoded(argument)
        described = [(self._starts[line], name) for name in signature.partition("(")[0].split()[-1:]]
        self.anchors += described
        self.targets += described
        self._unmark(line, after, b"")
        block = self._container(line, after, depth, kind.removeprefix("auto"))
        return replace(block, special=True, name=signature)

    def _marks_of(self, line: int, match: re.Match[bytes]) -> Iterator[Span]:
        """What of the line of a directive is not shown: its argument is, and the name of one that warns or dates."""
        ink, (first, last) = self._inks[line], match.span("name")
        argument = match.start("argument") if match["argument"] else match.end()
        if _TELLING.fullmatch(match["name"]) and (not match["argument"] or _DATED.fullmatch(match["name"])):
            yield ink, ink + first
            yield ink + last, ink + argument - bool(match["argument"])
        else:
            yield ink, ink + (match.end() if match["name"] in _PICTURES else argument)

    def _options(self, line: int, after: int) -> Iterator[Span]:
        """What of the options below a directive is not shown."""
        while line < after and (option := _OPTION.match(self.texts[line])):
            shown = option["name"] in _SHOWN_OPTIONS
            yield self._starts[line], self._inks[line] + option.end() if shown else self._starts[line + 1]
            line += 1

    def _text_by_name(self, line: int, after: int, match: re.Match[bytes]) -> bytes:
        """The text that a name stands for: for a picture the words that stand for it, or else the name itself."""
        if match["name"] == b"replace":
            return b" ".join(filter(None, [match["argument"], *self.texts[line + 1 : after]]))
        if match["name"] in _PICTURES:
            options = filter(None, map(_OPTION.match, self.texts[line + 1 : after]))
            return next((one.string[one.end() :] for one in options if one["name"] == b"alt"), b"")
        return match["stands"]

    def _read_literal(self, line: int, after: int, kind: str) -> None:
        """Note the head of a directive that is code or a table."""
        if _CODE.fullmatch(kind):
            self._head(line + 1, after, line)
        elif kind == "table":
            table = self._while(
                line + 1, after, lambda at: not (GRID.match(self.texts[at]) or _RULES.match(self.texts[at]))
            )
            if table < after:
                self._read_table(table, after)
        elif kind in {"list-table", "flat-table", "csv-table"}:
            self._read_listed(line, after)

    def _read_listed(self, line: int, after: int) -> None:
        """Note the columns of a table that is a list of rows, or CSV, as an option or its first rows name them."""
        lines = [
            Line(self._starts[at], self._starts[at + 1], self.texts[at], self._indents[at]) for at in range(line, after)
        ]
        body = self._while(line + 1, after, lambda at: bool(self.texts[at]))
        if region := listed_head(lines, 1, body - line, after - line):
            self._head(region.first + line, after, *(at + line for at in region.head))
