"""SCL-1: what was listed and cannot be read, told from what is gone. Two hosts: test_two_hosts.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.ingestion import a_plan, a_tree, write
from weft.catalog.catalog import Catalog
from weft.catalog.store_id import StoreGuard
from weft.domain.errors import SourceError, StoreError
from weft.domain.ids import StoreId
from weft.ingestion.git.safe_files import VANISHED
from weft.ingestion.pipeline import Watch, ingest
from weft.ingestion.plan import IndexPlan
from weft.ingestion.report import IndexOutcome
from weft.ingestion.stages.visibility import require_same_view
from weft.runtime.ray.stages import ON_CLUSTER
from weft.runtime.stages import HERE, Executor, Stage

LINE = '{"_id": "1", "text": "about locks"}\n'


def run(plan: IndexPlan, executor: Executor = HERE, watch: Watch = lambda _: None) -> IndexOutcome:
    return ingest(plan, Catalog(plan.store), executor, watch, clock=time.monotonic)


def rejected(store: Path) -> set[tuple[str, str]]:
    folder = Catalog(store).folder_of(Catalog(store).pointer().generation)
    rows = pq.read_table(folder / "chunks" / "rejected.parquet").to_pylist()
    return {(row["uri"], row["reason"]) for row in rows}


def sources(folder: Path) -> tuple[Path, Path, Path, Path]:
    """A tree, of which a file and a sidecar will be gone; a corpus and a table that will be, too."""
    tree = a_tree(folder, files=3)
    write(tree / "notes.md.meta.json", "{}")
    write(folder / "lines.jsonl", LINE)
    pq.write_table(pa.table({"text": ["about queues"]}), folder / "rows.parquet")
    return tree / "module_01.py", tree / "notes.md.meta.json", folder / "lines.jsonl", folder / "rows.parquet"


def while_workers_read(take: Callable[[], None], bring: Callable[[], None]) -> Executor:
    """One host, whose disk changes before the first worker reads and after the last one has."""

    def stream(batches: Sequence[pa.Table], stages: Sequence[Stage]) -> Generator[pa.Table]:
        take()
        done = list(HERE.stream(batches, stages))
        bring()
        yield from done

    return replace(HERE, stream=stream)


def moved(paths: Sequence[Path]) -> tuple[Callable[[], None], Callable[[], None]]:
    """What takes files away, and what brings them back."""
    away = {path: path.with_name(f"{path.name}.away") for path in paths}

    def take() -> None:
        for path, elsewhere in away.items():
            path.rename(elsewhere)

    def bring() -> None:
        for path, elsewhere in away.items():
            elsewhere.rename(path)

    return take, bring


def test_what_is_gone_by_the_time_it_is_read_is_noted(tmp_path: Path) -> None:
    """SCL-1, ING-3: a file removed between listing and reading is no longer there for anybody, and stops no run."""
    gone = sources(tmp_path / "a")
    plan = replace(a_plan(tmp_path / "a" / "tree", tmp_path / "store"), sources=[tmp_path / "a" / "tree", *gone[2:]])
    take, _ = moved(gone)
    outcome = run(plan, while_workers_read(take, lambda: None))
    assert outcome.rejected[VANISHED] == len(gone)
    assert outcome.documents == 2 + 1
    assert rejected(plan.store) >= {
        ("tree/module_01.py", VANISHED),
        ("tree/notes.md.meta.json", VANISHED),
        ("lines:line 1", VANISHED),
        ("rows:group 0 row 0", VANISHED),
    }


@pytest.mark.parametrize("kind", range(4), ids=["file", "sidecar", "corpus", "table"])
def test_what_is_there_again_stops_the_run(tmp_path: Path, kind: int) -> None:
    """SCL-1: a listed item that a worker cannot find is an error of the run, which running it again mends."""
    path = sources(tmp_path / "a")[kind]
    source = tmp_path / "a" / "tree" if kind < 2 else path
    plan = a_plan(source, tmp_path / "store")
    take, bring = moved([path])
    with pytest.raises(SourceError, match=f"{path}: expected the file that was listed.*a file of.*run again"):
        run(plan, while_workers_read(take, bring))
    assert Catalog(plan.store).pointer().generation is None
    assert run(plan).published


def test_what_no_host_can_read_is_rejected_as_before(tmp_path: Path) -> None:
    """ING-3: the same refusal everywhere is no difference between hosts."""
    tree = a_tree(tmp_path, files=2)

    def replace_by_a_folder() -> None:
        (tree / "module_00.py").unlink()
        (tree / "module_00.py").mkdir()

    outcome = run(a_plan(tree, tmp_path / "store"), while_workers_read(replace_by_a_folder, lambda: None))
    assert outcome.rejected["unreadable"] == 1
    assert outcome.documents == 1 + 1


def test_a_file_that_grows_while_hosts_are_compared_is_no_difference(tmp_path: Path) -> None:
    """SCL-1: sources are written to while they are indexed."""
    log, steady = tmp_path / "log.txt", tmp_path / "steady.txt"
    log.write_text("one\n")
    steady.write_text("one\n")

    def elsewhere(path: Path) -> Executor:
        def on_other_hosts(look: Callable[[], Any]) -> list[tuple[str, Any]]:
            before = path.read_bytes()
            path.write_bytes(before + b"two\n")
            seen = [("beta", look())]
            if path == steady:  # another host's own file, not a change of this one
                path.write_bytes(before)
            return seen

        return replace(HERE, on_other_hosts=on_other_hosts)

    require_same_view([log], elsewhere(log))
    with pytest.raises(
        SourceError, match=f"{steady} on host beta: expected a file of 4 bytes.*found a file of 8 bytes"
    ):
        require_same_view([steady], elsewhere(steady))


@pytest.mark.parametrize("few", [pytest.param(0, marks=pytest.mark.slow), 100], ids=["actors", "one task"])
def test_a_worker_that_sees_another_store_stops_the_run(cluster: None, tmp_path: Path, few: int) -> None:
    """SCL-1: it checks before it works, whatever was checked when the run began."""
    plan = a_plan(a_tree(tmp_path), tmp_path / "store", f"ingest.pools.few={few}")
    other = ON_CLUSTER.guarded(StoreGuard(plan.store, StoreId("0" * 32)))
    with pytest.raises(StoreError, match=f"{plan.store} on host .*: expected the store {'0' * 32}, found"):
        run(plan, other)
    assert not (plan.store / "cache").exists()


def test_a_store_of_its_own_texts_loses_none(tmp_path: Path) -> None:
    """ING-15, SCL-1: a table that cannot be read is an error of the run: its documents were rejected, one and all."""
    plan = a_plan(a_tree(tmp_path, files=3), tmp_path / "store")
    run(plan)
    folder = Catalog(plan.store).folder_of(Catalog(plan.store).pointer().generation)
    take, _ = moved([folder / "chunks" / "texts.parquet"])
    live = Catalog(plan.store).pointer()
    again = replace(plan, sources=(), full=True)
    with pytest.raises(FileNotFoundError, match="texts"):
        run(again, while_workers_read(take, lambda: None))
    assert Catalog(plan.store).pointer() == live
