"""FBK-11, FBK-13: what a flood of praise costs those who search a real collection; run by `make eval`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tests.support.feedback_events import NOON, RULES, rules
from tests.support.learner import Learner, learned
from weft.catalog.catalog import Catalog
from weft.cli.reports import evaluate
from weft.domain.events import AnyEvent, Correction, Explicit
from weft.domain.ids import QueryId, content_hash
from weft.domain.ranking import Answer, Query
from weft.embedding.encoders.encoder import load_encoder
from weft.evaluation.measures.beir import Dataset, read_dataset
from weft.evaluation.measures.measuring import measure_searcher
from weft.feedback.events.producer import impression_of
from weft.learning.evidence import Evidence
from weft.retrieval.searcher import Searcher
from weft.settings import Settings, load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(1800)]

SETTINGS = evaluate.measuring(load_settings())
PEOPLE, LESSONS, ASKED = 40, 120, 120
"""Users who vote, the queries that they vote on, and the queries that everybody's loss is measured on."""
DAY = 86_400_000
SESSIONS, PRAISES = 1_000, 10
"""Of one principal, and in each of them."""
# The sessions of one principal reach every partition, each of which grants an allowance.
KNOWN = ("ada", "bob", "cyd")
EVERYWHERE = rules(limits__principal_daily=RULES.partitions * RULES.limits.principal_daily, limits__newcomers=10_000)


@pytest.fixture(scope="module")
def world(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = data_root / "scifact"
    lessons, asked = some_of(read_dataset(folder, "train"), LESSONS), some_of(read_dataset(folder, "test"), ASKED)
    stored = evaluate.indexed(lessons, SETTINGS)
    learner = Learner(stored, Catalog(Path(stored.storage.root)), now=NOON / 1000)
    with Searcher(learner, load_encoder(stored.embedding), stored.retrieval, clock=lambda: NOON / 1000) as searcher:
        made = World(searcher, learner, stored, lessons, asked, tmp_path_factory)
        made.untaught = made.measured()
        yield made


@dataclass
class World:
    """A collection in which honest users vote, the day before and today, and others ask."""

    searcher: Searcher
    learner: Learner
    settings: Settings
    lessons: Dataset
    asked: Dataset
    folders: pytest.TempPathFactory
    untaught: float = 0.0

    @cached_property
    def votes(self) -> Sequence[AnyEvent]:
        """Everybody was there the day before, three who will be compared with invented names as well."""
        self.untaught_searches()
        shown = pages(self.searcher, self.lessons)
        here = [arrival(f"user-{number}") for number in range(PEOPLE)] + [arrival(who) for who in KNOWN]
        return [*here, *(event for number, page in enumerate(shown) for event in judged(number, *page))]

    @cached_property
    def others(self) -> Sequence[tuple[Answer, list[bool]]]:
        """The pages that others ask for."""
        self.untaught_searches()
        return pages(self.searcher, self.asked)

    def untaught_searches(self) -> None:
        self.learner.evidence = Evidence()
        self.searcher.refresh()

    def measured(self, *events: Iterable[AnyEvent]) -> float:
        """nDCG@10 of those who ask, after some events."""
        said = [event for some in events for event in some]
        folder = self.folders.mktemp("updater")
        self.learner.evidence = learned(folder, said, EVERYWHERE) if said else Evidence()
        self.searcher.refresh()
        document_id = evaluate.document_id(self.asked)
        found = measure_searcher(self.searcher, self.asked, self.settings.evaluation, document_id=document_id).measured
        return float(np.mean(list(found["ndcg_at_10"].values())))


def test_a_flood_costs_others_next_to_nothing_on_scifact(world: World) -> None:
    """FBK-11: 10,000 praises of what is wrong, on the pages that others ask for next, cost at most 0.01 nDCG@10."""
    taught = world.measured(world.votes)
    flood = list(praises(world.others))
    flooded = world.measured(world.votes, flood)
    told = f"{world.untaught:.4f} untaught, {taught:.4f} taught, {flooded:.4f} flooded"
    Console().print(f"nDCG@10 of {ASKED} queries: {told}: {flooded - taught:+.4f}")
    assert sum(isinstance(event, Explicit) for event in flood) == SESSIONS * PRAISES
    assert taught - flooded <= 0.01


@pytest.mark.parametrize("way", ["praised", "pointed at"])
def test_a_thousand_invented_names_cost_others_next_to_nothing_on_scifact(world: World, way: str) -> None:
    """FBK-13: the same flood by names of which each has a session of its own, or that point without being shown."""
    taught = world.measured(world.votes)
    if way == "praised":
        flood = list(praises(world.others, principal=lambda number: f"invented {number}"))
    else:
        flood = [pointing(f"invented {number}", *world.others[number % ASKED]) for number in range(SESSIONS)]
    flooded = world.measured(world.votes, flood)
    by_three = [pointing(who, *page) for who in KNOWN for page in world.others]
    by_them = world.measured(world.votes, by_three)
    told = f"{taught:.4f} taught, {flooded:.4f} flooded, {by_them:.4f} by three who are known"
    Console().print(f"nDCG@10 of {ASKED} queries, wrong results {way} by {SESSIONS} names: {told}")
    assert taught - flooded <= 0.01
    assert by_them < flooded


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


def arrival(who: str) -> AnyEvent:
    """A word of the day before, on what nobody asks for: whoever says it is known today."""
    facts = {"event_id": f"{who} was here", "ts": NOON - DAY, "session_id": f"first of {who}", "principal": who}
    return Correction(**facts, question=f"what {who} asked", content_hash=content_hash(who), right=True)


def pointing(who: str, answer: Answer, right: Sequence[bool]) -> AnyEvent:
    """The lowest wrong result of a page is called right for its question."""
    facts = {"event_id": f"{who} {answer.query.query_id}", "ts": NOON, "session_id": f"s {who}", "principal": who}
    return Correction(**facts, question=answer.query.text, content_hash=lowest(answer, right), right=True)


def lowest(answer: Answer, right: Sequence[bool]) -> str:
    return [result for result, is_right in zip(answer.results, right, strict=True) if not is_right][-1].content_hash


def praises(
    shown: Sequence[tuple[Answer, list[bool]]], principal: Callable[[int], str] = lambda _: "mallory"
) -> Iterator[AnyEvent]:
    """The lowest wrong result of every page is praised in many sessions, all of one principal or each of its own."""
    for number in range(SESSIONS):
        answer, right = shown[number % len(shown)]
        who = {"session_id": f"m{number}", "principal": principal(number)}
        yield impression_of(answer, event_id=f"m{number}", ts=NOON, **who)
        for vote in range(PRAISES):
            yield verdict(answer, lowest(answer, right), 1.0, f"m{number}-{vote}", who)


def verdict(answer: Answer, content_hash: str, signal: float, event_id: str, who: Mapping[str, str]) -> Explicit:
    facts = {"event_id": f"{event_id}-v", "ts": NOON, "query_id": answer.query.query_id, **who}
    return Explicit(**facts, content_hash=content_hash, signal=signal)
