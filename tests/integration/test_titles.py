"""ING-37: what documents of every kind are called, and that they are found and shown by it."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.ingestion import write
from weft.app.indexing import plan_of
from weft.catalog.catalog import Catalog
from weft.cli.searches import search
from weft.ingestion.pipeline import ingest
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

pytestmark = pytest.mark.integration

BODY = "Plain words stand here and say little of it.\n"
CODE = "def close(handle):\n    return handle\n"
FILES = {  # the title's last word stands in no other place
    "heading.md": (f"# Notes on Aardvarks\n\n{BODY}\n## Further\n\n{BODY}", "Notes on Aardvarks"),
    "front.md": (f"---\ntitle: Notes on Badgers\n---\nHere. {BODY}\n## Further\n\n{BODY}", "Notes on Badgers"),
    "page.rst": (f"Notes on Capybaras\n==================\n\n{BODY}", "Notes on Capybaras"),
    "module.py": (f'#!/usr/bin/env python\n"""Notes on dingoes.\n\nMore."""\n\n{CODE}', "Notes on dingoes."),
    "crate.rs": ("//! Notes on echidnas.\n//! More.\n\npub fn close() {}\n", "Notes on echidnas."),
    "lib.go": (
        "// Package fox keeps notes on ferrets.\npackage fox\n\nfunc Close() {}\n",
        "Package fox keeps notes on ferrets.",
    ),
    "lib.js": ("/**\n * @file Notes on gibbons.\n */\nfunction close() {}\n", "Notes on gibbons."),
    "api.yaml": ("openapi: 3.0.0\ninfo:\n  title: Notes on Hedgehogs\n  version: '1'\n", "Notes on Hedgehogs"),
    "tool.toml": ('[project]\nname = "impala"\nversion = "1"\n', "impala"),
    "schema.json": ('{"title": "Notes on Jackals", "type": "object"}\n', "Notes on Jackals"),
    "book.ipynb": (
        json.dumps({"cells": [{"cell_type": "markdown", "source": ["# Notes on Koalas\n", BODY]}], "nbformat": 4}),
        "Notes on Koalas",
    ),
    "paper.tex": (
        "\\documentclass{article}\n\\title{Notes on Lemurs}\n\\begin{document}\n\\maketitle\n"
        f"\\section{{One}}\n{BODY}\\end{{document}}\n",
        "Notes on Lemurs",
    ),
    "talk.json": (
        json.dumps(
            {
                "title": "Notes on Meerkats",
                "messages": [
                    {"role": "user", "content": "Where do they live?"},
                    {"role": "assistant", "content": "In dry places."},
                ],
            }
        ),
        "Notes on Meerkats: user and assistant",
    ),
    "beside.txt": (BODY, "Notes on Narwhals"),
}
ROWS = {"title": ["Notes on Ocelots"], "text": [BODY]}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A store of a document of each kind."""
    tree, root = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("store")
    for name, (text, _) in FILES.items():
        write(tree / name, text)
    write(tree / "beside.txt.meta.json", '{"title": "Notes on Narwhals"}')
    pq.write_table(pa.table(ROWS), tree.parent / "rows.parquet")
    write(
        tree.parent / "corpus" / "corpus.jsonl", json.dumps({"_id": "1", "title": "Notes on Pangolins", "text": BODY})
    )
    stored = load_settings([], [f"storage.root={root}", "extraction.enabled=false"], environment={})
    sources = [tree, tree.parent / "rows.parquet", tree.parent / "corpus" / "corpus.jsonl"]
    ingest(plan_of(stored, sources), Catalog(root), HERE, lambda _: None, clock=time.monotonic)
    return stored


def titles(settings: Settings) -> dict[str, str | None]:
    with closing(Catalog(Path(settings.storage.root)).open_live()) as generation:
        return {one.uri: one.title for content in generation.chunks for one in content.occurrences}


def test_a_document_of_every_kind_has_its_title(settings: Settings) -> None:
    """ING-37: the first heading, the first line of the module's documentation, or metadata."""
    expected = {name: title for name, (_, title) in FILES.items()} | {
        "rows": "Notes on Ocelots",
        "corpus": "Notes on Pangolins",
    }
    found = {
        uri.rpartition("/")[2].replace("#", ":").partition(":")[0]: title for uri, title in titles(settings).items()
    }
    assert found == expected


def test_every_part_is_found_by_the_title_of_its_document(settings: Settings) -> None:
    """ING-37: by words, in every chunk, also where only the title has them."""
    with closing(Catalog(Path(settings.storage.root)).open_live()) as generation:
        places = [(content.row, one) for content in generation.chunks for one in content.occurrences]
        for row, place in places:
            assert place.title is not None
            word = place.title.partition(":")[0].split()[-1]
            found = {hit for hit, _ in generation.lexical.search(word, 50)}
            assert row in found, (word, place.uri)
            assert {uri.uri for at, uri in places if at in found} >= {place.uri}


def test_a_result_shows_the_title_of_its_document(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """ING-37: for people beside the name of the part, for machines by itself."""
    asked = ["notes on dingoes", "--store", settings.storage.root, "--channels", "lexical", "-k", "3"]
    assert search.main([*asked, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["results"][0]["title"] == "Notes on dingoes."
    assert search.main(asked) == 0
    assert "Notes on dingoes." in capsys.readouterr().out
