"""Words of a text, with signs, numbers and single letters among them, and their stems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile

_CHINESE = (  # Japanese and Korean, too: Han, kana and Hangul as search has them, without signs between words
    "\u1100-\u11ff\u3005-\u3007\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3130-\u318f"
    "\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_NARROW = re.compile("[\uff66-\uff9f]+|[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]+")  # kana, and letters as wide as Han
_RUN = re.compile(f"[{_CHINESE}]+")
# "C++" and "main.py" are one word, and so are ".env", "@types", "*.go" and "$HOME": what stands before is a part of it.
_WORD = (
    r"(?<![\w-])--?[^\W\d_][\w-]*"  # a flag
    r"|(?<![\w)\]}.-])[-+−]?(?:~?/\.?|\.{1,2}/|[.@#$]|\*\.)?_*[^\W_](?:[\w.+#/:'’@-]*[\w#])?(?:\+\+)?"
    r"|_*[^\W_](?:[\w.+#/:'’@-]*[\w#])?(?:\+\+)?"
)
# Signs are words where they stand alone, in quotes or not, and where they stand beside a word and are no punctuation.
_ALONE = r"(?<!\S)(?:[^\w\s]|_)+(?!\S)"
_OPERATOR = (
    r"[!*/:-]*[<>=&|^%€£$¥≤≥≠±×÷→←+~][!*/:<>=&|^%≤≥≠+~-]*|!(?=[\w(])|[^\x00-\u00a1\u2010-\u206f\u3000-\u303f\w\s]+"
)
_TOKEN = re.compile(f"{_ALONE}|{_WORD}|{_OPERATOR}")
_QUOTES = "`'\"“”‘’()[]{}"
_PUNCTUATION = ".,:;!?"
_DASHES = frozenset("–—…")
_DENIED = frozenset(  # "dont"
    ("do", "does", "did", "ca", "could", "wo", "would", "should", "is", "are", "was", "has", "have", "had")
)
_SHORT_VERBS = {"ca": "can", "wo": "will", "sha": "shall"}
# Without an apostrophe no other word is spelt so: "were" and "well" stay what they are.
_SHORT_FORM = re.compile(
    r"^(?:(?:i|you|we|they|he|she|it)(?='(?:m|s|ve|d|ll|re)$)|(?:what|where|who|how|that|there|here)(?='(?:ve|d|ll|re)$|'?s$)"
    r"|(?:i|you|we|they)(?=ve$)|(?:you|they)(?=re$)|i(?=m$))"
)

_SLIP = 5  # letters that a word has in which a slip does not make another one

STEM = 3
"""Letters that stay of a word at least."""
_ENDINGS = ("ings", "ing", "ies", "ied", "ed", "es", "s", "ly")
_WHOLE = ("ss", "us", "is")  # "class" and "status" are no plurals
_VOWELS = frozenset("aeiouy")
# British endings and what stands for them: initialise, analysing, colour, cancelled. Short words are left as they are
# (rise, four), and so are those with one syllable before the ending (spelling).
_SPELLINGS = (
    (re.compile(r"^([a-z]{3,}[b-df-hj-np-tv-z])is(?=(?:e[ds]?|ers?|ing|ations?)$)"), r"\1iz"),
    (re.compile(r"(?<=al)ys(?=(?:e[ds]?|ers?|ing)$)"), "yz"),
    (re.compile(r"(?<=[a-z]{3})our(?=(?:s|ed|ing|ful|ite|ites)?$)"), "or"),
    (re.compile(r"(?<=[a-z])([aeiou][b-df-hj-np-tv-z]+e)ll(?=(?:ed|ing|ers?)$)"), r"\1l"),
)


def written_words(text: str) -> list[str]:
    """Words, names, flags, numbers and signs of a text as they are written, in their order.

    Examples:
        >>> written_words("Don't use `==` with x > -1 in .env, main.py or C++!")
        ["Don't", 'use', '==', 'with', 'x', '>', '-1', 'in', '.env', 'main.py', 'or', 'C++']
        >>> written_words("Reply 👍; 部署前 run `git push --force`")
        ['Reply', '👍', '部署', '署前', 'run', 'git', 'push', '--force']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace("’", "'")
        text = _NARROW.sub(lambda run: unicodedata.normalize("NFKC", run.group()), text)
    return [word for match in _TOKEN.finditer(text) for word in _parts(match.group(), ends=match.end() == len(text))]


def words_of(text: str) -> list[str]:
    """The words of a text in lower case.

    Examples:
        >>> words_of("Pin NumPy to >=2.")
        ['pin', 'numpy', 'to', '>=', '2']
    """
    return [word.casefold() for word in written_words(text)]


def in_full(word: str) -> tuple[str, ...]:
    """The words that a short form in lower case stands for, also without its apostrophe: "isn't", "cannot", "whats".

    Examples:
        >>> in_full("can't"), in_full("dont"), in_full("what's"), in_full("cache's"), in_full("were")
        (('can', 'not'), ('do', 'not'), ('what',), ("cache's",), ('were',))
    """
    if word == "cannot":
        return "can", "not"
    if word.endswith("n't") or (word.endswith("nt") and word[:-2] in _DENIED):
        verb = word.removesuffix("n't").removesuffix("nt")
        return _SHORT_VERBS.get(verb, verb), "not"
    short = _SHORT_FORM.match(word)
    return (short.group(),) if short else (word,)


def is_misspelt(word: str, other: str) -> bool:
    """Whether two words in lower case are one but for a slip: a letter too many, two exchanged, a vowel for another.

    They have five letters at least. Another consonant makes another word ("upload", "unload").

    Examples:
        >>> [is_misspelt(*pair) for pair in (("recieve", "receive"), ("seperate", "separate"), ("batchs", "batches"))]
        [True, True, True]
        >>> [is_misspelt(*pair) for pair in (("upload", "unload"), ("host", "hot"), ("split", "merge"))]
        [False, False, False]
    """
    if min(len(word), len(other)) < _SLIP or abs(len(word) - len(other)) > 1 or word[0] != other[0]:
        return False
    if word == other:
        return True
    begin = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    rest, others = word[begin:], other[begin:]
    if len(rest) != len(others):
        return rest[1:] == others or rest == others[1:]
    if rest[1:] == others[1:]:
        return {rest[0], others[0]} <= _VOWELS
    return rest[:2] == others[1::-1] and rest[2:] == others[2:]


def _parts(word: str, *, ends: bool) -> Iterator[str]:
    if not any(map(str.isalnum, word)):
        inner = word.strip(_QUOTES) or word  # "`==`"
        if len(inner) > 1 and (ends or not inner.isascii()):
            inner = inner.rstrip(".,;:!?") or inner
        bare = len(inner) == 1 and inner in _PUNCTUATION and len(word) in {2, 3} and word[0] != word[-1]
        if inner not in _DASHES and not bare:  # what closes a quotation
            yield inner
    elif _RUN.search(word):
        # A run of such letters is a sentence: its words are not marked, and two letters together tell most of them.
        at = 0
        for run in _RUN.finditer(word):
            if before := word[at : run.start()].strip(_QUOTES + _PUNCTUATION + "/-"):
                yield before
            letters = run.group()
            yield from (letters[place : place + 2] for place in range(max(1, len(letters) - 1)))
            at = run.end()
        if behind := word[at:].strip(_QUOTES + _PUNCTUATION + "/-"):
            yield behind
    else:
        yield word


@lru_cache(maxsize=65_536)
def stem_of(word: str) -> str:
    """A word in lower case without its ending, however it is spelt: forms of one word, and no others ("product").

    Examples:
        >>> [stem_of(word) for word in ("Enables", "enabled", "running", "retries", "red", "colour", "class")]
        ['enabl', 'enabl', 'run', 'retry', 'red', 'color', 'class']
        >>> stem_of("force-pushing"), stem_of("env vars"), stem_of("production"), stem_of("v1.2s")
        ('force-push', 'env var', 'production', 'v1.2s')
    """
    if len(word) == 1 or word[0] == "-":
        return word  # "x" is not "X", and "-p" not "-P"
    word = word.casefold().replace("’", "'").removesuffix("'s")
    first, sign, last = word.rpartition(" " if " " in word else "-")
    if first and last.isalpha():
        return f"{first}{sign}{stem_of(last)}"
    if not word.isalpha() or not word.isascii():
        return word
    for british, american in _SPELLINGS:
        word = british.sub(american, word)
    for ending in _ENDINGS:
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= STEM and not word.endswith(_WHOLE) and not _VOWELS.isdisjoint(root):
            if ending == "ed" and root.endswith("e"):
                break  # "speed"
            word = root + ("y" if ending in {"ies", "ied"} else "")
            if len(word) > STEM and word[-1] == word[-2] and word[-1] not in "slz":
                word = word[:-1]  # "running"
            break
    return word.rstrip("e") if len(word) > STEM else word
