"""Software-engineering sentences made from templates: the public sources hardly have any.

People, organisations and places are names drawn from the annotated sources; the rest is listed in `vocabulary.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from pipelines.extraction.training.labels import (
    CONCEPT,
    DATE,
    FILE_PATH,
    LOCATION,
    ORGANIZATION,
    PERSON,
    SOFTWARE,
    TECHNIQUE,
    TECHNOLOGY,
)  # fmt: skip
from pipelines.extraction.training.sampling import WORD, Sentence, Span

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


def templated(names: Mapping[str, Sequence[str]], count: int, rng: Random) -> list[Sentence]:
    """Fill `count` templates.

    Args:
        names: Names to draw for person, organization and location.
        count: Sentences to make.
        rng: Source of chance.
    """
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
