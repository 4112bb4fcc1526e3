"""What people said of answers, and what it is worth when the same is asked again (LRN-18, LRN-19, LRN-23).

Everything goes through Kafka and the updaters into a store of its own. Each part takes a store anew.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

import numpy as np

from lab.simulation.study import headline
from lab.simulation.users import PAGE, near_miss, paraphrase, without_newcomers
from lab.stores import BackgroundUpdaters, isolated_store
from weft.app.collections import document_id, indexed
from weft.app.searching.engines import load_engines, source_of
from weft.domain.ids import content_hash
from weft.domain.ranking import Answer, Query, RankedResult
from weft.domain.reasons import CONTENT, QUESTION
from weft.evaluation.measures.beir import Dataset, JudgedQuery
from weft.evaluation.measures.measuring import as_query
from weft.evaluation.measures.runs import Run, as_ranked
from weft.feedback.events.producer import FeedbackProducer
from weft.retrieval.searcher import Searcher
from weft.runtime.clock import system_clock
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.settings import Settings

_PEOPLE = ("ada", "ben", "cleo")
_STRANGER = "dora"
_DEEP = 20  # a place that nobody looks at
_LOOKED_AT = 100  # down to which places are told
_EACH = 25  # questions that one person speaks of, about
_LAGS = 20  # corrections whose way to a search is timed


@dataclass(frozen=True, slots=True)
class Outcome:
    """One line of the table."""

    name: str
    value: float  # usually a share of `count` questions
    count: int
    goal: str = ""  # such as ">= 0.90"; "" where there is none

    @property
    def met(self) -> bool:
        """Whether the goal is reached; True without one."""
        if not self.goal:
            return True
        sign, bound = self.goal.split()
        return self.value >= float(bound) if sign == ">=" else self.value <= float(bound)


def ask_again(dataset: Dataset, settings: Settings, *, questions: int, seed: int) -> list[Outcome]:
    """Praise, blame and point, and ask again."""
    stored, rng = indexed(dataset, settings), random.Random(seed)  # noqa: S311  a simulation, repeatable by its seed
    some = rng.sample(list(dataset.queries), min(questions, len(dataset.queries)))
    outcomes: list[Outcome] = []
    parts: Sequence[Callable[[_Class, Sequence[JudgedQuery], random.Random], list[Outcome]]] = (
        _praised,
        _blamed,
        _contested,
        _pointed,
        _new_questions,
        _lag,
    )
    for part in parts:
        with _class(stored, dataset, crowd=1 + len(some) // _EACH) as world:
            outcomes += part(world, some, rng)
    return outcomes


@dataclass(frozen=True, slots=True)
class _Class:
    """A store with a broker and updaters, and whoever asks and says something."""

    settings: Settings
    dataset: Dataset
    searcher: Searcher
    producer: FeedbackProducer
    updaters: BackgroundUpdaters
    crowd: int

    def ask(
        self, queries: Sequence[JudgedQuery], who: str, *, texts: Sequence[str] = (), k: int = PAGE
    ) -> list[Answer]:
        """What somebody is shown, in the order of the questions."""
        asked = [self.query(query, who, k=k) for query in queries]
        if texts:
            asked = [replace(query, text=text) for query, text in zip(asked, texts, strict=True)]
        return self.searcher.search_many(asked)

    def query(self, query: JudgedQuery, who: str, *, k: int = PAGE) -> Query:
        # Nobody says more in a day than counts in full (LRN-20): so many share each of the three roles.
        group = int(content_hash(query.query_id), 16) % self.crowd
        asked = as_query(query, self.settings.evaluation)
        return replace(asked, query_id=uuid4().hex, k=k, principal=f"{who} {group}")

    def judge(self, answers: Sequence[Answer], contents: Sequence[str | None], signal: float) -> None:
        """Whoever asked calls a content of each answer right or wrong; None says nothing."""
        for answer, content in zip(answers, contents, strict=True):
            if content is not None:
                self.producer.impression(answer)
                self.producer.explicit(answer.query, signal, content_hash=content)
        self.settle()

    def settle(self) -> None:
        """Wait until searches see what was said."""
        self.producer.flush()
        self.updaters.caught_up()
        self.searcher.refresh()

    def right(self, query: JudgedQuery, result: RankedResult) -> bool:
        """Whether the judgements call a result right."""
        grades, name = self.dataset.qrels[query.query_id], document_id(self.dataset)
        return any(grades.get(name(uri), 0) > 0 for uri in result.uris)


@contextmanager
def _class(stored: Settings, dataset: Dataset, *, crowd: int) -> Iterator[_Class]:
    with isolated_store(stored) as own, EmbeddedBroker() as broker:
        kafka = own.kafka.model_copy(update={"bootstrap": broker.bootstrap})
        priors = without_newcomers(own.priors, own.feedback.limits.principals)
        settings = own.model_copy(update={"kafka": kafka, "priors": priors})
        first, *further = (engines := load_engines(settings)).encoders
        source = source_of(settings, precisions=engines.precisions)
        with (
            BackgroundUpdaters(settings, local=True) as updaters,
            Searcher(
                source, first, settings.retrieval, clock=system_clock, further=further, terms=engines.terms
            ) as searcher,
            closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer,
        ):
            yield _Class(settings, dataset, searcher, producer, updaters, crowd)


def _praised(world: _Class, queries: Sequence[JudgedQuery], rng: random.Random) -> list[Outcome]:
    """A result among the first ten, called right by one, two and three people; in other words, too."""
    before = world.ask(queries, _STRANGER)
    chosen = [rng.choice(answer.results[1:]).content_hash if len(answer.results) > 1 else None for answer in before]
    texts = [query.text for query in queries]
    reworded = [paraphrase(text, rng) for text in texts]
    alike = [near_miss(text, rng.sample(texts, min(20, len(texts))), rng) or text for text in texts]
    plain = _places(world.ask(queries, _STRANGER, texts=alike), chosen)
    outcomes = []
    for number, who in enumerate(_PEOPLE, start=1):
        world.judge(world.ask(queries, who), chosen, 1.0)
        places = _places(world.ask(queries, _STRANGER), chosen)
        goal = {1: ">= 0.50", 2: "", 3: ">= 0.90"}[number]
        outcomes.append(_share(f"praised by {number}: first for a stranger", [at == 1 for at in places], goal))
        if number == 1:
            own = _places(world.ask(queries, who), chosen)
            outcomes.append(_share("praised: first for who said so", [at == 1 for at in own], ">= 0.95"))
    again = _places(world.ask(queries, _STRANGER, texts=reworded), chosen)
    outcomes.append(_share("praised by 3: first in other words", [at == 1 for at in again], ">= 0.45"))
    other = world.ask(queries, _STRANGER, texts=alike)
    lifted = [
        now == 1 and then != 1 and _lifted(answer.results[0])
        for answer, now, then, text, same in zip(other, _places(other, chosen), plain, alike, texts, strict=True)
        if text != same
    ]
    return [*outcomes, _share("praised by 3: lifted first under a look-alike", lifted, "<= 0.02")]


def _lifted(result: RankedResult) -> bool:
    """Whether a result owes something to what was said of it, rather than to weights that moved meanwhile."""
    return any(each.amount > 0.0 for each in result.contributions if each.name in {CONTENT, QUESTION})


def _blamed(world: _Class, queries: Sequence[JudgedQuery], _rng: random.Random) -> list[Outcome]:
    """The first result, called wrong by three people."""
    before = world.ask(queries, _STRANGER)
    chosen = [answer.results[0].content_hash if len(answer.results) > PAGE // 2 else None for answer in before]
    outcomes = []
    for number, who in enumerate(_PEOPLE, start=1):
        world.judge(world.ask(queries, who), chosen, -1.0)
        if number == 1:
            own = _places(world.ask(queries, who), chosen)
            outcomes.append(_share("blamed: out of the first three for who said so", [at > 3 for at in own], ">= 0.95"))
    places = _places(world.ask(queries, _STRANGER), chosen)
    return [*outcomes, _share("blamed by 3: out of the first three", [at > 3 for at in places], ">= 0.90")]


def _contested(world: _Class, queries: Sequence[JudgedQuery], rng: random.Random) -> list[Outcome]:
    """A result among the first ten that one calls right and two call wrong."""
    before = world.ask(queries, _STRANGER)
    chosen = [rng.choice(answer.results[1:]).content_hash if len(answer.results) > 1 else None for answer in before]
    was = _places(before, chosen)
    for who, signal in zip(_PEOPLE, (1.0, -1.0, -1.0), strict=True):
        world.judge(world.ask(queries, who), chosen, signal)
    places = _places(world.ask(queries, _STRANGER), chosen)
    return [
        _share(
            "one for, two against: not above its place",
            [now >= then for now, then in zip(places, was, strict=True)],
            ">= 0.90",
        )
    ]


def _pointed(world: _Class, queries: Sequence[JudgedQuery], rng: random.Random) -> list[Outcome]:
    """Right documents that nobody is shown, pointed at by their URI."""
    deep = []
    for query, answer in zip(queries, world.ask(queries, _STRANGER, k=_LOOKED_AT), strict=True):
        places = [result.rank for result in answer.results if world.right(query, result)]
        if min(places, default=_LOOKED_AT) >= _DEEP:
            deep.append(query)
    names = document_id(world.dataset)
    prefix = _prefix(world, names)
    right = [
        prefix + next(name for name, grade in world.dataset.qrels[each.query_id].items() if grade > 0) for each in deep
    ]
    if not deep:
        return []
    outcomes = []
    for number, who in enumerate(_PEOPLE, start=1):
        for query, uri in zip(deep, right, strict=True):
            world.producer.correction(world.query(query, who), right=True, uri=uri)
        world.settle()
        if number == 1:
            own = [_first_is(answer, uri) for answer, uri in zip(world.ask(deep, who), right, strict=True)]
            outcomes.append(_share("pointed at: first for who pointed", own, ">= 0.95"))
    everybody = [_first_is(answer, uri) for answer, uri in zip(world.ask(deep, _STRANGER), right, strict=True)]
    reworded = [paraphrase(query.text, rng) for query in deep]
    again = [
        _first_is(answer, uri) for answer, uri in zip(world.ask(deep, _STRANGER, texts=reworded), right, strict=True)
    ]
    return [
        *outcomes,
        _share("pointed at by 3: first for a stranger", everybody, ">= 0.90"),
        _share("pointed at by 3: first in other words", again, ">= 0.45"),
    ]


def _new_questions(world: _Class, queries: Sequence[JudgedQuery], _rng: random.Random) -> list[Outcome]:
    """Half of the questions praised at their right results by three people: what becomes of the other half."""
    half = len(queries) // 2
    asked, new = queries[:half], queries[half:]
    before = _ndcg(world, new)
    for who in _PEOPLE:
        answers = world.ask(asked, who)
        right = [
            next((each.content_hash for each in answer.results if world.right(query, each)), None)
            for query, answer in zip(asked, answers, strict=True)
        ]
        world.judge(answers, right, 1.0)
    return [
        Outcome("new questions: nDCG@10 lost", before - _ndcg(world, new), len(new), "<= 0.005"),
        Outcome("asked again: nDCG@10", _ndcg(world, asked), len(asked)),
    ]


def _lag(world: _Class, queries: Sequence[JudgedQuery], _rng: random.Random) -> list[Outcome]:
    """How long a correction takes until a search shows it, in seconds."""
    lags = []
    for query in queries[:_LAGS]:
        answer = world.ask([query], _STRANGER)[0]
        if len(answer.results) < PAGE:
            continue
        content, begun = answer.results[-1].content_hash, time.perf_counter()
        world.producer.correction(answer.query, right=True, content_hash=content)
        world.producer.flush()
        while world.ask([query], _STRANGER)[0].results[0].content_hash != content:
            if time.perf_counter() - begun > 60.0:
                break
        lags.append(time.perf_counter() - begun)
    return (
        [Outcome("correction lag, p95 in seconds", float(np.quantile(lags, 0.95)), len(lags), "<= 2.0")] if lags else []
    )


def _ndcg(world: _Class, queries: Sequence[JudgedQuery]) -> float:
    name, depth = document_id(world.dataset), world.settings.evaluation.depth
    answers = world.ask(queries, _STRANGER)
    run: Run = {
        query.query_id: as_ranked(answer.results, depth, document_id=name)
        for query, answer in zip(queries, answers, strict=True)
    }
    values = headline(run, world.dataset.qrels)
    return float(np.mean(list(values.values())))


def _prefix(world: _Class, name: Callable[[str], str]) -> str:
    """What stands before the id of a document in its URI."""
    uri = world.ask(world.dataset.queries[:1], _STRANGER)[0].results[0].uris[0]
    return uri.removesuffix(name(uri))


def _first_is(answer: Answer, uri: str) -> bool:
    return bool(answer.results) and uri in answer.results[0].uris


def _places(answers: Sequence[Answer], contents: Sequence[str | None]) -> list[int]:
    """Where contents stand, behind the page where they are not on it; those of None are left out."""
    return [
        next((each.rank for each in answer.results if each.content_hash == content), PAGE + 1)
        for answer, content in zip(answers, contents, strict=True)
        if content is not None
    ]


def _share(name: str, holds: Sequence[bool], goal: str = "") -> Outcome:
    return Outcome(name, float(np.mean(holds)) if len(holds) else 0.0, len(holds), goal)
