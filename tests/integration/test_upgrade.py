from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.ingestion import FORBIDDEN, a_plan, a_tree
from tests.support.old_generations import age
from tests.support.parts import a_document, write_part
from weft.catalog.catalog import Catalog
from weft.domain.errors import CorruptionError, NothingPublishedError
from weft.indexes.builder import GenerationBuilder
from weft.ingestion.pipeline import ingest
from weft.ingestion.plan import IndexPlan
from weft.ingestion.report import IndexOutcome
from weft.runtime.ray.stages import HERE
from weft.settings import load_settings


def _run(plan: IndexPlan) -> IndexOutcome:
    return ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)


def _texts(store: Path) -> dict[str, str]:
    folder = store / "generations" / str(Catalog(store).pointer().generation)
    return {row["uri"]: row["text"] for row in pq.read_table(folder / "chunks" / "texts.parquet").to_pylist()}


def test_a_store_of_an_older_format_is_upgraded_from_what_it_holds(tmp_path: Path) -> None:
    """ING-15: without its sources, a generation that kept no texts becomes the one that its sources would give."""
    source = a_tree(tmp_path)
    fresh = _run(a_plan(source, tmp_path / "fresh" / "store"))
    plan = a_plan(source, tmp_path / "old" / "store")
    _run(plan)
    age(plan.store)
    shutil.rmtree(source)
    with pytest.raises(CorruptionError, match="expected format 2, found 1; upgrade it from its stored text"):
        Catalog(plan.store).open_live()
    upgraded = _run(replace(plan, sources=[]))
    assert upgraded.published
    assert upgraded.content_hash == fresh.content_hash
    assert _texts(plan.store) == _texts(tmp_path / "fresh" / "store")
    assert upgraded.rejected == {}
    Catalog(plan.store).open_live().close()


def test_whole_documents_are_cut_into_chunks(tmp_path: Path) -> None:
    """ING-15: a generation that held one vector per document is cut and embedded from those documents' texts."""
    body = "\n\n".join(f"## Part {number}\n\n" + f"Words about subject {number}. " * 60 for number in range(5))
    store = tmp_path / "store"
    catalog = Catalog(store)
    staging = catalog.stage()
    part = write_part(tmp_path / "part", [a_document(f"notes/{name}.txt", f"{name}\n{body}") for name in "ab"])
    GenerationBuilder(staging, load_settings(environment={}).index).build([part], {"created_at": 1.0})
    catalog.publish(staging, expected_parent=None)
    age(store)
    upgraded = _run(replace(a_plan(tmp_path, store), sources=[]))
    assert (upgraded.documents, upgraded.rejected) == (2, {})
    assert upgraded.chunks > 4
    assert _texts(store)["notes/a.txt"] == f"a\n{body}"


def test_a_store_is_indexed_anew_from_its_texts(tmp_path: Path) -> None:
    """ING-15: other sizes are put in force without the sources; what was unchanged needs no model."""
    source = a_tree(tmp_path)
    plan = a_plan(source, tmp_path / "store")
    first = _run(plan)
    shutil.rmtree(source)
    again = _run(replace(plan, sources=[], encoder=FORBIDDEN))
    assert (again.unchanged, again.generation, again.published) == (first.documents, first.generation, False)
    full = _run(replace(plan, sources=[], full=True))
    assert (full.content_hash, full.embedded > 0, full.published) == (first.content_hash, True, True)


def test_an_empty_store_has_nothing_to_index_anew(tmp_path: Path) -> None:
    """ING-15: without a source there must be a live generation."""
    with pytest.raises(NothingPublishedError, match="name a source"):
        _run(replace(a_plan(tmp_path, tmp_path / "store"), sources=[]))


def test_a_text_that_cannot_be_restored_byte_for_byte_is_told(tmp_path: Path) -> None:
    """ING-15, ING-3: blanks between chunks were not kept in format 1: the document is indexed, and a note says so."""
    source = a_tree(tmp_path, files=1)
    (source / "spaced.md").write_text("# One\n\ntext\n   \n   \n# Two\n\nmore\n")
    plan = a_plan(source, tmp_path / "store")
    _run(plan)
    age(plan.store)
    upgraded = _run(replace(plan, sources=[]))
    assert (upgraded.documents, upgraded.rejected, upgraded.skipped) == (3, {"restored": 1}, 0)
    assert "text" in _texts(plan.store)["tree/spaced.md"]
