"""Queries that a store has no answer to: how often they would be answered all the same is bounded by them (RET-15)."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.consolidation.settings import CalibrationSettings
from pipelines.domain.errors import SourceError
from pipelines.domain.ids import QueryId
from pipelines.domain.matching import MatchFeatures, best_match
from pipelines.domain.ranking import Answer, Query
from pipelines.retrieval.snapshot.ports import OpenGeneration

BUNDLED = "bundled"

NO_MATCH = MatchFeatures(dense=0.0, lexical=0.0, late_interaction=0.0)
"""The match of an answer without results."""


@dataclass(frozen=True, slots=True)
class Scramble:
    """Queries without an answer, made of a store's own words.

    Attributes:
        texts: From which words are drawn.
        words: Of a query.
        shortest: Characters of a word.
        least: Texts that hold a word, at least.
        most: Share of the texts that do, at most: words that many texts hold say little of any.
    """

    texts: int
    words: int
    shortest: int
    least: int
    most: float


SCRAMBLE = Scramble(texts=2_000, words=5, shortest=4, least=3, most=0.08)
"""As measured on five collections (docs/measurements.md)."""

Ask = Callable[[Sequence[Query]], Sequence[Answer]]


def probed(ask: Ask, generation: OpenGeneration, rules: CalibrationSettings, *, k: int) -> list[list[MatchFeatures]]:
    """The best match of each probe, those that are configured first, those of the store's own words next.

    Args:
        k: Results that are looked at.
    """
    named = probes(rules.probes)
    rng = random.Random(rules.seed)  # noqa: S311  a sample, repeatable by its seed
    size = len(generation.contents)
    rows = rng.sample(range(size), min(size, SCRAMBLE.texts))
    texts = [content.text for content in generation.chunks.contents(sorted(rows))]
    kinds = [named, scrambled(texts, SCRAMBLE, rng, count=rules.scrambled) if named else []]
    return [_best(ask, kind, k) for kind in kinds if kind]


def probes(named: str) -> list[str]:
    """The queries of a file, one a line; empty for "".

    Args:
        named: A path, or `BUNDLED` for everyday questions that few collections answer.

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

    Examples:
        >>> rules = Scramble(texts=10, words=2, shortest=3, least=1, most=0.5)
        >>> scrambled(["a red apple", "a red pear", "one plum"], rules, random.Random(1), count=2)
        ['one pear', 'apple one']
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
