"""Filters that a query's text asks for, each with how sure that is (RET-4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pipelines.domain.understanding import InferredFilter
from pipelines.retrieval.query_settings import PrefilterSettings
from pipelines.retrieval.snapshot.facts import FOLDER

_STATED = re.compile(r"(?<!\S)(\w+):(?!//)(\"[^\"]+\"|[^\s:]\S*)")
_PATH = re.compile(
    r"(?:\b(in|under|inside|within|below|from)\s+)?(?:the\s+)?(?<!\S)([\w.-]+(?:/[\w.-]+)+)/?(?=[\s,;?]|$)"
)


def inferred_filters(
    text: str, exists: Callable[[str, str], bool], settings: PrefilterSettings
) -> tuple[str, tuple[InferredFilter, ...]]:
    """Filters in a query's text, and the text without those that are no question of their own.

    "name:value" states one outright; a path of folders asks for what lies in it, more surely after "in" or the like.
    Only what at least one document has is a filter: of anything else the text speaks.

    Args:
        exists: Whether any document has the value under the name.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> tuned = load_settings(environment={}).retrieval.understanding.prefilter
        >>> has = lambda name, value: (name, value) in {("team", "core"), ("folder", "src/store")}
        >>> text, filters = inferred_filters("page layout in src/store team:core", has, tuned)
        >>> text, [(each.name, each.value, each.applied) for each in filters]
        ('page layout in src/store', [('team', 'core', True), ('folder', 'src/store', True)])
        >>> inferred_filters("is 10:30 a time", has, tuned)
        ('is 10:30 a time', ())
    """
    inferred: dict[str, InferredFilter] = {}

    def note(name: str, value: str, confidence: float) -> bool:
        if name in inferred or not exists(name, value):
            return False
        inferred[name] = InferredFilter(name, value, confidence, confidence > settings.applied_above)
        return True

    kept = _STATED.sub(lambda match: "" if note(match[1], match[2].strip('"'), settings.stated) else match[0], text)
    for match in _PATH.finditer(kept):
        note(FOLDER, match[2], settings.named_path if match[1] else settings.mentioned_path)
    return " ".join(kept.split()) or text, tuple(inferred.values())


def unknown_filters(sought: str, exists: Callable[[str, str], bool]) -> tuple[str, ...]:
    """What reads like a filter in a text that is searched, and names what no document has: mistyped, or words.

    Examples:
        >>> unknown_filters("locks langauge:python at 10:30", lambda name, value: False)
        ('langauge:python',)
    """
    stated = (match for match in _STATED.finditer(sought) if _is_name(match[1]))
    return tuple(match[0] for match in stated if not exists(match[1], match[2].strip('"')))


def _is_name(text: str) -> bool:
    """Whether a word may name a fact: times of day, and single letters as in code, are too common to be told."""
    return len(text) > 1 and not text[0].isdigit()


def applied(filters: tuple[InferredFilter, ...], explicit: Mapping[str, str]) -> dict[str, str]:
    """All filters in force: what was asked for explicitly stands above what was inferred."""
    return {**{each.name: each.value for each in filters if each.applied}, **explicit}
