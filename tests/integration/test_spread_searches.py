"""RET-20, ARC-2, ARC-9: batches spread over processes, with real Ray, FAISS and Lucene."""

from __future__ import annotations

import gc
import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.nights import a_day
from tests.support.parts import a_document
from tests.support.retrieval_fakes import a_query
from tests.support.small_store import DirectionEncoder, published_store
from tests.support.spread_engines import DIES, WAITS, obedient
from weft.app.searching.engines import Engines, source_of
from weft.app.searching.searcher_pool import ANSWERS, SearcherPool, SearchProcess, packed, unpacked
from weft.app.searching.views import OpenViews, View, interleaved
from weft.domain.errors import NothingPublishedError, StoreError
from weft.domain.ids import GenerationId, QueryId
from weft.domain.ranking import Answer, Query, ScoredResult, ScoredResults
from weft.domain.understanding import SessionMemory
from weft.retrieval.searcher import Searcher
from weft.retrieval.settings import FusionMode
from weft.runtime.clock import day_of, system_clock
from weft.runtime.ray.actors import Shared
from weft.settings import Settings, load_settings

DOCUMENTS = [
    a_document("guide.md", "a checkpoint is written after every commit", "locks are released at once"),
    a_document("copy.md", "locks are released at once"),
    a_document("fruit.txt", *(f"fruit number {n} is yellow" for n in range(30))),
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    root = tmp_path_factory.mktemp("spread")
    published_store(root, DOCUMENTS)
    # Answers are compared here, which lack a channel where a busy machine keeps it beyond its time.
    patient = ["retrieval.budget_ms.searching=60000", "retrieval.budget_ms.following=60000"]
    return load_settings(assignments=[f"storage.root={root}", "retrieval.encode_batch=2", *patient], environment={})


@pytest.fixture(scope="module")
def pool(settings: Settings, cluster: None) -> Iterator[SearcherPool]:
    with SearcherPool(settings, processes=2, load=obedient) as made:
        made.open()
        yield made


def numbered(texts: list[str]) -> list[Query]:
    return [replace(a_query(text), query_id=QueryId(f"q{at}")) for at, text in enumerate(texts)]


def written(answers: list[Answer]) -> list[str]:
    """All of each answer but what the clock says."""
    return [json.dumps(replace(answer, timings_ms={}).to_dict()) for answer in answers]


def test_answers_are_those_of_one_process_to_the_last_byte(settings: Settings, pool: SearcherPool) -> None:
    """RET-20, ARC-9: of queries of every kind, in their order."""
    asked = [
        replace(query, explore=at % 3 == 0, context=at % 4 == 0, adaptive=at % 5 == 0)
        for at, query in enumerate(
            numbered(["locks released", "fruit 7", "checkpoint", "", "yellow \ud800", "x y"] * 3)
        )
    ]
    asked[1] = replace(asked[1], memory=SessionMemory())
    with Searcher(source_of(settings), DirectionEncoder(), settings.retrieval, clock=system_clock) as searcher:
        here = [searcher.search(query) for query in asked]
    there = pool.search_many(asked)
    assert written(there) == written(here)
    assert [replace(answer, timings_ms={}) for answer in there] == [replace(answer, timings_ms={}) for answer in here]


def scored_results(answer: Answer) -> ScoredResults:
    """What a ranking says of an answer."""
    return tuple(ScoredResult(result.content_hash, result.uris, result.score) for result in answer.results)


def test_under_several_views_answers_are_those_under_each(settings: Settings, pool: SearcherPool) -> None:
    """EVA-7, RET-20: of two configurations and two beliefs, batch by batch in turns, in processes and here."""
    asked, pin = (
        numbered(["locks released", "fruit 7", "checkpoint", "fruit 7", "yellow"] * 2),
        source_of(settings).pin(),
    )
    taught = replace(pin, learned=replace(pin.learned, evidence=a_day(day_of(pin.at), outcomes=500)))
    ranks = settings.retrieval.model_copy(update={"fusion": FusionMode.RRF})
    views = [View(settings, pin), View(settings, taught), View(settings.model_copy(update={"retrieval": ranks}), pin)]
    there = pool.search_each(asked, views)
    assert [written(answers) for answers in there] == [written(pool.search_each(asked, [view])[0]) for view in views]
    opening = OpenViews(obedient)
    for _ in range(2):  # opened anew over the same models and generation
        with opening.opened(views) as searchers:
            assert [written(answers) for answers in there] == [
                written(answers) for answers in interleaved(searchers, asked, 3, Searcher.search_many)
            ]
            here = interleaved(searchers, asked, 3, Searcher.rank_many)
    assert here == pool.rank_each(asked, views) == [list(map(scored_results, answers)) for answers in there]
    assert len({tuple(written(answers)) for answers in there}) == len(views)


def test_one_call_answers_from_one_snapshot(settings: Settings, pool: SearcherPool, tmp_path: Path) -> None:
    """ARC-2: what is published while its batches are under way is seen by the next call, and then by all of it."""
    go = tmp_path / "go"
    before = pool.search_many(numbered(["fruit"]))[0].generation
    with ThreadPoolExecutor(1) as thread:
        answers = thread.submit(pool.search_many, numbered([f"{WAITS}{go}", *["fruit"] * 11]))
        while not go.with_suffix(".asked").exists() and not answers.done():
            time.sleep(0.01)
        shutil.rmtree(Path(settings.storage.root) / "part")
        published_store(Path(settings.storage.root), [*DOCUMENTS, a_document("new.md", "a fruit is a promise")])
        go.touch()
        during = answers.result()
    after = pool.search_many(numbered(["fruit"] * 12))
    assert {answer.generation for answer in during} == {before}
    assert len(during) == len(after) == 12
    (seen,) = {answer.generation for answer in after}
    assert seen != before


def test_a_killed_process_costs_no_answer(pool: SearcherPool, tmp_path: Path) -> None:
    """ARC-5: its batch is asked again, of the snapshot that the others answer from."""
    asked = numbered(["fruit", f"{DIES}{tmp_path / 'survived'}", *["locks"] * 9])
    answers = pool.search_many(asked)
    assert (tmp_path / "survived").exists()
    assert [answer.query.query_id for answer in answers] == [query.query_id for query in asked]
    assert len({answer.generation for answer in answers}) == 1


def test_a_view_that_is_gone_costs_a_process_nothing(settings: Settings, cluster: None) -> None:
    """ARC-2: the call fails, and the next one finds the models that were loaded."""
    loaded: list[Settings] = []

    def load(asked: Settings) -> Engines:
        loaded.append(asked)
        return obedient(asked)

    pin, process = source_of(settings).pin(), SearchProcess(load)
    try:
        for _ in range(2):
            assert process.open(Shared(View(settings, pin))) == pin.generation
            with pytest.raises(StoreError, match="gone"):
                process.open(Shared(View(settings, replace(pin, generation=GenerationId("gone")))))
        (pack,) = process.answer([Shared(View(settings, pin))], numbered(["fruit"]))
    finally:
        gc.enable()  # which a process that does nothing else leaves off
    assert unpacked(pack, ANSWERS)[0].results
    assert len(loaded) == 1


def test_a_query_with_a_wrong_filter_is_named_and_the_pool_goes_on(pool: SearcherPool) -> None:
    """RET-4, RET-21: as a searcher in this process does."""
    asked = numbered(["fruit"] * 5)
    wrong = [*asked[:3], replace(asked[3], filters={"until": "soon"}), asked[4]]
    with pytest.raises(ValueError, match=r"query q3: expected a date .* found 'soon'; none of its batch"):
        pool.search_many(wrong)
    assert len(pool.search_many(asked)) == len(asked)


def test_an_empty_store_says_so_before_anything_is_started(tmp_path: Path) -> None:
    """ARC-2: as one process does."""
    settings = load_settings(assignments=[f"storage.root={tmp_path}"], environment={})
    with SearcherPool(settings, processes=2) as pool, pytest.raises(NothingPublishedError):
        pool.search_many(numbered(["fruit"]))
    assert pool._actors is None


def test_what_no_utf_8_can_say_is_sent_as_well(settings: Settings) -> None:
    """RET-21: half of a surrogate pair in a query."""
    with Searcher(source_of(settings), DirectionEncoder(), settings.retrieval, clock=system_clock) as searcher:
        for text, kind in (("fruit", bytes), ("\ud800", list)):
            answers = searcher.search_many(numbered([text]))
            pack = packed(answers)
            assert isinstance(pack, kind)
            assert unpacked(pack, ANSWERS) == answers
