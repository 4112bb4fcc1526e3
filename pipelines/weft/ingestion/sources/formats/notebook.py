"""Notebooks (nbformat 3 and 4): cells in order, what code printed as short text (ING-30)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from weft.ingestion.metadata.declared import DeclarationError
from weft.ingestion.metadata.front_matter import front_matter
from weft.ingestion.sources.formats.blocks import fence, heading, joined
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.source import FormatError, Readings, Source, Written

_SHOWN = 600  # characters of what a cell put out: how a result looks, not all of it
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LONG = 40  # lines of code, from which on a cell is cut before what begins in the first column after a blank line
_PICTURE = re.compile(r"!\[([^\]]*)\]\((?:data:|attachment:)[^)]*\)|<img\b[^>]*\bsrc=[\"']data:[^>]*>", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/=]{200,}")
_OVERWRITTEN = re.compile(r"^.*\r(?=[^\r\n])|\r+$", re.MULTILINE)  # by what follows, as on a terminal
_HEADING = re.compile(r"^ {0,3}<h([1-6])\b[^>]{0,500}>(.{1,1000}?)</h\1\s*>", re.IGNORECASE | re.DOTALL | re.MULTILINE)
_TAG = re.compile(r"<[^<>]*>")


def read(source: Source) -> Readings:
    """One document of Markdown."""
    try:
        book = json.loads(source.file.read(16 * source.limit))
    except (ValueError, RecursionError) as error:
        raise FormatError("unreadable_format", f"expected a notebook in JSON, found: {error}") from error
    cells, language = _cells(book), _language(book)
    blocks = [block for cell in cells for block in _blocks(cell, language, source.dropped)]
    yield Written(joined(blocks), title=_title(book, cells))


def _title(book: Mapping[str, Any], cells: list[Mapping[str, Any]]) -> str | None:
    """As the notebook declares it, or front matter in its first cell."""
    facts = book.get("metadata")
    title = facts.get("title") if isinstance(facts, Mapping) else None
    if isinstance(title, str) or not cells:
        return title if isinstance(title, str) else None
    with suppress(DeclarationError):
        declared = front_matter(_joined(cells[0].get("source")))
        return declared.title if declared else None
    return None


def _cells(book: Any) -> list[Mapping[str, Any]]:
    if not isinstance(book, Mapping):
        raise FormatError("unreadable_format", f"expected a notebook, found {type(book).__name__}")
    sheets = book.get("worksheets")
    groups = [book, *(sheets if isinstance(sheets, list) else ())]
    return [
        cell
        for group in groups
        if isinstance(group, Mapping) and isinstance(group.get("cells"), list)
        for cell in group["cells"]
        if isinstance(cell, Mapping)
    ]


def _language(book: Mapping[str, Any]) -> str:
    facts = book.get("metadata")
    facts = facts if isinstance(facts, Mapping) else {}
    for key, name in (("kernelspec", "language"), ("language_info", "name")):
        inner = facts.get(key)
        if isinstance(inner, Mapping) and isinstance(inner.get(name), str):
            return re.sub(r"\W.*", "", inner[name]).lower()
    return "python"


def _blocks(cell: Mapping[str, Any], language: str, dropped: Counter[str]) -> Iterator[str]:
    kind, text = cell.get("cell_type"), _joined(cell.get("source", cell.get("input")))
    if kind == "heading":  # of nbformat 3
        yield f"{'#' * int(cell.get('level') or 1)} {' '.join(text.split())}"
    elif kind == "markdown":
        dropped["pictures"] += len(_PICTURE.findall(text))
        text = _PICTURE.sub(lambda match: match[1] or "", text)
        yield _HEADING.sub(lambda match: f"\n{heading(_TAG.sub('', match[2]), int(match[1]))}\n\n", text).strip()
    elif kind == "code":
        magic = re.match(r"\s*%%(bash|sh|sql|html|javascript|js|R|ruby|perl|latex)\b", text)
        for part in _parts(text):
            yield fence(part, magic[1].lower() if magic else language)
        outputs = cell.get("outputs")
        shown = (
            [_output(each, dropped) for each in outputs if isinstance(each, Mapping)]
            if isinstance(outputs, list)
            else []
        )
        yield fence(_short("\n".join(filter(None, shown)), dropped), "text")
    elif text.strip():
        yield fence(text, "text") if kind == "raw" else text.strip()


def _parts(code: str) -> Iterator[str]:
    """A long cell before each of its definitions, so that each is a block of its own."""
    lines = code.split("\n")
    if len(lines) <= _LONG:
        yield code
        return
    start = 0
    for number in range(1, len(lines)):
        begins = not lines[number - 1].strip() and re.match(
            r"(?:@|(?:async\s+)?def\s|class\s|function\s)", lines[number]
        )
        if begins and number > start:
            yield "\n".join(lines[start:number])
            start = number
    yield "\n".join(lines[start:])


def _output(output: Mapping[str, Any], dropped: Counter[str]) -> str:
    kind = output.get("output_type")
    if kind == "stream":
        return _shown(output.get("text"))
    if kind in {"error", "pyerr"}:
        return f"{output.get('ename', '')}: {output.get('evalue', '')}".strip(": ")
    data = output.get("data", output)
    if not isinstance(data, Mapping):
        return ""
    dropped["pictures"] += any(str(key).startswith(("image/", "png", "jpeg", "svg")) for key in data)
    for key in ("text/markdown", "text/plain", "text/latex", "text"):
        if key in data:
            return _shown(data[key])
    return ""


def _shown(value: Any) -> str:
    """What a terminal shows of it at last."""
    return _OVERWRITTEN.sub("", _COLOURS.sub("", _joined(value)))


def _short(text: str, dropped: Counter[str]) -> str:
    text = _BASE64.sub("[data]", plain(text[: 16 * _SHOWN]))
    if len(text) <= _SHOWN:
        return text
    dropped["ends of outputs"] += 1
    return text[:_SHOWN].rsplit("\n", 1)[0] + "\n…"


def _joined(value: Any) -> str:
    if isinstance(value, list):
        value = "".join(each for each in value if isinstance(each, str))
    return plain(value) if isinstance(value, str) else ""
