from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.ingestion import FORBIDDEN, a_plan, a_tree
from tests.support.parts import a_document, write_part
from weft.catalog.catalog import Catalog
from weft.domain.errors import CorruptionError, NothingPublishedError
from weft.indexes.builder import GenerationBuilder
from weft.indexes.manifest import FORMAT
from weft.ingestion.pipeline import ingest
from weft.ingestion.plan import IndexPlan
from weft.ingestion.report import IndexOutcome
from weft.runtime.stages import HERE
from weft.runtime.storage.files import read_manifest, write_manifest
from weft.settings import load_settings


def _run(plan: IndexPlan) -> IndexOutcome:
    return ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)


def _texts(store: Path) -> dict[str, str]:
    folder = store / "generations" / str(Catalog(store).pointer().generation)
    return {row["uri"]: row["text"] for row in pq.read_table(folder / "chunks" / "texts.parquet").to_pylist()}


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    """ING-15: a line says what to do, nothing is misread, and its sources are indexed anew."""
    plan = a_plan(a_tree(tmp_path), tmp_path / "store")
    first = _run(plan)
    folder = plan.store / "generations" / str(Catalog(plan.store).pointer().generation)
    write_manifest(folder, {**read_manifest(folder), "format": FORMAT - 1})
    refused = f"expected format {FORMAT}, found {FORMAT - 1}.*index its sources anew"
    with pytest.raises(CorruptionError, match=refused):
        Catalog(plan.store).open_live()
    with pytest.raises(CorruptionError, match=refused):
        _run(replace(plan, sources=[]))
    again = _run(plan)
    assert (again.content_hash, again.unchanged, again.published) == (first.content_hash, 0, True)
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
