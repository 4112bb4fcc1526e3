"""Annotated sentences: read from JSON Lines, and made from templates, as public sources have few on software.

People, organisations and places in templates are names drawn from the annotated sources; the rest is listed in
`vocabulary.json`.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lab.entities.labels import (
    CONCEPT,
    DATE,
    FILE_PATH,
    LOCATION,
    NOT_NAMES,
    ORGANIZATION,
    PERSON,
    SOFTWARE,
    SOURCES,
    TECHNIQUE,
    TECHNOLOGY,
    collapse,
)
from weft.domain.errors import SourceError
from weft.extraction.windows import WORD

Span = tuple[int, int, str]  # first word, last word (inclusive), label

LONGEST = 150  # words; a longer "sentence" is a table or a failed split, and would dominate a batch

_NAME_SOURCES = ("re_docred", "wikigold", "crossner_politics")
_DEMONYMS = ("an", "ish", "ese")  # one source marks "Portuguese" as a place
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "``": '"', "''": '"'}
_SLOTS = {
    "P": PERSON, "O": ORGANIZATION, "L": LOCATION, "D": DATE, "S": SOFTWARE,
    "T": TECHNOLOGY, "M": TECHNIQUE, "C": CONCEPT, "F": FILE_PATH,
}  # fmt: skip

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

_WORDS: Mapping[str, Sequence[str]] = json.loads(Path(__file__).with_name("vocabulary.json").read_text("utf-8"))
_LISTED = {slot: _WORDS[label] for slot, label in _SLOTS.items() if label in _WORDS}


@dataclass(frozen=True, slots=True)
class Sentence:
    """An annotated sentence of one source, its words split as GLiNER splits them."""

    words: tuple[str, ...]
    spans: tuple[Span, ...]
    source: str


def read_sentences(path: Path, sources: Container[str] = SOURCES) -> dict[str, list[Sentence]]:
    """Sentences of some sources, those we train on unless others are named, by source, in file order.

    Raises:
        SourceError: The file cannot be read as gzipped JSON Lines of annotated sentences.
    """
    sentences: defaultdict[str, list[Sentence]] = defaultdict(list)
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                _keep(sentences, json.loads(line), sources)
    except (OSError, ValueError, KeyError) as error:
        raise SourceError(f"{path}: expected gzipped JSON Lines with tokenized_text, ner, source: {error}") from error
    return dict(sentences)


def _keep(sentences: defaultdict[str, list[Sentence]], row: Mapping[str, object], sources: Container[str]) -> None:
    source, words, spans = str(row["source"]), row["tokenized_text"], row["ner"]
    if source not in sources or not isinstance(words, list) or not isinstance(spans, list):
        return
    annotated: list[Span] = [(first, last, label) for first, last, label in spans]
    sentence = resplit(words, annotated, source)
    if 0 < len(sentence.words) <= LONGEST:
        sentences[source].append(sentence)


def names_in(sentences: Mapping[str, Sequence[Sentence]]) -> dict[str, list[str]]:
    """Capitalised names of at most four words for people, organisations and places, sorted."""
    names: dict[str, set[str]] = {PERSON: set(), ORGANIZATION: set(), LOCATION: set()}
    for source in _NAME_SOURCES:
        for sentence in sentences.get(source, ()):
            for first, last, label in sentence.spans:
                words = sentence.words[first : last + 1]
                if (kind := collapse(label)) in names and _is_proper(words):
                    names[kind].add(" ".join(words))
    return {label: sorted(each) for label, each in names.items()}


def _is_proper(words: Sequence[str]) -> bool:
    return len(words) <= 4 and words[0][0].isupper() and not words[-1].endswith(_DEMONYMS)


def resplit(words: Sequence[str], spans: Sequence[Span], source: str) -> Sentence:
    """Split words the way inference will, and move the spans along.

    Examples:
        >>> resplit(["Node.js", "runs"], [(0, 0, "software")], "x").spans
        ((0, 2, 'software'),)
    """
    pieces: list[str] = []
    first: list[int] = []
    for word in words:
        first.append(len(pieces))
        pieces += WORD.findall(_BRACKETS.get(word, word))
    first.append(len(pieces))
    moved = ((first[a], first[b + 1] - 1, label) for a, b, label in spans)
    return Sentence(tuple(pieces), tuple(span for span in moved if _is_name(pieces, span)), source)


def _is_name(words: Sequence[str], span: Span) -> bool:
    first, last, _ = span
    name = " ".join(words[first : last + 1]).lower()
    return any(character.isalnum() for character in name) and name not in NOT_NAMES


def templated(names: Mapping[str, Sequence[str]], count: int, rng: Random) -> list[Sentence]:
    """Fill `count` templates."""
    pools = {**_LISTED, "P": names[PERSON], "O": names[ORGANIZATION], "L": names[LOCATION]}
    return [_filled(rng.choice(_WORDS["sentences"]), pools, rng) for _ in range(count)]


def _filled(template: str, pools: Mapping[str, Sequence[str]], rng: Random) -> Sentence:
    words: list[str] = []
    spans: list[Span] = []
    for part in re.split(r"(\{[A-Z]\})", template):
        slot = part[1:-1] if part.startswith("{") else ""
        pieces = WORD.findall(_entry(slot, pools, rng) if slot else part)
        if slot:
            spans.append((len(words), len(words) + len(pieces) - 1, _SLOTS[slot]))
        words += pieces
    return Sentence(tuple(words), tuple(spans), "templates")


def _entry(slot: str, pools: Mapping[str, Sequence[str]], rng: Random) -> str:
    made = {"D": _date, "F": _path}
    if slot in made:
        return made[slot](rng)
    entry = rng.choice(pools[slot])
    # Running text capitalises little, and the model must not learn one spelling of each name.
    return entry.lower() if slot in "MC" or rng.random() < 0.15 else entry


def _date(rng: Random) -> str:
    month, day, year = rng.choice(_MONTHS), rng.randint(1, 28), rng.randint(1950, 2027)
    forms = (f"{day} {month} {year}", f"{month} {day}, {year}", f"{month} {year}", f"{year}",
             f"{year}-{rng.randint(1, 12):02d}-{day:02d}", "yesterday", "last week", f"{month}")  # fmt: skip
    return rng.choice(forms)


def _path(rng: Random) -> str:
    folders = rng.sample(_WORDS["folders"], rng.randint(0, 2))
    name = rng.choice(_WORDS["files"]) + rng.choice(_WORDS["endings"])
    root = "/" if folders and rng.random() < 0.2 else ""
    return root + "/".join([*folders, name])
