"""What a night asks of a store: queries without an answer, and what is shown for others (RET-15)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from msgspec import structs

from pipelines.consolidation.probes import probes, scrambled
from pipelines.consolidation.settings import CalibrationSettings
from pipelines.domain.ids import QueryId
from pipelines.domain.matching import Match, best_match
from pipelines.domain.ranking import Answer, Channel, Query, Signal
from pipelines.evaluation.replay.replay import Replay
from pipelines.learning.calibration.fit import ShownResults
from pipelines.retrieval.snapshot.ports import OpenGeneration
from pipelines.settings import Settings

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
    kinds = [named, scrambled(texts, rules.scrambled, rng) if named else []]
    return [_best(ask, kind, k) for kind in kinds if kind]


def shown(replay: Replay, settings: Settings, queries: Sequence[Query]) -> ShownResults:
    """What all channels together show, whatever is known of a question, and what each channel shows alone.

    Of the latter, what both do not find among the first `evaluation.depth` is left out.
    """
    unknowing = (*settings.retrieval.without_signals, Signal.PRECEDENT)
    told = replay(queries, settings=settings.retrieval.model_copy(update={"without_signals": unknowing}))
    pages = [(result.rank, result.match) for answer in told for result in answer.results if result.match is not None]
    return ShownResults(pages, _alone(replay, settings, queries))


def _alone(replay: Replay, settings: Settings, queries: Sequence[Query]) -> dict[Channel, list[Match]]:
    wide = [replace(query, k=settings.evaluation.depth) for query in queries]
    known = {
        (answer.query.query_id, result.content_hash): result.match
        for answer in replay(wide)
        for result in answer.results
    }
    found: dict[Channel, list[Match]] = {}
    for channel in (Channel.DENSE, Channel.LEXICAL):
        narrow = settings.retrieval.model_copy(update={"channels": (channel,)})
        told = [
            (known.get((answer.query.query_id, result.content_hash)), result.match)
            for answer in replay(queries, settings=narrow)
            for result in answer.results
        ]
        found[channel] = [over_both(both, one) for both, one in told if both is not None and one is not None]
    return {name: [each for each in some if None not in (each.meaning, each.words)] for name, some in found.items()}


def over_both(both: Match, one: Match) -> Match:
    """A match as both channels know it; how near it is, as the one that shows it does, where that compared tokens.

    Examples:
        >>> over_both(Match(meaning=0.5, words=0.2), Match(meaning=0.5, near=0.4))
        Match(meaning=0.5, words=0.2, near=0.4)
    """
    return both if one.near is None else structs.replace(both, near=one.near)


def _best(ask: Ask, texts: Sequence[str], k: int) -> list[Match]:
    queries = [Query(text=text, query_id=QueryId(f"probe-{number}"), k=k) for number, text in enumerate(texts)]
    return [
        best_match(result.match for result in answer.results) if answer.results else NOTHING for answer in ask(queries)
    ]


NOTHING = Match(meaning=0.0, words=0.0, near=0.0)
"""The match of an answer without results."""
