"""What will be searched for: the query's text within bounds (RET-21), its depth and its channels (RET-2).

A query's text may have three signs (RET-22): "phrase", +word and -word. All else in it is words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from weft.domain.ranking import QUERY_BYTES, QUERY_TERMS, Channel, Query
from weft.domain.understanding import Complexity, Understanding
from weft.indexes.rows import RowSet
from weft.indexes.text.words import STOP_WORDS, lone_operators, stream
from weft.learning.thinned import NOTHING_THINNED, Thinned
from weft.retrieval.query.understanding import understood, with_name_parts
from weft.retrieval.settings import RetrievalSettings
from weft.retrieval.snapshot.documents import GenerationFacts
from weft.retrieval.snapshot.filters import RowFilter

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")

_PAIRS = ('""', "“”", "””", "„“", "„”", "‟”", "«»", "»«", "「」", "『』", "＂＂")
_MARKS = "".join(dict.fromkeys("".join(_PAIRS)))
_QUOTED = "|".join(rf"{pair[0]}(?P<q{at}>[^{_MARKS}]+){pair[1]}" for at, pair in enumerate(_PAIRS))
_SIGN = re.compile(
    rf"(?<![^\s(\[{{])(?P<before>[+-]?)(?:{_QUOTED})|(?<![^\s(\[{{])(?P<sign>[+-])(?P<word>[^\W\d_][^\s{_MARKS}]+)"
)
_KEYS = str.maketrans("＋－−", "+--")  # plus and minus as other keyboards have them
_AS_IT_STANDS = re.compile(r"--[^\W\d_][\w-]*|[A-Z]{2,}(?: [A-Z]{2,})+")  # a flag, an operator such as IS NULL
_TRAILING = ".,;:!?)]}…"

Holding = Callable[[str, bool], np.ndarray | None]
"""Which contents hold some words, bool (contents,): as a phrase if so asked for, else in whatever form they have.

None where there are no words in it, or where the index cannot tell.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """One query as it will be run."""

    query: Query  # with what was inferred from its text filled in: its intent where it states none, and filters
    text: str  # the normalised query text
    words: str  # what channels are asked: the text, and where words alone are to answer also the parts of its names
    truncated: bool  # `text` lost something to the limits of RET-21
    understanding: Understanding
    channels: tuple[Channel, ...]  # those that search for it
    depth: int  # candidates wanted of each channel
    k: int  # results wanted
    among: RowSet | None  # all that may match; None for everything
    # what stands before all else, for the signs of the query; None where it has none that ask for that
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


@dataclass(frozen=True, slots=True)
class QueryOperator:
    """One sign of a query."""

    typed: str  # as it stands in the query
    words: str  # what it is about
    phrase: bool  # whether these stand side by side, as they are
    excludes: bool  # whether texts that hold them are left out; else they stand first


def parse_operators(text: str) -> tuple[str, tuple[QueryOperator, ...]]:
    """The text that is searched, without what it excludes, and its signs.

    A flag has two dashes, or one letter, and is no sign. Where nothing else is asked for, nothing is excluded. A query
    that is a flag or an operator in capitals, and nothing else, is looked for as if it were quoted.

    Examples:
        >>> text, signs = parse_operators('"dead letter" queue +kafka -redis --cache -q')
        >>> text, [sign.typed for sign in signs]
        ('dead letter queue kafka --cache -q', ['"dead letter"', '+kafka', '-redis'])
        >>> [parse_operators(text)[1][0].phrase for text in ("--cache", "IS NOT NULL")]
        [True, True]
        >>> parse_operators("-redis"), parse_operators('5" or - 3 +1 a-b')
        (('-redis', ()), ('5" or - 3 +1 a-b', ()))
    """
    text = text.translate(_KEYS)
    if _AS_IT_STANDS.fullmatch(text):
        return text, (QueryOperator(text, text, phrase=True, excludes=False),)
    signs: list[QueryOperator] = []
    pieces: list[str] = []
    end = 0
    for match in _SIGN.finditer(text):
        before, word = match["before"] or match["sign"], match["word"]
        quoted = next((match[f"q{at}"] for at in range(len(_PAIRS)) if match[f"q{at}"]), None)
        words = quoted if quoted is not None else word.rstrip(_TRAILING)
        if len(words) < 2 or not any(letter.isalnum() for letter in words):
            continue
        stop = match.end() if quoted is not None else match.start() + 1 + len(words)
        sign = QueryOperator(text[match.start() : stop], words, quoted is not None, before == "-")
        signs.append(sign)
        pieces += [text[end : match.start()], "" if sign.excludes else words]
        end = stop
    rest = " ".join("".join((*pieces, text[end:])).split())
    if not any(letter.isalnum() for letter in rest):
        return text, ()
    return rest, tuple(signs)


@dataclass(frozen=True, slots=True)
class AppliedOperators:
    """What the signs of a query come to in one generation."""

    among: RowSet | None  # all that may match; None for everything
    first: RowSet | None = None  # what stands before all else; None where no sign asks for that
    held: tuple[str, ...] = ()  # signs that were followed, as they are typed
    unheld: tuple[str, ...] = ()  # signs that are taken as plain words, or as not there: no text has what they ask for


def apply_operators(signs: tuple[QueryOperator, ...], among: RowSet | None, holding: Holding) -> AppliedOperators:
    """Follow the signs of a query as far as there are texts that have all they ask for."""
    allowed = None if among is None else among.mask
    excluded: np.ndarray | None = None
    first: np.ndarray | None = None
    held: list[str] = []
    unheld: list[str] = []
    for sign in sorted(signs, key=lambda sign: not sign.excludes):
        mask = holding(sign.words, sign.phrase)
        left = None if mask is None else _both(allowed, ~mask if sign.excludes else mask)
        together = left if first is None or left is None else left & first
        if together is None or not together.any():
            unheld.append(sign.typed)
            continue
        held.append(sign.typed)
        if sign.excludes:
            allowed = excluded = together
        else:
            first = together
    match = among if excluded is None else RowSet(excluded)
    return AppliedOperators(match, None if first is None else RowSet(first), tuple(held), tuple(unheld))


def _both(allowed: np.ndarray | None, mask: np.ndarray) -> np.ndarray:
    return mask if allowed is None else mask & allowed
