"""The Markdown parser, with the blocks that MkDocs, MyST, MDX, Jekyll and Hugo add to the language (ING-6, ING-40).

What stands in an admonition, a tab or a directive is parsed as any other text: lists are lists there, and code is code.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, html_block, paragraph
from markdown_it.token import Token

COMPONENT = r"(?-i:[A-Z][a-z])\w{0,60}(?:\.\w{1,60})?"
"""The name of an element of JSX."""

BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,200}\}){0,200}\}){0,200}\}"
"""An expression of JSX, in which others may stand."""

DIRECTIVE = re.compile(r"[ \t]*\{(?P<name>[\w:.+-]{1,60})\}[ \t]*(?P<title>[^\n]*?)[ \t\r]*$")
"""What a fence of MyST says."""

_INDENT = 4  # columns: what stands so far in belongs to the admonition or tab above
_ATTRIBUTES = rf"(?:\s{{1,40}}[\w:-]{{1,60}}(?:=(?:\"[^\"]{{0,500}}\"|'[^']{{0,500}}'|{BRACES}))?){{0,20}}"
_ADMONITION = re.compile(
    r"(?:(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+[\w-]+)*(?:[ \t]+\"[^\"\n]*\")?|===[!+]?[ \t]+\"[^\"\n]*\")[ \t]*$",
    re.MULTILINE,
)
_TAG = rf"</?{COMPONENT}{_ATTRIBUTES}\s{{0,40}}/?>[ \t]*$"
_COMPONENT = re.compile(_TAG, re.MULTILINE | re.IGNORECASE)
_COMPONENTS = re.compile(r"^[ \t]*" + _TAG[:-1] + r"\r?$", re.MULTILINE | re.IGNORECASE)
_CODE_FENCE = re.compile("```|~~~")
_INTERRUPTS = re.compile(rf"```|~~~|</?{COMPONENT}(?:[\s/>]|$)")
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,}|:{3,})(?P<info>.*)")
_HIGHLIGHT = re.compile(r"\{(?:%-?|\{[<%])[ \t]*highlight[ \t]+\"?(?P<language>[\w+#-]+)")
_END_HIGHLIGHT = re.compile(r"\{%-?[ \t]*endhighlight\b|\{\{[<%][ \t]*/[ \t]*highlight\b")
_CODE = re.compile("code|code-block|code-cell|sourcecode|literalinclude|math|eval-rst|mermaid|graphviz|csv-table")
_RAW = re.compile(r"<(?:script|pre|style|textarea)\b|<[!?]", re.IGNORECASE)


def directive_of(info: str) -> str:
    """The directive that a fence names; nothing where it names none."""
    match = DIRECTIVE.match(info)
    return match["name"] if match else ""


def is_code(directive: str) -> bool:
    """Whether the body of a directive is no text of the language."""
    return _CODE.fullmatch(directive) is not None


def parsed(text: str) -> list[Token]:
    """The tokens of a text.

    Beside those of the language: `container_open` and `container_close` around blocks, `mark` for a line that belongs
    to what follows, `template` for code between tags.
    """
    return _parser(indented="<" not in text or not _COMPONENTS.search(text)).parse(text)


@cache
def _parser(*, indented: bool) -> MarkdownIt:
    """A parser; beside components an indent is none of code, as in MDX."""
    parser = MarkdownIt("commonmark").enable("table")
    interrupting = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("code", "dialects", _dialects, {"alt": interrupting})
    parser.block.ruler.at("html_block", _html_up_to_code, {"alt": ["paragraph", "reference", "blockquote"]})
    if not indented:
        parser.disable("code").block.ruler.at("paragraph", _paragraph_up_to_tag)
    return parser


def _line(state: StateBlock, line: int) -> str:
    """What a line says; nothing where it is indented as code is."""
    first = state.bMarks[line] + state.tShift[line]
    return "" if state.is_code_block(line) else state.src[first : state.eMarks[line]]


def _until(state: StateBlock, line: int, end: int, holds: Callable[[str], bool]) -> int:
    """The first line from one on of which something holds, or that stands further left than its block."""
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        if holds(_line(state, line)):
            break
        line += 1
    return line


def _run_end(state: StateBlock, line: int, end: int, stops: re.Pattern[str]) -> int:
    """The line after a run: a blank one, one further left than its block, or one that begins with a pattern."""
    line += 1
    while line < end and not state.isEmpty(line) and state.sCount[line] >= state.blkIndent:
        if stops.match(state.src, state.bMarks[line] + state.tShift[line]):
            break
        line += 1
    return line


def _contain(state: StateBlock, span: tuple[int, int], last: int, indent: int, info: str = "") -> None:
    """Parse the lines below the first up to the last as what a container of a span holds."""
    token = state.push("container_open", "", 1)
    token.info, token.map = info, [*span]
    outside, state.blkIndent, state.lineMax = (state.blkIndent, state.lineMax), indent, last
    state.md.block.tokenize(state, span[0] + 1, last)
    state.blkIndent, state.lineMax = outside
    state.push("container_close", "", -1)
    state.line = span[1]


def _code(state: StateBlock, kind: str, info: str, first: int, after: int) -> None:
    token = state.push(kind, "code", 0)
    token.info, token.map = info, [first, after]
    state.line = after


def _directive(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A directive of MyST, or a line of colons, which many a tool gives a meaning of its own."""
    opened = _FENCE.match(_line(state, first))
    if opened is None:
        return False
    fence, name = opened["fence"], directive_of(opened["info"])
    colons, code = fence.startswith(":"), is_code(name)
    if not colons and (code or not name):
        return False
    if silent:
        return True
    if colons and not code and not name.endswith("table"):
        state.push("mark", "", 0).map = [first, first + 1]
        state.line = first + 1
        return True
    closes = re.compile(re.escape(fence) + fence[0] + r"*\s*$")
    last = _until(state, first + 1, end, lambda line: closes.match(line) is not None)
    if code:
        _code(state, "fence", opened["info"], first, min(last + 1, end))
    else:
        _contain(state, (first, min(last + 1, end)), last, state.blkIndent, opened["info"])
    return True


def _admonition(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """An admonition or a tab of MkDocs, with what is indented below it."""
    # However far in: below a definition of MkDocs, which is none of the language, it would be code.
    if not _ADMONITION.match(state.src, state.bMarks[first] + state.tShift[first]):
        return False
    if not silent:
        least = state.sCount[first] + _INDENT
        last = first + 1
        while last < end and (state.isEmpty(last) or state.sCount[last] >= least):
            last += 1
        _contain(state, (first, last), last, least)
    return True


def _template(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Code between tags of Jekyll or Hugo; text where nothing closes it."""
    opened = _HIGHLIGHT.match(_line(state, first))
    if opened is None or "endless" in state.env:
        return False
    last = _until(state, first + 1, end, lambda line: _END_HIGHLIGHT.match(line) is not None)
    if last == end:
        state.env["endless"] = True
        return False
    if not silent:
        _code(state, "template", opened["language"], first, last + 1)
    return True


def _component(state: StateBlock, first: int, _end: int, silent: bool) -> bool:
    """A tag of JSX that stands on lines of its own."""
    opened = _COMPONENT.match(state.src, state.bMarks[first] + state.tShift[first]) if _line(state, first) else None
    if opened is not None and not silent:
        after = bisect_left(state.eMarks, opened.end()) + 1
        state.push("mark", "", 0).map = [first, after]
        state.line = after
    return opened is not None


_RULES: Mapping[str, Callable[[StateBlock, int, int, bool], bool]] = {
    **dict.fromkeys("`~:", _directive),
    **dict.fromkeys("!?=", _admonition),
    "{": _template,
    "<": _component,
}
"""What may begin a block, by its first character."""


def _dialects(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    rule = _RULES.get(state.src[state.bMarks[first] + state.tShift[first] : state.eMarks[first]][:1])
    return rule is not None and rule(state, first, end, silent)


def _html_up_to_code(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """HTML, which ends where a fence opens, as in MDX, unless it is kept as it is."""
    at = state.bMarks[first] + state.tShift[first]
    if silent or not state.src.startswith("<", at):
        return html_block(state, first, end, silent)
    if not _RAW.match(state.src, at):
        end = _run_end(state, first, end, _CODE_FENCE)
    return html_block(state, first, end, silent)


def _paragraph_up_to_tag(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A paragraph, which ends at a component or a fence however far those are indented, as in MDX."""
    outside = state.lineMax
    state.lineMax = _run_end(state, first, outside, _INTERRUPTS)
    read = paragraph(state, first, end, silent)
    state.lineMax = outside
    return read
