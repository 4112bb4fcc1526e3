"""What kind of answer a query wants, told by cues in its words (RET-1)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from pipelines.domain.understanding import QueryType
from pipelines.retrieval.query_settings import TypeSettings

# In this order where two types have as many cues: what fails is looked into before what works is admired.
_ORDER = (QueryType.DEBUG, QueryType.HOW, QueryType.EXPLORATORY, QueryType.SPECIFIC)

# Each alternative begins where no word stands before it, so that a long word is tried once and not from each letter.
_EXACT = re.compile(
    r"(?x) [`\"“][^`\"”]{1,80}[`\"”] | (?<!\w)(?: \w+(?:\.|::|->|/)\w\S* | \w*_\w+ | [a-z]+[A-Z]\w* | \w+\(\) )"
)
"""Names that stand for one thing: quoted, dotted, with underscores or a capital inside."""

_JOINT = re.compile(r"(?<=\w)(?:\.|::|->|/)(?=\w)")

_FAILURE = re.compile(r"(?<!\w)(?:\w+(?:Error|Exception)\b|Traceback\b|line \d+\b|exit code \d+\b|0x[0-9a-f]{4,}\b)")
"""What machines say when something went wrong."""


def query_type(text: str, settings: TypeSettings) -> tuple[QueryType, float, tuple[str, ...]]:
    """The type of a query, the confidence in it, and the cues that speak for it.

    Confidence is the cues' share, with one more for what was not seen: n / (all cues + 1). A query without any is
    specific with confidence 0.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> known = load_settings(environment={}).retrieval.understanding.type
        >>> kind, confidence, cues = query_type("How does the updater commit its offsets?", known)
        >>> kind.value, confidence, cues
        ('how_does_it_work', 0.5, ('how does',))
    """
    found = {kind: _cues(text, kind, settings) for kind in _ORDER}
    best = max(_ORDER, key=lambda kind: (len(found[kind]), -_ORDER.index(kind)))
    total = sum(map(len, found.values()))
    if not total:
        return QueryType.SPECIFIC, 0.0, ()
    return best, len(found[best]) / (total + 1), found[best]


def exact_names(text: str) -> list[str]:
    """The parts of a text that name one thing.

    Examples:
        >>> exact_names('where is Store.get_page and "late events"')
        ['Store.get_page', '"late events"']
    """
    return [match.group() for match in _EXACT.finditer(text)]


def taken_apart(text: str) -> str:
    """A text of names, and behind it the parts of those that are made of several: texts hold these apart, too.

    Examples:
        >>> taken_apart("Store.get_page"), taken_apart("get_page")
        ('Store.get_page Store get_page', 'get_page')
    """
    apart = _JOINT.sub(" ", text)
    return text if apart == text else f"{text} {apart}"


def _cues(text: str, kind: QueryType, settings: TypeSettings) -> tuple[str, ...]:
    said = [match.group().casefold() for match in _pattern(settings.cues[kind]).finditer(text)]
    shown = [match.group() for match in _SHAPES[kind].finditer(text)] if kind in _SHAPES else []
    return tuple(dict.fromkeys([*said, *shown]))


_SHAPES: Mapping[QueryType, re.Pattern[str]] = MappingProxyType({QueryType.SPECIFIC: _EXACT, QueryType.DEBUG: _FAILURE})


@lru_cache(maxsize=64)
def _pattern(phrases: Sequence[str]) -> re.Pattern[str]:
    ordered = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, ordered))})\b", re.IGNORECASE)
