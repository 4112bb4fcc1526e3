"""What must never be stored in a lesson: keys, tokens, passwords, and what leads to a person (LES-6)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

from pipelines.domain.errors import InvalidLessonError
from pipelines.domain.lesson import Lesson

_NAMED = (
    r"(?:pass(?:wor[dt]|wd|phrase|code)?|pwd?|secret|token|(?:api|access)[ _-]?key|credentials?|auth(?:orization)?|pin)"
)
# A password as other languages call it, and what stands between it and its value.
_NAMED_ELSEWHERE = (
    r"(?:passwort|kennwort|mot de passe|contraseña|senha|wachtwoord|hasło|lösenordet|lösenord|пароль|"
    r"密码|密碼|口令|パスワード|비밀번호|password)"
)
_IS_ELSEWHERE = r"(?:lautet|ist|est|es|é|è|är|to|is|是|为|は|는|은|:|：|=|—)"
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "private key": re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY|\bPuTTY-User-Key-File|\bAGE-SECRET-KEY-1|\bssh-\w+ AAAA", re.IGNORECASE
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
        rf"(?:\b|_){_NAMED}['\"]?\s*(?:=|:=|:|\bis\b|\bwas\b|->)\s*(?:now\s+)?['\"`]?"
        r"(?=\S*[\d!@#$%^&*?+_-])[^\s'\"`<>{}$]{4,}"
        rf"|\b(?:{_NAMED})\s+['\"`]?(?=\S*\d)(?=\S*[A-Za-z!@#$%^&*])[^\s'\"`<>{{}}$/.,-]\S{{4,}}"
        rf"|(?:--{_NAMED}[= ]|\s-p(?=\S*[A-Za-z]))['\"]?(?=\S*\d)[^\s'\"<>{{}}$-]\S{{4,}}"
        rf"|(?:\b|_){_NAMED}['\"]?\s*(?:=|:=|\bis\b)\s*['\"`][^'\"`<>{{}}$\s]{{4,}}['\"`]"
        rf"|[?&;]\s*{_NAMED}=[^\s&;<>{{}}$]{{4,}}|--pass(?:word)?=[^\s<>{{}}$'\"-]{{4,}}"
        r"|\bsshpass -p ?['\"]?[^\s$<{'\"]{4,}|\bredis-cli\b[^\n]* -a ['\"]?[^\s$<{'\"-]{4,}"
        r"|\blogin\b[^\n]* -p ['\"]?[^\s$<{'\"-]{4,}|/user:\S+ (?=\S*\d)\S{4,}"
        rf"|{_NAMED_ELSEWHERE}(?: \w+){{0,2}}?\s?{_IS_ELSEWHERE}\s?['\"„“»«]?(?=[!-~]*\d)(?=[!-~]*[a-z])[!-~]{{6,}}",
        re.IGNORECASE,
    ),
    "assigned secret": re.compile(
        r"\b[A-Z_]*(?:PASS|PASSWORD|PASSWD|PWD|SECRET|TOKEN|API_?KEY)[A-Z_]*=['\"]?[^\s$<{'\"]{4,}"
    ),
    "told password": re.compile(
        r"\bpass(?:word|phrase|code)(?: (?:for|of|on|to) [\w ]{1,30}?)?"
        r"(?: is (?:now )?|: ?(?!\S*\d))(?!\w+(?:ed|en|ing)\b)"
        r"(?!(?:wrong|missing|empty|weak|short|long|optional|correct|invalid|secret|unique|kept|sent|read|part|only|never|"
        r"always|just|also|still|what|that|this|there|from|with|case|"
        r"required|string|bytes|text|none|null|true|false|hidden)\b)(?:[^\s.,'\"<{$]{4,}\s*(?:[.!,;()]|$)|['\"][^'\"\n<{$]{4,}['\"])"
        r"|\bpassphrase ['\"][a-z]+(?:[ -][a-z]+){2,}['\"]",
        re.IGNORECASE | re.MULTILINE,
    ),
    "credentials": re.compile(
        r"(?:-u|--user)[ =]['\"]?(?!\d+:\d+(?!\S))[^\s:'\"]+:[^\s$]+|\b[a-z][a-z0-9+.-]*://[^\s/:@<>{}$]*:[^\s/@<>{}$]+@",
        re.IGNORECASE,
    ),
    "e-mail address": re.compile(
        r"[\w.+%-]{1,64}(?:@|\s?(?:\(at\)|\[at\])\s?|\s+at\s+(?=\w+\s+dot\s))[\w-]+"
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
}
_LONG = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
_BITS = 3.4  # per character: of words joined by signs it is below, of random letters and digits above
_HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
# What names a version or measures something, and is no secret though it looks drawn or is assigned.
_PUBLIC = re.compile(
    r"\b(?:(?:sha-?\d+|md5)[:= @]\s?|(?:commit|revision|revert|checksum|digest|cherry-pick)\s+(?:(?:of|the|id)\s+)?)"
    r"[0-9a-f]{7,128}\b"
    r"|\b\w*(?:LENGTH|SIZE|COUNT|LIMIT|TTL|TIMEOUT|AGE|EXPIRY|DAYS|HOURS|MINUTES|SECONDS|ROUNDS|ATTEMPTS|TOKENS)=\d{1,9}\b",
    re.IGNORECASE,
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def sensitive_parts(text: str) -> tuple[str, ...]:
    """What a text holds that must not be stored, by kind and never by value; empty where there is nothing.

    Examples:
        >>> sensitive_parts("Log in as ada@example.org with password: hunter2!")
        ('password', 'e-mail address')
        >>> sensitive_parts("Read the password from $DB_PASSWORD, never from the command line")
        ()
    """
    text = _PUBLIC.sub(" ", text)
    kinds = [kind for kind, pattern in _PATTERNS.items() if pattern.search(text)]
    if any(_random(piece) for piece in _LONG.findall(_UUID.sub("", text))):
        kinds.append("random text")
    return tuple(kinds)


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


def _random(piece: str) -> bool:
    """Whether a long piece looks drawn: letters and digits mixed, and no letter much more frequent than others."""
    if _HEX.fullmatch(piece):
        return True
    digits = sum(letter.isdigit() for letter in piece)
    if digits < 2 or digits == len(piece) or piece.count("/") > 2:
        return False
    counts = Counter(piece)
    entropy = -sum(count / len(piece) * math.log2(count / len(piece)) for count in counts.values())
    words = re.findall(r"[A-Za-z]{4,}", piece)
    return entropy >= _BITS and sum(map(len, words)) < 0.7 * len(piece)
