"""The query log as something to measure on: what was shown, what was right, what others would have shown (EVA-3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from weft.domain.documents import Domain
from weft.domain.ids import ContentHash, QueryId
from weft.domain.ranking import ANY, Answer, Query
from weft.evaluation.ground_truth.collect import Grades
from weft.evaluation.measures.memory import AnsweredQuery, ItemFacts
from weft.evaluation.measures.off_policy import ShownPlace, TargetPlace
from weft.evaluation.measures.runs import Run
from weft.evaluation.measures.significance import LEAST_QUERIES, EvidenceStrength
from weft.evaluation.queries.reader import LoggedOutcome, LoggedQuery, LoggedResult
from weft.feedback.settings import CreditSettings
from weft.learning.pooling.fit import LoggedSignals
from weft.learning.pooling.gathering import SIGNALS

_BANDS = (1, 2, 5, 10, 20)  # last ranks in a channel, within which contents are taken to be liked alike


class PlaceFacts(Protocol):
    """One place that a content stands at."""

    @property
    def uri(self) -> str:
        """The document."""

    @property
    def modified_at(self) -> float | None:
        """Seconds since the epoch."""


def run_of(queries: Iterable[LoggedQuery]) -> Run:
    """What was shown, by query id, as a run over content hashes."""
    return {query.query_id: {result.content_hash: -float(result.rank) for result in query.results} for query in queries}


def judged(queries: Iterable[LoggedQuery], grades: Grades) -> dict[str, dict[str, int]]:
    """The judgements of those logged queries whose text has any, by query id."""
    return {
        query.query_id: {str(content): grade for content, grade in grades[query.text].items()}
        for query in queries
        if query.text in grades
    }


def answered_queries(queries: Iterable[LoggedQuery], grades: Grades) -> list[AnsweredQuery]:
    """Logged queries as a memory's; those without a judgement have no grades."""
    return [
        AnsweredQuery(
            query_id=query.query_id,
            at=query.at,
            intent=query.intent,
            confidence=_confidence(query),
            ranked=[result.content_hash for result in query.results],
            channels_by_name={result.content_hash: list(result.channels) for result in query.results},
            grades={str(content): grade for content, grade in grades.get(query.text, {}).items()},
        )
        for query in queries
    ]


def _confidence(query: LoggedQuery) -> float:
    """In its intent: as logged where that was read from its text or nothing was, full where the caller stated it."""
    logged = query.facts["intent_confidence"]
    return 1.0 if logged is None or query.intent not in {ANY, query.facts["type"]} else float(logged)


def mentioned(queries: Iterable[LoggedQuery], grades: Grades) -> set[ContentHash]:
    """Every content that was shown, ranked high by a channel, or judged."""
    shown = {result.content_hash for query in queries for result in query.results}
    ranked = {hit.content_hash for query in queries for head in query.heads.values() for hit in head}
    return shown | ranked | {content for graded in grades.values() for content in graded}


def items_of(
    contents: Collection[ContentHash],
    places: Callable[[Collection[ContentHash]], Iterable[tuple[ContentHash, Sequence[PlaceFacts]]]],
    tiers: Mapping[str, str],  # declared tier by document
) -> dict[str, ItemFacts]:
    """What is known of contents."""
    return {
        content: ItemFacts(
            tier=next((tiers[place.uri] for place in occurrences if place.uri in tiers), None),
            modified_at=occurrences[0].modified_at,
        )
        for content, occurrences in places(contents)
    }


SHADOW_QUERIES = LEAST_QUERIES[EvidenceStrength.STRONG]
"""Newest different logged queries that a night replays: enough for strong evidence."""


def to_replay(queries: Sequence[LoggedQuery], limit: int) -> list[Query]:
    """The newest different queries, as they were asked; nothing is explored again."""
    newest: dict[tuple[str, tuple[tuple[str, str], ...]], Query] = {}
    for logged in queries:
        query = _query_of(logged)
        newest.setdefault((query.text, tuple(sorted(query.filters.items()))), query)
    return list(newest.values())[:limit]


def explored(
    queries: Sequence[LoggedQuery], answers: Mapping[QueryId, Answer]
) -> list[tuple[list[ShownPlace], list[TargetPlace]]]:
    """Explored answers with what they earned, beside what another policy would show; for off-policy estimates.

    A place earned 1 where something good became of it, else 0: silence, too, where its source reports what becomes of
    results. Were only answers counted that something became of, most of what earned nothing would be left out, and
    whatever is shown would seem to earn nearly as much as anything else.
    """
    pairs = []
    for query in _explored(queries):
        answer = answers.get(query.query_id)
        if answer is not None:
            liked = {seen.content_hash for seen in query.outcomes if seen.is_praise}
            shown = [
                ShownPlace(
                    result.content_hash,
                    result.propensity,
                    float(result.content_hash in liked),
                    _band(result.rank, result.content_hash, query),
                )
                for result in query.results
            ]
            wanted = [
                TargetPlace(result.content_hash, _band(result.rank, result.content_hash, query))
                for result in answer.results
            ]
            pairs.append((shown, wanted))
    return pairs


def exploring(queries: Sequence[LoggedQuery]) -> list[Query]:
    """The explored queries whose source reports, as they were asked, to be answered by another policy."""
    return [_query_of(query) for query in _explored(queries)]


def _explored(queries: Sequence[LoggedQuery]) -> list[LoggedQuery]:
    """Explored queries of models and agents that ever said what became of a result; others may not be able to."""
    reporting = {_source(query) for query in queries if any(seen.content_hash for seen in query.outcomes)}
    return [query for query in queries if query.explored and _source(query) in reporting]


def _source(query: LoggedQuery) -> tuple[str, str]:
    return query.facts["model"], query.facts["agent"]


def _query_of(logged: LoggedQuery) -> Query:
    facts = logged.facts
    return Query(
        text=logged.text,
        query_id=logged.query_id,
        k=facts["k"],
        domain=None if logged.domain is None else Domain(logged.domain),
        model=facts["model"],
        agent=facts["agent"],
        intent=logged.intent,
        filters={pair["name"]: pair["value"] for pair in facts["filters"]},
        adaptive=bool(facts["adaptive"]),
        across_domains=bool(facts["across_domains"]),
    )


def _band(rank: int, content: ContentHash, query: LoggedQuery) -> tuple[int, int]:
    """What is expected by: the rank shown at, and the best rank in any channel when it was logged.

    Nothing of the policy may enter: of one content at one rank both policies must expect the same.
    """
    ranks = (hit.rank for head in query.heads.values() for hit in head if hit.content_hash == content)
    best = min(ranks, default=_BANDS[-1] + 1)
    return rank, bisect_left(_BANDS, best)


_DOMAINS = [domain.value for domain in Domain]
_LEFT_OUT = "retrieval"


class _Row(NamedTuple):
    domain: int
    question: str
    principal: str
    result: LoggedResult
    good: bool
    weight: float


def logged_signals(queries: Iterable[LoggedQuery], rules: CreditSettings) -> LoggedSignals:
    """What became of results, as the updaters credit it, one row per word about a result of the answer.

    A verdict speaks for or against its result; a selection for its own, and against those above it that were passed
    over. An outcome of an answer as a whole says nothing about signals of one result.
    """
    rows = [row for query in queries for row in _rows(query, rules)]
    numbers = [
        _numbered(names)
        for names in zip(*((r.question, r.principal, r.result.content_hash) for r in rows), strict=True)
    ]
    question, principal, content = numbers or [np.zeros(0, dtype=np.int64)] * 3
    values = [[row.result.signals.get(signal.value, np.nan) for signal in SIGNALS] for row in rows]
    return LoggedSignals(
        domain=np.array([row.domain for row in rows], dtype=np.int64),
        question=question,
        principal=principal,
        content=content,
        values=np.array(values, dtype=np.float64).reshape(len(rows), len(SIGNALS)),
        good=np.array([row.good for row in rows], dtype=bool),
        weight=np.array([row.weight for row in rows]),
        propensity=np.array([row.result.propensity for row in rows]),
    )


def _rows(query: LoggedQuery, rules: CreditSettings) -> Iterator[_Row]:
    by_content = {result.content_hash: result for result in query.results}
    named = [seen for seen in query.outcomes if seen.content_hash in by_content]
    chosen = {seen.content_hash for seen in named if seen.is_praise}
    for seen in named:
        result = by_content[seen.content_hash] if seen.content_hash is not None else query.results[0]
        for one, good, weight in _credited(seen, result, query, rules):
            if (
                weight > 0.0
                and one.facts["domain"] in _DOMAINS
                and (good or one.content_hash not in chosen or seen.value < 0.0)
            ):
                yield _Row(_DOMAINS.index(one.facts["domain"]), query.text, seen.principal, one, good, weight)


def _credited(
    seen: LoggedOutcome, result: LoggedResult, query: LoggedQuery, rules: CreditSettings
) -> Iterator[tuple[LoggedResult, bool, float]]:
    if seen.kind == "selection":
        yield result, True, rules.selected
        yield from ((above, False, rules.skipped) for above in query.results if above.rank < result.rank)
    elif seen.kind == "explicit":
        yield result, seen.value > 0.0, abs(seen.value) * rules.explicit
    elif seen.kind == "reference":
        yield result, True, seen.value * rules.referenced
    elif seen.kind == "inclusion":
        yield result, True, rules.included
    elif seen.kind == _LEFT_OUT:
        yield result, False, rules.retrieved


def _numbered(names: Iterable[str]) -> np.ndarray:
    places: dict[str, int] = {}
    return np.array([places.setdefault(name, len(places)) for name in names], dtype=np.int64)
