"""Heads of what Markdown's dialects hold in directives, admonitions, tabs and templates (ING-36, ING-40)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from weft.chunking.prose.heads.lines import TABLES, heads_of_lines, lines_of, listed_head, options_end
from weft.chunking.prose.markdown_marks import LiteralSpan, directive_of
from weft.chunking.prose.outline import Outline, Span
from weft.chunking.prose.rst import rst_outline
from weft.chunking.units.parsed import Head
from weft.chunking.units.splitting import decoded

_FENCE = re.compile(rb"[ \t]*(?P<fence>`{3,}|~{3,}|:{3,})(?P<info>[^\n]*)")
_LISTED = re.compile(rb"(?:list|flat|csv)-table")
_COLONS = re.compile(rb"^[ \t]*(?P<colons>:{3,})\{(?:list|flat|csv)-table\}[^\n]*\n", re.MULTILINE)
# Which lines are numbered or coloured, as MkDocs, Docusaurus and VuePress write it behind the language.
_LINES = re.compile(
    rb"(?i)[ \t]*(?:(?<=[ \t{])(?:hl_lines|linenums|linenos|linenostart|lineno-start|emphasize-lines|line-numbers"
    rb"|showlinenumbers|startline|highlight)(?:[ \t]*=[ \t]*(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s}]+))?(?=[\s}]|\Z)"
    rb"|(?<=[\w ])\{[\d,. \t-]+\})"
)

# What Jekyll and Hugo write for a fence; it opens code as theirs does.
_HIGHLIGHT = re.compile(
    r"^(?P<open>(?P<indent>[ \t]*)\{(?:%-?|\{[<%])[ \t]*highlight[ \t]+\"?(?P<language>[\w+#-]+)[^\n]*)$"
    r"|^[ \t]*(?:\{%-?[ \t]*endhighlight\b|\{\{[<%][ \t]*/[ \t]*highlight\b)[^\n]*$",
    re.MULTILINE,
)
_TILDES = "~" * 8


def with_fences(text: str) -> str:
    r"""The text with fences where templates open and close code, line by line.

    Examples:
        >>> with_fences("{% highlight python %}\n# no heading\n{% endhighlight %}\n")
        '~~~~~~~~python\n# no heading\n~~~~~~~~\n'
    """
    if "highlight" not in text:
        return text
    region = [match["open"] is not None for match in _HIGHLIGHT.finditer(text)]
    if not region or region != [True, False] * (len(region) // 2):
        return text
    return _HIGHLIGHT.sub(lambda match: f"{match['indent'] or ''}{_TILDES}{match['language'] or ''}", text)


def template_fences(source: bytes, start: int, end: int) -> Mapping[Span, bytes]:
    """Lines of code in a template, and the fences that are shown for them; none of other code."""
    first = source.find(b"\n", start, end) + 1 or end
    opening = _HIGHLIGHT.match(decoded(source[start:first]).rstrip("\r\n"))
    if opening is None:
        return {}
    last = source.rfind(b"\n", first, max(end - 1, first)) + 1
    fence = f"{opening['indent']}```{opening['language']}\n".encode()
    return {(start, first): fence, **({(last, end): b"```\n"} if last >= first else {})}


def fence_head(source: bytes, start: int, end: int) -> Iterator[Head]:
    """The head of a fence: what opens code, what names the columns of a table."""
    match = _FENCE.match(source, start, end)
    first = source.find(b"\n", start, end) + 1
    if not first or first >= end:
        return
    if match is None:
        line = next(iter(template_fences(source, start, end).values()), source[start:first])
        yield Head(first, end, decoded(line.strip(b"> \t\r\n")))
    elif _LISTED.fullmatch(directive := directive_of(match["info"])):
        yield from _listed(source, first, end)
    elif directive == b"table":
        yield from heads_of_lines(source, first, end, TABLES)
    else:
        yield Head(first, end, decoded(_LINES.sub(b"", match[0]).strip()))


def line_options(source: bytes, start: int, end: int) -> Iterator[Span]:
    """What the line that opens code says of how its lines are shown."""
    match = _FENCE.match(source, start, end)
    if match is not None and not directive_of(match["info"]):
        yield from (option.span() for option in _LINES.finditer(source, match.start("info"), match.end("info")))


def _listed(source: bytes, start: int, end: int) -> Iterator[Head]:
    lines = lines_of(source, start, end)
    after = len(lines) - (1 if lines and _FENCE.match(lines[-1].text) else 0)
    region = listed_head(lines, 0, options_end(lines, 0, after), after)
    if region is not None and region.head and region.first < region.after:
        text = decoded(source[lines[region.head[0]].start : lines[region.head[-1]].end])
        head = re.sub(r"\A\s*:?header:\s*", "", text).strip("\n")
        yield Head(lines[region.first].start, lines[region.after - 1].end, head)


def colon_heads(source: bytes) -> Iterator[Head]:
    """Heads of tables between colons, which the parser takes for lists and paragraphs."""
    for match in _COLONS.finditer(source):
        closing = source.find(b"\n" + match["colons"], match.end())
        if closing >= 0:
            yield from _listed(source, match.end(), closing + 1)


def nested_heads(source: bytes, literals: Sequence[LiteralSpan]) -> Iterator[Head]:
    """Heads in what the parser takes for code, and is the body of an admonition or a directive."""
    tables = partial(heads_of_lines, source, readers=TABLES)
    for literal in literals:
        if literal.whole:
            continue
        at = literal.start
        for first, last in [*literal.code, (literal.end, literal.end)]:
            yield from tables(at, first)
            if first < last:
                yield from fence_head(source, first, last)
            at = last


def rst_in(source: bytes, start: int, end: int) -> tuple[list[Head], list[Span]]:
    """Heads and marks of reStructuredText within a span."""
    outline: Outline = rst_outline(source[start:end])
    heads = [Head(start + head.start, start + head.end, head.text) for head in outline.heads]
    return heads, [(start + first, start + last) for first, last in outline.marks]
