from __future__ import annotations

import errno
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.support.ingestion import FORBIDDEN, FULL_DISK, KILLED, KILLED_ONCE, UNAVAILABLE, a_plan, a_tree, write
from weft.catalog.catalog import Catalog
from weft.domain.errors import ModelUnavailableError, SourceError, StoreError
from weft.ingestion import pipeline as run_module
from weft.ingestion import plan as plan_module
from weft.ingestion.pipeline import ingest
from weft.ingestion.plan import IndexPlan
from weft.ingestion.report import IndexOutcome, IndexProgress
from weft.runtime.ray.stages import ON_CLUSTER
from weft.runtime.stages import HERE, Executor

QUERIES = ("close a handle", "open the queue number 1", "lock", "consumer")


def _run(plan: IndexPlan, executor: Executor = HERE, seen: list[IndexProgress] | None = None) -> IndexOutcome:
    watched = [] if seen is None else seen
    return ingest(plan, Catalog(plan.store), executor, watched.append, clock=time.monotonic)


def _found(store: Path) -> tuple[list[str], bytes, list[list[tuple[int, float]]]]:
    """Contents in row order, the stored vectors, and what the text index answers."""
    generation = Catalog(store).open_live()
    try:
        answers = [generation.lexical.search(query, 10) for query in QUERIES]
        (encoder,) = generation.encoders
        vectors = generation.dense(encoder).vectors(range(len(generation.contents)))
        return list(generation.contents), vectors.tobytes(), answers
    finally:
        generation.close()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_tree(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def reference(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, IndexOutcome]:
    """One process, one shard, units of their own size: what every other way of running must equal."""
    store = tmp_path_factory.mktemp("reference") / "store"
    return store, _run(a_plan(source, store, "index.shards=1"))


@pytest.mark.parametrize(
    "ways",
    [
        pytest.param(("index.shards=2", "ingest.pools.readers=1", "ingest.pools.encoders=1"), marks=pytest.mark.slow),
        pytest.param(
            ("index.shards=4", "ingest.pools.readers=2", "ingest.pools.encoders=3", "ingest.unit_documents=2"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["2 shards, 2 actors", "4 shards, 5 actors"],
)
def test_shards_and_actors_change_nothing(
    cluster: None, source: Path, reference: tuple[Path, IndexOutcome], tmp_path: Path, ways: tuple[str, ...]
) -> None:
    """ING-24, ARC-9: the same content hash, the same vectors, the same ids and scores, however the work is spread."""
    store, expected = reference
    outcome = _run(a_plan(source, tmp_path / "store", *ways), ON_CLUSTER)
    assert outcome.content_hash == expected.content_hash
    assert _found(tmp_path / "store") == _found(store)


def test_a_killed_worker_is_replaced_and_nothing_shows(
    cluster: None, source: Path, reference: tuple[Path, IndexOutcome], tmp_path: Path
) -> None:
    """ING-24: a worker that dies in the middle of a unit is started again, and the generation comes out the same."""
    plan = a_plan(source, tmp_path / "store", "index.shards=1", "ingest.pools.encoders=1", encoder=KILLED_ONCE)
    outcome = _run(plan, ON_CLUSTER)
    assert (tmp_path / "killed").exists()
    assert outcome.content_hash == reference[1].content_hash
    assert _found(tmp_path / "store") == _found(reference[0])


@pytest.mark.slow
def test_shards_are_the_same_whoever_builds_them(
    cluster: None, source: Path, reference: tuple[Path, IndexOutcome], tmp_path: Path
) -> None:
    """SCL-6, ARC-9: shards from many workers, of which one is killed, are those of one process, and say what one says.

    A generation of one shard is built on them, with nothing computed again: contents are taken from all.
    """
    ways = ("index.shard_contents=13", "index.shards=2")
    here = _run(a_plan(source, tmp_path / "here", *ways))
    there = _run(a_plan(source, tmp_path / "there" / "store", *ways, encoder=KILLED_ONCE), ON_CLUSTER)
    assert (tmp_path / "there" / "killed").exists()
    assert there.content_hash == here.content_hash
    assert _found(tmp_path / "there" / "store") == _found(tmp_path / "here") == _found(reference[0])
    shards = Catalog(tmp_path / "here").verify(here.generation).shards
    assert len(shards) == -(-here.chunks // 13) >= 3
    one = _run(a_plan(source, tmp_path / "here", encoder=FORBIDDEN))
    assert one.unchanged == here.documents
    assert one.content_hash == reference[1].content_hash != here.content_hash
    assert _found(tmp_path / "here") == _found(reference[0])


def test_a_model_that_cannot_be_loaded_stops_the_run(cluster: None, source: Path, tmp_path: Path) -> None:
    """ING-16, ING-26: the reason comes out of the worker as it is, and nothing is published."""
    plan = a_plan(source, tmp_path / "store", "extraction.enabled=true", extractor=UNAVAILABLE)
    with pytest.raises(ModelUnavailableError, match=r"^no such model$"):
        _run(plan, ON_CLUSTER)
    assert Catalog(plan.store).pointer().generation is None


def test_a_worker_that_cannot_be_made_says_why(cluster: None, source: Path, tmp_path: Path) -> None:
    """ING-26: what it expected and found comes out of it as it is, and nothing is published."""
    plan = a_plan(source, tmp_path / "store", "extraction.enabled=true")
    plan.mentions.mkdir(parents=True)
    with pytest.raises(StoreError, match=r"entities\.sqlite: expected SQLite to read and write it"):
        _run(plan, ON_CLUSTER)
    assert Catalog(plan.store).pointer().generation is None


def test_unchanged_content_needs_no_model_and_stays_live(source: Path, tmp_path: Path) -> None:
    """ING-20: a second run makes zero encoder and zero GLiNER calls, and says that nothing changed."""
    enabled = ("index.shards=1", "extraction.enabled=true")
    first = _run(a_plan(source, tmp_path / "store", *enabled))
    again = _run(a_plan(source, tmp_path / "store", *enabled, encoder=FORBIDDEN, extractor=FORBIDDEN))
    assert first.embedded > 0
    assert first.extracted > 0
    assert first.entities > 0
    assert (again.embedded, again.extracted) == (0, 0)
    contents = len(_found(tmp_path / "store")[0])
    assert (again.embedding_cache_hits, again.entity_cache_hits) == (contents, contents)
    assert again.unchanged == first.documents == again.documents
    assert (again.generation, again.content_hash, again.published) == (first.generation, first.content_hash, False)


def test_other_code_that_cuts_is_asked_about_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ING-25: after an upgrade all is cut again, and published where something came out otherwise."""
    source = a_tree(tmp_path, files=4)
    first = _run(a_plan(source, tmp_path / "store", "index.shards=1"))
    monkeypatch.setattr(plan_module, "cutting_code", lambda: "another version of the chunkers")
    upgraded = _run(a_plan(source, tmp_path / "store", "index.shards=1"))
    assert (upgraded.unchanged, upgraded.published, upgraded.generation) == (0, False, first.generation)
    (source / "notes.md").write_text("# Notes\n\nSomething else entirely.\n")
    changed = _run(a_plan(source, tmp_path / "store", "index.shards=1"))
    assert (changed.unchanged, changed.published) == (0, True)
    published = _run(a_plan(source, tmp_path / "store", "index.shards=1"))
    assert (published.unchanged, published.published) == (first.documents, False)


def test_several_tasks_compare_what_one_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ING-25, ING-27: of nine units, two a task, the changed one alone is made again, and all are counted."""
    monkeypatch.setattr(run_module, "_UNITS_COMPARED", 2)
    source = a_tree(tmp_path, files=24)
    first = _run(a_plan(source, tmp_path / "store"))
    (source / "notes.md").write_text("# Notes\n\nSomething else entirely.\n")
    seen: list[IndexProgress] = []
    changed = _run(a_plan(source, tmp_path / "store"), seen=seen)
    assert (changed.unchanged, changed.documents, changed.published) == (first.documents - 1, first.documents, True)
    assert [progress.done for progress in seen if progress.phase.startswith("comparing")] == [0, 2, 4, 6, 8, 8]
    assert (seen[-1].done, seen[-1].total) == (9, 9)


def test_only_new_text_is_computed_unless_everything_is_wanted(tmp_path: Path) -> None:
    """ING-20, ING-25: one changed file costs its own chunks; --full costs all and publishes in any case."""
    source = a_tree(tmp_path, files=4)
    first = _run(a_plan(source, tmp_path / "store", "index.shards=1"))
    (source / "notes.md").write_text("# Notes\n\nSomething else entirely.\n")
    changed = _run(a_plan(source, tmp_path / "store", "index.shards=1"))
    full = _run(a_plan(source, tmp_path / "store", "index.shards=1", full=True))
    assert 0 < changed.embedded < first.embedded
    assert changed.published
    assert changed.content_hash != first.content_hash
    assert (full.content_hash, full.published) == (changed.content_hash, True)
    # The note that was changed had two sections, and has one.
    assert full.embedded + full.embedding_cache_hits == first.embedded + first.embedding_cache_hits - 1
    assert full.embedded > changed.embedded


def test_the_outcome_counts_everything(reference: tuple[Path, IndexOutcome]) -> None:
    """ING-3, ING-27: documents by type, domain and language, and every item that was left out, by reason."""
    outcome = reference[1]
    assert outcome.documents == 12 + 1
    assert outcome.by_type == {"code": 12, "markdown": 1}
    assert sum(outcome.by_domain.values()) == sum(outcome.by_language.values()) == outcome.documents
    assert outcome.rejected == {"binary": 1, "blank": 1}
    assert outcome.skipped == 2
    manifest = Catalog(reference[0]).generations()[0]
    assert (outcome.documents, outcome.chunks) == (manifest.counts["documents"], manifest.counts["chunks"])


def test_progress_is_told_unit_by_unit(source: Path, tmp_path: Path) -> None:
    """ING-27: counts grow to the totals of the run."""
    seen: list[IndexProgress] = []
    outcome = _run(a_plan(source, tmp_path / "store", "index.shards=1"), seen=seen)
    done = [progress.done for progress in seen]
    assert done == sorted(done)
    assert done[0] == 0
    assert seen[-1].done == seen[-1].total
    assert seen[-1].counts["chunks"] == outcome.chunks
    assert seen[-1].rejected == outcome.rejected


def test_a_killed_run_changes_nothing_and_the_next_one_cleans_up(source: Path, tmp_path: Path) -> None:
    """ING-26: SIGKILL in the middle leaves the live generation alone; the next run removes the leftovers."""
    store = tmp_path / "store"
    lone = a_tree(tmp_path / "first", files=1)
    live = _run(a_plan(lone, store, "index.shards=1")).generation
    script = (
        "import sys; from pathlib import Path; from tests.integration.test_ingestion import _run, a_plan; "
        "_run(a_plan(Path(sys.argv[1]), Path(sys.argv[2]), encoder=sys.argv[3]))"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(source), str(store), KILLED], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert Catalog(store).pointer().generation == live
    assert [path for path in (store / "generations").iterdir() if path.name.startswith(".")]
    outcome = _run(a_plan(source, store, "index.shards=1"))
    assert Catalog(store).pointer().generation == outcome.generation != live
    assert not [path for path in (store / "generations").iterdir() if path.name.startswith(".")]


def test_nothing_to_index_publishes_nothing(tmp_path: Path) -> None:
    """ING-26: a source without one usable item is an error that says what was found."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "image.bin").write_bytes(b"\0\1")
    with pytest.raises(SourceError, match="binary"):
        _run(a_plan(tmp_path / "tree", tmp_path / "store"))
    assert Catalog(tmp_path / "store").pointer().generation is None


@pytest.mark.slow
def test_a_few_units_go_through_one_worker(
    cluster: None, source: Path, reference: tuple[Path, IndexOutcome], tmp_path: Path
) -> None:
    """ING-24, ING-25: a small change starts no actors, comes out the same, and a killed worker is replaced too."""
    plan = a_plan(source, tmp_path / "store", "ingest.pools.few=100", encoder=KILLED_ONCE)
    outcome = _run(plan, ON_CLUSTER)
    assert (tmp_path / "killed").exists()
    assert outcome.content_hash == reference[1].content_hash
    assert _found(tmp_path / "store") == _found(reference[0])


def test_small_changes_in_many_units_start_no_actors(tmp_path: Path) -> None:
    """ING-25: what decides is how much is new, not in how many units it lies; where much is new, actors share it."""
    tree = a_tree(tmp_path, files=24)
    files = sorted(tree.glob("*.py"))
    # One file in each unit of three is changed; a unit alone is worth three documents.
    few = -(-len(files[::3]) // 3)
    assert few < len(files[::3])
    _run(a_plan(tree, tmp_path / "store"))
    ways: list[str] = []

    def stream(*work: Any) -> Any:
        ways.append("stream")
        return HERE.stream(*work)

    executor = replace(HERE, stream=stream)
    for changed, expected in ((files[::3], []), (files, ["stream"])):
        for path in changed:
            path.write_text(f"# Changed.\n{path.read_text()}")
        outcome = _run(a_plan(tree, tmp_path / "store", f"ingest.pools.few={few}"), executor)
        assert outcome.published
        assert ways == expected


@pytest.mark.parametrize("few", [0, pytest.param(100, marks=pytest.mark.slow)])
def test_what_the_machine_refuses_a_worker_is_told_as_it_is(cluster: None, tmp_path: Path, few: int) -> None:
    """OPS-3: a full disk is named in a line, whichever worker met it; the end of a remote traceback was shown."""
    plan = a_plan(a_tree(tmp_path), tmp_path / "store", f"ingest.pools.few={few}", encoder=FULL_DISK)
    with pytest.raises(OSError, match="No space left on device") as refused:
        _run(plan, ON_CLUSTER)
    assert (refused.value.errno, refused.value.filename) == (errno.ENOSPC, "parts")
    assert Catalog(plan.store).pointer().generation is None


def test_the_summary_counts_what_was_left_out_by_reason(tmp_path: Path) -> None:
    """ING-40: in a first run and in one without changes; a folder counts once; keys in files are rejected by name."""
    root = tmp_path / "project"
    for name in ("a.md", "b.log", "out/c.md", "out/d.md", ".env", ".env.example", "in/id_rsa", "node_modules/e.js"):
        write(root / name)
    write(root / ".gitignore", "*.log\nout/\n")
    write(root / "server.pem", "-----BEGIN CERTIFICATE-----\nMII\n-----BEGIN RSA PRIVATE KEY-----\nMII\n")
    write(root / "keys.md", "How a key begins:\n\n-----BEGIN RSA PRIVATE KEY-----\n")
    (root / "store").mkdir()  # what is not there yet when the sources are listed cannot be counted
    for _ in range(2):
        outcome = _run(a_plan(root, root / "store"))
        assert outcome.left_out == {"ignored": 2, "secret": 2, "skipped": 1, "store": 1}
        assert outcome.rejected == {"private_key": 1, "flood": 1}  # a model's vocabulary in one line
        assert outcome.documents == len(["a.md", ".env.example", ".gitignore", "keys.md", "model/tokenizer.json"])
    asked = _run(a_plan(root, root / "store", "ingest.secret_files=[]"))
    assert (asked.left_out["ignored"], "secret" in asked.left_out, asked.rejected) == (2, False, {"flood": 2})
    assert asked.documents == outcome.documents + len([".env", "id_rsa", "server.pem"])


def test_a_source_of_which_all_is_left_out_says_so(tmp_path: Path) -> None:
    """ING-40, OPS-15: reasons with their counts, where "no files" would send people looking for a typing error."""
    write(tmp_path / "project" / ".gitignore", "*\n")
    write(tmp_path / "project" / "a.md")
    with pytest.raises(SourceError, match=r"all left out: \{'ignored': 2\}"):
        _run(a_plan(tmp_path / "project", tmp_path / "store"))
