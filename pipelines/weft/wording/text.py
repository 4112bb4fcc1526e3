"""A short text taken apart: what it names, what it denies, which way it points and what it says comes first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property, lru_cache
from itertools import dropwhile, pairwise, takewhile

from weft.wording import lexicon
from weft.wording.lexicon import AUXILIARIES, DENYING_VERBS, IDLE, denies, meaning_of, sure_stem
from weft.wording.words import in_full, written_words

CLAUSES = re.compile(r"[,;:.!?](?:\s+|$)|\s+[-–—]\s+|\s+but\s+", re.IGNORECASE)
_CONTRAST = re.compile(r"\b(?:instead of|rather than|without|except(?: for)?|as opposed to)\b", re.IGNORECASE)
_ENDS_CONTRAST = (
    frozenset(["in", "for", "on", "when", "at", "during", "while", "and", "as", "to", "with", "before", "after", "if"])
    | AUXILIARIES
)
_PREFERS = frozenset({"prefer", "prefers", "preferred"})
_ORDER = re.compile(r"\b(before|prior to|ahead of|after|following|once|until)\b", re.IGNORECASE)
_ORDINAL = re.compile(
    r"^(?P<first>.+?) first,?\s+(?:and\s+)?(?:then\s+)?(?P<then>.+?)(?:\s+(?:afterwards|later|second|last))?\W*$"
)
_THEN = re.compile(r"[,;]?\s+(?:and\s+)?then\s+|;\s+afterwards\s+", re.IGNORECASE)
_LEFT_OUT = re.compile(r"\b(?:keep|kept|leave|left)\b[^,;]*\b(?:out|free) of\b", re.IGNORECASE)  # denies what it says
_NOT_UNLESS = re.compile(
    r"\b(?:(?P<never>never)|do not|don['’]t)\s+(?P<deed>\w[^,;:.!?]*?)\s+(?P<sign>without|until|before)\b",
    re.IGNORECASE,
)
_WAY = re.compile(r"\b(?:to|into|onto|as|over)\b", re.IGNORECASE)
_WAY_ENDS = re.compile(r"[,;:.!?](?:\s+|$)|\b(?:before|after|when|while|if|unless|until|and)\b", re.IGNORECASE)
_SHORT_FLAG = re.compile(r"-[A-Za-z]\w?")
_COMMA = re.compile(r"[,;:]\s")
_PASSIVE = frozenset(["be", "been", "is", "are", "have", "has"])
_BEFORE_DEEDS = frozenset(["always", "never", "do", "not", "please", "must", "should"])
_BESIDE_PRONOUN = AUXILIARIES | frozenset(
    ["when", "if", "what", "how", "where", "that", "why", "which", "before", "after", "while", "and", "but", "as"]
)


Way = tuple[str, frozenset[str], frozenset[str]]
"""A word such as "to", and the stems before and behind it."""


class Kind(Enum):
    """What a word is besides its meaning: another one in its place makes another text."""

    SIGN = "sign"
    LETTER = "letter"
    NUMBER = "number"
    UNIT = "unit"
    FLAG = "flag"
    NAME = "name"


VALUES = frozenset({Kind.SIGN, Kind.LETTER, Kind.NUMBER, Kind.UNIT, Kind.FLAG})
"""Of these another one in the same place says another thing of the same; another name speaks of something else."""


@lru_cache(maxsize=16_384)
def read_words(text: str) -> tuple[tuple[str, str], ...]:
    """The words of a text, each in lower case and as it is written: "don't" as "do not", "set up" and the like as one.

    Single letters keep their case, "I" but for the letter becomes "me", and "A" at the beginning is an article.

    Examples:
        >>> [word for word, _ in read_words("I don't set up the variable i, A or B")]
        ['me', 'do', 'not', 'set up', 'the', 'variable', 'i', 'A', 'or', 'B']
    """
    written = written_words(text)
    words: list[tuple[str, str]] = []
    for at, each in enumerate(written):
        short = len(each) == 1 or _SHORT_FLAG.fullmatch(each)  # whose letters are others in capitals
        parts = (each,) if short else in_full(each.casefold())
        for part in parts:
            word = _letter(part, written, at) if len(part) == 1 and part.isalpha() else part
            if words and lexicon.joins(words[-1][0], word):
                words[-1] = (f"{words[-1][0]} {word}", f"{words[-1][1]} {each}")
            else:
                words.append((word, each))
    return tuple(words)


def _letter(letter: str, written: Sequence[str], at: int) -> str:
    if letter == "A" and at == 0:
        return "a"
    before, behind = (written[place].casefold() if 0 <= place < len(written) else "" for place in (at - 1, at + 1))
    pronoun = (letter == "I" and behind not in {"", "to", "as"}) or (
        letter == "i" and (not before or before in _BESIDE_PRONOUN)
    )
    return "me" if pronoun and behind[:1].isalpha() and len(behind) > 1 else letter


def named(text: str) -> list[str]:
    """Stems of the words that say what a text is about, in their order.

    Examples:
        >>> named("Never commit the .env file")
        ['commit', '.env', 'fil']
    """
    return named_by([word for word, _ in read_words(text)])


def named_by(words: Sequence[str]) -> list[str]:
    """Stems of those of some words that say what a text is about."""
    return [sure_stem(word) for word in words if not is_idle(word)]


def is_idle(word: str) -> bool:
    """Whether a word says nothing of what an instruction is about."""
    return word in IDLE or is_denying(word)


def is_denying(word: str) -> bool:
    """Whether a word denies what an instruction says."""
    return denies(word) or word in DENYING_VERBS


class Text:
    """A text taken apart; made once, and compared with many."""

    def __init__(self, text: str) -> None:
        self.text = affirmed(text)
        read = read_words(self.text)
        self.words = tuple(word for word, _ in read)
        self.stems = tuple(map(sure_stem, self.words))
        self._written = tuple(written for _, written in read)

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of everything that it names."""
        return frozenset(stem for word, stem in zip(self.words, self.stems, strict=True) if not is_idle(word))

    @cached_property
    def meanings(self) -> tuple[str, ...]:
        """Stems of its words, one for all that may mean the same."""
        return tuple(map(meaning_of, self.stems))

    @cached_property
    def counted(self) -> Counter[str]:
        """How often each stem stands in it."""
        return Counter(self.stems)

    @cached_property
    def every(self) -> frozenset[str]:
        """Stems of all its words."""
        return frozenset(self.stems)

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """By stem, what a word is besides its meaning; most are nothing."""
        kinds: dict[str, Kind] = {}
        counted = False
        for at, (word, written) in enumerate(zip(self.words, self._written, strict=True)):
            kind = Kind.UNIT if counted and lexicon.is_unit(word) else _kind(word, written, at)
            counted = kind is Kind.NUMBER
            if kind is not None:
                kinds.setdefault(self.stems[at], kind)
        return kinds

    @cached_property
    def spelt(self) -> Mapping[str, str]:
        """By stem, how signs, numbers, units and names with capitals inside are written: 10 MB are no 10 Mb."""
        words = zip(self.stems, self._written, strict=True)
        return {stem: word for stem, word in words if self.kinds.get(stem) in VALUES or not word[1:].islower()}

    @cached_property
    def hard(self) -> frozenset[str]:
        """Stems of signs, letters, numbers, units, flags and names."""
        return frozenset(self.kinds)

    @cached_property
    def values(self) -> frozenset[str]:
        """Stems of signs, letters, numbers, units and flags."""
        return frozenset(stem for stem, kind in self.kinds.items() if kind in VALUES)

    @cached_property
    def denial(self) -> tuple[bool, frozenset[str]]:
        """Whether the whole is denied ("never", "avoid"), and the stems that are denied by contrast ("rather than")."""
        return _denials(self.text)

    @cached_property
    def order(self) -> tuple[frozenset[str], frozenset[str]]:
        """Stems of what comes first, and of what comes second; empty where no order is stated."""
        return _stated_order(self.text)

    @cached_property
    def ways(self) -> frozenset[Way]:
        """What stands before and what behind a word such as "to", "into" or "as"."""
        return frozenset(_ways(self.text))

    @cached_property
    def directed(self) -> bool:
        """Whether something goes "to" or "into" something else."""
        between = (self.words[at - 1 : at + 2] for at, word in enumerate(self.words) if word in {"to", "into"} and at)
        return any(len(some) > 2 and not is_idle(some[0]) and some[2] != "be" for some in between)

    @cached_property
    def deciding(self) -> frozenset[str]:
        """Small words that change what is said: "only" and what it is said of, "some", "may"."""
        named_behind = (named_by(self.words[at + 1 :]) for at, word in enumerate(self.words) if word == "only")
        return lexicon.DECIDING.intersection(self.words) | {f"only {some[0]}" for some in named_behind if some}

    @cached_property
    def deeds(self) -> frozenset[str]:
        """Stems of what it says is to be done, where it or a part of it begins with that."""
        clauses = [[word for word, _ in read_words(clause)] for clause in CLAUSES.split(self.text)]
        first = (next((word for word in words if word not in _BEFORE_DEEDS), "") for words in clauses)
        return frozenset(sure_stem(word) for word in first if word and not is_idle(word))

    @cached_property
    def objects(self) -> frozenset[str]:
        """Stems of what the first deed is done to: what stands behind it, up to a word such as "before" or "in".

        Examples:
            >>> sorted(Text("Before starting the API, run the migrations of the shop in CI").objects)
            ['migration', 'shop']
        """
        for clause in CLAUSES.split(self.text):
            words = list(dropwhile(_BEFORE_DEEDS.__contains__, (word for word, _ in read_words(clause))))
            if words and not is_idle(words[0]):
                behind = takewhile(lambda word: word not in _ENDS_CONTRAST | {"by", "into", "from"}, words[1:])
                return frozenset(named_by(list(behind)))
        return frozenset()

    @cached_property
    def neighbours(self) -> frozenset[frozenset[str]]:
        """Pairs of stems that stand side by side in a clause."""
        return frozenset(frozenset(pair) for clause in CLAUSES.split(self.text) for pair in pairwise(named(clause)))

    @cached_property
    def orders(self) -> tuple[tuple[str, ...], ...]:
        """What it names as it stands, and with the parts around a comma turned around.

        Examples:
            >>> Text("Before merging, squash commits").orders
            (('merg', 'squash', 'commit'), ('squash', 'commit', 'merg'))
        """
        text = self.text
        parts = [(text[: comma.start()], text[comma.end() :]) for comma in _COMMA.finditer(text)]
        turned = [(*named(back), *named(front)) for front, back in parts]
        return tuple(dict.fromkeys([tuple(named(text)), *turned]))

    @cached_property
    def passive(self) -> bool:
        """Whether what is done may stand behind what it is done to."""
        return not _PASSIVE.isdisjoint(self.words)

    def same_order(self, other: Text) -> bool:
        """Whether both order their words alike, a part in front or behind, a deed first or in the passive."""
        return any(
            ours == theirs
            or (other.passive and theirs in _deed_behind(ours))
            or (self.passive and ours in _deed_behind(theirs))
            for ours in self.orders
            for theirs in other.orders
        )

    def named_as(self, stem: str) -> str:
        """The first word that has a stem; the stem itself where none has."""
        return next((word for word, each in zip(self.words, self.stems, strict=True) if each == stem), stem)


def affirmed(text: str) -> str:
    """A text in which a denial of "without", "until" or "before" says what it comes to.

    Examples:
        >>> affirmed("Never deploy without a plan"), affirmed("Do not delete a branch before asking")
        ('always deploy with a plan', 'delete a branch after asking')
    """

    def turned(match: re.Match[str]) -> str:
        sign = "with" if match["sign"].casefold() == "without" else "after"
        return f"{'always ' if match['never'] else ''}{match['deed']} {sign}"

    return _NOT_UNLESS.sub(turned, text)


def _kind(word: str, written: str, at: int) -> Kind | None:
    if not any(map(str.isalnum, word)):
        return Kind.SIGN
    if word in lexicon.NUMERALS or any(map(str.isdigit, word)):
        return Kind.NUMBER
    if len(word) == 1:
        return Kind.LETTER if word.isascii() and word != "a" else None
    if word[0] == "-":
        return Kind.FLAG
    capital = written[0].isupper() and at > 0 and word not in IDLE
    inner = any(map(str.isupper, written[1:])) and not (written.isupper() and word in IDLE)
    return Kind.NAME if capital or inner or any(sign in word for sign in "._/()#@+:$~") else None


def _denials(text: str) -> tuple[bool, frozenset[str]]:
    whole = False
    denied: set[str] = set()
    for at, clause in enumerate(part for part in CLAUSES.split(text) if part.strip()):
        parts = _CONTRAST.split(clause)
        for part in parts[1:]:
            denied.update(_contrasted(part))
        words = [word for word, _ in read_words(parts[0])]
        if (prefers := next((place for place, word in enumerate(words) if word in _PREFERS), None)) is not None:
            for sign in ("over", "to"):
                if sign in words[prefers + 1 :]:
                    place = words.index(sign, prefers + 1)
                    denied.update(_contrasted(" ".join(words[place + 1 :])))
                    break
        places = [place for place, word in enumerate(words) if is_denying(word)]
        if not places:
            whole = whole or _LEFT_OUT.search(parts[0]) is not None
            continue
        # "Store UTC, never local time" says what to do, and denies what stands behind the comma alone.
        behind = at > 0 and places[0] == 0 and words[0] in {"not", "never", "no"}
        if behind and len(named(text)) > len(named(clause)) and not _is_deed(words):
            denied.update(named(clause))
        else:
            whole = whole or len(places) % 2 == 1
    return whole, frozenset(denied)


def _is_deed(words: Sequence[str]) -> bool:
    """Whether a clause that begins with a denial denies a deed: "in Python, never catch …"."""
    return len(words) > 1 and words[0] == "never" and words[1] not in IDLE


def _contrasted(part: str) -> Iterator[str]:
    for at, (word, _) in enumerate(read_words(part)):
        if at and word in _ENDS_CONTRAST:
            return
        if word not in IDLE:
            yield sure_stem(word)


def _stated_order(text: str) -> tuple[frozenset[str], frozenset[str]]:
    nothing: frozenset[str] = frozenset()
    if (sign := _ORDER.search(text)) is None:
        if ordered := _ORDINAL.match(text):  # "Upgrade React first and the router afterwards"
            first, rest = ordered["first"], [ordered["then"]]
        else:
            first, *rest = _THEN.split(text, maxsplit=1)
        earlier, later = (frozenset(named(first)), frozenset(named(rest[0]))) if rest else (nothing, nothing)
    else:
        front, back = text[: sign.start()], text[sign.end() :]
        if not named(front):  # "Before starting the API, run the migrations"
            comma = re.search(r"[,:]\s", back)
            back, front = (back[: comma.start()], back[comma.end() :]) if comma else ("", "")
        earlier, later = frozenset(named(front)), frozenset(named(back))
        if sign.group().lower() in {"after", "following", "once"}:
            earlier, later = later, earlier
    both = earlier & later
    return earlier - both, later - both


def _ways(text: str) -> Iterator[Way]:
    for clause in _WAY_ENDS.split(text):
        for sign in _WAY.finditer(clause):
            before, behind = frozenset(named(clause[: sign.start()])), frozenset(named(clause[sign.end() :]))
            yield sign.group().lower(), before - behind, behind - before


def _deed_behind(order: tuple[str, ...]) -> list[tuple[str, ...]]:
    first, rest = order[:1], order[1:]
    return [(*rest[:at], *first, *rest[at:]) for at in range(1, len(rest) + 1)]
