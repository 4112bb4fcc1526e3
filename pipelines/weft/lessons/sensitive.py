"""What must never be stored in a lesson, as far as its form tells: keys, tokens, and what leads to a person (LES-6).

Best effort: a password that is a plain word, or plain words, has no form, and is not recognised.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping

from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import Lesson

_LONG = re.compile(r"[A-Za-z0-9+_=-]{20,}")
_HEX = re.compile(r"[0-9a-f]{32,}", re.IGNORECASE)
_UUID = re.compile(r"(?<!mws\.)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{4,}(?![a-z])")
# No word has five consonants in a row, or these letters side by side.
_NO_WORD = re.compile(r"[^aeiouy]{5}|[aeiou]{4}|[qj][^aeiouy]|q[^u]|^[^aeiouy]+$")
_BITS = 3.4  # per character: of few letters repeated it is below
_WORDS = 0.55  # share of its letters that may stand in words; of drawn ones a fifth does, of names nearly all
_LETTERS = 3  # of a word at least
# Letters and digits in a row; names of parts are shorter, or of one kind.
_UNBROKEN = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{12,}")
# What stands before or behind a hash, an id or a fingerprint, which anybody may know.
_PUBLIC = re.compile(
    r"(?<![A-Za-z])(?:commits?|sha-?\d*|md5\w*|hash(?:es)?|digests?|checksums?|fingerprints?|etag|revision|integrity"
    r"|crc|\w*[_ -]?ids?|revert|bisect|cherry-pick|check ?out|rebase|reset|trace|span|between|git \w+|parent|head)\b"
    r"|@$|sha-?\d*[:= -]?$|/(?:blob|tree|commit|raw)/$",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"key(?![\w.-]*/)|token|secret|passw|auth|credential|signature|login|bearer|session|cookie|://$", re.IGNORECASE
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
    pieces = (match for match in _LONG.finditer(text) if _is_random(match.group()))
    return any(not _is_public(text, match.start(), match.end()) for match in pieces)


def _is_random(piece: str) -> bool:
    if _HEX.fullmatch(piece):
        return True
    if not _UNBROKEN.search(piece):
        return False
    counts = Counter(piece)
    if -sum(count / len(piece) * math.log2(count / len(piece)) for count in counts.values()) < _BITS:
        return False
    words = (part for part in _PART.findall(piece) if len(part) >= _LETTERS and not _NO_WORD.search(part.lower()))
    return sum(map(len, words)) < _WORDS * sum(map(str.isalnum, piece))


def _is_public(text: str, begin: int, end: int) -> bool:
    """Whether the words of its sentence around a piece call it something that anybody may know."""
    before = re.split(r"[.;!?]\s|\n", text[max(0, begin - _BEFORE) : begin])[-1]
    behind = re.split(r"[.;!?]\s|\n", text[end : end + _BEHIND])[0]
    if _SECRET.search(before) or _SECRET.search(behind):
        return False
    return bool(_PUBLIC.search(before) or (re.match(r"\W*(?:\w+ )?(?:is|as|are)\b", behind) and _PUBLIC.search(behind)))


_CARD = re.compile(r"(?<![\w.])(?:\d{4}([ -]?)\d{4}\1\d{4}\1\d{1,4}(?:\1\d{1,3})?|\d{4}([ -]?)\d{6}\2\d{4,5})(?![\w-])")
# How issuers' numbers begin, and how long they are (ISO/IEC 7812).
_ISSUED = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|(?:6011|64[4-9]\d|65\d\d)\d{12,15}|35\d{14,17}"
    r"|3[0689]\d{12}"
)
_ACCOUNT = re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?\b", re.IGNORECASE)
_ACCOUNT_LENGTHS = range(15, 35)
_NINE = 9


def has_card(text: str) -> bool:
    """Whether a text holds the number of a payment card.

    Examples:
        >>> has_card("test with 4539 1488 0343 6467"), has_card("order 4539148803436468")
        (True, False)
    """
    numbers = (re.sub(r"\D", "", match.group()) for match in _CARD.finditer(text))
    return any(_ISSUED.fullmatch(number) is not None and _luhn(number) for number in numbers)


def has_account(text: str) -> bool:
    """Whether a text holds the number of a bank account (IBAN).

    Examples:
        >>> has_account("pay DE89 3704 0044 0532 0130 00 today"), has_account("pay DE88 3704 0044 0532 0130 00 today")
        (True, False)
    """
    return any(_is_account(match.group()) for match in _ACCOUNT.finditer(text))


def _luhn(number: str) -> bool:
    doubled = (int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(number)))
    return sum(each - _NINE * (each > _NINE) for each in doubled) % 10 == 0


def _is_account(text: str) -> bool:
    """Whether its remainder by 97 is 1, the first four characters behind the rest and letters as numbers (ISO 13616).

    A word that stands behind it may have been taken for its last group.
    """
    groups = re.split(r"[ -]", text.upper())
    while groups[-1].isalpha():
        groups.pop()
    number = "".join(groups)
    if len(number) not in _ACCOUNT_LENGTHS or sum(map(str.isdigit, number)) < len(number) // 2:
        return False
    turned = "".join(str(int(letter, 36)) for letter in number[4:] + number[:4])
    return int(turned) % 97 == 1


_SIGNS = r"!#$%&*?+~^§;|"  # that passwords have within, and no name, path, number or piece of code
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "password": re.compile(
        # Eight letters, digits and signs without a blank, whatever stands around, in any language. All is bounded:
        # a long line without a blank takes no longer than its length.
        rf"(?<![\w/=.:@&?{_SIGNS}-])(?=[^\s\d]{{0,64}}\d)(?=[^\s{_SIGNS}]{{1,64}}[{_SIGNS}]+[^\W_]|[^\s{_SIGNS}]{{0,64}}\d[^\s{_SIGNS}]{{0,64}}[!#$&*+~^§])"
        rf"(?=\S{{0,64}}[a-zß-ɏ]{{2}})[\w@{_SIGNS}-]{{8,64}}(?![\w/=(){{}}<>\[\]@]|[.:]\w)"
        # Behind a word for one, with a digit.
        r"|\b(?:passw(?:or)?[dt]\w*|passphrase|pwd|pw|(?<!-)token|secret)\b(?:\s?[:=]\s?|\s+(?:\w{1,7}\s+)?)['\"]?"
        rf"(?=[^\s\d]{{0,64}}\d)(?=\S{{0,64}}[^\W\d_]{{2}})(?!\S{{0,64}}\d/)[\w{_SIGNS}.@-]{{8,64}}"
        r"|\b(?:login|credentials?)\s+(?:is|are|was)\s+(?:\w+\s?[/,:]\s?)?(?=[^\s\d]{0,64}\d)(?=\S{0,64}[a-z])[\w!#$%&*-]{8,}"
        r"|\bPINs?\b\W+(?:\w{1,4}\s+)?\d{4,8}\b",
        re.IGNORECASE,
    ),
    "webhook": re.compile(  # a piece of its path, or a value, with digits and letters
        r"https?://(?=\S{0,200}hook)\S{0,200}[/=](?=[^/\s]{0,64}\d)(?=[^/\s]{0,64}[a-z])[\w-]{8,}"
        r"|https?://\S{0,200}[?&](?:key|token|sig|secret|code|auth)=[^\s&<{$]{6,}",
        re.IGNORECASE,
    ),
    "private key": re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY|\bPuTTY-User-Key-File|\bAGE-SECRET-KEY-1|\bssh-\w+ AAAA"
        r"|\bLS0tLS1CRUdJTi|\bM(?:II\w{3}IBA[AD]|HcCAQEE|C4CAQAwBQ|IGHAgEA)[\w+/=]",  # the same in base64
        re.IGNORECASE,
    ),
    "key": re.compile(
        r"\b(?:A(?:KI|SI|RO|ID)A[0-9A-Z]{12,}"
        r"|(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)?[-_]?[A-Za-z0-9_-]{12,}"
        r"|AIza[\w-]{20,}|ya29\.[\w-]{10,}|GOCSPX-[\w-]{10,}"
        r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{12,}|npm_[A-Za-z0-9]{16,}|pypi-[\w-]{16,}"
        r"|xox[abeoprs]-[\w-]{8,}|xapp-[\w-]{8,}|SG\.[\w-]{10,}\.[\w-]{10,}|hf_[A-Za-z0-9]{16,}|dop_v1_[0-9a-f]{16,}"
        r"|key-[0-9a-f]{24,}|AC[0-9a-f]{32}|shp(?:at|ca|pa|ss)_[0-9a-f]{16,}|hvs\.[\w-]{16,}|dckr_pat_[\w-]{10,}"
        r"|sq0(?:atp|csp)-[\w-]{16,}|ATATT[\w=-]{16,}|(?:Account|SharedAccess)Key=[A-Za-z0-9+/=]{16,}"
        r"|\d{8,10}:[\w-]{32,})"
        r"|hooks\.slack\.com/services/\w{6,}/\w{6,}/\w{10,}|discord(?:app)?\.com/api/webhooks/\d{10,}/[\w-]{10,}"
    ),
    "token": re.compile(
        r"\beyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)?|\bbearer\s+[\w.~+/=-]{8,}"
        r"|\bauthorization['\"]?\s*[:=]\s*['\"]?basic\s+(?=[a-z+/]*[\d=])[a-z0-9+/=]{8,}"
        r"|\bcookie:\s*[\w.-]+=(?=[^\s;]*\d)[^\s;<$]{6,}",
        re.IGNORECASE,
    ),
    "assigned secret": re.compile(  # API_TOKEN=…, "client_secret": "…"
        r"(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_ -]?key|access[_ -]?key)['\"]?(?:\s?=\s?|:\s)['\"]?"
        r"(?=[^\s'\"]*\d)(?=[^\s'\"]*[a-z])[^\s'\"<>{}$/(),;]{8,}",
        re.IGNORECASE,
    ),
    "credentials": re.compile(
        r"(?:-u|--user)[ =]['\"]?(?!\d+:\d+(?!\S))[^\s:'\"]+:[^\s$]+|\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@<>{}$]{0,99}:"
        r"(?!(?:pass(?:word|wort)?|pw|secret|x+|\*+|\.+|example|change-?me)@)[^\s/@<>{}$]+@"
        r"|\b[a-z][a-z0-9+.-]{0,30}://(?=[^\s/@]*\d)[\w-]{20,}@"
        r"|(?<![\w/:.@-])(?!mailto:|sips?:)[a-z][\w.-]{0,40}:(?!(?:pass(?:word)?"
        r"|\d+)@)[^\s:@/<>{}$]{4,}@(?!sha\d)[\w-]+(?:\.[\w-]+)",
        re.IGNORECASE,
    ),
    "e-mail address": re.compile(
        r"(?<!ssh )(?<!scp )(?<!\S:)\b(?!git@)[\w.+%-]{1,64}(?:@|\s?(?:\(at\)|\[at\])\s?"
        r"|\s+at\s+(?=\w+\s+dot\s))[\w-]+"
        r"(?:\s?(?:\.|\(dot\)|\[dot\]|\s+dot\s+)\s?[\w-]+)*"
        r"\s?(?:\.|\(dot\)|\[dot\]|\s+dot\s+)\s?[A-Za-z]{2,}\b",
        re.IGNORECASE,
    ),
    "phone number": re.compile(
        r"(?<![\w.])(?:\+\d{1,3}[ .\-/]?(?:\(0?\d{1,4}\)[ .\-/]?)?(?:\d[ .\-/]?){6,12}\d"
        r"|\(\d{2,5}\)[ .\-/]?\d{2,4}[ .\-/]?\d{2,6}(?:[ .\-/]\d{2,6})?"
        r"|\d{3}[ .-]\d{3}[ .-]\d{4}|0\d{2,4}[ \-/]\d{3,8}(?:[ -]?\d{2,6})*"
        r"|00\d{9,14}|0\d{9,11})(?![\w.]*\w)"
    ),
    "social security number": re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"),
}
_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "card number": has_card,
    "account number": has_account,
    "random text": has_random,
}


def sensitive_parts(text: str) -> tuple[str, ...]:
    """What a text holds that must not be stored, by kind and never by value; empty where there is nothing.

    Examples:
        >>> sensitive_parts("Log in as ada@example.org with password: hunter2!")
        ('password', 'assigned secret', 'e-mail address')
        >>> sensitive_parts("Read the password from $DB_PASSWORD, never from the command line")
        ()
    """
    patterns = (kind for kind, pattern in _PATTERNS.items() if pattern.search(text))
    checks = (kind for kind, check in _CHECKS.items() if check(text))
    return tuple(dict.fromkeys((*patterns, *checks)))


def without_sensitive(text: str) -> str:
    """A text with "…" in the place of what must not be stored, as far as its form tells.

    Examples:
        >>> without_sensitive("Never as admin with Tr0ub4dor&3, mail ada@example.org first")
        'Never as admin with …, mail … first'
    """
    for pattern in _PATTERNS.values():
        text = pattern.sub("…", text)
    for check in _CHECKS.values():
        if check(text):
            text = " ".join("…" if check(word) else word for word in text.split(" "))
    return text


def require_storable(lesson: Lesson) -> None:
    """Check that a lesson may be stored, whatever of it holds a text.

    Raises:
        InvalidLessonError: It holds what must not be; the kinds are named, never the values.
    """
    conditions = lesson.conditions
    named = [*conditions.tools, *conditions.files, *conditions.actions, *conditions.words]
    texts = [lesson.content, lesson.reasoning or "", lesson.span or "", lesson.missed or "", *named]
    if kinds := sensitive_parts("\n".join(texts)):
        listed = ", ".join(kinds)
        raise InvalidLessonError([f"expected nothing that must not be stored, found: {listed}: leave it out"])
