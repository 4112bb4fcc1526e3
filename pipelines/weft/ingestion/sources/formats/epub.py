"""Books (EPUB): chapters in the order of the spine (ING-31)."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from lxml import etree

from weft.ingestion.sources.encodings import decoded
from weft.ingestion.sources.formats.blocks import anchor, heading, joined
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.office import opened
from weft.ingestion.sources.formats.pages import blocks_of, title_in
from weft.ingestion.sources.formats.source import FormatError, Readings, Source, Written
from weft.ingestion.sources.transcripts import seconds_of

_CONTAINER = "META-INF/container.xml"
_PAGES = {"application/xhtml+xml", "text/html"}
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)


def read(source: Source) -> Readings:
    """One document of Markdown; a chapter that names itself nowhere has the name that the contents give it."""
    with opened(source.file) as archive:
        package = _package(archive)
        book = _xml(archive, package)
        base = posixpath.dirname(package)
        items = {each.get("id"): each for each in book.iter("{*}item")}
        names = _contents(archive, base, items)
        blocks: list[str] = []
        size = number = 0
        for reference in book.iter("{*}itemref"):
            item = items.get(reference.get("idref"))
            if item is None or item.get("media-type") not in _PAGES or "nav" in (item.get("properties") or "").split():
                continue
            path = _inside(base, item.get("href"))
            if size > source.limit:
                source.dropped["chapters beyond the most text"] += 1
                continue
            try:
                page = decoded(archive.read(path))[0]
            except (KeyError, BadZipFile):
                source.dropped["chapters that are not there"] += 1
                continue
            parts = list(blocks_of(page))
            number += 1
            if parts and not any(block.startswith("#") for block in parts):
                name = names.get(path) or title_in(page)
                parts = [heading(name, 1), *parts] if name else parts
            blocks += [anchor(f"chapter-{number}"), *parts] if parts else []
            size += sum(map(len, parts))
    if not blocks:
        raise FormatError("no_text", "expected a book with text, found none")
    facts = {key: [plain(each.text or "") for each in book.iter(f"{{*}}{key}")] for key in ("title", "creator", "date")}
    yield Written(
        joined(blocks),
        title=next(filter(None, facts["title"]), None),
        authors=tuple(filter(None, facts["creator"])),
        time=seconds_of(next(iter(facts["date"]), None)),
    )


def _package(archive: ZipFile) -> str:
    try:
        root = next(_xml(archive, _CONTAINER).iter("{*}rootfile"), None)
    except KeyError:
        root = None
    path = None if root is None else root.get("full-path")
    path = path or next((name for name in archive.namelist() if name.endswith(".opf")), None)
    if path is None or path not in archive.namelist():
        raise FormatError("unreadable_format", "expected a book with a package document, found none")
    return str(path)


def _xml(archive: ZipFile, name: str) -> Any:
    root = etree.fromstring(archive.read(name), _PARSER)
    if root is None:
        raise FormatError("unreadable_format", f"expected XML in {name}, found none")
    return root


def _inside(base: str, reference: str | None) -> str:
    return posixpath.normpath(posixpath.join(base, unquote((reference or "").partition("#")[0])))


def _contents(archive: ZipFile, base: str, items: Mapping[Any, Any]) -> dict[str, str]:
    """Names of chapters by their paths, from the table of contents, of EPUB 3 or 2."""
    names: dict[str, str] = {}
    for item in items.values():
        is_nav = "nav" in (item.get("properties") or "").split()
        if not is_nav and item.get("media-type") != "application/x-dtbncx+xml":
            continue
        path = _inside(base, item.get("href"))
        try:
            root = _xml(archive, path)
        except (KeyError, FormatError, BadZipFile):
            continue
        folder = posixpath.dirname(path)
        pairs = [(each.get("href"), "".join(each.itertext())) for each in root.iter("{*}a")]
        for point in root.iter("{*}navPoint"):
            content, label = point.find("{*}content"), point.find("{*}navLabel")
            if content is not None and label is not None:
                pairs.append((content.get("src"), "".join(label.itertext())))
        for reference, label in pairs:
            if reference and label.strip():
                names.setdefault(_inside(folder, reference), " ".join(label.split()))
    return names
