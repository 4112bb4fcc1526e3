"""Markup in files whose names say nothing of it: README, `.txt`, manual pages, XML (ING-1).

Signs that one markup alone has are counted. Prose without any of them stays text.
"""

from __future__ import annotations

import re

from weft.domain.documents import ContentType

_LOOKED_AT = 65_536  # characters: markup shows there, or nowhere
_HEAD = 2_000  # characters in which a page or a manual page begins
_PAGE = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!doctype\s+html\b|<html\b)", re.IGNORECASE)
_MANUAL = re.compile(r"^\.(?:TH|Dd|SH|Sh)[ \t]", re.MULTILINE)
_POD = re.compile(r"^=(?:head1|pod|encoding)\b", re.MULTILINE)
_ORG = re.compile(r"^#\+(?:TITLE|OPTIONS|STARTUP|AUTHOR|BEGIN_SRC|FILETAGS)\b", re.MULTILINE | re.IGNORECASE)
_DOCBOOK = re.compile(
    r"<!DOCTYPE\s+(?:book|article|chapter|part|refentry|section|sect1|appendix|preface)\b|docbook\.org/ns/docbook"
    r"|\A(?:\s|<\?[^>]*>|<!--.*?-->)*<(?:refentry|chapter|sect1|refsect1|appendix|preface)\b",
    re.DOTALL,
)
# A line under another, about as long, after a blank one.
_TITLE = re.compile(r"(?:\A|\n[ \t]*\n)(?P<text>\S[^\n]{0,100})\n(?P<under>([=~^+\-*\"'#])\3{2,})[ \t]*(?=\n|\Z)")
_OVERLINED = re.compile(r"^([=*#~\-])\1{3,}\n[^\n]{1,100}\n\1{4,}$", re.MULTILINE)
_RST = re.compile(
    r"^[ \t]*\.\. (?:[\w:+-]{2,40}::|_[^\n:]{1,80}:)"
    r"|:[a-z][\w:-]{1,30}:`[^`\n]{1,200}`|`[^`<\n]{1,100}<[^>\n]{1,200}>`_",
    re.MULTILINE,
)
_ASCIIDOC = re.compile(
    r"^\[(?:verse|source|horizontal|quote|NOTE|TIP|WARNING|IMPORTANT|CAUTION|listing|\[[\w-]+\])[^\]\n]*\][ \t]*$"
    r"|^={2,5} \S|^\S[^\n:]{0,80}::[ \t]*\n(?:[ \t]|\+\n)|^\|===$|\blink(?:git)?:[\w./-]+\[|^(?:include|image)::\S+\[",
    re.MULTILINE,
)
_MARKDOWN = re.compile(
    r"(?:\A|\n[ \t]*\n)#{1,6} \S[^\n]*(?=\n[ \t]*(?:\n|\Z)|\n[A-Z*-])|^```[\w+-]*[ \t]*$"
    r"|(?<![\w\\])!?\[[^\]\n]{1,100}\]\([^)\s]{1,300}\)|^\|(?:[ \t]*:?-{3,}:?[ \t]*\|)+[ \t]*$",
    re.MULTILINE,
)
_LEAST = 2  # signs of a markup, of which one may be chance


def markup_of(text: str, *, may_be_notes: bool) -> tuple[ContentType, str | None] | None:
    r"""The markup of a text and its language; None of plain text.

    `may_be_notes` says whether the name is one that people give texts: then signs of reStructuredText, AsciiDoc and
    Markdown count, too.

    Examples:
        >>> markup_of("A\n\nSee :ref:`x`.\n\n.. note:: B\n", may_be_notes=True)
        (<ContentType.RST: 'rst'>, None)
        >>> markup_of("Dear all,\n\nnothing new.\n", may_be_notes=True)
    """
    start, text = text[:_HEAD], text[:_LOOKED_AT]
    if _PAGE.match(start):
        return ContentType.MARKUP, "html"
    if len(_MANUAL.findall(text)) >= _LEAST and text.lstrip()[:1] in {".", "'"}:
        return ContentType.MARKUP, "man"
    if not may_be_notes:
        return None
    if _POD.search(start):
        return ContentType.MARKUP, "pod"
    if _ORG.search(start):
        return ContentType.MARKUP, "org"
    return _by_signs(text)


def _by_signs(text: str) -> tuple[ContentType, str | None] | None:
    titles = sum(abs(len(match["text"]) - len(match["under"])) <= _LEAST for match in _TITLE.finditer(text))
    rst = sum(1 for _ in _RST.finditer(text)) + sum(1 for _ in _OVERLINED.finditer(text))
    asciidoc = sum(1 for _ in _ASCIIDOC.finditer(text))
    markdown = sum(1 for _ in _MARKDOWN.finditer(text))
    best = max(rst, asciidoc, markdown)
    if best + min(titles, 1) < _LEAST or not best:
        return (ContentType.RST, None) if titles >= _LEAST else None
    if best == markdown:
        return ContentType.MARKDOWN, None
    return (ContentType.RST, None) if best == rst else (ContentType.MARKUP, "asciidoc")


def is_docbook(text: str) -> bool:
    """Whether XML is DocBook."""
    return _DOCBOOK.search(text[:_HEAD]) is not None
