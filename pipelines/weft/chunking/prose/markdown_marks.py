"""What in a Markdown text is markup and no words: it is neither shown nor searched (ING-40).

MkDocs, MyST, Docusaurus, Hugo, Jekyll and GitHub each add signs of their own to the language. All are taken out alike:
what a text shows to its readers stays, and every mark is a span of the source, so that what stays has its place there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from weft.chunking.prose.html import INLINE, character, opened_fences, separators
from weft.chunking.prose.markdown_parser import BRACES, COMPONENT, DIRECTIVE
from weft.chunking.prose.outline import Span, inside, merged

_ATTRIBUTE = rb"(?:[#.][\w:-]{1,80}|[\w-]{1,40}=(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|[^\s\"'{}]{1,100}))"
_TEXT = rb"(?:[^\[\]\\\n]|\n(?!\s*\n)|\\.|!?\[[^\[\]\n]{0,200}\]){0,300}"
_QUOTED = rb"(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}')"
_TARGET = (
    rb"\((?:[^()\s<>{]|\{%[^%\n]{0,200}%\}|\{\{[^{}\n]{0,200}\}\}|\{(?![%{])|<[^<>\n]{0,500}>|\([^()\s]{0,200}\)){0,1000}(?:\s{1,9}"
    + _QUOTED
    + rb")?\s{0,3}\)"
)
_COMPONENT, _BRACES = COMPONENT.encode(), BRACES.encode()
_CLOSED = rb"(?:[^<]|<(?!/?(?P=element)\b)){0,4000}</(?P=element)>"
_TAGS = (
    b"a abbr address article aside audio b blockquote br button caption center cite code col colgroup dd del details "
    b"dfn div dl dt em embed figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i iframe img input ins kbd "
    b"label li link main mark meta nav ol p param picture pre q s samp script section small source span strike "
    b"strong style sub summary sup svg table tbody td tfoot th thead tr tt u ul var video wbr"
).split()
# Lengths are bounded: each sign of a hostile page would read on to its end.
_MARK = re.compile(
    rb"\\(?P<escaped>\r?\n|[<>\#*.+~-]|(?<=\w\\)_(?=\w))"
    rb"|(?P<escape>\\[!-/:-@\[-`{-~]|^[ \t]*(?:`{3,}|~{3,})[^\n]*$)"
    rb"|(?P<role>\{[A-Za-z][\w:.+-]{0,40}\}(?P<tick>`{1,2}))"
    rb"(?P<named>[^`\n]{1,300}?)(?P<to>[ \t]*<[^<>`\n]{1,200}>)?(?P=tick)"
    rb"|(?P<code>(?P<ticks>`++)(?:[^`\n]|\n(?![ \t\r]*(?:\n|```))|(?!(?P=ticks)(?!`))`++){1,300}?(?P=ticks)(?!`))"
    rb"|(?P<comment><!--)"
    rb"|(?P<hidden><(?P<held>script|style)\b)"
    rb"|(?P<tag></?(?:" + b"|".join(_TAGS) + rb")(?:\s[^<>]{0,1000})?/?>)"
    rb"|(?P<component></" + _COMPONENT + rb">|(?<![\w`])<(?P<element>" + _COMPONENT + rb")"
    rb"(?P<given>(?:(?=[^<>]{0,1000}=)|(?=[^<>]{0,200}>" + _CLOSED + rb"))(?:\s{1,40}"
    rb"[\w:-]{1,60}(?:=(?:\"[^\"]{0,500}\"|'[^']{0,500}'|" + _BRACES + rb"))?){0,20}\s{0,40}/?|\s{0,9}/)>)"
    rb"|(?P<wrapper>^[ \t]*<" + _COMPONENT + rb">(?=[ \t]*\r?(?:\n|\Z)))"
    rb"|<(?P<address>(?:https?|mailto|ftp):[^<>\s]{1,1000})>"
    rb"|^[ ]{0,3}(?P<definition>\[[^\]^\n][^\]\n]{0,200}\]:[ \t]{0,9}\S[^\n]*\n?)"
    rb"|!?\[\]\([ \t]*[<\#]?(?P<bare>[^()\s<>]{1,300})>?[ \t]*\)"
    rb"|^(?P<module>(?:import[ \t]+(?:[\w*{][^\n;'\"]{0,200}[ \t]from[ \t]+)?['\"][^'\"\n]{1,200}['\"]"
    rb"|export[ \t]+(?:const|default|let|function)\b[^\n]{0,300});?[ \t]*)\r?$"
    rb"|(?P<remark>\{/\*(?:[^*]|\*(?!/)){0,400}\*/\})"
    rb"|(?P<link>!?\[)(?=(?P<shown>" + _TEXT + rb")(?P<target>\](?:" + _TARGET + rb"|\[[^\[\]\n]{0,200}\])))"
    rb"|(?P<alert>\[!)(?P<alarm>NOTE|TIP|IMPORTANT|WARNING|CAUTION)(?P<alert_end>\])"
    rb"|(?P<attributes>[ \t]{0,4}\{:?[ \t]*" + _ATTRIBUTE + rb"(?:[ \t]+" + _ATTRIBUTE + rb"){0,20}[ \t]*\})"
    rb"|(?P<kramdown>\{::?/?[a-z_-]{1,40}(?:[ \t][^{}\n]{0,200})?/?\})"
    rb"|(?P<include>\{%-?[ \t]*(?:include|include_relative|import|extends)\b[ \t]*[\"']?"
    rb"|\{\{[<%][ \t]*include\b[ \t]*[\"']?|\{!)"
    rb"[ \t]*(?P<file>[\w./-]{1,200}+)(?P<include_end>[\"']?(?:[^%!{}\n]{0,200}%\}|[^{}\n]{0,200}[>%]\}\}|[ \t]*!\}))"
    rb"|(?P<template>\{%[^{}\n]{1,300}%\}|\{\{[<%][^{}\n]{1,300}[>%]\}\})"
    rb"|(?P<icon>:(?:material|octicons|fontawesome|simple)-[\w-]{1,80}:)"
    rb"|(?P<entity>&(?:\#\d{1,7}|\#[xX][\da-fA-F]{1,6}|[A-Za-z]\w{1,30});)",
    re.MULTILINE | re.IGNORECASE,
)
_SHOWN = ("escaped", "bare", "address")  # of what is around them
_NOT_SHOWN = (
    *("module", "remark", "component", "wrapper", "definition", "link", "target", "alert", "alert_end", "attributes"),
    *("kramdown", "include", "include_end", "template", "icon"),
)
_LINE_SIGNS = ("sign", "tab", "tab_end", "snippet", "snippet_end", "label")
_LINE = re.compile(
    rb"^(?P<indent>[ \t]*)(?:"
    rb"(?P<sign>(?:!!!|\?\?\?\+?)[ \t]+)(?P<kind>[\w-]+(?:[ \t]+[\w-]+)*)(?P<quoted>[ \t]+\"(?P<title>[^\"\n]*)\")?"
    rb"|(?P<tab>===[!+]?[ \t]+\")(?P<name>[^\"\n]*)(?P<tab_end>\")"
    rb"|(?P<colons>:{3,}[ \t]*)(?P<open>\{?)(?P<container>[\w-]*)(?P<close>\}?)(?P<rest>[^\n]*)"
    rb"|(?P<snippet>;?-{1,9}8<-{1,9}[ \t]*\"?)(?P<snippet_file>[^\"\n]*)(?P<snippet_end>\"?)"
    rb"|(?P<label>\([\w ./:-]{1,100}\)=|\[TOC\]|\[\[_?TOC_?\]\])"
    rb")[ \t]*\r?$",
    re.MULTILINE,
)
_FENCE = re.compile(rb"^[ \t]*(?P<fence>`{3,}|~{3,}|:{3,})(?P<info>[^\n]*)$", re.MULTILINE)
_DIRECTIVE = re.compile(DIRECTIVE.pattern.encode())
_KINDS = re.compile(
    rb"note|tip|hint|info|important|warning|caution|danger|attention|error|bug|success|failure|example|question|seealso"
    rb"|deprecated|version(?:added|changed|removed)"
)
_OPTION = re.compile(rb"[ \t]*:(?P<name>[\w-]{1,40}):(?=[\s]|\Z)[ \t]*(?P<value>[^\n]*)\n?")
_DATED = re.compile(rb"deprecated|version(?:added|changed|removed)")
_PICTURES = frozenset({b"image", b"figure"})
_ELEMENT = re.compile(rb"</?([A-Za-z][\w-]*)")
_ALT = re.compile(rb"\balt[ \t]*=[ \t]*([\"'])([^\"'<>]*)\1", re.IGNORECASE)
# What a component shows of itself: names and titles, what a parameter is like, what stands beside it.
_GIVEN = re.compile(
    rb"(?<![\w:-])(?P<name>[A-Za-z]\w{0,60})(?:=(?:\"(?P<quoted>[^\"]*)\"|'(?P<single>[^']*)'"
    rb"|\{[ ]*[\"'`]?(?P<braced>[^{}\"'`]*)[\"'`]?[ ]*\}|(?P<other>\{)))?(?=[\s/]|\Z)"
)
_TITLES = frozenset(b"title label name path query body header heading caption alt summary description".split())
_LIKE = frozenset(b"type default required".split())
_INCLUDES = re.compile(
    rb"^[ \t]*;?-{1,9}8<-{1,9}[ \t]*\"([^\"\n:]{1,300})|\{%-?[ \t]*include(?:_relative)?[ \t]+[\"']?([\w./-]{1,300})"
    rb"|\{![ \t]*([\w./ -]{1,300}?)[ \t]*!\}|^[ \t]*(?:`{3,}|:{3,})[ \t]*\{(?:literal)?include\}[ \t]*(\S{1,300})",
    re.MULTILINE,
)


def included_files(source: bytes) -> Iterator[tuple[int, str]]:
    r"""Paths of the files that a text takes in, by where it does.

    Examples:
        >>> list(included_files(b'--8<-- "docs/a.md"\n{% include b.md %}\n```{include} ../c.md\n```'))
        [(0, 'docs/a.md'), (19, 'b.md'), (38, '../c.md')]
    """
    for match in _INCLUDES.finditer(source):
        path = next(group for group in match.groups() if group)
        yield match.start(), path.decode("utf-8", "replace").strip()


def shown_of(given: bytes, *, tab: bool = False) -> bytes:
    """What the attributes of a component show, as a page has it; a tab without a label shows its value.

    Examples:
        >>> shown_of(b' path="colour" type="string" required')
        b'colour (string, required): '
        >>> shown_of(b' title="Why?" icon="bird"'), shown_of(b' value="mac"', tab=True), shown_of(b' tip="There"')
        (b'Why? ', b'mac ', b'(There) ')
    """
    values = {match["name"]: _value(match) for match in _GIVEN.finditer(given)}
    titles = [value for name, value in values.items() if name in _TITLES and value]
    titles = titles or list(filter(None, [values.get(b"value")] if tab else []))
    like = [
        name if name == b"required" else b"default " + value if name == b"default" else value
        for name, value in values.items()
        if name in _LIKE and value != b"false" and (value or name == b"required")
    ]
    if like and titles:
        titles[0] += b" (" + b", ".join(like) + b"):"
    aside = [b"(" + values[b"tip"] + b")"] if values.get(b"tip") else []
    replaced = b". ".join(titles) if not like else b" ".join(titles)
    return b" ".join(filter(None, [replaced, *aside])) + (b" " if titles or aside else b"")


def _value(match: re.Match[bytes]) -> bytes:
    replaced = match["quoted"] or match["single"] or match["braced"] or b""
    return b" ".join(replaced.split())


def markdown_marks(
    source: bytes, code: Iterable[Span], further: Mapping[Span, bytes], fences: Sequence[tuple[int, str]]
) -> Mapping[Span, bytes]:
    """The marks of a text, with further ones, and what is shown in place of each.

    Characters written by name are shown as themselves, what tags kept apart stays apart, and code of HTML has `fences`.
    """
    reader = _Reader(source)
    inner = chain.from_iterable(reader.prose(*span) for span in _between(source, code))
    spans = merged(source, [*further, *inner])
    apart = {**separators(source, spans, reader.tags, tight=True), **opened_fences(source, spans, fences)}
    apart |= {start: instead for (start, _), instead in further.items() if instead}
    outside = {span: text for span, text in reader.replaced.items() if not inside(spans, span[0])}
    return {**{span: apart.get(span[0], b"") for span in spans}, **outside}


def _between(source: bytes, code: Iterable[Span]) -> Iterator[Span]:
    """The spans of a source that are no code."""
    done = 0
    for start, end in sorted((*code, (len(source), len(source)))):
        if start > done:
            yield done, start
        done = max(done, end)


def directive_body(source: bytes, start: int, end: int) -> Span:
    """A fence without the lines that open and close it."""
    first = source.find(b"\n", start, end) + 1 or end
    last = source.rfind(b"\n", first, end - 1) + 1
    closes = _FENCE.match(source, last, end) if last > first else None
    return first, last if closes else end


class _Reader:
    """Reads the prose of a source, span by span, in order."""

    def __init__(self, source: bytes) -> None:
        self.tags: list[tuple[int, int, str]] = []
        self.replaced: dict[Span, bytes] = {}  # what is shown in place of characters by name, and of components
        self._source = source

    def prose(self, start: int, end: int) -> Iterator[Span]:
        """The marks of a span."""
        for match in _LINE.finditer(self._source, start, end):
            yield from _of_line(match)
        for match in _FENCE.finditer(self._source, start, end):
            yield from _of_fence(self._source, match, end)
        yield from self._inline(start, end)

    def _inline(self, start: int, end: int) -> Iterator[Span]:
        source, position = self._source, start
        absent: set[bytes] = set()  # what closes something, and comes no more
        while mark := _MARK.search(source, position, end):
            position = mark.end()
            if mark["comment"] or mark["hidden"]:
                closing = b"-->" if mark["comment"] else b"</" + mark["held"] + b">"
                at = -1 if closing in absent else source.find(closing, position, end)
                if at >= 0:
                    position = at + len(closing)
                    yield mark.start(), position
                else:
                    absent.add(closing)
            elif mark["entity"]:
                self.replaced[mark.span()] = character(mark.group())
            elif mark["given"] and (replaced := shown_of(mark["given"], tab=mark["element"].startswith(b"Tab"))):
                # What a parameter is stands before its description; other titles on a line of their own.
                if replaced.endswith(b": "):
                    position += len(source[position:end]) - len(source[position:end].lstrip())
                self.replaced[mark.start(), position] = (
                    replaced.rstrip() if source[position : position + 1] in b"\r\n" else replaced
                )
            else:
                if mark["tag"]:
                    self.tags.append((*mark.span(), _name_of(source, mark)))
                yield from _of_sign(mark)


def _of_sign(mark: re.Match[bytes]) -> Iterator[Span]:
    """What of a sign in a line is not shown."""
    if mark["tag"]:
        yield from _of_tag(mark)
    elif mark["role"]:
        yield from _of_role(mark)
    elif shown := next((name for name in _SHOWN if mark[name] is not None), None):
        yield mark.start(), mark.start(shown)
        yield mark.end(shown), mark.end()
    else:
        yield from (mark.span(name) for name in _NOT_SHOWN if mark[name] is not None)


def _of_line(match: re.Match[bytes]) -> Iterator[Span]:
    if match["colons"]:
        yield from _of_container(match)
    elif match["title"]:
        yield match.start("sign"), match.start("title")
        yield match.end("title"), match.end("quoted")
    elif match["quoted"]:
        yield match.start(), match.end("quoted")
    else:
        yield from (match.span(name) for name in _LINE_SIGNS if match[name] is not None)


def _of_container(match: re.Match[bytes]) -> Iterator[Span]:
    """What an admonition is stays where it has no title; `::: package.module` names what is documented there."""
    rest = match["rest"].strip()
    yield match.span("colons")
    if rest.startswith(b".") and not match["open"]:
        return
    if _DATED.fullmatch(match["container"]):  # what it says of a version stands before that
        yield from (match.span(name) for name in ("open", "close"))
        return
    shown = "container" if not rest and _KINDS.fullmatch(match["container"]) else "rest"
    first = match.start(shown) + len(match[shown]) - len(match[shown].lstrip())
    yield match.start("open"), first
    yield match.end(shown), match.end()


def _of_fence(source: bytes, match: re.Match[bytes], end: int) -> Iterator[Span]:
    """The marks of a directive in a fence, its options with them, and what closes one."""
    directive = _DIRECTIVE.match(match["info"])
    if match["fence"].startswith(b":"):
        after = match.end() + 1 if directive else end
    elif directive is None:
        yield match.span()
        return
    else:
        name = directive["name"]
        shown = "title" if directive["title"] or not _KINDS.fullmatch(name) else "name"
        first, last = (match.start("info") + place for place in directive.span(shown))
        if _DATED.fullmatch(name):  # what it says of a version stands before that
            first, inner = match.start("info") + directive.start("name"), match.start("info") + directive.end("name")
            yield inner, inner + 1
        elif name in _PICTURES:
            first = last
        yield match.start("fence"), first
        yield last, match.end()
        after = match.end() + 1
    while option := _OPTION.match(source, after, end):
        alt = option["name"] == b"alt"
        yield option.start(), option.start("value") if alt else option.end()
        after = option.end()


def _name_of(source: bytes, mark: re.Match[bytes]) -> str:
    """The element of a tag; in a row between pipes a line break keeps cells apart no more than a blank would."""
    match = _ELEMENT.match(mark["tag"])
    name = match[1].decode().lower() if match else ""
    row = source[source.rfind(b"\n", 0, mark.start()) + 1 : mark.start()].lstrip(b"> \t")
    if name == "li" and mark["tag"].startswith(b"</"):
        return "p"
    return "td" if name and name not in INLINE and (name == "br" or row.startswith(b"|")) else name


def _of_tag(match: re.Match[bytes]) -> Iterator[Span]:
    """All of a tag, but for the words that stand for an image."""
    alt = _ALT.search(match["tag"])
    if alt is None or not alt[2]:
        yield match.span()
    else:
        yield match.start(), match.start() + alt.start(2)
        yield match.start() + alt.end(2), match.end()


def _of_role(match: re.Match[bytes]) -> Iterator[Span]:
    yield match.span("role")
    yield match.end("named"), match.end()
    if match["named"][:1] in b"~!":
        yield match.start("named"), match.start("named") + 1
