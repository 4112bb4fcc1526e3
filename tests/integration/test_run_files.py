"""SCL-6: hosts that share an object store and no disk build the shards of a generation side by side.

Hosts are disks here, in one process: the path of the store leads to the disk of the host whose turn it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.copies import memory_url
from tests.support.ingestion import CAPITALS, a_plan, a_tree, write
from weft.catalog.catalog import Catalog
from weft.domain.errors import StoreError, WeftError
from weft.indexes.generation import open_generation
from weft.indexes.manifest import read_generation_manifest
from weft.ingestion.building import Parts
from weft.ingestion.pipeline import ingest
from weft.ingestion.plan import IndexPlan
from weft.ingestion.report import IndexOutcome
from weft.runtime.stages import HERE, Executor, Stage
from weft.runtime.storage.run_files import RunFiles
from weft.runtime.storage.working_copy import make_working_copy

NAMES = ("alpha", "beta", "gamma")
FILES, NOTES = 90, 180
SHARDED = (
    "index.shard_contents=130",
    "index.vectors.exact_below=100",
    "index.vectors.bytes_per_vector=1000",
    "index.vectors.target_recall=0.5",
    "extraction.enabled=true",
    "ingest.unit_documents=2",
)
SIDE_BY_SIDE = (
    "_list",
    "_cut_run",
    "_merge_shard",
    "_asked",
    "_write_text",
    "gather",
    "_fill",
    "_near",
    "isolate",
    "_work",
    "_ask",
    "_send",
)
PLACES = ("vectors", "text")  # of a shard, which no other host has


@dataclass
class Disks:
    """Hosts with a disk each, of which one is at work.

    Attributes:
        lost: A host that is gone as soon as it runs a function of a name; that name.
        built: Which shards' vectors and words lay on which host's disk, when a generation was complete.
        ran: Names of functions, and the hosts that they ran on.
    """

    folder: Path
    names: Sequence[str] = NAMES
    own: str = NAMES[0]
    url: str = field(default_factory=memory_url)
    lost: tuple[str, str] | None = None
    built: dict[str, set[str]] = field(default_factory=dict)
    ran: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.names:
            (self.folder / name).mkdir(parents=True)
        self.turn(self.own)

    @property
    def store(self) -> Path:
        """Where every host has its working copy."""
        return self.folder / "store"

    def turn(self, name: str) -> None:
        """Have a host be the one at work."""
        self.store.unlink(missing_ok=True)
        self.store.symlink_to(self.folder / name)
        make_working_copy(self.store, self.url)

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """A host at work, and then the one that was."""
        was = self.store.resolve().name
        self.turn(name)
        try:
            yield
        finally:
            self.turn(was)

    def stream(self, batches: Sequence[pa.Table], stages: Sequence[Stage]) -> Generator[pa.Table]:
        """A share of the batches on every host."""
        for number, name in enumerate(self.names):
            with self.at(name):
                made = list(HERE.stream(batches[number :: len(self.names)], stages))
            yield from made

    def tasks(
        self, run: Callable[[Any], Any], tasks: Sequence[Any], *, on: Sequence[str] | None = None, **_: Any
    ) -> Iterable[Any]:
        """Tasks where they are to run, else on this host."""
        done = []
        for task, name in zip(tasks, on or [self.own] * len(tasks), strict=True):
            if self.lost == (name, _name(run)):
                self.names = [each for each in self.names if each != name]
                raise WeftError(f"{name} is lost")
            with self.at(name):
                done.append(run(task))
            self.ran.setdefault(_name(run), set()).add(name)
        return done

    def on_other_hosts(self, run: Callable[[], Any]) -> list[tuple[str, Any]]:
        """What a function returns on every other host."""
        answers = []
        for name in self.names:
            if name != self.own:
                with self.at(name):
                    answers.append((name, run()))
        return answers

    @property
    def executor(self) -> Executor:
        """Work on these hosts."""
        return Executor(self.stream, self.tasks, lambda: 3, lambda: None, self.on_other_hosts, lambda: self.names)

    def index(self, plan: IndexPlan) -> IndexOutcome:
        """A run that the own host begins; which host had which shard is noted before they send these."""

        def watch(progress: Any) -> None:
            if progress.phase == "publishing":
                for name in self.names:
                    staged = (self.folder / name / "generations").glob(".staging-*/shards/*")
                    self.built[name] = {shard.name for shard in staged if any((shard / one).is_dir() for one in PLACES)}

        return ingest(plan, Catalog(self.store), self.executor, watch, clock=time.monotonic)


def _name(run: Any) -> str:
    while hasattr(run, "func"):
        run = next((each for each in reversed(run.args) if callable(each)), run.func)
    return str(getattr(run, "__name__", run))


def _alone(plan: IndexPlan) -> IndexOutcome:
    return ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)


def _said(store: Path) -> dict[str, Any]:
    """All that the live generation of a store is but names and times, and the numbers that Lucene gives its files."""
    catalog, timed = Catalog(store), {"documents": "indexed_at", "revisions": "since", "former_places": "since"}
    live = catalog.pointer().generation
    assert live is not None
    manifest, folder = catalog.verify(live), catalog.folder_of(live)
    files: dict[str, Any] = {name: digest for name, digest in manifest.files.items() if "/lucene/" not in name}
    for name in files:
        if (column := timed.get(Path(name).stem)) is not None:
            files[name] = pq.read_table(folder / name).drop_columns([column]).to_pylist()
    return {**manifest.model_dump(exclude={"id", "parent", "created_at", "settings"}), "files": files}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = a_tree(tmp_path / "tree", files=FILES)
    for number in range(NOTES):
        write(
            tree / f"notes/{number}.md", f"# Note {number}\n\nNLP and Natural Language Processing, see [next](1.md).\n"
        )
    return tree


def test_hosts_build_shards_on_their_own_disks(tree: Path, tmp_path: Path) -> None:
    """SCL-6, SCL-7, SCL-9, SCL-12, ARC-9, RET-15: what they make is what one host makes; none has the shards of all.

    What tells answers from gaps asks the shards where they are.
    """
    disks = Disks(tmp_path / "hosts")
    plan = replace(a_plan(tree, disks.store, *SHARDED, extractor=CAPITALS), describe=_describe)
    alone = replace(plan, store=tmp_path / "alone")
    first, expected = disks.index(plan), _alone(alone)
    assert first.content_hash == expected.content_hash
    assert first.unmet_relations == expected.unmet_relations
    said = _said(disks.store)
    assert said == _said(alone.store)
    assert {facts["kind"] for facts in said["dense"].values()} == {"ivfpq"}
    assert said["facts"]["told"][2]
    every = {f"{number:04d}" for number in range(len(said["shards"]))}
    assert len(every) > len(NAMES)
    assert set.union(*disks.built.values()) == every
    assert sum(map(len, disks.built.values())) == len(every), disks.built
    for function in SIDE_BY_SIDE:
        assert disks.ran[function] == set(NAMES), function
    assert _left(disks) == set()

    # A change: what stands in the live generation is fetched by the shard.
    write(tree / "notes/3.md", "# Note 3\n\nSomething else is said here now.\n")
    second, expected = disks.index(plan), _alone(alone)
    assert second.published
    assert second.unchanged == expected.unchanged > 0
    assert _said(disks.store) == _said(alone.store)
    assert sum(map(len, disks.built.values())) == len(every), disks.built
    assert _left(disks) == set()


@pytest.mark.parametrize("function", ["_merge_shard", "_work", "_send"])
def test_what_a_lost_host_built_is_built_by_others(function: str, tmp_path: Path) -> None:
    """SCL-6, SCL-16: whatever it was at; what it had read and embedded is in the store."""
    disks = Disks(tmp_path / "hosts", lost=("gamma", function))
    graph = f"index.graph.enabled={str(function == '_work').lower()}"
    plan = a_plan(a_tree(tmp_path / "tree", files=12), disks.store, "index.shard_contents=13", graph)
    outcome = disks.index(plan)
    assert list(disks.names) == ["alpha", "beta"]
    assert outcome.content_hash == _alone(replace(plan, store=tmp_path / "alone")).content_hash
    assert _said(disks.store) == _said(tmp_path / "alone")
    assert _left(disks) == set()


def test_what_fails_on_a_host_that_is_there_fails_the_run(tmp_path: Path) -> None:
    """SCL-16: nothing is tried again in vain, or changed."""
    disks = Disks(tmp_path / "hosts")
    plan = a_plan(a_tree(tmp_path / "tree", files=12), disks.store, "index.shard_contents=13")

    def tasks(run: Callable[[Any], Any], some: Sequence[Any], **options: Any) -> Iterable[Any]:
        if _name(run) == "gather":
            raise StoreError("no room")
        return disks.tasks(run, some, **options)

    with pytest.raises(StoreError, match="no room"):
        ingest(plan, Catalog(disks.store), replace(disks.executor, tasks=tasks), lambda _: None, clock=time.monotonic)
    assert Catalog(disks.store).pointer().generation is None
    assert _left(disks) == set()


def _left(disks: Disks) -> set[str]:
    """What runs left on disks, and in the object store."""
    there = {each.key for each in RunFiles(disks.store).copy.objects.list("parts/")}
    staged = {path.name for name in disks.names for path in disks.folder.glob(f"{name}/generations/.staging-*")}
    return there | staged


def _describe(folder: Path, parts: Parts | None = None) -> dict[str, object]:
    manifest = read_generation_manifest(folder)
    with closing(open_generation(folder, verify=False, parts=parts and parts(manifest))) as generation:
        (encoder,) = generation.encoders
        vectors = generation.dense(encoder).vectors(range(0, 60, 7))
        rows, cosines = generation.dense(encoder).search(vectors, 9)
        words = generation.lexical.search("open the parser", 9)
        texts = [content.text for content in generation.chunks.contents(range(0, 60, 9))]
        alone = np.asarray(generation.dense(encoder).isolation).tolist()
        return {
            "told": [rows.tolist(), cosines.tolist(), words, texts, alone, generation.graph.table("edges").num_rows]
        }


def test_one_shard_is_built_by_the_host_of_the_run(tree: Path, tmp_path: Path) -> None:
    """SCL-6: nothing of it is sent before it is complete, but what others have read."""
    disks = Disks(tmp_path / "hosts")
    disks.index(a_plan(tree, disks.store, "ingest.unit_documents=2"))
    assert disks.ran["_merge_shard"] == disks.ran["_write_text"] == {disks.own}
    assert len(_said(disks.store)["shards"]) == 1
    assert _left(disks) == set()


def test_what_nobody_has_sent_is_an_error(tmp_path: Path) -> None:
    """SCL-1: a run says which file it waits for in vain, and what to do."""
    disks = Disks(tmp_path / "hosts")
    run_files = RunFiles(disks.store)
    run_files.bring(disks.store / "generations" / "x" / "a.parquet", optional=True)
    with pytest.raises(StoreError, match=r"parts/generations/x/a\.parquet of another host .* run again"):
        run_files.bring(disks.store / "generations" / "x" / "a.parquet")


def test_files_are_sent_whole_and_fetched_once(tmp_path: Path) -> None:
    """SCL-4: of two attempts one counts, and never a file of either; some of a folder's files first, others later."""
    disks = Disks(tmp_path / "hosts")
    run_files, folder = RunFiles(disks.store), disks.store / "generations" / "x" / "made"
    for attempt in ("first", "second"):
        for name in ("a.one", "b.two"):
            write(folder / name, attempt)
        run_files.send(folder)
        disks.turn(NAMES[1 if attempt == "first" else 0])
        if attempt == "first":
            disks.turn(NAMES[0])
    with disks.at("beta"):
        run_files.bring(folder, ("a.",))
        assert {path.name: path.read_text() for path in folder.iterdir()} == {"a.one": "second"}
        run_files.bring(folder)
        assert {path.name: path.read_text() for path in folder.iterdir()} == {"a.one": "second", "b.two": "second"}
        run_files.copy.objects.delete(each.key for each in run_files.copy.objects.list("parts/"))
        run_files.bring(folder)  # it is here
