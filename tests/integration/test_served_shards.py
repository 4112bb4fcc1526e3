"""SCL-12, SCL-13: shards on Ray Serve that are slow, die or are replaced, and a swap of generations under load."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.served import asleep, on_serve, process_of
from tests.support.sharded import (
    answers,
    asked,
    collection,
    indexing,
    opened,
    parts_of,
    published,
    ranking,
)
from weft.catalog.catalog import Catalog
from weft.domain.ranking import Answer
from weft.indexes.manifest import Manifest
from weft.indexes.parts import IndexPart
from weft.retrieval.searcher import Searcher
from weft.service.shards import PAUSE_S, ServedShards

PATIENCE_S = 120.0

pytestmark = pytest.mark.slow  # replicas that are killed take a while to come back
SHORT_MS, LONG_MS = 1_500.0, 30_000.0


@dataclass(frozen=True)
class Deployed:
    """A store of four shards, searched in two shares of two replicas each."""

    catalog: Catalog
    reach: Callable[[float], ServedShards]
    questions: Sequence[str]
    folder: Path

    @property
    def manifest(self) -> Manifest:
        """What is live."""
        live = self.catalog.pointer().generation
        return next(each for each in self.catalog.generations() if each.id == live)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory, data_root: Path, cluster: None) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("deployed")
    documents, questions = collection(data_root, "nfcorpus")
    catalog = Catalog(folder / "store")
    published(catalog, parts_of(folder / "parts", documents, 1), indexing(_chunks(documents), 4))
    with on_serve(catalog.root, shards=2, replicas=2) as reach:
        yield Deployed(catalog, reach, questions, folder)


def _chunks(documents: Sequence[tuple[object, Sequence[object]]]) -> int:
    return sum(len(chunks) for _, chunks in documents)


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def _processes(part: IndexPart, least: int) -> set[int]:
    """The processes of all replicas of a share: asked often enough, each has its turn."""
    seen: set[int] = set()

    def all_seen() -> bool:
        seen.add(part.begin(process_of)())
        return len(seen) >= least

    _until(all_seen, f"{least} replicas")
    return seen


def _first(searcher: Searcher, deployed: Deployed) -> Answer:
    return searcher.search(asked(deployed.questions)[0])


def _require_same(answer: Answer, expected: Sequence[tuple[str, float]]) -> None:
    told = ranking(answer)
    assert [digest for digest, _ in told] == [digest for digest, _ in expected]
    assert [score for _, score in told] == pytest.approx([score for _, score in expected], rel=1e-6)


def _whole(searcher: Searcher, deployed: Deployed) -> Answer:
    """The first answer of all shards, which comes once a shard that failed replies again."""
    whole: list[Answer] = []

    def is_whole() -> bool:
        answer = _first(searcher, deployed)
        whole.extend([] if answer.failed_shards else [answer])
        return bool(whole)

    _until(is_whole, "an answer of all shards")
    return whole[0]


@pytest.mark.parametrize("number", [0, 1])
def test_a_slow_shard_is_named_and_answers_stand_on_the_others(deployed: Deployed, number: int) -> None:
    """SCL-12: within the deadline of each call, whichever is waited for first; and no more once it is asked again."""
    fleet = deployed.reach(SHORT_MS)
    (expected, *_), slow = answers(deployed.catalog, deployed.questions[:1]), fleet.parts(deployed.manifest)[number]
    with opened(deployed.catalog, fleet) as searcher:
        kept = {row for row, digest in enumerate(searcher.snapshot.generation.contents) if row not in slow.rows}
        for _ in range(12):  # both replicas have some
            slow.begin(asleep, 6.0)
        time.sleep(0.5)
        began = time.monotonic()
        answer = _first(searcher, deployed)
        assert time.monotonic() - began < 4 * SHORT_MS / 1000.0
        assert list(answer.failed_shards) == [f"shard-{number}"]
        assert "no reply within 1500 ms" in answer.failed_shards[f"shard-{number}"]
        row_of = searcher.snapshot.generation.chunks.row_of
        assert answer.results
        assert any(row_of(result.content_hash) in kept for result in answer.results)
        assert answer.to_dict()["failed_shards"] == answer.failed_shards
        _require_same(_whole(searcher, deployed), expected)


def test_a_killed_replica_is_taken_over_and_a_dead_shard_named_until_it_is_back(deployed: Deployed) -> None:
    """SCL-12: with a replica left nothing is missing; without one the shard is named; then it is whole again."""
    fleet = deployed.reach(LONG_MS)
    with opened(deployed.catalog, fleet) as searcher:
        expected = ranking(_first(searcher, deployed))
        part = fleet.parts(deployed.manifest)[1]
        one, other = sorted(_processes(part, 2))
        os.kill(one, signal.SIGKILL)
        for _ in range(10):
            answer = _first(searcher, deployed)
            assert not answer.failed_shards
            _require_same(answer, expected)
        brisk = deployed.reach(SHORT_MS)
        with opened(deployed.catalog, brisk) as hurried:
            for process in _processes(part, 1) | {other}:
                os.kill(process, signal.SIGKILL)
            dead = _first(hurried, deployed)
            assert list(dead.failed_shards) == ["shard-1"]
            assert dead.results
            time.sleep(PAUSE_S)
            _require_same(_whole(hurried, deployed), expected)


def test_no_answer_mixes_two_generations(deployed: Deployed, data_root: Path) -> None:
    """SCL-13: while it is asked, a generation of one shard takes the place of one of four, all at once."""
    catalog, before = deployed.catalog, deployed.manifest.id
    documents, _ = collection(data_root, "nfcorpus")
    expected = {before: answers(catalog, deployed.questions)}
    seen: list[tuple[int, Answer]] = []
    stop = threading.Event()
    with opened(catalog, deployed.reach(LONG_MS)) as searcher:

        def ask() -> None:
            while not stop.is_set():
                for at, query in enumerate(asked(deployed.questions)):
                    seen.append((at, searcher.search(query)))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            some = documents[::2]
            after = published(catalog, parts_of(deployed.folder / "half", some, 1), indexing(_chunks(some), 1)).id
            expected[after] = answers(catalog, deployed.questions)

            def moved() -> bool:
                searcher.refresh()
                return searcher.snapshot.generation_id == after

            _until(moved, "the new generation")
            count = len(seen)
            _until(lambda: len(seen) > count + 4, "answers of the new generation")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert {answer.generation for _, answer in seen} == {before, after}
    for at, answer in seen:
        assert not answer.failed_shards
        _require_same(answer, expected[answer.generation][at])
