"""What will be searched for: the query's text within bounds (RET-21), its depth and its channels (RET-2)."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

from pipelines.domain.ranking import QUERY_BYTES, QUERY_TERMS, Channel, Query
from pipelines.domain.understanding import Complexity, Understanding
from pipelines.indexes.rows import RowSet
from pipelines.indexes.text.words import STOP_WORDS, lone_operators, stream
from pipelines.learning.thinned import NOTHING_THINNED, Thinned
from pipelines.retrieval.query.signs import Holding, apply_operators, parse_operators
from pipelines.retrieval.query.understanding import understood, with_name_parts
from pipelines.retrieval.settings import RetrievalSettings
from pipelines.retrieval.snapshot.documents import GenerationFacts
from pipelines.retrieval.snapshot.filters import RowFilter

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Plan:
    """One query as it will be run.

    Attributes:
        query: With what was inferred from its text filled in: its intent where it states none, and filters.
        text: The normalised query text.
        words: What channels are asked: the text, and where words alone are to answer also the parts of its names.
        truncated: `text` lost something to the limits of RET-21.
        channels: Those that search for it.
        depth: Candidates wanted of each channel.
        k: Results wanted.
        among: All that may match; None for everything.
        first: What stands before all else, for the signs of the query; None where it has none that ask for that.
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
    first: RowSet | None = None


def make_plan(
    query: Query,
    facts: GenerationFacts,
    filters: RowFilter,
    settings: RetrievalSettings,
    holding: Holding,
    *,
    thinned: Thinned = NOTHING_THINNED,
) -> Plan:
    """Bound, normalise and understand a query, and follow its signs.

    Who names a place or words to be held sees all that is there; everything else passes over `thinned` contents.

    Raises:
        ValueError: One of its filters asks for what no document can have; the message names the query.
    """
    text, truncated = bounded(query.text, max_bytes=QUERY_BYTES, max_terms=QUERY_TERMS)
    read, sought, understanding = understood(query, text, facts.has_value, settings.understanding)
    sought, signs = parse_operators(sought)
    simple = understanding.complexity is Complexity.SIMPLE and settings.understanding.router.enabled
    lexical = Channel.LEXICAL in settings.channels and not signs
    # Stop words and operators alone mean nothing to an encoder; whoever asks for them asks for these letters.
    words = stream(sought)
    letters = bool(words or lone_operators(sought)) and STOP_WORDS.issuperset(words)
    by_words = lexical and ((query.adaptive and simple) or letters)
    channels = (Channel.LEXICAL,) if by_words else settings.channels
    try:
        among = filters.rows(read.filters)
    except ValueError as error:
        raise ValueError(f"query {query.query_id}: {error}; none of its batch was answered") from error
    if among is not None and not len(among):
        understanding = replace(understanding, unmet=filters.unmet(read.filters))
    signed = apply_operators(signs, among, holding) if signs else None
    if among is None and signed is None:
        among = filters.without(thinned)
    if signed is not None:
        understanding = replace(understanding, signs=signed.held, unheld=signed.unheld)
    return Plan(
        query=read,
        text=sought,
        # Where words alone answer, few texts hold "Store.get_page" whole. Without its parts two of three such names
        # were found by all channels alone, at three times the cost.
        words=with_name_parts(sought) if channels != settings.channels else sought,
        truncated=truncated,
        understanding=understanding,
        channels=channels,
        depth=settings.depth,
        k=min(query.k, understanding.limit) if query.adaptive else query.k,
        among=among if signed is None else signed.among,
        first=None if signed is None else signed.first,
    )


def escalated_plan(plan: Plan, settings: RetrievalSettings) -> Plan:
    """The plan of a query that looked simple and that words alone do not answer: a moderate one, with all channels."""
    limit = settings.understanding.router.limits[Complexity.MODERATE]
    return replace(
        plan,
        understanding=replace(plan.understanding, complexity=Complexity.MODERATE, limit=limit),
        channels=settings.channels,
        words=plan.text,
        k=min(plan.query.k, limit) if plan.query.adaptive else plan.query.k,
    )


def bounded(text: str, *, max_bytes: int, max_terms: int) -> tuple[str, bool]:
    r"""A text that no channel can choke on: NFC, single blanks, no control characters, lone surrogates replaced.

    Args:
        max_bytes: UTF-8 bytes at most, >= 1; a character stays whole or not at all.
        max_terms: Terms, separated by blanks, at most, >= 1.

    Returns:
        The text, and whether a limit cut it.

    Examples:
        >>> bounded("a\x00b \ud800\n c", max_bytes=100, max_terms=100)
        ('a b � c', False)
        >>> bounded("naïve words", max_bytes=3, max_terms=100)
        ('na', True)
    """
    # Cut before normalising: NFC of a megabyte costs, and at most doubles what is left (UAX #15: threefold in UTF-8).
    # Blanks are no part of what is left: however many there are, they cut nothing.
    words = " ".join(text.split(maxsplit=max_terms))
    head = words[: max_bytes * 3]
    terms = _printable(unicodedata.normalize("NFC", _printable(head))).split()
    whole = " ".join(terms[:max_terms])
    shortened = whole.encode("utf-8")[:max_bytes].decode("utf-8", "ignore").rstrip()
    return shortened, len(head) < len(words) or len(terms) > max_terms or len(shortened) < len(whole)


def _printable(text: str) -> str:
    """Control characters become blanks and lone surrogates the replacement character; format characters stay."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", _CONTROL.sub(" ", text))
