"""FBK-11: what a flood of praise costs those who search a real collection; run by `make eval`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from jobs import evaluate
from pipelines.catalog.catalog import Catalog
from pipelines.domain.events import AnyEvent, Explicit
from pipelines.domain.ids import QueryId
from pipelines.domain.ranking import Answer, Query
from pipelines.embedding.encoders.encoder import load_encoder
from pipelines.evaluation.measures.beir import Dataset, read_dataset
from pipelines.evaluation.measures.measuring import measure_searcher
from pipelines.feedback.events.impressions import impression_of
from pipelines.learning.evidence import Evidence
from pipelines.retrieval.searcher import Searcher
from pipelines.settings import load_settings
from tests.support.feedback_events import NOON, RULES, rules
from tests.support.learner import Learner, learned

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(1800)]

SETTINGS = evaluate.measuring(load_settings())
PEOPLE, LESSONS, ASKED = 40, 120, 120
"""Users who vote, the queries that they vote on, and the queries that everybody's loss is measured on."""
SESSIONS, PRAISES = 1_000, 10
"""Of one principal, and in each of them."""
# The sessions of one principal reach every partition, each of which grants an allowance.
EVERYWHERE = rules(limits__principal_daily=RULES.partitions * RULES.limits.principal_daily, limits__newcomers=10_000)


def test_a_flood_costs_others_next_to_nothing_on_scifact(data_root: Path, tmp_path: Path) -> None:
    """FBK-11: 10,000 praises of what is wrong, on the pages that others ask for next, cost at most 0.01 nDCG@10."""
    folder = data_root / "scifact"
    lessons, asked = some_of(read_dataset(folder, "train"), LESSONS), some_of(read_dataset(folder, "test"), ASKED)
    stored = evaluate.indexed(lessons, SETTINGS)
    learner = Learner(stored, Catalog(Path(stored.storage.root)), now=NOON / 1000)
    with Searcher(learner, load_encoder(stored.embedding), stored.retrieval, clock=lambda: NOON / 1000) as searcher:

        def measured(evidence: Evidence) -> float:
            learner.evidence = evidence
            searcher.refresh()
            document_id = evaluate.document_id(asked)
            found = measure_searcher(searcher, asked, stored.evaluation, document_id=document_id).measured
            return float(np.mean(list(found["ndcg_at_10"].values())))

        untaught = measured(Evidence())
        votes = [event for number, page in enumerate(pages(searcher, lessons)) for event in judged(number, *page)]
        taught = measured(learned(tmp_path / "taught", votes, EVERYWHERE))
        flood = list(praises(pages(searcher, asked)))
        flooded = measured(learned(tmp_path / "flooded", [*votes, *flood], EVERYWHERE))
    told = f"{untaught:.4f} untaught, {taught:.4f} taught, {flooded:.4f} flooded"
    Console().print(f"nDCG@10 of {ASKED} queries: {told}: {flooded - taught:+.4f}")
    assert sum(isinstance(event, Explicit) for event in flood) == SESSIONS * PRAISES
    assert taught - flooded <= 0.01


def some_of(dataset: Dataset, at_most: int) -> Dataset:
    return replace(dataset, queries=dataset.queries[:at_most])


def pages(searcher: Searcher, dataset: Dataset) -> list[tuple[Answer, list[bool]]]:
    """What is shown for every query, and which of it is right."""
    document_id = evaluate.document_id(dataset)
    queries = [Query(text=each.text, query_id=QueryId(each.query_id), k=10) for each in dataset.queries]
    found = []
    for answer in searcher.search_many(queries):
        grades = dataset.qrels[answer.query.query_id]
        right = [any(grades.get(document_id(uri), 0) > 0 for uri in result.uris) for result in answer.results]
        found.append((answer, right))
    return found


def judged(number: int, answer: Answer, right: Sequence[bool]) -> Iterator[AnyEvent]:
    """Somebody asks, and says of every result what it is."""
    who = {"session_id": f"s{number}", "principal": f"user-{number % PEOPLE}"}
    yield impression_of(answer, event_id=f"s{number}", ts=NOON, **who)
    for result, is_right in zip(answer.results, right, strict=True):
        yield verdict(answer, result.content_hash, 1.0 if is_right else -1.0, f"s{number}-{result.rank}", who)


def praises(shown: Sequence[tuple[Answer, list[bool]]]) -> Iterator[AnyEvent]:
    """One principal praises, in many sessions, the lowest wrong result of every page."""
    for number in range(SESSIONS):
        answer, right = shown[number % len(shown)]
        who = {"session_id": f"m{number}", "principal": "mallory"}
        wrong = [result for result, is_right in zip(answer.results, right, strict=True) if not is_right]
        yield impression_of(answer, event_id=f"m{number}", ts=NOON, **who)
        for vote in range(PRAISES):
            yield verdict(answer, wrong[-1].content_hash, 1.0, f"m{number}-{vote}", who)


def verdict(answer: Answer, content_hash: str, signal: float, event_id: str, who: Mapping[str, str]) -> Explicit:
    facts = {"event_id": f"{event_id}-v", "ts": NOON, "query_id": answer.query.query_id, **who}
    return Explicit(**facts, content_hash=content_hash, signal=signal)
