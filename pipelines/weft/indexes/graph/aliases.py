"""Which names are one entity: by their letters, and by what stands around them where the letters differ (ING-17).

Precision comes first, because a wrong merge mixes two things for good while a missed one leaves two nodes. Two names of
one label are one entity

- outright, where only case, punctuation, blanks, a possessive or a company's legal form tell them apart;
- where their surroundings are alike (cosine of the mean vectors of the texts that mention them) and one is the other's
  initials or its usual short form, and no other name could be meant by it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Key = tuple[str, str]  # label and normalised name

LONGEST_GROUP = 50
"""Names that are joined into one at most: more were joined by chance."""

_NOT_IN_KEYS = re.compile(r"[^\w+#]+|_+")  # "C", "C++" and "C#" are three names
_POSSESSIVE = re.compile(r"['’]s?$")
_LEGAL_FORMS = frozenset(
    {"inc", "incorporated", "ltd", "limited", "llc", "corp", "corporation", "gmbh", "plc", "co", "ag"}
)
_LEADING = frozenset({"apache", "gnu", "the"})  # words before a name that many leave out
_BLANKS = re.compile(r"(?<!\d) | (?!\d)")  # all but those between numbers: 1.12 is not 11.2
_COMPACT = 5  # letters from which a name without its blanks is still told apart
_SMALL_WORDS = frozenset({"of", "the", "and", "for", "in", "on", "de", "la"})
_SURNAME = 4  # letters of a last name that stands for the whole


@dataclass(frozen=True, slots=True)
class Name:
    """One normalised name under one label, with the times it was mentioned."""

    key: Key
    mentions: int


def entity_key(name: str) -> str:
    """The form two spellings of one name share: case folded, punctuation and surplus blanks gone."""
    folded = unicodedata.normalize("NFKC", name).casefold().strip()
    return _parts(_POSSESSIVE.sub("", folded)) or folded


def entity_keys(words: Sequence[str], longest: int) -> list[list[str]]:
    """The key of every run of at most `longest` words, by its first word and its length, shorter runs first.

    Each is `entity_key` of the words with blanks between, at the cost of each word read once.
    """
    folded = [unicodedata.normalize("NFKC", word).casefold() for word in words]
    within = [f"{parts} " if (parts := _parts(word)) else "" for word in folded]
    ending = [_POSSESSIVE.sub("", word.strip()) for word in folded]
    last = [inner if end == word else _parts(end) for word, end, inner in zip(folded, ending, within, strict=True)]
    runs: list[list[str]] = []
    for start in range(len(words)):
        keys, before = [], ""
        for end in range(start, min(start + longest, len(words))):
            keys.append((before + last[end]).rstrip() or entity_key(" ".join(words[start : end + 1])))
            before += within[end]
        runs.append(keys)
    return runs


def _parts(folded: str) -> str:
    return " ".join(_NOT_IN_KEYS.sub(" ", folded).split())


def doubtful(names: Collection[Key]) -> list[tuple[Key, Key]]:
    """Pairs of a name and the one longer name that it may be short for: their surroundings decide."""
    meant: defaultdict[Key, set[Key]] = defaultdict(set)
    existing = frozenset(names)
    for label, name in names:
        for short in _short_forms(label, name):
            if (label, short) in existing:
                meant[label, short].add((label, name))
    return sorted((short, wholes.pop()) for short, wholes in meant.items() if len(wholes) == 1)


def merged(names: Iterable[Name], joined: Iterable[tuple[Key, Key]], *, longest: int) -> dict[Key, Key]:
    """The name that stands for each name, the same for all that are one entity, as are pairs that were `joined`."""
    by_mentions = sorted(names, key=lambda name: (-name.mentions, name.key))
    outright = [(first, other) for group in _same_letters(by_mentions) for first, other in pairwise(group)]
    return _closed([name.key for name in by_mentions], [*outright, *joined], longest)


def _same_letters(names: Sequence[Name]) -> Iterator[list[Key]]:
    groups: defaultdict[Key, list[Key]] = defaultdict(list)
    for name in names:
        groups[name.key[0], _bare(name.key[1])].append(name.key)
    yield from (group for group in groups.values() if len(group) > 1)


def _bare(key: str) -> str:
    """What is left of a name without a legal form and, where it stays long enough, without blanks."""
    words = key.split()
    while len(words) > 1 and words[-1] in _LEGAL_FORMS:
        words.pop()
    compact = _BLANKS.sub("", " ".join(words))
    return compact if len(compact) >= _COMPACT else " ".join(words)


def _short_forms(label: str, key: str) -> Iterator[str]:
    words = key.split()
    if len(words) < 2:
        return
    initials = "".join(word[0] for word in words)
    if len(words) > 2 and initials.isalpha():
        yield initials
    significant = [word for word in words if word not in _SMALL_WORDS]
    if len(significant) > 2 and len(significant) < len(words):
        yield "".join(word[0] for word in significant)
    if words[0] in _LEADING:
        yield " ".join(words[1:])
    if label == "person" and len(words[-1]) >= _SURNAME:
        yield words[-1]


def _closed(keys: Sequence[Key], pairs: Iterable[tuple[Key, Key]], longest: int) -> dict[Key, Key]:
    """The equivalence that the pairs span; the first of `keys` in a class stands for it."""
    rank = {key: place for place, key in enumerate(keys)}
    root: dict[Key, Key] = {}

    def find(key: Key) -> Key:
        while (above := root.get(key, key)) != key:
            root[key] = root.get(above, above)
            key = above
        return key

    for pair in pairs:
        first, other = sorted((find(pair[0]), find(pair[1])), key=rank.__getitem__)
        if first != other:
            root[other] = first
    sizes: defaultdict[Key, int] = defaultdict(int)
    for key in keys:
        sizes[find(key)] += 1
    return {key: find(key) if sizes[find(key)] <= longest else key for key in keys}


def cosines(pairs: Sequence[tuple[Key, Key]], vectors: Mapping[Key, Sequence[float]]) -> list[float]:
    """Cosine of both vectors of each pair, −1 where one has none or no length."""
    return [_cosine(vectors.get(one), vectors.get(other)) for one, other in pairs]


def _cosine(one: Sequence[float] | None, other: Sequence[float] | None) -> float:
    if one is None or other is None:
        return -1.0
    length = (sum(x * x for x in one) * sum(y * y for y in other)) ** 0.5
    return sum(x * y for x, y in zip(one, other, strict=True)) / length if length else -1.0
