"""Queries that a store has no answer to, and how well what it finds for them matches all the same (RET-15)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from pipelines.consolidation.probes import probes, scrambled
from pipelines.consolidation.settings import CalibrationSettings
from pipelines.domain.ids import QueryId
from pipelines.domain.matching import Match, best_match
from pipelines.domain.ranking import Answer, Query
from pipelines.retrieval.ports import OpenGeneration

Ask = Callable[[Sequence[Query]], Sequence[Answer]]


def probed(ask: Ask, generation: OpenGeneration, rules: CalibrationSettings, *, k: int) -> list[list[Match]]:
    """The best match of each probe, those that are configured first, those of the store's own words next.

    Args:
        k: Results that are looked at.
    """
    named = probes(rules.probes)
    rng = random.Random(rules.seed)  # noqa: S311  a sample, repeatable by its seed
    size = len(generation.contents)
    rows = rng.sample(range(size), min(size, rules.scrambled.texts))
    texts = [content.text for content in generation.chunks.contents(sorted(rows))]
    kinds = [named, scrambled(texts, len(named), rules.scrambled, rng)]
    return [_best(ask, kind, k) for kind in kinds if kind]


def _best(ask: Ask, texts: Sequence[str], k: int) -> list[Match]:
    queries = [Query(text=text, query_id=QueryId(f"probe-{number}"), k=k) for number, text in enumerate(texts)]
    return [
        best_match(result.match for result in answer.results) if answer.results else NOTHING for answer in ask(queries)
    ]


NOTHING = Match(meaning=0.0, words=0.0, near=0.0)
"""The match of an answer without results."""
