"""What files of Office and books have in common: a zip of XML that may be a bomb, and facts about itself."""

from __future__ import annotations

import zipfile
from datetime import datetime
from typing import IO, Any

from weft.ingestion.metadata.assigned import moment_seconds
from weft.ingestion.sources.formats.messages import plain
from weft.ingestion.sources.formats.source import FormatError

_MOST_BYTES = 256_000_000  # of all files in an archive, unpacked: what pictures may take that are not unpacked here
_MOST_XML = 64_000_000  # of one file that is parsed: its tree takes ten times as much memory
_MOST_FILES = 20_000
_XML = (".xml", ".rels", ".html", ".xhtml", ".htm", ".opf", ".ncx")


def opened(file: IO[bytes]) -> zipfile.ZipFile:
    """The archive, where unpacking it fits into memory by what it says of itself; it cannot give more than that.

    Raises:
        FormatError: It is no archive, encrypted, or too large unpacked.
    """
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise FormatError("unreadable_format", f"expected a zip archive, found: {error}") from error
    entries = archive.infolist()
    xml = max((each.file_size for each in entries if each.filename.lower().endswith(_XML)), default=0)
    total = sum(each.file_size for each in entries)
    if len(entries) > _MOST_FILES or total > _MOST_BYTES or xml > _MOST_XML:
        detail = f"expected at most {_MOST_BYTES} bytes unpacked, {_MOST_XML} in one file, found {total} and {xml}"
        raise FormatError("too_large", f"{detail}, in {len(entries)} files")
    if any(each.flag_bits & 1 for each in entries):
        raise FormatError("encrypted", "expected a file without a password, found an encrypted one")
    return archive


def facts_of(properties: Any) -> tuple[str | None, tuple[str, ...], float | None]:
    """Title, authors and time of the last change, as the core properties of a document have them."""
    title, author = properties.title, getattr(properties, "author", None) or getattr(properties, "creator", None)
    author = None if author in {"python-docx", "openpyxl"} else author
    modified = properties.modified
    return (
        plain(title) or None if isinstance(title, str) and title != "PowerPoint Presentation" else None,
        (plain(author),) if isinstance(author, str) and author.strip() else (),
        moment_seconds(modified) if isinstance(modified, datetime) else None,
    )
