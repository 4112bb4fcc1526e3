"""What a night asks: queries without an answer in the store, and what is shown for those of users (RET-15)."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from weft.consolidation.settings import SEED, CalibrationSettings
from weft.domain.errors import SourceError
from weft.domain.ids import QueryId
from weft.domain.matching import NO_MATCH, MatchFeatures, best_match
from weft.domain.ranking import Answer, Channel, Query
from weft.learning.calibration.fit import ShownResults
from weft.retrieval.settings import RetrievalSettings
from weft.retrieval.snapshot.ports import OpenGeneration

BUNDLED = "bundled"


@dataclass(frozen=True, slots=True)
class Scramble:
    """Queries without an answer, made of a store's own words."""

    texts: int  # from which words are drawn
    words: int  # of a query
    shortest: int  # characters of a word
    least: int  # texts that hold a word, at least
    most: float  # share of the texts that do, at most: words that many texts hold say little of any


SCRAMBLE = Scramble(texts=2_000, words=5, shortest=4, least=3, most=0.08)
"""As measured on five collections (docs/measurements.md)."""

Ask = Callable[[Sequence[Query]], Sequence[Answer]]


def probed(ask: Ask, generation: OpenGeneration, rules: CalibrationSettings, *, k: int) -> list[list[MatchFeatures]]:
    """The best match of each probe, those that are configured first, those of the store's own words next."""
    named = probes(rules.probes)
    rng = random.Random(SEED)  # noqa: S311  a sample, repeatable by its seed
    size = len(generation.contents)
    rows = rng.sample(range(size), min(size, SCRAMBLE.texts))
    texts = [content.text for content in generation.chunks.contents(sorted(rows))]
    kinds = [named, scrambled(texts, SCRAMBLE, rng, count=rules.scrambled) if named else []]
    return [_best(ask, kind, k) for kind in kinds if kind]


def probes(named: str) -> list[str]:
    """The queries of a file, one a line; empty for "".

    Raises:
        SourceError: There is no such file.
    """
    if not named:
        return []
    path = Path(__file__).with_name("probes.txt") if named == BUNDLED else Path(named)
    if not path.is_file():
        raise SourceError(f"consolidation.calibration.probes: expected a file of queries, found none at {path}")
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def scrambled(texts: Sequence[str], rules: Scramble, rng: random.Random, *, count: int) -> list[str]:
    """Queries in the words of some texts that ask nothing: each word from anywhere, none that many texts hold.

    What has no answer here is seldom about everyday matters. Words of the store itself, thrown together, are as near
    to its texts as a query gets without meaning anything.

    Returns:
        None of them where texts do not hold enough such words.
    """
    held = Counter(word for text in texts for word in set(_WORD.findall(text.lower())) if len(word) >= rules.shortest)
    usable = sorted(word for word, many in held.items() if rules.least <= many <= rules.most * len(texts))
    if len(usable) < rules.words:
        return []
    return [" ".join(rng.sample(usable, rules.words)) for _ in range(count)]


_WORD = re.compile(r"[^\W\d_]+")


def _best(ask: Ask, texts: Sequence[str], k: int) -> list[MatchFeatures]:
    queries = [Query(text=text, query_id=QueryId(f"probe-{number}"), k=k) for number, text in enumerate(texts)]
    return [
        best_match(result.match for result in answer.results) if answer.results else NO_MATCH for answer in ask(queries)
    ]


AskWithSettings = Callable[[Sequence[Query], RetrievalSettings], Sequence[Answer]]
"""Asks queries under settings of retrieval, and nothing else changed."""


def shown_matches(
    ask: AskWithSettings, settings: RetrievalSettings, queries: Sequence[Query], *, depth: int
) -> ShownResults:
    """What all channels together show, whatever is known of a question, and what each channel shows alone.

    Of the latter, what both do not find among the first `depth` is left out.
    """
    answers = ask(queries, settings.model_copy(update={"effects": False}))
    pages = [(result.rank, result.match) for answer in answers for result in answer.results if result.match is not None]
    both_channels = {
        (answer.query.query_id, result.content_hash): result.match
        for answer in ask([replace(query, k=depth) for query in queries], settings)
        for result in answer.results
    }
    alone = {}
    for channel in (Channel.DENSE, Channel.LEXICAL):
        pairs = (
            (both_channels.get((answer.query.query_id, result.content_hash)), result.match)
            for answer in ask(queries, settings.model_copy(update={"channels": (channel,)}))
            for result in answer.results
        )
        matches = [combined_match(both, one) for both, one in pairs if both is not None and one is not None]
        alone[channel] = [each for each in matches if None not in (each.dense, each.lexical)]
    return ShownResults(pages, alone)


def combined_match(both: MatchFeatures, one: MatchFeatures) -> MatchFeatures:
    """A match as both channels know it; how near it is, as the one that shows it does, where that compared tokens."""
    return both if one.late_interaction is None else structs.replace(both, late_interaction=one.late_interaction)
