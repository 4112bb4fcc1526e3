"""Measuring a searcher on a data set: one query after the other, as a user would ask them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from weft.domain.ids import QueryId
from weft.domain.ranking import Answer, Query
from weft.evaluation.measures.beir import Dataset, JudgedQuery
from weft.evaluation.measures.memory import AnsweredQuery, ChannelShare, channel_contributions
from weft.evaluation.measures.metrics import Estimate, PerQuery, estimates, measure
from weft.evaluation.measures.runs import Ranked, Run, as_ranked
from weft.evaluation.settings import EvaluationSettings

GROUP_KEY = "group"
"""Metadata that a query shares with the documents it may find, where a data set is divided by it."""

Progress = Callable[[Iterable[JudgedQuery]], Iterable[JudgedQuery]]
"""Passes queries through and shows how far they are."""


class Answers(Protocol):
    """Answers one query."""

    def search(self, query: Query) -> Answer:
        """The answer to one query."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a run over a data set amounts to."""

    run: Run  # what was returned, by query id
    measured: PerQuery  # every measure for every query
    estimates: Mapping[str, Estimate]  # their means and intervals
    p50_ms: float  # Quantiles of the time of one query
    p95_ms: float
    failed_channels: Mapping[str, int]  # how many queries a channel was left out of, by channel
    channels: Mapping[str, ChannelShare]  # what each channel contributed to the first results (EVA-2)

    def summary(self) -> dict[str, Any]:
        """Means by the names of the job's contract, with intervals beside them."""
        return {
            **{name: value.mean for name, value in self.estimates.items()},
            "intervals": {name: [value.low, value.high] for name, value in self.estimates.items()},
            "queries": len(self.run),
            "p50_ms": self.p50_ms,
            "p95_ms": self.p95_ms,
            "failed_channels": dict(self.failed_channels),
            "contributions": {name: asdict(worth) for name, worth in self.channels.items()},
        }


def measure_searcher(
    searcher: Answers,
    dataset: Dataset,
    settings: EvaluationSettings,
    *,
    document_id: Callable[[str], str] = lambda uri: uri,  # from a document's URI to the id that judgements name it by
    progress: Progress = lambda queries: queries,
) -> Measurement:
    """Ask every judged query of a data set, one by one, and measure what comes back."""
    run: dict[str, Ranked] = {}
    elapsed_ms: list[float] = []
    failed: Counter[str] = Counter()
    answered: list[AnsweredQuery] = []
    for query in progress(dataset.queries):
        started = time.perf_counter()
        answer = searcher.search(as_query(query, settings))
        elapsed_ms.append((time.perf_counter() - started) * 1000.0)
        run[query.query_id] = as_ranked(answer.results, settings.depth, document_id=document_id)
        answered.append(_answered_query(answer, run[query.query_id], dataset.qrels[query.query_id], document_id))
        failed.update(answer.failed_channels.keys())
    measured = measure(run, {query_id: grades for query_id, grades in dataset.qrels.items() if query_id in run})
    p50, p95 = map(float, np.quantile(elapsed_ms, [0.5, 0.95]))
    return Measurement(run, measured, estimates(measured, settings), p50, p95, failed, channel_contributions(answered))


def _answered_query(
    answer: Answer, ranked: Ranked, grades: Mapping[str, int], document_id: Callable[[str], str]
) -> AnsweredQuery:
    """Which channels found what was returned."""
    channels_by_name = {
        document_id(uri): [channel.value for channel in result.channels]
        for result in reversed(answer.results)
        for uri in result.uris
    }
    return AnsweredQuery(
        query_id=answer.query.query_id,
        at=0.0,
        intent=answer.query.intent,
        ranked=list(ranked),
        channels_by_name=channels_by_name,
        grades=grades,
    )


def as_query(query: JudgedQuery, settings: EvaluationSettings) -> Query:
    """A judged query as it is put to a searcher: within its group where it has one."""
    group = query.metadata.get(GROUP_KEY)
    filters = {} if group is None else {GROUP_KEY: str(group)}
    return Query(text=query.text, query_id=QueryId(query.query_id), k=settings.depth, filters=filters)
