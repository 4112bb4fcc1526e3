"""FBK-7, ARC-2, RET-7: searching a real store: FAISS, Lucene, the catalog and the evidence of updaters."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.feedback_events import NOON, explicit, impression, shown
from tests.support.outcomes import outcome_evidence
from tests.support.parts import ENCODER, a_document, write_part
from tests.support.retrieval_fakes import a_query
from tests.support.session_store import Partition, phase
from tests.support.small_store import DirectionEncoder
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.catalog.pointer import Pointer
from weft.domain.documents import Domain
from weft.domain.errors import NothingPublishedError
from weft.domain.events import AnyEvent
from weft.domain.ids import VersionName, content_hash
from weft.domain.ranking import Channel, Scope, Signal
from weft.domain.reasons import CONTENT
from weft.indexes.builder import GenerationBuilder
from weft.indexes.generation import Generation
from weft.learning.evidence import Evidence
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.runtime.clock import day_of, system_clock
from weft.settings import load_settings

DOCUMENTS = [
    a_document("guide.md", "a checkpoint is written after every commit", "locks are released at once"),
    a_document("copy.md", "locks are released at once"),
    a_document("fruit.txt", *(f"fruit number {n} is yellow" for n in range(30))),
]
SETTINGS = load_settings(environment={})


def published(root: Path, documents: list) -> Catalog:
    catalog = Catalog(root)
    part = write_part(root / f"part-{len(catalog.generations())}", documents)
    staging = catalog.stage()
    GenerationBuilder(staging, SETTINGS.index).build([part], {"created_at": 1e9, "models": {"encoder": ENCODER}})
    catalog.publish(staging, expected_parent=catalog.pointer().generation)
    return catalog


def searching(catalog: Catalog, clock=system_clock) -> Searcher:
    source = CatalogSource(catalog, SETTINGS.priors, clock=clock)
    return Searcher(source, DirectionEncoder(), SETTINGS.retrieval, clock=clock)


def test_an_empty_store_says_that_nothing_is_published(tmp_path: Path) -> None:
    """ARC-2."""
    with pytest.raises(NothingPublishedError):
        searching(Catalog(tmp_path))


def test_both_channels_search_the_published_generation(tmp_path: Path) -> None:
    """RET-7, ARC-4."""
    with searching(published(tmp_path, DOCUMENTS)) as searcher:
        answer = searcher.search(a_query("when is a checkpoint written"))
        assert answer.results[0].uris == ("guide.md",)
        assert set(answer.results[0].channels) == {Channel.DENSE, Channel.LEXICAL}
        assert set(answer.failed_channels) == {"late_interaction"}  # no tokens are kept here
        assert set(searcher.search(a_query("locks released")).results[0].uris) == {"guide.md", "copy.md"}


def test_hostile_queries_are_answered_by_the_real_engines(tmp_path: Path) -> None:
    """RET-21: operator soup, control characters, lone surrogates, too many terms."""
    with searching(published(tmp_path, DOCUMENTS)) as searcher:
        hostile = ["contents:* OR *:*", 'AND OR NOT ( [ " ~', "\ud800\x00", "", " ".join(f"t{n}" for n in range(5000))]
        for answer in searcher.search_many([a_query(text) for text in hostile]):
            assert set(answer.failed_channels) == {"late_interaction"}  # no tokens are kept here


def test_a_new_generation_is_served_without_reopening(tmp_path: Path) -> None:
    """ARC-2: and the old one is let go of when nobody reads it any more."""
    catalog = published(tmp_path, DOCUMENTS)
    now = [time.time()]
    with searching(catalog, clock=lambda: now[0]) as searcher:
        first = searcher.search(a_query("checkpoint")).generation
        published(tmp_path, [a_document("new.md", "a checkpoint is a promise")])
        now[0] += SETTINGS.retrieval.refresh_s
        answer = searcher.search(a_query("checkpoint"))
        assert answer.generation == catalog.pointer().generation != first
        assert answer.results[0].uris == ("new.md",)


def learned(catalog: Catalog, signal: str) -> VersionName:
    """A live version that has seen one signal agree with outcomes."""
    signals = {"vector": 0.1, "lexical": 0.1} | {signal: 0.9}
    evidence = outcome_evidence(
        day=day_of(time.time()), scope=Scope(Domain.GENERAL), intent="*", signals=signals,
        score=0.5, content_hash=content_hash("locks are released at once"), good=True, weight=50.0,
    )  # fmt: skip
    newest = catalog.learned.newest()
    state = LearnedState(parent=newest, evidence=evidence, cut=Evidence())
    version = catalog.learned.publish(state, expected_newest=newest)
    catalog.make_live(version)
    return version


def test_a_snapshot_holds_the_evidence_of_the_version_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ARC-2: also where another version goes live between two reads of one look."""
    catalog = published(tmp_path, DOCUMENTS)
    first = learned(catalog, "vector")
    expected = catalog.learned.read(first).evidence
    read = catalog.pointer

    def overtaken() -> Pointer:
        pointer = read()
        if pointer.learned == first:
            learned(catalog, "lexical")
        return pointer

    source = CatalogSource(catalog, SETTINGS.priors, clock=system_clock)
    monkeypatch.setattr(catalog, "pointer", overtaken)
    snapshot = source.take(None)
    assert (snapshot.version, snapshot.learned.evidence) == (first, expected)
    assert catalog.live.evidence() != expected


def test_a_generation_is_left_for_the_one_that_was_rolled_back_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ARC-2: also where the newer one went live while the older one was about to be opened."""
    catalog = published(tmp_path, DOCUMENTS)
    older = catalog.pointer().generation
    assert older is not None
    source = CatalogSource(catalog, SETTINGS.priors, clock=system_clock)
    opened = catalog.open_live

    def overtaken() -> Generation:
        published(tmp_path, [a_document("new.md", "a checkpoint is a promise")])
        return opened()

    monkeypatch.setattr(catalog, "open_live", overtaken)
    newer = source.take(None)
    monkeypatch.undo()
    assert newer.generation_id != older
    catalog.rollback(older)
    assert source.take(newer).generation_id == older


def test_feedback_reaches_searches_within_five_seconds(tmp_path: Path) -> None:
    """FBK-7: an updater's snapshot moves the weights of the next search, and what was praised."""
    catalog = published(tmp_path, DOCUMENTS)
    praised = content_hash("locks are released at once")
    with searching(catalog) as searcher:
        before = searcher.snapshot.beliefs.weights(Scope(Domain.GENERAL), frozenset(Signal))[Signal.LEXICAL].mean
        evidence = outcome_evidence(
            day=day_of(time.time()), scope=Scope(Domain.GENERAL), intent="*", signals={"lexical": 1.0, "vector": 0.0},
            score=0.5, content_hash=praised, good=True, weight=500.0,
        )  # fmt: skip
        folder = tmp_path / "updaters" / "0"
        folder.mkdir(parents=True)
        pq.write_table(evidence.to_table(), folder / "evidence.parquet", write_page_checksum=True)
        while True:
            answer = searcher.search(a_query("locks released"))
            if CONTENT in {part.name for part in answer.results[0].contributions}:
                break
        weights = {part.name: part.weight for part in answer.results[0].contributions}
        assert weights["lexical"] > before


def test_a_damaged_generation_never_replaces_the_one_in_use(tmp_path: Path) -> None:
    """ARC-2: a file that does not match its manifest is not served."""
    catalog = published(tmp_path, DOCUMENTS)
    now = [time.time()]
    with searching(catalog, clock=lambda: now[0]) as searcher:
        first = searcher.search(a_query("checkpoint")).generation
        published(tmp_path, [a_document("new.md", "a checkpoint is a promise")])
        newest = tmp_path / "generations" / str(catalog.pointer().generation)
        victim = next(newest.glob("chunks/chunks.parquet"))
        victim.write_bytes(victim.read_bytes()[:-10] + b"0123456789")
        now[0] += SETTINGS.retrieval.refresh_s
        answer = searcher.search(a_query("checkpoint"))
        assert (answer.generation, answer.results[0].uris) == (first, ("guide.md",))


def test_a_session_searches_its_fork_and_what_it_alone_learned(tmp_path: Path) -> None:
    """LRN-14: repeatable although others merge meanwhile, unseen by them, and everybody's once it has completed."""
    catalog = published(tmp_path, DOCUMENTS)
    now = [NOON / 1000]
    updater = Partition(tmp_path)

    def praise(session_id: str, signal: float, query: str) -> list[AnyEvent]:
        locks = shown(1, content_hash=content_hash("locks are released at once"))
        return [
            impression(query, [locks], session_id=session_id, event_id=f"{query}-shown"),
            explicit(signal, None, query_id=query, session_id=session_id, event_id=f"{query}-judged"),
        ]

    with searching(catalog, clock=lambda: now[0]) as searcher:

        def effect_for(session_id: str | None) -> float:
            answer = searcher.search(a_query("locks released", session_id=session_id))
            parts = {part.name: part.value for part in answer.results[0].contributions}
            return parts.get(CONTENT, 0.0)

        def heard(events: list[AnyEvent]) -> None:
            updater.feed(events)
            updater.publish()
            searcher.refresh()  # on a busy machine looks lie farther apart than the clock of this test goes

        heard([phase("start", "mine"), *praise("mine", 1.0, "q1")])
        mine = effect_for("mine")
        assert effect_for("other") == effect_for(None) == 0.0 < mine
        heard([phase("start", "merging"), *praise("merging", -1.0, "q2"), phase("complete", "merging")])
        assert effect_for("mine") == mine
        assert effect_for("other") == effect_for(None) < 0.0
        heard([phase("complete", "mine")])
        assert 0.0 < effect_for("mine") == effect_for(None) < mine
