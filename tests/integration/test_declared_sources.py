"""OPS-3b: sources are declared; one that is broken costs itself, and none goes in silence."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.ingestion import a_plan
from weft.app.indexing import dropped
from weft.catalog.catalog import Catalog
from weft.cli.commands.reindex import reindex
from weft.cli.console.options import run_job
from weft.domain.documents import Domain
from weft.domain.errors import SourceError
from weft.indexes import schemas
from weft.indexes.manifest import CHUNKS_FOLDER, read_generation_manifest
from weft.ingestion.pipeline import ingest
from weft.ingestion.plan import IndexPlan
from weft.ingestion.report import IndexOutcome
from weft.ingestion.settings import SourceSettings
from weft.runtime.stages import HERE


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def declaring(tmp_path: Path, *declared: SourceSettings) -> IndexPlan:
    return replace(a_plan(tmp_path / "none", tmp_path / "store"), sources=[], declared=declared)


def run(plan: IndexPlan) -> IndexOutcome:
    return ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)


def documents(store: Path) -> dict[str, schemas.Document]:
    catalog = Catalog(store)
    folder = catalog.folder_of(catalog.pointer().generation)
    table = pq.read_table(folder / CHUNKS_FOLDER / "documents.parquet")
    return {document.uri: document for document in schemas.table_to_documents(table)}


def test_what_a_source_declares_holds_for_all_its_documents(tmp_path: Path) -> None:
    """OPS-3b: domain, trust and tenant; what a document declares itself goes before."""
    written(tmp_path / "notes" / "a.md", "# Queues\n\nAbout queues.\n")
    written(tmp_path / "notes" / "b.md", "---\ntrust: 7\n---\n# Stacks\n\nAbout stacks.\n")
    written(tmp_path / "rows.jsonl", json.dumps({"_id": "1", "text": "about heaps"}) + "\n")
    facts = {"domain": Domain.HISTORY, "trust": 33, "tenant": "acme"}
    run(declaring(tmp_path, *(SourceSettings(path=str(tmp_path / name), **facts) for name in ("notes", "rows.jsonl"))))
    by_uri = documents(tmp_path / "store")
    assert {uri: document.trust_level for uri, document in by_uri.items()} == {
        "notes/a.md": 33,
        "notes/b.md": 7,
        "rows:1": 33,
    }
    assert {document.domain for document in by_uri.values()} == {Domain.HISTORY}
    assert {document.metadata["tenant"] for document in by_uri.values()} == {"acme"}


def test_globs_choose_the_files_of_a_folder(tmp_path: Path) -> None:
    """OPS-3b: as in .gitignore; what they leave out is counted."""
    for name in ("a.md", "b.txt", "deep/c.md", "drafts/d.md"):
        written(tmp_path / "notes" / name, f"about {name}\n")
    source = SourceSettings(path=str(tmp_path / "notes"), include=("*.md",), exclude=("drafts/",))
    outcome = run(declaring(tmp_path, source))
    assert set(documents(tmp_path / "store")) == {"notes/a.md", "notes/deep/c.md"}
    assert outcome.left_out == {"declared": 2}


def test_a_broken_source_costs_itself_and_keeps_its_documents(tmp_path: Path) -> None:
    """OPS-3b: others are indexed; what was live of the broken one stays, and is taken as it is."""
    written(tmp_path / "notes" / "a.md", "about queues\n")
    written(tmp_path / "other" / "b.md", "about stacks\n")
    plan = declaring(tmp_path, *(SourceSettings(path=str(tmp_path / name)) for name in ("notes", "other")))
    assert run(plan).broken == {}
    (tmp_path / "notes").rename(tmp_path / "away")
    written(tmp_path / "other" / "b.md", "about heaps\n")
    outcome = run(plan)
    assert list(outcome.broken) == [str(tmp_path / "notes")]
    assert set(documents(plan.store)) == {"notes/a.md", "other/b.md"}
    assert (outcome.documents, outcome.unchanged) == (2, 1)


def test_where_every_source_is_broken_nothing_changes(tmp_path: Path) -> None:
    """OPS-3b: the run names them all."""
    with pytest.raises(SourceError, match=r"notes.*; .*other"):
        run(declaring(tmp_path, *(SourceSettings(path=str(tmp_path / name)) for name in ("notes", "other"))))
    assert Catalog(tmp_path / "store").pointer().generation is None


def test_documents_of_a_source_that_is_not_named_any_more_go_only_where_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-3b: the command says how many would go, and what to do."""
    for name in ("notes", "other"):
        written(tmp_path / name / "a.md", f"about {name}\n")
    both = declaring(tmp_path, *(SourceSettings(path=str(tmp_path / name)) for name in ("notes", "other")))
    run(both)
    one = replace(both, declared=both.declared[:1])
    assert dropped(both) == {}
    assert dropped(one) == {str(tmp_path / "other"): 1}
    assert run_job(reindex, ["--source", str(tmp_path / "notes"), "--store", str(both.store)]) == 78
    told = capsys.readouterr().err
    assert f"{tmp_path / 'other'} (documents: 1)" in told
    assert "--drop" in told
    assert len(documents(both.store)) == 2


def test_a_source_that_moved_and_keeps_its_name_drops_nothing(tmp_path: Path) -> None:
    """OPS-3b: its documents have the URIs they had."""
    written(tmp_path / "here" / "notes" / "a.md", "about queues\n")
    plan = declaring(tmp_path, SourceSettings(path=str(tmp_path / "here" / "notes")))
    run(plan)
    written(tmp_path / "there" / "notes" / "a.md", "about queues\n")
    assert dropped(replace(plan, declared=[SourceSettings(path=str(tmp_path / "there" / "notes"))])) == {}


def test_a_run_from_stored_texts_remembers_the_sources(tmp_path: Path) -> None:
    """OPS-3b, ING-15: the next run still knows what would go."""
    written(tmp_path / "notes" / "a.md", "about queues\n")
    plan = declaring(tmp_path, SourceSettings(path=str(tmp_path / "notes")))
    run(plan)
    generation = run(replace(plan, declared=(), full=True)).generation
    assert list(read_generation_manifest(Catalog(plan.store).folder_of(generation)).sources) == [
        str(tmp_path / "notes")
    ]
