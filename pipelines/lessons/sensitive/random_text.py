"""Text that looks drawn at random, as keys and tokens of any provider do, and what is public though it looks so."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

_LONG = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
_SHORT = re.compile(r"(?<![A-Za-z0-9+/_=.-])[A-Za-z0-9]{12,19}(?![A-Za-z0-9+/_=.-]\w)")  # where a secret is spoken of
_HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
_UUID = re.compile(r"(?<!mws\.)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{4,}(?![a-z])")
# No word has five consonants in a row, or these letters side by side.
_NO_WORD = re.compile(r"[^aeiouy]{5}|[aeiou]{4}|[qj][^aeiouy]|q[^u]")
_VOWELS = re.compile(r"[aeiouy]")
_BITS = 3.4  # per character: of few letters repeated it is below
_WORDS = 0.55  # share of its letters that may stand in words; of drawn ones a fifth does, of names nearly all
_WORDS_OF_LETTERS = 0.35  # the same where it has no two digits
_SWITCHES = 6  # capitals in the middle of words that it has then
_FEW_SWITCHES = 3  # in a short one
# Letters and digits in a row, both or capitals in it; names of parts are shorter, or of one kind.
_UNBROKEN = re.compile(r"(?=[A-Za-z]*\d|[^\W_]*[a-z]+[A-Z])(?=\d*[A-Za-z])[A-Za-z0-9]{12,}")
_DIGITS = 2
_LETTERS = 3  # of a word at least; in a short piece one more
_SLASHES = 2  # in a path there are more
# What stands before or behind a hash, an id or a fingerprint, which anybody may know.
_PUBLIC = (
    r"commits?|sha-?\d*|md5\w*|hash(?:es)?|digests?|checksums?|fingerprints?|etag|revision|integrity|crc|\w*[_ -]?ids?"
)
_PUBLIC_BEFORE = re.compile(
    rf"(?<![A-Za-z])(?:{_PUBLIC}|revert|bisect|cherry-pick|check ?out|rebase|reset|trace|span|between|git \w+"
    rf"|parent|head)\b"
    r"|@$|sha-?\d*[:= -]?$|/(?:blob|tree|commit|raw)/$",
    re.IGNORECASE,
)
_PUBLIC_BEHIND = re.compile(rf"^\W*(?:\w+ )?(?:is|as|are) (?:\w+ ){{0,2}}?(?:{_PUBLIC})\b", re.IGNORECASE)
_SECRET = re.compile(
    r"key(?![\w.-]*/)|token|secret|passw|\bpw|auth|credential|signature|login|bearer|session|cookie|://$", re.IGNORECASE
)
_BEFORE, _BEHIND = 48, 40  # characters that are read of what stands around


def has_random(text: str) -> bool:
    """Whether a text holds a piece that looks drawn, and that nothing around it calls a hash or an id.

    Examples:
        >>> has_random("Use lin_api_QvIMDtNkv9hpsSIKEOPEOotbxnE05Mmp"), has_random("Rename useScrollWithCursorV3")
        (True, False)
        >>> has_random("send 9f24dc6eb6d04a57d73e0a0de5f167f2"), has_random("ETag 9f24dc6eb6d04a57d73e0a0de5f167f2")
        (True, False)
    """
    text = _UUID.sub(" ", text)
    if any(not _is_public(text, begin, end) for begin, end in _random(text)):
        return True
    return any(
        _is_random(match.group(), short=True) and _SECRET.search(_before(text, match.start()))
        for match in _SHORT.finditer(text)
    )


def _random(text: str) -> Iterator[tuple[int, int]]:
    for match in _LONG.finditer(text):
        piece, begin = match.group(), match.start()
        hexadecimal = [(begin + each.start(), begin + each.end()) for each in _HEX.finditer(piece)]
        if hexadecimal:
            yield from hexadecimal
        elif piece.count("/") <= _SLASHES:
            if _is_random(piece):
                yield begin, match.end()
        else:
            for part in re.finditer(r"[^/]{20,}", piece):
                if _is_random(part.group()):
                    yield begin + part.start(), begin + part.end()


def _is_random(piece: str, *, short: bool = False) -> bool:
    digits = sum(map(str.isdigit, piece))
    letters = sum(map(str.isalpha, piece))
    if not letters or not _UNBROKEN.search(piece):
        return False
    counts = Counter(piece)
    if -sum(count / len(piece) * math.log2(count / len(piece)) for count in counts.values()) < _BITS:
        return False
    least, switches = (_LETTERS + 1, _FEW_SWITCHES) if short else (_LETTERS, _SWITCHES)
    parts = [part for part in _PART.findall(piece) if len(part) >= least and _is_word(part.lower())]
    words = sum(map(len, parts)) / (letters + digits)
    if digits >= _DIGITS:
        return words < _WORDS
    return words < _WORDS_OF_LETTERS and len(re.findall(r"[a-z][A-Z]", piece)) >= switches


def _is_word(part: str) -> bool:
    return _VOWELS.search(part) is not None and not _NO_WORD.search(part)


def _before(text: str, begin: int) -> str:
    """What stands before a place in its sentence."""
    return re.split(r"[.;!?]\s|\n", text[max(0, begin - _BEFORE) : begin])[-1]


def _is_public(text: str, begin: int, end: int) -> bool:
    before = _before(text, begin)
    behind = re.split(r"[.;!?]\s|\n", text[end : end + _BEHIND])[0]
    if _SECRET.search(before) or _SECRET.search(behind):
        return False
    return bool(_PUBLIC_BEFORE.search(before) or _PUBLIC_BEHIND.search(behind))
