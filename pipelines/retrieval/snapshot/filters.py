"""Which contents a query may find: explicit filters over facts of documents, obeyed by every channel (RET-4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType

from pipelines.indexes.rows import RowSet
from pipelines.retrieval.snapshot.ports import ContentStore, DocumentFacts

Test = Callable[[DocumentFacts, str], bool]

_SETS = 64  # sets kept: one per filter in use; a byte and a row number per content each


class RowFilter:
    """The contents of one generation that filters let through, found on first use of a filter and kept."""

    def __init__(self, chunks: ContentStore) -> None:
        self._chunks = chunks
        self._rows = lru_cache(maxsize=_SETS)(self._found)

    def rows(self, filters: Mapping[str, str]) -> RowSet | None:
        """What may be found; None where nothing is asked of documents.

        Raises:
            ValueError: A filter asks for what no document can have, such as a date that is none.
        """
        return self._of(filters) if filters else None

    def unmet(self, filters: Mapping[str, str]) -> tuple[str, ...]:
        """Why nothing passes filters, "name:value" each: those that no document has, or else all of them together."""
        named = {f"{name}:{value}": {name: value} for name, value in sorted(filters.items())}
        alone = tuple(told for told, one in named.items() if not len(self._of(one)))
        return alone or (" and ".join(named),)

    def _of(self, filters: Mapping[str, str]) -> RowSet:
        return self._rows(tuple(sorted(filters.items())))

    def _found(self, filters: tuple[tuple[str, str], ...]) -> RowSet:
        wanted = dict(filters)
        mask = self._chunks.mask(lambda facts: matches(facts, wanted))
        if not mask.any():
            # What is no date is told, also where no document is dated and none was compared with it.
            for name in sorted(TIMES & wanted.keys()):
                seconds(wanted[name])
        return RowSet(mask)


def matches(facts: DocumentFacts, filters: Mapping[str, str]) -> bool:
    """Whether a document has everything asked for.

    What it declares under a name is compared first; else `domain`, `type`, `language`, `since` and `until` mean what
    is known of every document. One in a folder lies in all that hold that folder, too.
    """
    return all(_holds(facts, name, wanted) for name, wanted in filters.items())


def _holds(facts: DocumentFacts, name: str, wanted: str) -> bool:
    declared = facts.metadata.get(name)
    if name == "folder" and declared is not None:
        return f"{declared}/".startswith(f"{wanted.rstrip('/')}/")
    if declared is not None or name not in _KNOWN:
        return declared == wanted
    return _KNOWN[name](facts, wanted)


def _since(facts: DocumentFacts, wanted: str) -> bool:
    return facts.modified_at is not None and facts.modified_at >= seconds(wanted)


def _until(facts: DocumentFacts, wanted: str) -> bool:
    return facts.modified_at is not None and facts.modified_at < seconds(wanted)


_KNOWN: Mapping[str, Test] = MappingProxyType(
    {
        "domain": lambda facts, wanted: facts.domain.value == wanted,
        "type": lambda facts, wanted: facts.content_type.value == wanted,
        "language": lambda facts, wanted: facts.language == wanted,
        "since": _since,
        "until": _until,
    }
)


@lru_cache(maxsize=_SETS)
def seconds(date: str) -> float:
    """Seconds since the epoch of a date or time as ISO 8601 writes it; UTC where it names no zone.

    Raises:
        ValueError: It is none.

    Examples:
        >>> seconds("1970-01-02"), seconds("1970-01-01T01:00:00+01:00")
        (86400.0, 0.0)
    """
    try:
        parsed = datetime.fromisoformat(date)
    except ValueError as error:
        raise ValueError(f"expected a date such as 2024-05-31 in a filter by time, found {date!r}") from error
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


TIMES = frozenset({"since", "until"})
"""Filters whose value is a date or time, whatever documents declare."""


def is_time(value: str) -> bool:
    """Whether a filter by time understands a value.

    Examples:
        >>> is_time("2024-05-31"), is_time("yesterday")
        (True, False)
    """
    try:
        seconds(value)
    except ValueError:
        return False
    return True
