"""ING-25, ING-26: many documents are searched by words before their vectors are there."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.ingest_process import WAYS, run_and_die_by_words
from tests.support.ingestion import a_plan, a_tree
from weft.app.indexing import plan_of, run
from weft.app.library import open_searcher
from weft.app.views.status import status_of
from weft.catalog.catalog import Catalog
from weft.domain.ranking import Query
from weft.indexes.manifest import Manifest
from weft.ingestion.pipeline import ingest
from weft.ingestion.plan import IndexPlan, by_words
from weft.ingestion.report import IndexOutcome, IndexProgress
from weft.runtime.stages import HERE
from weft.settings import store_settings

pytestmark = pytest.mark.integration

FIRST = 3  # documents, of which the tree has more


def made(plan: IndexPlan, watch: Callable[[IndexProgress], None] = lambda _: None) -> IndexOutcome:
    return ingest(plan, Catalog(plan.store), HERE, watch, clock=time.monotonic)


def live(store: Path) -> Manifest:
    catalog = Catalog(store)
    return catalog.verify(str(catalog.pointer().generation))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_tree(tmp_path_factory.mktemp("sources"), files=4)


@pytest.fixture(scope="module")
def whole(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose one generation was made at once."""
    store = tmp_path_factory.mktemp("whole") / "store"
    made(replace(a_plan(source, store, *WAYS), words_first=0))
    return store


def test_a_first_generation_answers_by_words_and_the_whole_one_takes_its_place(
    source: Path, whole: Path, tmp_path: Path
) -> None:
    """ING-25, ARC-2: it is complete, marked, and holds the same chunks; what comes of the run is the same."""
    plan = replace(a_plan(source, tmp_path / "store", *WAYS), words_first=FIRST)
    first: list[Manifest] = []

    def look(progress: IndexProgress) -> None:
        if "answers by words" in progress.phase:
            first.append(live(plan.store))
            with closing(Catalog(plan.store).open_live()) as generation, closing(Catalog(whole).open_live()) as later:
                assert list(generation.contents) == list(later.contents)
                assert generation.lexical.search("queue", 9) == later.lexical.search("queue", 9)

    outcome = made(plan, look)
    assert [(one.is_by_words, dict(one.dense), dict(one.models)) for one in first] == [(True, {}, {})]
    last, expected = live(plan.store), live(whole)
    assert (last.content_hash, last.counts) == (expected.content_hash, expected.counts)
    assert (last.is_by_words, last.parent, outcome.generation) == (False, first[0].id, last.id)
    assert len(Catalog(whole).generations()) == 1


def test_what_has_vectors_is_never_searched_by_words_again(source: Path, tmp_path: Path) -> None:
    """ARC-2: where a generation is live, it goes on serving, whatever is new; few documents need none before it."""
    store = tmp_path / "store"
    made(replace(a_plan(source, store, *WAYS), words_first=100))
    assert len(Catalog(store).generations()) == 1
    made(replace(a_plan(source, store, *WAYS, full=True), words_first=FIRST))
    assert [one.is_by_words for one in Catalog(store).generations()] == [False, False]


def test_who_is_killed_in_between_is_finished_by_the_next_run(source: Path, whole: Path, tmp_path: Path) -> None:
    """ING-26: what answers by words stays live; the next run makes the rest, and nothing else of it is left."""
    store = tmp_path / "store"
    process = multiprocessing.get_context("spawn").Process(target=run_and_die_by_words, args=(source, store))
    process.start()
    process.join(240.0)
    assert process.exitcode == -signal.SIGKILL
    assert live(store).is_by_words
    phases: list[str] = []
    made(replace(a_plan(source, store, *WAYS), words_first=FIRST), lambda progress: phases.append(progress.phase))
    assert not any("answers by words" in phase for phase in phases)
    assert live(store).content_hash == live(whole).content_hash


def test_answers_and_the_status_say_so(source: Path, tmp_path: Path) -> None:
    """RET-7, OPS-4: what is still to come is named, with what to do; words and names find all the same."""
    settings = store_settings(tmp_path / "store", ["extraction.enabled=false"])
    run(by_words(plan_of(settings, [source])), executor=HERE)
    with open_searcher(tmp_path / "store") as searcher:
        answer = searcher.search(Query(text="open the queue number"))
        named = searcher.search(Query(text="queue_1"))
    assert "by words until then: `weft index`" in answer.failed_channels["dense"]
    assert answer.results[0].uris == ("tree/module_01.py",)
    assert named.results[0].symbol == "queue_1"
    assert answer.gap is None
    assert status_of(tmp_path / "store", settings)["vectors"] == "still to come"
    run(plan_of(settings, [source]), executor=HERE)
    assert status_of(tmp_path / "store", settings)["vectors"] == "there"
