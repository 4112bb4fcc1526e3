"""Mentions become entities: one key for every way of writing a name."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.domain.entities import Mention

_NOT_IN_KEYS = re.compile(r"[^\w+#]+|_+")  # "C", "C++" and "C#" are three names


@dataclass(frozen=True, slots=True)
class Entity:
    """What several mentions name.

    Attributes:
        key: Normalised name; with the label it identifies the entity.
        name: The most frequent spelling.
        aliases: Every spelling, sorted.
        mentions: Times it was mentioned.
        score: The best score of a mention, in [0, 1].
    """

    key: str
    label: str
    name: str
    aliases: tuple[str, ...]
    mentions: int
    score: float


def entity_key(name: str) -> str:
    """The form two spellings of one name share: case folded, punctuation and surplus blanks gone.

    Examples:
        >>> entity_key(" Apache  Kafka."), entity_key("node_js") == entity_key("Node.JS"), entity_key("C++")
        ('apache kafka', True, 'c++')
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    key = " ".join(_NOT_IN_KEYS.sub(" ", folded).split())
    return key or folded.strip()


def entities(mentions: Iterable[Mention]) -> list[Entity]:
    """Entities of `mentions`, by label and key; spellings with one key and label are aliases of one entity."""
    grouped: defaultdict[tuple[str, str], list[Mention]] = defaultdict(list)
    for mention in mentions:
        grouped[mention.label, entity_key(mention.text)].append(mention)
    return [_entity(label, key, found) for (label, key), found in sorted(grouped.items())]


def _entity(label: str, key: str, mentions: list[Mention]) -> Entity:
    spellings = Counter(" ".join(mention.text.split()) for mention in mentions)
    # Ties go to the first in the alphabet: a rebuilt generation must name the entity alike.
    name = min(spellings, key=lambda spelling: (-spellings[spelling], spelling))
    return Entity(key, label, name, tuple(sorted(spellings)), len(mentions), max(m.score for m in mentions))
