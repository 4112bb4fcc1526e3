"""The words of a text as people write and type them, beside those of the English analyser (RET-22).

A text is indexed twice. The field `contents` has the analyser's terms: stemmed, without stop words. The field `exact`
has tokens of our own, which this module makes, the same way of texts and of queries:

- the *stream*: every word in its order, in lower case, neither stemmed nor dropped, so that phrases can be found, which
  end where punctuation does;
- *names*: a name of several words, as written and in one spelling (`max_retry_count`, `max-retry-count` and
    `maxRetryCount` are `maxretrycount`). Also its words, letters with their digits (`oauth2` of `OAuth2Client`), flags
    (`--cache`), names with a leading dot (`.net`) and symbolic operators (`=>`);
- *weak forms*, marked by `~`: words without accents and ligatures, singulars that the stemmer does not know, and stems
  of Arabic and Hindi.

Both fields read text in one Unicode form, NFKC: composed letters, one width, no ligatures. Characters that nobody sees,
such as soft hyphens, are left out; there is one hyphen and one sigma.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from weft.indexes.settings import WordSettings

WEAK = "~"
"""Begins a token of a form in which a text does not hold the word itself."""

_REMEMBERED = 65_536  # words and names: a corpus repeats its own in text after text
_LONGEST = 80  # characters of a name; what is longer is data


_ENDLESS = re.compile(r"[A-Za-z0-9_]{256,}")  # Lucene takes words of 255 characters at most


_UNSEEN = dict.fromkeys([0xAD, 0x2060, 0xFEFF, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
_ONE_FORM = str.maketrans({"\u2010": "-", "\u2011": "-", "\u2212": "-", "ς": "σ"})


def normalised(text: str) -> str:
    """A text in the form that words are compared in; runs of ASCII letters that nobody types as a word are left out."""
    text = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_UNSEEN | _ONE_FORM)
    return _ENDLESS.sub(" ", text)


def _lower(text: str) -> str:
    return text.lower() if text.isascii() else text.lower().replace("ς", "σ")


def _class_of(categories: frozenset[str], stop: int) -> str:
    """The letters beyond ASCII of some Unicode categories, for a character class."""
    return "".join(chr(at) for at in range(0x80, stop) if unicodedata.category(chr(at)) in categories)


_ALPHABETS, _WRITTEN = 0x2E80, 0xAC00  # where scripts with capitals end, and scripts with vowel signs
_UPPER = "A-Z" + _class_of(frozenset({"Lu", "Lt"}), _ALPHABETS)
_LOWER = "a-z" + _class_of(frozenset({"Ll"}), _ALPHABETS)
_MARKS = _class_of(frozenset({"Mn", "Mc"}), _WRITTEN)
KANA = "\u3040-\u30ff\u31f0-\u31ff"
CJK = rf"\u1100-\u11ff\u3005-\u3007{KANA}\u3130-\u318f\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
"""Han, kana and Hangul, for a character class."""
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese and Khmer, which have no blanks between words, for a character class."""

BREAK = ","
"""Stands in a stream for punctuation between words: what is on either side of it is not side by side."""
_BREAK = re.compile(r"[,;!?:.]+(?![\w,;!?:./-])|[,;!?:]+(?=[^\W\da-z_])(?![a-z])|[。、]|\n\s*\n")
_SPECIAL = r"(?<!\w)[a-z](?:\+\+|\#)"  # C++, C#, F#
_STREAMS = (
    re.compile(rf"{_SPECIAL}|[a-z0-9]+|(?<= ),(?= )"),
    re.compile(rf"{_SPECIAL}|(?<= ),(?= )|(?:[^\W_]|[{_MARKS}])+"),
    re.compile(rf"{_SPECIAL}|(?<= ),(?= )|[{CJK}{UNSPACED}]|(?:(?![{CJK}{UNSPACED}])(?:[^\W_]|[{_MARKS}]))+"),
)
"""Words of ASCII, of other texts with blanks between words, and of any text."""
_WITHOUT_BLANKS = re.compile(f"[{CJK}{UNSPACED}]")
_KANA, _CJK_RUN = re.compile(f"[{KANA}]"), re.compile(f"[{CJK}]+")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_GRAM = 3  # letters: most Thai words have more

_NAME = re.compile(r"[^\W_][\w-]*")
_JOINED = re.compile(r"\w+(?:[./:\\-]+\w+)+")  # paths, dotted and hyphenated names
_QUOTED = re.compile(r"[\"“”„«»「『]([^\"“”„«»「」『』]{2,})[\"“”«»」』]")
_CAPITALS = re.compile(rf"(?<!\w)[{_UPPER}]{{2,}}(?: [{_UPPER}]{{2,}})+(?!\w)")  # IS NULL
_HUMP = re.compile(rf"(?<=[{_LOWER}0-9])(?=[{_UPPER}])")
_ACRONYM = re.compile(rf"(?<=[{_UPPER}])(?=[{_UPPER}][{_LOWER}])")
_LETTERS_OR_DIGITS = re.compile(r"\d+|[^\W\d_]+")
_NUMBERED = re.compile(r"[^\W\d_]+\d+(?=[^\W\d_]{3})")  # base64 of base64encode, not k8 of k8s
_FLAG = re.compile(r"(?<![\w-])--?[^\W\d_][\w-]*")
_DOTTED = re.compile(r"(?<![\w.)\]])\.[^\W\d_]\w*")
_SIGNED = re.compile(r"(?<![\w#])[@$#]\{?[^\W\d]\w*")  # @property, $HOME, ${HOME}, #include
_SIGNS = "=<>!&|?:*+%^~/.-"
_OPERATOR = re.compile(rf"(?<![{_SIGNS}])[{_SIGNS}]{{2,3}}(?![{_SIGNS}])")  # => of x=>y
_ALONE = re.compile(rf"(?<![^\s`\"'(])[{_SIGNS}]{{2,3}}(?![^\s`\"')])")  # prose may end with ?!
_VERSION = re.compile(r"(?<!\w)[vV](?=\d+\.\d)")  # v1.2.3 is also 1.2.3
_SEPARATORS = re.compile(r"[\W_]+")

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
        "this to was will with",
    )
)
"""What Lucene's English analyser drops: of a query these are looked for in names and phrases, and where it has no other
words."""

_UNDECOMPOSED = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h"}
)
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]")  # vowel points with them
_IRREGULAR = {
    "children": "child", "people": "person", "men": "man", "women": "woman", "mice": "mouse", "feet": "foot",
    "teeth": "tooth", "geese": "goose", "criteria": "criterion", "phenomena": "phenomenon", "data": "datum",
    "corpora": "corpus", "schemata": "schema", "oxen": "ox", "dice": "die", "media": "medium", "bacteria": "bacterium",
    "radii": "radius", "nuclei": "nucleus", "stimuli": "stimulus", "foci": "focus", "loci": "locus", "fungi": "fungus",
    "alumni": "alumnus", "cacti": "cactus", "syllabi": "syllabus", "formulae": "formula", "antennae": "antenna",
    "larvae": "larva", "automata": "automaton", "errata": "erratum", "quanta": "quantum", "addenda": "addendum",
    "maxima": "maximum", "minima": "minimum", "optima": "optimum", "spectra": "spectrum", "strata": "stratum",
}  # fmt: skip
# An ending of plurals, and those of the singulars that may have it.
_PLURALS = (
    ("ices", ("ix", "ex")),
    ("ives", ("ife",)),
    ("ves", ("f",)),
    ("xes", ("xis",)),
    ("ses", ("s", "sis")),
    ("zzes", ("z",)),
)


def stream(text: str) -> list[str]:
    """Every word of a text in its order, in lower case; letters of scripts without blanks each alone."""
    lower = _BREAK.sub(f" {BREAK} ", _VERSION.sub("v ", _lower(normalised(text))))
    if lower.isascii():
        return _STREAMS[0].findall(lower)
    return _STREAMS[2 if _WITHOUT_BLANKS.search(lower) else 1].findall(lower)


def side_by_side(text: str) -> tuple[str, ...]:
    """The stream of a phrase, without punctuation before and behind it.

    Examples:
        >>> side_by_side("(first come, first served.)")
        ('first', 'come', ',', 'first', 'served')
    """
    words = stream(text)
    while words and words[-1] == BREAK:
        words.pop()
    while words and words[0] == BREAK:
        words.pop(0)
    return tuple(words)


def _words_of(text: str) -> list[str]:
    return [word for word in stream(text) if word != BREAK]


@functools.lru_cache(_REMEMBERED)
def split_identifier(identifier: str) -> tuple[str, ...]:
    """The words of an identifier or dotted path, in lower case, and behind them letters with the digits after them."""
    words: list[str] = []
    numbered: dict[str, None] = {}
    for whole in _wholes(identifier):
        apart = [each for word in _ACRONYM.split(whole) for each in _LETTERS_OR_DIGITS.findall(word)]
        words += map(_lower, apart)
        if len(apart) > 1 and not whole.isalpha():
            numbered |= dict.fromkeys(_lower(each) for each in (whole, *_NUMBERED.findall(whole)))
    return (*words, *numbered)


def _wholes(name: str) -> list[str]:
    """The pieces of a name between separators and before capitals; capitals in a row stay with what follows them."""
    return [whole for piece in _SEPARATORS.split(name) if piece for whole in _HUMP.split(piece)]


@functools.lru_cache(_REMEMBERED)
def _names_in(token: str) -> tuple[str, ...]:
    """What a text that holds a token is found by beside the words of its stream."""
    if len(token) > _LONGEST or (token.isalpha() and (token[1:].islower() or token.isupper() or len(token) == 1)):
        return ()
    wholes = _wholes(token)
    pieces = [_lower(piece) for piece in _SEPARATORS.split(token) if piece]
    words = split_identifier(token)
    names = [*words, *map(_lower, wholes), "".join(pieces), _lower(token)]
    return tuple(name for name in dict.fromkeys(names) if name not in pieces)


@functools.lru_cache(_REMEMBERED)
def _forms_of(word: str) -> tuple[str, ...]:
    """Words that a word in lower case may stand for: without accents, and its singulars.

    Examples:
        >>> _forms_of("straße"), _forms_of("statuses"), _forms_of("indices"), _forms_of("word")
        (('strasse',), ('status', 'statusis'), ('indix', 'index'), ())
    """
    if not word.isascii():
        plain = unicodedata.normalize("NFKD", word.translate(_UNDECOMPOSED))
        folded = _ACCENTS.sub("", plain).lower()
        return (folded,) if folded and folded != unicodedata.normalize("NFKD", word) else ()
    if word in _IRREGULAR:
        return (_IRREGULAR[word],)
    for ending, singulars in _PLURALS:
        if word.endswith(ending) and len(word) > len(ending):
            return tuple(word[: -len(ending)] + singular for singular in singulars)
    return ()


def marked_names(text: str) -> list[str]:
    """Flags, and names with a dot, an at sign, a dollar or a number sign before them, as they are typed.

    Examples:
        >>> marked_names("use `--no-cache` or -q with .NET and a.b, @property, $HOME and #include")
        ['--no-cache', '-q', '.net', '@property', '$home', '#include']
    """
    flags = _FLAG.findall(text) if "-" in text else []
    dotted = _DOTTED.findall(text) if "." in text else []
    signed = _SIGNED.findall(text) if "@" in text or "$" in text or "#" in text else []
    return [_lower(name).replace("{", "") for name in (*flags, *dotted, *signed)]


def names(text: str) -> list[str]:
    """What a text is found by beside the words of its stream, each once."""
    text = normalised(text)
    tokens = dict.fromkeys(_NAME.findall(text))
    parts = (name for token in tokens for name in _names_in(token))
    return list(dict.fromkeys([*parts, *marked_names(text), *_OPERATOR.findall(text)]))


def lone_operators(text: str) -> list[str]:
    """Operators of signs that stand by themselves.

    Examples:
        >>> lone_operators("what does a ?? b do, or `=>`, and why?!")
        ['??', '=>']
    """
    return _ALONE.findall(text)


def weak_forms(words: Iterable[str]) -> list[str]:
    """The marked forms of words of a stream, each once."""
    return list(dict.fromkeys(WEAK + form for word in words for form in _forms_of(word)))


Analyse = Callable[[str, str], list[str]]
"""Terms of a text by one of Lucene's analysers, which is named first: "cjk", "japanese", "arabic" or "hindi"."""


def without_blanks(text: str, analyse: Analyse) -> list[str]:
    """The terms of what a text says in scripts without blanks, or in Hangul, whose words carry their particles.

    Bigrams by Lucene's CJK analyser; where there is kana also words by its Japanese one; else three letters in a row.
    """
    if text.isascii() or not _WITHOUT_BLANKS.search(text):
        return []
    terms: list[str] = []
    if runs := " ".join(_CJK_RUN.findall(text)):
        terms += analyse("cjk", runs)
        terms += analyse("japanese", runs) if _KANA.search(runs) else []
    for run in _UNSPACED_RUN.findall(text):
        terms += (run[at : at + _GRAM] for at in range(max(1, len(run) - _GRAM + 1)))
    return terms


_STEMMED = {"arabic": re.compile("[\u0620-\u06ff]+"), "hindi": re.compile("[\u0900-\u097f]+")}
_ARABIC_LETTERS = str.maketrans("کی", "كي")  # as Persian and Urdu write them


def script_stems(text: str, analyse: Analyse) -> list[str]:
    """The marked stems of Arabic and Hindi words, whose articles and endings are written with them, each once."""
    if text.isascii():
        return []
    runs = {name: " ".join(of.findall(text)).translate(_ARABIC_LETTERS) for name, of in _STEMMED.items()}
    return list(dict.fromkeys(WEAK + term for name, run in runs.items() if run for term in analyse(name, run)))


def exact_tokens(text: str, analyse: Analyse) -> list[str]:
    """Every token of the field `exact` of a text: its stream, and behind it all else."""
    text = normalised(text)
    words = stream(text)
    others = names(text)
    weak = [*weak_forms(dict.fromkeys([*words, *others])), *script_stems(text, analyse)]
    rest = [*others, *weak, *without_blanks(text, analyse)]
    return [*words, BREAK, *rest] if rest else words


@dataclass(frozen=True, slots=True)
class ExactQuery:
    """What a query looks for in the field `exact`."""

    words: tuple[str, ...]  # of its stream, and of its names; no stop words where there are others
    # names in one spelling, with their digits, as flags; operators; terms of scripts without blanks; the only
    # word of a query
    names: tuple[str, ...]
    weak: tuple[str, ...]  # other forms of its words
    # words that stand side by side in it: of names, operators, quotations, and of the whole where that is no essay
    phrases: tuple[tuple[str, ...], ...]

    def weighted(self, weights: WordSettings) -> tuple[tuple[tuple[str, ...], float], ...]:
        """Tokens of each kind, with their weight."""
        return (self.words, weights.exact), (self.names, weights.names), (self.weak, weights.weak)


def wanted(text: str, analyse: Analyse, *, most: int, phrase_words: int) -> ExactQuery:
    """Read a query."""
    text = _VERSION.sub("", normalised(text))
    words = _words_of(text)
    tokens = dict.fromkeys(_NAME.findall(text))
    names_of = {token: _names_in(token) for token in tokens}
    parts = [part for token in tokens if names_of[token] for part in split_identifier(token)]
    distinct = dict.fromkeys(words)
    telling = [word for word in dict.fromkeys([*words, *parts]) if word not in STOP_WORDS] or list(distinct)
    forms = [form for word in telling for form in _forms_of(word)]
    weak = [*forms, *(WEAK + word for word in (*telling, *forms)), *script_stems(text, analyse)]
    joined = [name for token in tokens if names_of[token] for name in (_lower(token), "".join(_words_of(token)))]
    numbered = [name for some in names_of.values() for name in some if not name.isalpha() and not name.isdigit()]
    marked = [*joined, *numbered, *marked_names(text), *lone_operators(text)]
    sought = [name for name in dict.fromkeys(marked) if name not in distinct]
    sides = [side_by_side(match) for match in (*_JOINED.findall(text), *_CAPITALS.findall(text), *tokens)]
    sides += [split_identifier(token) for token in tokens if names_of[token] and _SEPARATORS.sub("", token).isalpha()]
    sides += map(side_by_side, _QUOTED.findall(text))
    sides += [side_by_side(text)] if len(words) <= phrase_words else []  # last: the longest, which may not fit
    alone = telling if len(words) == 1 else []  # many words of one stem do not outweigh the only one that was typed
    # The stem of such plurals is that of other words: alone, `indices` would find `indicate` before `index`.
    apart = [form for word in alone if word.endswith("ices") for form in _forms_of(word)]
    return ExactQuery(
        () if alone else tuple(telling)[:most],
        (*alone, *sought, *apart, *without_blanks(text, analyse))[:most],
        tuple(dict.fromkeys(weak))[:most],
        tuple(_within(most, (side for side in dict.fromkeys(sides) if len(side) > 1))),
    )


def _within(most: int, phrases: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """The first phrases that have so many words together at most."""
    for phrase in phrases:
        if len(phrase) > most:
            return
        most -= len(phrase)
        yield phrase
