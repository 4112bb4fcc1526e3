"""What a document is called: by metadata, its first heading, or what its head says of it (ING-37)."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import ContentType, Document

_LONGEST = 200  # characters of a title
_LOOKED_AT = 65_536  # characters of a file: its head is there or nowhere
_LARGEST = 8 * 1024 * 1024  # characters of JSON that are read for a title

_SCRIPT_DOC = re.compile(r"^[ \t]*(?:/\*\*|\*)[ \t]*@file(?:overview)?[ \t]+([^\n*]+)", re.MULTILINE)
_OF_CODE: Mapping[str, re.Pattern[str]] = {
    "python": re.compile(
        r"\A(?:\s|#[^\n]*)*+[rRuU]?"
        r"(?:\"\"\"\s*([^\n]*?)\s*(?:\"\"\"|\n)|'''\s*([^\n]*?)\s*(?:'''|\n)|\"([^\"\n]+)\"|'([^'\n]+)')"
    ),
    "rust": re.compile(r"\A(?:\s|//(?!!)[^\n]*)*+//![ \t]*(?:#+[ \t]*)?([^\n]+)"),
    "go": re.compile(r"^(?://|/\*)[ \t]*(Package \w[^\n]*)", re.MULTILINE),
    **dict.fromkeys(("javascript", "typescript", "jsx", "tsx"), _SCRIPT_DOC),
}
"""The first line of what documents a whole file, as the languages have it."""

_OF_LINES: Mapping[str, re.Pattern[str]] = {
    "yaml": re.compile(r"^(?:title|name|info:\n[ \t]+title)[ \t]*:[ \t]+[\"']?([^\n\"'#>|&*{\[]+)", re.MULTILINE),
    "toml": re.compile(r"^(?:title|name)[ \t]*=[ \t]*[\"']([^\n\"']+)", re.MULTILINE),
}
_PAGE_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{1,1000})</title", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6}[ \t]+([^\n]+?)[ \t#]*$", re.MULTILINE)


def title_of(document: Document, chunks: Sequence[Chunk]) -> str | None:
    r"""The title of a document: as declared, else its first heading, else what its head says of it; None without any.

    Args:
        chunks: Of the document, in source order.

    Examples:
        >>> text = "# Licence\n'Locks, and who holds them.'\n"
        >>> of_code = {"content_type": ContentType.CODE, "domain": "code", "language": "python"}
        >>> title_of(Document(uri="a", text=text, trust_level=70, **of_code), [])
        'Locks, and who holds them.'
    """
    if document.title:
        return document.title
    if document.content_type is ContentType.CODE:
        title = _first_of(_OF_CODE.get(document.language or ""), document.text)
    elif document.content_type is ContentType.CONFIGURATION:
        title = _of_configuration(document.text, document.language)
    else:
        title = next((chunk.heading_path[0] for chunk in chunks if chunk.heading_path), None)
        if title is None and document.language == "html":
            title = html.unescape(_first_of(_PAGE_TITLE, document.text) or "")
    return " ".join((title or "").split())[:_LONGEST].rstrip() or None


def _first_of(pattern: re.Pattern[str] | None, text: str) -> str | None:
    match = None if pattern is None else pattern.search(text[:_LOOKED_AT])
    return None if match is None else next((group for group in match.groups() if group), None)


def _of_configuration(text: str, language: str | None) -> str | None:
    if language == "json":
        return _of_json(text)
    return _first_of(_OF_LINES.get(language or ""), text)


def _of_json(text: str) -> str | None:
    """The title that an object gives itself, or the first heading of a notebook."""
    try:
        value = json.loads(text) if len(text) <= _LARGEST else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("cells"), list):
        return next(filter(None, map(_heading_in, value["cells"])), None)
    inner = value.get("info")
    named = (value.get("title"), inner.get("title") if isinstance(inner, dict) else None, value.get("name"))
    return next((one for one in named if isinstance(one, str) and one.strip()), None)


def _heading_in(cell: Any) -> str | None:
    if not isinstance(cell, dict) or cell.get("cell_type") != "markdown":
        return None
    lines = cell.get("source")
    text = "".join(map(str, lines)) if isinstance(lines, list) else str(lines or "")
    return _first_of(_HEADING, text)
