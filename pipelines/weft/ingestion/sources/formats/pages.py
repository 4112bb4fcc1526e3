"""HTML of books and mails as Markdown or text; pages of the web have a chunker of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from weft.ingestion.sources.formats.blocks import escaped, fence, table

_SKIPPED = frozenset({"script", "style", "head", "nav", "noscript", "template", "svg", "iframe", "form", "object"})
_BLOCKS = frozenset(
    {
        *("p", "div", "section", "article", "header", "footer", "main", "aside", "figure", "figcaption", "blockquote"),
        *("ul", "ol", "li", "dl", "dt", "dd", "table", "pre", "hr", "body", "html", "address", "details", "summary"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "center"),
    }
)
_HEADINGS = {f"h{rank}": rank for rank in range(1, 7)}
_MOST_DEPTH = 200
_SPACE = re.compile(r"[ \t\r\f\n]+")


def text_of(page: str) -> str:
    """The text of a page, a block a paragraph."""
    return "\n\n".join(blocks_of(page))


def blocks_of(page: str, *, deeper: int = 0) -> Iterator[str]:
    """The blocks of a page as Markdown: headings, paragraphs, lists, tables, code.

    Args:
        deeper: Ranks that headings are put below those of the page.
    """
    body = LexborHTMLParser(page).body
    if body is not None:
        yield from filter(None, (block.strip("\n") for block in _blocks(body, deeper, 0)))


def title_in(page: str) -> str | None:
    """What a page calls itself."""
    node = LexborHTMLParser(page).css_first("title")
    return (_SPACE.sub(" ", node.text()).strip() or None) if node is not None else None


def _blocks(node: LexborNode, deeper: int, depth: int) -> Iterator[str]:
    run: list[str] = []
    for child in node.iter(include_text=True):
        tag = child.tag
        if tag in _SKIPPED or tag == "-comment" or depth > _MOST_DEPTH:
            continue
        if tag not in _BLOCKS and not (tag != "-text" and _holds_blocks(child)):
            run.append(_inline(child, 0))
            continue
        yield _paragraph(run)
        run = []
        yield from _block(child, tag or "", deeper, depth)
    yield _paragraph(run)


def _block(node: LexborNode, tag: str, deeper: int, depth: int) -> Iterator[str]:
    if tag in _HEADINGS:
        text = _paragraph([_inline(node, 0)])
        yield f"{'#' * min(6, _HEADINGS[tag] + deeper)} {' '.join(text.split())}" if text else ""
    elif tag == "pre":
        code = node.css_first("code")
        language = re.search(r"\b(?:language|lang)-(\w+)", (code or node).attributes.get("class") or "")
        yield fence(node.text(deep=True), language.group(1) if language else "")
    elif tag == "table":
        rows = [[_cell(cell) for cell in row.css("td, th")] for row in node.css("tr")]
        yield table([row for row in rows if row])
    elif tag in {"ul", "ol"}:
        yield "\n".join(_items(node, tag, deeper, depth + 1))
    elif tag == "blockquote":
        yield from (f"> {block}".replace("\n", "\n> ") for block in _blocks(node, deeper, depth + 1) if block)
    else:
        yield from _blocks(node, deeper, depth + 1)


def _items(node: LexborNode, tag: str, deeper: int, depth: int) -> Iterator[str]:
    for number, item in enumerate(node.iter(), start=1):
        mark = "- " if tag == "ul" else f"{number}. "
        text = "\n".join(filter(None, _blocks(item, deeper, depth)))
        if text:
            yield mark + text.replace("\n", "\n" + " " * len(mark))


def _holds_blocks(node: LexborNode) -> bool:
    return any(child.tag in _BLOCKS for child in node.iter())


def _cell(node: LexborNode) -> str:
    return _SPACE.sub(" ", node.text(deep=True, separator=" ")).strip()


def _paragraph(parts: list[str]) -> str:
    lines = (_SPACE.sub(" ", line).strip() for line in "".join(parts).split("\v"))
    return escaped("\n".join(filter(None, lines)))


def _inline(node: LexborNode, depth: int) -> str:
    if node.tag == "-text":
        return node.text(deep=False) or ""
    if node.tag in _SKIPPED or depth > _MOST_DEPTH:
        return ""
    if node.tag == "br":
        return "\v"
    if node.tag == "img":
        return node.attributes.get("alt") or ""
    inner = "".join(_inline(child, depth + 1) for child in node.iter(include_text=True))
    return f"`{inner}`" if node.tag in {"code", "kbd", "tt"} and inner.strip() and "`" not in inner else inner
