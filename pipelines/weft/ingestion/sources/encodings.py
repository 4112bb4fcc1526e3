"""Bytes of a file to text, in whatever encoding (ING-34)."""

from __future__ import annotations

import codecs
import re

from charset_normalizer import CharsetMatches, from_bytes

from weft.ingestion.git.safe_files import UnreadableError

_MARKED = {  # the longer marks first: that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_WIDE = 0.3  # share of zero bytes, and of ASCII then, from which on a text may be UTF-16 without a mark
_STRAY = 0.001  # share of zero bytes in UTF-8, up to which they are slips of a program
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # in no text; tabs, ends of lines and escapes are
_WESTERN = "cp1252"  # what most old files are in; a few letters with accents are the same in a dozen others
_LOOKED_AT = 262_144  # bytes by which an encoding is told


def decoded(data: bytes) -> tuple[str, str | None]:
    """The text of some bytes, and what had to be done to read it: None for UTF-8.

    Raises:
        UnreadableError: They are no text in any encoding.

    Examples:
        >>> decoded("naïve café".encode("cp1252")), decoded("gannet".encode("utf-16"))
        (('naïve café', 'cp1252'), ('gannet', 'utf-16'))
    """
    if (marked := next((name for mark, name in _MARKED.items() if data.startswith(mark)), None)) is not None:
        return _in(data, marked), marked
    zeros = data.count(0)
    if zeros >= _WIDE * max(1, len(data)):
        return _wide(data)
    if zeros > _STRAY * len(data):
        raise UnreadableError("binary", f"expected text, found a zero byte at {data.index(0)}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if zeros:
            raise UnreadableError("binary", f"expected text, found a zero byte at {data.index(0)}") from error
        return _detected(data, error)
    return (text.replace("\0", "\ufffd"), f"UTF-8, zero bytes: {zeros}") if zeros else (text, None)


def _in(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadableError("undecodable", f"expected {encoding}, found otherwise at byte {error.start}") from error


def _wide(data: bytes) -> tuple[str, str]:
    """UTF-16 without a mark: the zero bytes of Latin letters stand at every other place."""
    encoding = "utf-16-le" if data[1::2].count(0) >= data[::2].count(0) else "utf-16-be"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = "\0"
    if _CONTROL.search(text) or len(text.encode("ascii", "ignore")) < _WIDE * len(text):
        raise UnreadableError("binary", f"expected text, found a zero byte at {data.index(0)}")
    return text, encoding


def _detected(data: bytes, error: UnicodeDecodeError) -> tuple[str, str]:
    matches = from_bytes(data[:_LOOKED_AT])
    encoding = _likeliest(matches)
    if encoding is not None:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            text = "\0"
        if not _CONTROL.search(text):
            return text, encoding
    detail = f"expected UTF-8 or an encoding that its letters tell, found byte {data[error.start]:#x} at {error.start}"
    raise UnreadableError("undecodable", detail) from error


def _likeliest(matches: CharsetMatches) -> str | None:
    best = matches.best()
    if best is None:
        return None
    alike = [each for each in matches if (each.chaos, each.coherence) == (best.chaos, best.coherence)]
    western = any(_WESTERN in {each.encoding, *each.could_be_from_charset} for each in alike)
    return _WESTERN if western else best.encoding
