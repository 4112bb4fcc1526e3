"""Papers in LaTeX: sections, environments and labels, read without running any command (ING-7).

What cannot be understood is text. Whatever is left open ends with its section, so broken sources lose structure only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from unicodedata import normalize

from weft.chunking.paper.citations import BibliographyEntry, links_of_citations
from weft.chunking.prose.outline import HEADING, LIST, WHOLE, Block, Heading, Outline, with_explanations
from weft.chunking.units.parsed import Head
from weft.chunking.units.splitting import decoded
from weft.domain.links import Link, LinkKind

# What a piece of LaTeX says, and where an argument ends.

_LONGEST_ARGUMENT = 4000  # bytes: a title or a list of authors whose brace is never closed ends here
_BRACE = re.compile(rb"\\.|[{}]|\n[ \t\r]*\n", re.DOTALL)
_ASIDE = re.compile(
    r"\\(?:thanks|footnote|footnotemark|inst|label|orcidlink|vspace|hspace)\*?(?:\[[^\]]{0,80}\])?\{[^{}]{0,600}\}"
)
_COMMENTED = re.compile(r"(?<!\\)%[^\n]*")
_ACCENT = re.compile(r"\\([\"'`^~=.])(?:\{([A-Za-z])\}|([A-Za-z]))")
_ANY_COMMAND = re.compile(r"\\[A-Za-z@]{1,40}\*?(?:\[[^\]]{0,80}\])?|\\[,;:!> ]")
_ESCAPED = re.compile(r"\\([&%$#_{}])")
_COMBINING = {
    '"': 0x308,
    "'": 0x301,
    "`": 0x300,
    "^": 0x302,
    "~": 0x303,
    "=": 0x304,
    ".": 0x307,
}  # code points of accents


def argument_end(source: bytes, start: int) -> int:
    r"""The offset after the brace that closes the one at `start`; after its line where none does before a blank line.

    Examples:
        >>> argument_end(b"{a {b} \\} c} d", 0)
        12
    """
    depth = 0
    for match in _BRACE.finditer(source, start, min(len(source), start + _LONGEST_ARGUMENT)):
        if match[0][:1] == b"\n":
            break
        depth += {b"{": 1, b"}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    line = source.find(b"\n", start)
    return line if line >= 0 else len(source)


def argument_text(source: bytes, start: int) -> str:
    """What the argument says whose brace opens at `start`."""
    return plain_text(decoded(source[start : argument_end(source, start)]))


def plain_text(text: str) -> str:
    r"""What a piece of LaTeX says: without commands, comments and asides.

    Examples:
        >>> plain_text(r"{On \emph{Long} Reeds\thanks{Paid.} \& M\"{a}rz~5}")
        'On Long Reeds & März 5'
    """
    text = _ASIDE.sub("", _COMMENTED.sub("", text))
    text = _ACCENT.sub(lambda match: normalize("NFC", (match[2] or match[3]) + chr(_COMBINING[match[1]])), text)
    text = _ANY_COMMAND.sub(" ", text.replace("\\\\", " ").replace("~", " "))
    text = re.sub(r"(?<!\\)[{}$]", "", text)
    return " ".join(_ESCAPED.sub(r"\1", text).split())


_EVENT = re.compile(
    rb"\\\\(?:\[[^\]\n]{0,20}\])?"
    rb"|\\(?P<section>part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?\s{0,9}(?:\[[^\]]{0,300}\]\s{0,9})?(?=\{)"
    rb"|\\begin\s{0,3}\{(?P<begin>[A-Za-z@]{1,40})\*?\}"
    rb"|\\end\s{0,3}\{(?P<end>[A-Za-z@]{1,40})\*?\}"
    rb"|\\(?P<item>item|bibitem)(?![A-Za-z])"
    rb"|\\(?P<open>\[)|\\(?P<close>\])|(?P<dollars>\$\$)"
    rb"|(?P<blank>\n[ \t\r]*\n\s*)"
)
_RANKS = (b"part", b"chapter", b"section", b"subsection", b"subsubsection", b"paragraph", b"subparagraph")
_HEAD = re.compile(rb"\\(?:title|author|icmltitle|begin\s{0,3}\{(?:document|abstract)\})(?![A-Za-z])")
_TITLE = re.compile(rb"\\(?:icml)?title\*?\s{0,9}(?:\[[^\]]{0,300}\]\s{0,9})?(?=\{)")
_AUTHOR = re.compile(rb"\\author\*?\s{0,9}(?:\[[^\]]{0,300}\]\s{0,9})?(?=\{)")
_AND = re.compile(r"\\(?:and|AND|And)(?![A-Za-z])")
_DECLARED = re.compile(
    rb"\\newtheorem\*?\s{0,9}\{([A-Za-z@]{1,40})\}\s{0,9}(?:\[[^\]]{0,40}\]\s{0,9})?\{([^{}]{1,80})\}"
)
_LABEL = re.compile(rb"\\label\s{0,3}\{([^{}]{1,200})\}")
_CITE = re.compile(
    rb"\\(?!nocite)[A-Za-z]{0,12}[cC]ite[A-Za-z]{0,12}\*?\s{0,3}(?:\[[^\]]{0,300}\]\s{0,3}){0,2}\{([^{}]{1,2000})\}"
)
_REFER = re.compile(rb"\\[A-Za-z]{0,8}ref\*?\s{0,3}\{([^{}]{1,200})\}")
_INPUT = re.compile(rb"\\(?:input|include|subfile)\s{0,3}\{([^{}]{1,300})\}")
_BIBITEM = re.compile(rb"\\bibitem\s{0,9}(?:\[(?:[^\[\]{}]|\{[^{}]{0,200}\}){0,300}\]\s{0,9})?\{([^{}]{1,200})\}")
_NEWBLOCK = re.compile(rb"\\newblock(?![A-Za-z])")
_EQUATIONS = re.compile(
    r"equation|align|alignat|flalign|gather|multline|eqnarray|displaymath|dmath|subequations|IEEEeqnarray"
)
_STATEMENTS = frozenset(
    {"theorem", "lemma", "proposition", "corollary", "definition", "assumption", "conjecture", "claim", "remark"}
    | {"example", "proof", "axiom", "observation", "fact", "hypothesis", "problem"}
)
_FLOATS = re.compile(
    r"(?:side)?wrap(figure|table)|sideways(figure|table)|(figure|table|algorithm)|algorithm2e|long(table)"
)
_WHOLE = re.compile(r"tabular[xy]?|verbatim|lstlisting|minted|Verbatim|tikzpicture|picture|algorithmic|array|comment")
_LISTS = re.compile(r"[a-z]*(?:itemize|enumerate|description)|thebibliography|list")
_REFERENCES = "thebibliography"
_TRANSPARENT = frozenset({"document", "abstract", "center", "sloppypar", "appendices", "frontmatter"})
_DEEPEST = 24  # environments: what is nested deeper is text
_HIDDEN = re.compile(
    rb"\\(?:\\|%)|(?P<comment>%[^\n]*)|\\verb\*?(?P<sign>[^A-Za-z\s*])[^\n]{0,300}?(?P=sign)"
    rb"|\\begin\s{0,3}\{(?P<name>verbatim\*?|lstlisting|minted|Verbatim|comment|filecontents\*?)\}"
)
_HEADED = re.compile(
    rb"\\begin\{(?P<code>lstlisting|minted|[vV]erbatim\*?)\}(?:\[[^\[\]]{0,300}\])?[^\n]{0,300}"
    rb"|\\begin\{(?P<table>tabular[xy]?\*?|longtable)\}(?:\{[^{}\n]{0,200}\}|\[[^\]\n]{0,80}\]){0,3}"
)
_HEADER_ROW = re.compile(
    rb"(?:\s|\\(?:hline|toprule)|\\caption\{[^{}]{0,500}\}(?:\\\\)?){0,9}"
    rb"(?P<row>[^\\]{0,2000}(?:\\(?!\\)[^\\]{0,500}){0,60}"
    rb"(?:\\\\\s{0,9}\\(?:cline|cmidrule)[^\\]{0,2000}(?:\\(?!\\)[^\\]{0,500}){0,60}){0,3})"
    rb"\\\\(?:\[[^\]\n]{0,20}\])?\s{0,9}\\(?:hline|midrule|endhead|endfirsthead)"
)
_LONGEST_TABLE = 200_000  # bytes: a hostile page must not be searched to its end again and again


def latex_outline(source: bytes, whole: str = "") -> Outline:
    """Blocks of a source, its labels, references and citations; under the title of the `whole` that it is a part of."""
    text = _masked(source)
    reader = _Reader(text)
    blocks = with_explanations(reader.blocks(), text, sorted(reader.equations))
    blocks = [*([Block(0, 0, HEADING, heading=Heading(0, whole))] if whole else []), *blocks]
    cited = [(match.start(), key) for match in _CITE.finditer(text) for key in _keys(match[1])]
    bibliography = {reference.key: reference for reference in _bibliography(text)}
    entries = [(at, bibliography.get(key, BibliographyEntry(key, ""))) for at, key in cited]
    notes = [(at, bibliography[key].note) for at, key in cited if key in bibliography]
    names = list(_names(text)) if reader.head is not None else []
    authors = [(reader.head or 0, ("authors", "; ".join(names)))] if names else []
    return Outline(
        blocks=blocks,
        anchors=[(match.start(), decoded(match[1]).strip()) for match in _LABEL.finditer(text)],
        links=[*_references(text), *links_of_citations(entries)],
        notes=[*notes, *authors],
        heads=_heads(source),
    )


def _heads(source: bytes) -> list[Head]:
    """Header rows of tables, and what opens a listing and names its language."""
    heads: list[Head] = []
    for match in _HEADED.finditer(source):
        name = match["table"] or match["code"]
        end = source.find(b"\\end{" + name + b"}", match.end(), match.end() + _LONGEST_TABLE)
        if end < 0 or (heads and match.start() < heads[-1].end):
            continue
        row = _HEADER_ROW.match(source, match.end(), end) if match["table"] else None
        text = match[0] if match["code"] else row["row"] if row else b""
        if text.strip():
            heads.append(Head(row.end() if row else match.end(), end, " ".join(decoded(text).split())))
    return heads


def latex_names(source: bytes) -> tuple[str | None, tuple[str, ...]]:
    r"""Title and authors of a paper.

    Examples:
        >>> latex_names(rb"\title{On \emph{Reeds}} \author{A. Writer\\ Marsh \and B. Other}")
        ('On Reeds', ('A. Writer', 'B. Other'))
    """
    text = _masked(source)
    title = _TITLE.search(text)
    return (argument_text(text, title.end()) if title else "") or None, tuple(_names(text))


@dataclass(slots=True)
class _Open:
    """An environment, an item, or the document itself, while it is read."""

    name: str
    start: int
    text: int  # where its current paragraph begins
    inner: list[Block] = field(default_factory=list)  # its blocks so far


class _Reader:
    """Reads one source, once, of which comments are masked."""

    def __init__(self, source: bytes) -> None:
        self.equations: list[tuple[int, int]] = []
        self._source = source
        declared = ((decoded(match[1]), decoded(match[2]).lower()) for match in _DECLARED.finditer(source))
        self._statements: Mapping[str, str] = {**dict(zip(_STATEMENTS, _STATEMENTS, strict=True)), **dict(declared)}
        self._top = _Open("", 0, 0)
        self._stack = [self._top]
        used = {match["section"] for match in _EVENT.finditer(source) if match["section"]}
        self._ranks = {name: rank for rank, name in enumerate((one for one in _RANKS if one in used), start=1)}
        head = _HEAD.search(source)
        self.head = source.rfind(b"\n", 0, head.start()) + 1 if head else None

    def blocks(self) -> list[Block]:
        """Blocks at the top level, with those inside them."""
        head = self.head
        done = 0
        for match in _EVENT.finditer(self._source):
            if match.start() < done:
                continue
            if head is not None and match.start() >= head:
                self._read_title(head)
                head = None
            done = self._read(match)
        if head is not None:
            self._read_title(head)
        self._close_all(len(self._source))
        return self._top.inner

    def _read(self, match: re.Match[bytes]) -> int:
        """Take in one event; where to read on."""
        at, after = match.span()
        name = decoded(match["begin"] or match["end"] or match["dollars"] or match["open"] or match["close"] or b"")
        if match["section"]:
            return self._section(match)
        if match["item"]:
            self._item(at)
        elif match["blank"]:
            self._paragraph_ends(at, after)
        elif match["end"] or match["close"] or (match["dollars"] and self._stack[-1].name == name):
            self._end("[" if match["close"] else name, at, after)
        elif name:
            self._begin(name, at, after)
        return after

    def _section(self, match: re.Match[bytes]) -> int:
        end = argument_end(self._source, match.end())
        heading = Heading(self._ranks[match["section"]], argument_text(self._source, match.end()))
        self._close_all(match.start())
        self._top.inner.append(Block(match.start(), end, HEADING, heading=heading))
        self._top.text = end
        return end

    def _read_title(self, head: int) -> None:
        """What stands before the title, or where the text begins, is a preamble."""
        title = _TITLE.search(self._source, head)
        if title is None or any(block.heading for block in self._top.inner):
            return
        self._paragraph_ends(head, head)
        heading = Heading(0, argument_text(self._source, title.end()))
        self._top.inner.append(Block(head, head, HEADING, heading=heading))

    def _begin(self, name: str, at: int, after: int) -> None:
        if name == _REFERENCES:
            self._open_references(at)
        if _is_equation(name):
            if not _is_equation(self._stack[-1].name):
                self._stack.append(_Open(name, at, after))
            return
        self._paragraph_ends(at, at)
        if name not in _TRANSPARENT and len(self._stack) <= _DEEPEST:
            self._stack.append(_Open(name, at, after))

    def _open_references(self, at: int) -> None:
        """A bibliography is a section, though it has no command for that."""
        self._close_all(at)
        rank = self._ranks.get(b"section", 1)
        self._top.inner.append(Block(at, at, HEADING, heading=Heading(rank, "References")))

    def _end(self, name: str, at: int, after: int) -> None:
        if name in _TRANSPARENT:
            self._paragraph_ends(after, after)
            return
        depth = next((depth for depth in range(len(self._stack) - 1, 0, -1) if self._stack[depth].name == name), 0)
        while depth and len(self._stack) > depth:
            inner = len(self._stack) > depth + 1
            self._close(at if inner else after, at)

    def _item(self, at: int) -> None:
        if self._stack[-1].name == "item":
            self._close(at, at)
        if _LISTS.fullmatch(self._stack[-1].name):
            self._paragraph_ends(at, at)
            self._stack.append(_Open("item", at, at))

    def _paragraph_ends(self, at: int, after: int) -> None:
        """A paragraph of the innermost environment ends; so does an equation that lacks its end."""
        while self._stack[-1].name in {"[", "$$"}:
            self._stack.pop()
        holder = self._stack[-1]
        if _is_equation(holder.name):
            return
        if self._source[holder.text : at].strip(b"% \t\r\n"):
            holder.inner.append(Block(holder.text, at))
            holder.text = after

    def _close_all(self, at: int) -> None:
        while len(self._stack) > 1:
            self._close(at, at)
        self._paragraph_ends(at, at)

    def _close(self, after: int, at: int) -> None:
        """The innermost environment ends: its text at `at`, what closes it at `after`."""
        if _is_equation(self._stack[-1].name):
            equation = self._stack.pop()
            if equation.name not in {"[", "$$"} or after > at:
                self.equations.append((equation.start, after))
            return
        self._paragraph_ends(at, at)
        closed = self._stack.pop()
        holder = self._stack[-1]
        holder.inner.append(self._block(closed, after))
        holder.text = after

    def _block(self, closed: _Open, end: int) -> Block:
        start, name = closed.start, closed.name
        label = _LABEL.search(self._source, start, end)
        named = decoded(label[1]).strip() if label else None
        block = Block(start, end, "environment", inner=tuple(closed.inner), name=named)
        if name in self._statements:
            return replace(block, kind=self._statements[name], special=True)
        if floating := _FLOATS.fullmatch(name):
            kind = next(filter(None, floating.groups()), "algorithm")
            return replace(block, kind=kind, special=True, inner=(), uncut=((start, end),))
        if _WHOLE.fullmatch(name):
            return replace(block, kind=WHOLE, inner=())
        if name == "item":
            return replace(block, kind="item")
        return replace(block, kind=LIST) if _LISTS.fullmatch(name) else block


def _is_equation(name: str) -> bool:
    return name in {"[", "$$"} or _EQUATIONS.fullmatch(name) is not None


def _keys(listed: bytes) -> list[str]:
    return [key for key in (one.strip() for one in decoded(listed).split(",")) if key]


def _references(text: bytes) -> Iterator[tuple[int, Link]]:
    for match in _REFER.finditer(text):
        if not match[0].startswith(b"\\href"):
            for key in _keys(match[1]):
                yield match.start(), Link(LinkKind.REFERENCES, f"#{key}")
    for match in _INPUT.finditer(text):
        if b"\\" not in match[1]:
            yield match.start(), Link(LinkKind.IMPORTS, decoded(match[1]).strip())


def _bibliography(text: bytes) -> Iterator[BibliographyEntry]:
    """The entries of a bibliography in the source itself; its second block is the title."""
    items = list(_BIBITEM.finditer(text))
    closing = text.find(b"\\end{thebibliography}", items[-1].end()) if items else -1
    ends = [*(match.start() for match in items[1:]), closing if closing >= 0 else len(text)]
    for match, end in zip(items, ends, strict=False):
        blocks = [plain_text(decoded(part)) for part in _NEWBLOCK.split(text[match.end() : end])]
        title = blocks[1].strip(" .,") if len(blocks) > 1 else None
        yield BibliographyEntry(decoded(match[1]).strip(), " ".join(filter(None, blocks)), title or None)


def _names(text: bytes) -> Iterator[str]:
    done = 0
    for match in _AUTHOR.finditer(text):
        if match.start() >= done:  # no list of authors stands in another
            done = argument_end(text, match.end())
            listed = (plain_text(part.partition("\\\\")[0]) for part in _AND.split(decoded(text[match.end() : done])))
            yield from filter(None, listed)


def _masked(source: bytes) -> bytes:
    r"""The source with every byte of comments and verbatim text as `%`, line ends kept: offsets stay.

    Examples:
        >>> _masked(b"a 5\\% % \\section{no}\nb")
        b'a 5\\% %%%%%%%%%%%%%%\nb'
    """
    parts: list[bytes] = []
    endless: set[bytes] = set()
    done = 0
    for match in _HIDDEN.finditer(source):
        start, end = match.span()
        if start < done:
            continue
        if match["comment"] or match["sign"]:
            parts += [source[done:start], b"%" * (end - start)]
            done = end
        elif match["name"] and match["name"] not in endless:
            close = source.find(b"\\end{" + match["name"] + b"}", end)
            if close < 0:
                endless.add(match["name"])
                continue
            parts += [source[done:end], re.sub(rb"[^\n]", b"%", source[end:close])]
            done = close
    return b"".join([*parts, source[done:]])
