"""What must never be stored in a lesson: keys, tokens, passwords, and what leads to a person (LES-6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pipelines.domain.errors import InvalidLessonError
from pipelines.domain.lesson import Lesson
from pipelines.lessons.sensitive.numbers import has_account, has_card
from pipelines.lessons.sensitive.passwords import states_password
from pipelines.lessons.sensitive.random_text import has_random

_PATTERNS: Mapping[str, re.Pattern[str]] = {
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
    "password": re.compile(
        r"[?&;]\s*[\w.-]*(?:pass(?:word)?|pwd|token|secret|key|sig(?:nature)?|auth|code|credential)="
        r"(?!your|\w*(?:name|value)\b)[^\s&;<>{}$]{8,}|[?&;]\s*(?:pass(?:word)?|pwd)=[^\s&;<>{}$]{4,}"
        r"|--[\w-]*(?:pass(?:wor[dt]|wd|phrase|code)?|secret|token|api-key)[= ]['\"]?(?=\S*\d)[^\s'\"<>{}$/-]\S{4,}"
        r"|\s-p(?=\S*[A-Za-z])['\"]?(?=\S*\d)[^\s'\"<>{}$:-]\S{4,}"
        r"|\bsshpass -p ?['\"]?[^\s$<{'\"]{4,}|\bredis-cli\b[^\n]* -a ['\"]?[^\s$<{'\"-]{4,}"
        r"|\blogin \S+ password \S{4,}|\bhtpasswd -\w*b\w* \S+ \S+ [^\s$<{]{4,}|\bnet user \w+ [^\s/$<]{4,}"
        r"|(?-i:\bmysql\w*\b[^\n]*? -p[^\s$<{'\"-]{4,})|(?-i: -U '?[\w.]+%[^\s$<{]{4,})"
        r"|(?-i:--?(?:password|passwd|passphrase|token|secret|storepass|keypass) "
        r"(?!(?:rather|instead|from|with|flag|option|over|when|only|prompt|file|and|argument|parameter|for|is|to"
        r"|or|in)\b)[a-z]{4,})"
        r"|-pass(?:in|out) pass:[^\s$<{]{4,}|(?-i:\b(?:un)?zip\b[^\n]{0,60}? -P (?!is\b)[^\s$<{-]{4,}"
        r"|\b7za?\b[^\n]{0,60}? -p[^\s$<{-]{4,})"
        r"|(?-i:\b(?:sqlcmd|mongo\w*|cqlsh|az|oc|influx|rabbitmqadmin)\b[^\n]{0,80}? -[pP] (?!\d+\b)[^\s$<{'\"-]{4,})"
        r"|\bldap\w+\b[^\n]{0,80}? -w [^\s$<{'\"-]{4,}|\bsnmp\w+\b[^\n]{0,80}? -c (?!public)[^\s$<{'\"-]{4,}"
        r"|\bsqlplus \w+/[^\s$<{@]{4,}|\bmysqladmin\b[^\n]{0,80}? password [^\s$<{'\"-]{4,}"
        r"|\bredis-cli\b[^\n]{0,80}? --pass [^\s$<{'\"-]{4,}"
        r"|\brequirepass (?!is\b|must\b|in\b)[^\s$<{'\"-]{4,}|(?<!\S)/p:[^\s$<{'\"]{4,}"
        r"|\bopenssl\b[^\n]{0,80}? -k [^\s$<{'\"-]{4,}|\bidentified by ['\"][^'\"$<{]{3,}['\"]"
        r"|\becho ['\"]?[^\s$<{'\"]{4,}['\"]? ?\|[^\n]{0,60}?(?:--password-stdin|chpasswd|sudo -S|--stdin)"
        r"|\bauth\w*\s?=\s?\(\s?['\"][^'\"]+['\"]\s?,\s?['\"][^'\"<{$]+['\"]"
        r"|\blogin\b[^\n]* -p ['\"]?[^\s$<{'\"-]{4,}|/user:\S+ (?=\S*\d)\S{4,}",
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
    "password": states_password,
    "card number": has_card,
    "account number": has_account,
    "random text": has_random,
}


def sensitive_parts(text: str) -> tuple[str, ...]:
    """What a text holds that must not be stored, by kind and never by value; empty where there is nothing.

    Examples:
        >>> sensitive_parts("Log in as ada@example.org with password: hunter2!")
        ('e-mail address', 'password')
        >>> sensitive_parts("Read the password from $DB_PASSWORD, never from the command line")
        ()
    """
    patterns = (kind for kind, pattern in _PATTERNS.items() if pattern.search(text))
    checks = (kind for kind, check in _CHECKS.items() if check(text))
    return tuple(dict.fromkeys((*patterns, *checks)))


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
