"""Bytes of a file to text, in whatever encoding (ING-34)."""

from __future__ import annotations

import codecs
import re

from charset_normalizer import from_bytes

from weft.ingestion.git.safe_files import UnreadableError

_MARKED = {  # the longer marks first: that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_WIDE = 0.3  # share of zero bytes, and of ASCII then, from which on a text may be UTF-16 without a mark
_STRAY = 0.001  # share of zero bytes in UTF-8, up to which they are slips of a program; a single one always is
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # in no text; tabs, ends of lines and escapes are
_WESTERN = "cp1252"  # what most old files are in; a few letters with accents are the same in a dozen others
_CENTRAL = ("cp1250", "iso8859_2")
_VIETNAMESE = "cp1258"
_OF_LANGUAGE = {  # in Latin letters; what the HTML Standard's default is for their locales, or Windows' kin of that
    **dict.fromkeys(["Croatian", "Czech", "Hungarian", "Polish", "Romanian", "Slovak", "Slovene"], _CENTRAL[0]),
    **dict.fromkeys(("Estonian", "Latvian", "Lithuanian"), "cp1257"),
    "Turkish": "cp1254",
    "Vietnamese": _VIETNAMESE,
}
_LATIN = {_WESTERN, *_CENTRAL, *_OF_LANGUAGE.values()}
_USUAL = [  # the defaults of all locales, and what files in Russian and Japanese were in besides
    *sorted(_LATIN),
    *("cp1251", "koi8_r", "iso8859_7", "cp1255", "cp1256", "cp874", "cp932", "euc_jp", "cp949", "gb18030", "big5"),
]
_HIGH = re.compile(rb"[\x80-\xff]")
_TELLING = 8  # letters beyond ASCII, by which on a language is told
_SURE = 0.5  # coherence, from which on it is
_WINDOWS_ONLY = re.compile(rb"[\x80-\x9f]")  # in ISO 8859 these are no letters
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
    text = data.decode("utf-8-sig", "replace")
    meant = data.count("\ufffd".encode())
    spoiled = text.count("\ufffd") - meant
    # What is written in another encoding has few letters of UTF-8, by chance.
    is_utf_8 = not spoiled or len(text) - len(text.encode("ascii", "ignore")) - meant - spoiled > spoiled
    many = zeros > _STRAY * len(data) and (zeros > 1 or _CONTROL.search(text.replace("\0", "")))
    if many or (zeros and not is_utf_8):
        raise UnreadableError("binary", f"expected text, found a zero byte at {data.index(0)}")
    if not is_utf_8:
        return _detected(data)
    slips = {"zero bytes": zeros, "places that are no UTF-8": spoiled}
    notes = [f"{what}: {count}" for what, count in slips.items() if count]
    return text.replace("\0", "\ufffd"), ", ".join(["UTF-8", *notes]) if notes else None


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


def _detected(data: bytes) -> tuple[str, str]:
    for encoding in _likeliest(data[:_LOOKED_AT]):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if not _CONTROL.search(text):
            return text, encoding
    raise UnreadableError("undecodable", "expected UTF-8 or an encoding that its letters tell, found neither")


def _likeliest(data: bytes) -> list[str]:
    """Encodings, the likeliest first: of those for Latin letters that of the language, or Windows-1252."""
    matches = from_bytes(data, cp_isolation=_USUAL) or from_bytes(data)
    if (best := matches.best()) is None or best.encoding not in _LATIN:
        return [best.encoding] if best else []
    latin = [each for each in matches if each.encoding in _LATIN]
    alike = [each for each in latin if (each.chaos, each.coherence) == (best.chaos, best.coherence)]
    western = any({_WESTERN, _VIETNAMESE} & {*each.could_be_from_charset} for each in alike)
    encoding = _WESTERN if western else best.encoding
    surest = max(latin, key=lambda each: each.coherence)
    if surest.coherence >= _SURE and len(_HIGH.findall(data)) >= _TELLING:
        encoding = _OF_LANGUAGE.get(surest.language, _WESTERN)
    if encoding in _CENTRAL:
        encoding = _CENTRAL[not _WINDOWS_ONLY.search(data)]
    return [encoding, best.encoding, _WESTERN]
