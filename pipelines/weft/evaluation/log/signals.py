"""Logged results that something became of, with their signals: what weights are fitted to (CON-8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from weft.domain.documents import Domain
from weft.evaluation.queries.reader import LoggedOutcome, LoggedQuery, LoggedResult
from weft.feedback.settings import CreditSettings
from weft.learning.pooling.fit import LoggedSignals
from weft.learning.pooling.gathering import SIGNALS

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
