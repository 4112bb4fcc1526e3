r"""What will be searched for: the query's text within bounds (RET-21), its depth and its channels."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

from pipelines.domain.ranking import Channel, Query
from pipelines.domain.understanding import Complexity, Understanding
from pipelines.indexes.rows import RowSet
from pipelines.retrieval.query.understanding import taken_apart, understood
from pipelines.retrieval.settings import RetrievalSettings
from pipelines.retrieval.snapshot.documents import GenerationFacts, RowFilter


@dataclass(frozen=True, slots=True)
class Plan:
    """One query as it will be run.

    Attributes:
        query: With what was inferred from its text filled in: its intent where it states none, and filters.
        text: The normalised query text.
        words: What channels are asked: the text, and where words alone are to answer also the parts of its names.
        truncated: `text` lost something to the limits of RET-21.
        understanding: What the text was taken to ask for.
        channels: Those that search for it.
        depth: Candidates wanted of each channel.
        k: Results wanted.
        among: All that it may find; None for everything.
    """

    query: Query
    text: str
    words: str
    truncated: bool
    understanding: Understanding
    channels: tuple[Channel, ...]
    depth: int
    k: int
    among: RowSet | None


def make_plan(query: Query, facts: GenerationFacts, filters: RowFilter, settings: RetrievalSettings) -> Plan:
    """Bound, normalise and understand a query.

    Raises:
        ValueError: One of its filters asks for what no document can have; the message names the query.
    """
    text, truncated = bounded(query.text, max_bytes=settings.query_max_bytes, max_terms=settings.query_max_terms)
    read, sought, understanding = understood(query, text, facts.known, settings.understanding)
    k = min(query.k, understanding.limit) if query.adaptive else query.k
    channels = routed(query, understanding, settings)
    apart = channels != settings.channels and settings.understanding.router.parts
    try:
        among = filters.rows(read.filters)
    except ValueError as error:
        raise ValueError(f"query {query.query_id}: {error}; none of its batch was answered") from error
    if among is not None and not len(among):
        understanding = replace(understanding, unmet=filters.unmet(read.filters))
    return Plan(
        query=read,
        text=sought,
        words=taken_apart(sought) if apart else sought,
        truncated=truncated,
        understanding=understanding,
        channels=channels,
        depth=settings.depth,
        k=k,
        among=among,
    )


def routed(query: Query, understanding: Understanding, settings: RetrievalSettings) -> tuple[Channel, ...]:
    """The channels that a query is worth: words alone for a simple one that leaves it open, else all (RET-2)."""
    simple = understanding.complexity is Complexity.SIMPLE and settings.understanding.router.enabled
    if query.adaptive and simple and Channel.LEXICAL in settings.channels:
        return (Channel.LEXICAL,)
    return settings.channels


def bounded(text: str, *, max_bytes: int, max_terms: int) -> tuple[str, bool]:
    r"""A text that no channel can choke on: NFC, single blanks, no control characters, lone surrogates replaced.

    Args:
        max_bytes: UTF-8 bytes kept, >= 1; a character is kept whole or not at all.
        max_terms: Terms, separated by blanks, kept, >= 1.

    Returns:
        The text, and whether a limit cut it.

    Examples:
        >>> bounded("a\x00b \ud800\n c", max_bytes=100, max_terms=100)
        ('a b � c', False)
        >>> bounded("naïve words", max_bytes=3, max_terms=100)
        ('na', True)
    """
    # Cut before normalising: NFC of a megabyte costs, and at most doubles what is kept (UAX #15: threefold in UTF-8).
    # Blanks are no part of what is kept: however many there are, they cut nothing.
    words = " ".join(text.split(maxsplit=max_terms))
    head = words[: max_bytes * 3]
    terms = _printable(unicodedata.normalize("NFC", _printable(head))).split()
    kept = " ".join(terms[:max_terms])
    shortened = _first_bytes(kept, max_bytes)
    return shortened, len(head) < len(words) or len(terms) > max_terms or len(shortened) < len(kept)


def _printable(text: str) -> str:
    """Control characters become blanks and lone surrogates the replacement character; format characters stay."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", _CONTROL.sub(" ", text))


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def _first_bytes(text: str, limit: int) -> str:
    return text.encode("utf-8")[:limit].decode("utf-8", "ignore").rstrip()
