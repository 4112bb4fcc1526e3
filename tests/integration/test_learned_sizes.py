"""ING-11, LRN-9: feedback on chunks moves the beliefs about their sizes, and the next indexing cuts by them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.feedback_events import NOON, records, rules, stamp
from tests.support.feedback_source import FakeLog, FakeSource
from tests.support.ingestion import WordEncoder, a_plan
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.domain.chunks import pairs_of
from weft.domain.documents import Domain
from weft.domain.events import Explicit
from weft.domain.ids import QueryId, VersionName
from weft.domain.ranking import Query
from weft.feedback.events.producer import impression_of
from weft.feedback.run.updater import Updater
from weft.ingestion.pipeline import ingest
from weft.ingestion.sizing import SIZING, live_sizes
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.runtime.clock import system_clock
from weft.runtime.stages import HERE
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
SENTENCE = "The {topic} of number {number} waits until it is asked for and then answers at once. "
TOPICS = ("lock", "queue", "parser", "socket", "index", "token", "cache", "thread")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Short sections, which will be praised, and one section far above any target."""
    root = tmp_path / "tree"
    root.mkdir()
    short = "".join(f"## About the {topic}\n\n{4 * SENTENCE.format(topic=topic, number=1)}\n\n" for topic in TOPICS)
    long = "\n\n".join(SENTENCE.format(topic=topic, number=number) for topic in TOPICS for number in range(12))
    (root / "short.md").write_text(f"# Short\n\n{short}")
    (root / "long.md").write_text(f"# Long\n\n{long}\n")
    return root


def reindex(tree: Path, store: Path, *, resized: bool = True) -> None:
    ingest(
        replace(a_plan(tree, store, "embedding.max_tokens=256"), resized=resized),
        Catalog(store),
        HERE,
        lambda _: None,
        clock=time.monotonic,
    )


def rows(store: Path, uri: str) -> list[dict]:
    generation = str(Catalog(store).pointer().generation)
    table = pq.read_table(store / "generations" / generation / "chunks" / "chunks.parquet")
    return sorted((row for row in table.to_pylist() if row["uri"] == uri), key=lambda row: row["sequence"])


def feedback(store: Path, *, queries: int) -> Iterator[object]:
    """What users of a search see, and how they judge it: short sections are what they want, parts of long ones not."""
    source = CatalogSource(Catalog(store), SETTINGS.priors, clock=system_clock, sessions_held=8)
    encoder = WordEncoder(SETTINGS.embedding)
    encoder.name = "model"  # the folder that `a_plan` keeps its model in names the vectors
    with Searcher(source, encoder, SETTINGS.retrieval, clock=system_clock) as searcher:
        for number in range(queries):
            topic = TOPICS[number % len(TOPICS)]
            query = Query(text=f"about the {topic}", query_id=QueryId(f"q{number}"), k=5)
            answer = searcher.search(query)
            who = f"user-{number}"  # one alone may move parameters by some answers a day only
            yield impression_of(answer, **stamp(f"shown-{number}", principal=who))
            for rank, result in enumerate(answer.results):
                verdict = 1.0 if result.uris[0].endswith("short.md") else -1.0
                facts = stamp(f"verdict-{number}-{rank}", principal=who)
                yield Explicit(**facts, query_id=query.query_id, signal=verdict, content_hash=result.content_hash)


def learn(store: Path, events: list) -> VersionName:
    """The updater folds the events in; a night makes them the live learned version."""
    updater = Updater.open(FakeSource(FakeLog.of(records(events))), store, [0], rules(limits__newcomers=1_000))
    while updater.step(0.0):
        pass
    updater.publish()
    (standing,) = updater.progress()
    assert (standing.report.dead_lettered, standing.report.applied) == (0, len(events))
    updater.close()
    catalog = Catalog(store)
    streamed = catalog.live.streamed_reach()[0]
    version = catalog.learned.publish(
        LearnedState(parent=None, evidence=streamed, cut=streamed, created_at=NOON / 1000), expected_newest=None
    )
    catalog.make_live(version)
    return version


def test_liking_short_chunks_makes_indexing_cut_shorter_where_asked(tree: Path, tmp_path: Path) -> None:
    """ING-11, LRN-9: chunk → impression → verdict → evidence → belief → sizes in force → snapshot, all of it real.

    Only where that is asked for. ARC-9: and a later version that believes the same changes nothing.
    """
    store = tmp_path / "store"
    reindex(tree, store)
    before = rows(store, "tree/long.md")
    assert {pairs_of(row["sizing"])["learned"] for row in before} == {"priors"}
    target = int(pairs_of(before[0]["sizing"])["target"])
    version = learn(store, list(feedback(store, queries=60)))
    limit = int(pairs_of(before[0]["sizing"])["max"])
    believed = live_sizes(SETTINGS.chunking, SETTINGS.priors, Catalog(store), limit=limit).domains[Domain.GENERAL]
    assert believed.target_tokens < target

    first = Catalog(store).pointer().generation
    reindex(tree, store, resized=False)
    assert Catalog(store).pointer().generation == first, "beliefs alone embed nothing anew"
    (tree / "more.md").write_text("# More\n\nA page that is new.\n", encoding="utf-8")
    reindex(tree, store, resized=False)
    assert rows(store, "tree/long.md") == before
    assert {pairs_of(row["sizing"])["target"] for row in rows(store, "tree/more.md")} == {str(target)}
    (tree / "more.md").unlink()

    reindex(tree, store)
    after = rows(store, "tree/long.md")
    snapshots = [pairs_of(row["sizing"]) for row in after]
    assert {snapshot["target"] for snapshot in snapshots} == {str(believed.target_tokens)}
    assert {snapshot["learned"] for snapshot in snapshots} == {version}
    assert len(after) > len(before)
    assert max(row["tokens"] for row in after) <= believed.target_tokens < max(row["tokens"] for row in before)
    manifest = next(one for one in Catalog(store).generations() if one.id == Catalog(store).pointer().generation)
    assert pairs_of(manifest.facts[SIZING]["general"])["learned"] == version

    follow_with_the_same(store, version)
    live = Catalog(store).pointer()
    assert live.learned != version
    reindex(tree, store)
    assert Catalog(store).pointer().generation == live.generation, "the same sizes make the same generation"


def follow_with_the_same(store: Path, version: VersionName) -> None:
    """A night that learned nothing new."""
    catalog = Catalog(store)
    state = replace(catalog.learned.read(version), parent=version)
    catalog.make_live(catalog.learned.publish(state, expected_newest=version))
