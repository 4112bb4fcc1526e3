"""ING-4, ING-18: what is declared about a document, and its summary, are stored with it and can be found."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow.parquet as pq

from tests.support.ingestion import a_plan, a_tree
from weft.catalog.catalog import Catalog
from weft.domain.links import Link, LinkKind
from weft.indexes.schemas import table_to_documents
from weft.ingestion.pipeline import ingest
from weft.ingestion.report import IndexOutcome
from weft.runtime.stages import HERE

FACTS = {
    "trigger_phrases": ["zanzibar handshake"],
    "tier": "core",
    "cross_references": ["module_00.py"],
    "citations": 3,
}
GUIDE = "# Guide\n\n" + "Open the lock before the queue. " * 40 + "\n\n## More\n\n" + "Close the queue again. " * 80


def _run(root: Path, store: Path) -> IndexOutcome:
    return ingest(a_plan(root, store), Catalog(store), HERE, lambda _: None, clock=time.monotonic)


def test_declared_facts_and_summaries_are_kept_and_found(tmp_path: Path) -> None:
    """ING-4, ING-18: phrases of a sidecar find its document; a change of the sidecar alone counts."""
    root, store = a_tree(tmp_path, files=2), tmp_path / "store"
    (root / "guide.md").write_text(GUIDE)
    (root / "guide.md.meta.json").write_text(json.dumps(FACTS))
    first = _run(root, store)
    catalog = Catalog(store)
    table = pq.read_table(store / "generations" / str(first.generation) / "chunks" / "documents.parquet")
    documents = {one.uri: one for one in table_to_documents(table)}
    guide = documents["tree/guide.md"]
    assert "tree/guide.md.meta.json" not in documents
    assert (guide.tier, guide.citations, guide.triggers) == ("core", 3, ("zanzibar handshake",))
    assert guide.links == (Link(LinkKind.REFERENCES, "module_00.py", declared=True),)
    assert guide.summary is not None
    assert guide.summary.startswith("Open the lock before the queue.")
    generation = catalog.open_live()
    try:
        hits = generation.lexical.search("the zanzibar handshake", 5)
        found = generation.chunks.contents([hits[0][0]])[0].occurrences[0]
        assert (found.uri, found.chunk.sequence) == ("tree/guide.md", 0)
        assert len([row for row, _ in generation.lexical.search("zanzibar", 5)]) == 1
    finally:
        generation.close()
    (root / "guide.md.meta.json").write_text(json.dumps({**FACTS, "tier": "spare"}))
    again = _run(root, store)
    assert again.published
    assert again.embedded == 0
