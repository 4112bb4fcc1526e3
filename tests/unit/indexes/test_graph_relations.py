"""GRA-1: declared causal relations as edges of a generation's graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.graphs import Part, a_file, a_graph, edges
from weft.domain.links import CAUSAL, Link, LinkKind
from weft.indexes.graph.graph import RELATIONS, Direction, EdgeKind, unmet_relations


def a_page(uri: str, *relations: tuple[LinkKind, str], **facts: object) -> Part:
    links = tuple(Link(kind, target, declared=True) for kind, target in relations)
    return a_file(uri, {"anchor": "top"}, {"anchor": "rest"}, language=None, links=links, **facts)


def test_each_of_the_six_is_an_edge_of_its_own_kind_with_source_and_time(tmp_path: Path) -> None:
    """GRA-1: typed, directed, declared, as strong as what people state, as old as the document that does."""
    ends = [(kind, f"{kind.value}.md") for kind in CAUSAL]
    files = [a_page("t/a.md", *ends, modified_at=86_400.0), *(a_page(f"t/{name}") for _, name in ends)]
    graph = a_graph(tmp_path, files)
    rows = [row for row in graph.table("edges").to_pylist() if row["kind"] in RELATIONS]
    assert {(row["kind"], row["confidence"], row["strength"], row["source"], row["time"]) for row in rows} == {
        (kind.value, 1.0, 1.0, "declared", 86_400.0) for kind in CAUSAL
    }
    head = {document.uri: chunks[0] for document, chunks in files}
    assert edges(graph, files) == {(kind.value, "t/a.md", f"t/{name}", 1.0) for kind, name in ends}
    for kind, name in ends:
        (back,) = graph.neighbours(head[f"t/{name}"].content_hash, [EdgeKind(kind.value)], Direction.IN)
        assert (back.content, back.declared) == (head["t/a.md"].content_hash, True)


def test_a_target_is_a_path_a_uri_a_record_or_an_anchor(tmp_path: Path) -> None:
    """GRA-1: relative to the document or to its source, whole or by its end; of code, too, where links are symbols."""
    old = LinkKind.SUPERSEDES
    files = [
        a_page(
            "t/x/a.md",
            (old, "../b.md"),
            (old, "t/c.md"),
            (old, "deep/er/e.md#rest"),
            (old, "er/e.md"),
            (old, "notes:8"),
        ),
        a_file("t/main.py", "run", links=(Link(old, "lib/old.py", declared=True),)),
        a_page("t/b.md"),
        a_page("t/c.md"),
        a_page("t/deep/er/e.md"),
        a_file("t/lib/old.py", "run"),
        a_page("notes:7", (old, "8")),
        a_page("notes:8"),
    ]
    graph = a_graph(tmp_path, files)
    names = {chunk.chunk_id: f"{chunk.uri}#{chunk.anchor or ''}" for _, chunks in files for chunk in chunks}
    found = {
        (names[row["source_chunk"]].partition("#")[0], names[row["target_chunk"]])
        for row in graph.table("edges").to_pylist()
        if row["kind"] == "supersedes"
    }
    assert found == {
        ("t/x/a.md", "t/b.md#top"),
        ("t/x/a.md", "t/c.md#top"),
        ("t/x/a.md", "t/deep/er/e.md#rest"),
        ("t/x/a.md", "t/deep/er/e.md#top"),
        ("t/x/a.md", "notes:8#top"),
        ("t/main.py", "t/lib/old.py#"),
        ("notes:7", "notes:8#top"),
    }
    assert unmet_relations(tmp_path) == []


def test_a_target_that_is_not_found_or_not_one_is_named_and_makes_no_edge(tmp_path: Path) -> None:
    """GRA-1: never fatal, never a guess: a heading is no document, and of two of one name neither is it."""
    files = [
        a_page("t/a.md", (LinkKind.SUPERSEDES, "gone.md"), (LinkKind.SUPPORTS, "twin.md"), (LinkKind.CAUSED, "top")),
        a_page("t/x/twin.md"),
        a_page("t/y/twin.md"),
        a_page("t/b.md"),
    ]
    graph = a_graph(tmp_path, files)
    assert not [row for row in graph.table("edges").to_pylist() if row["kind"] in RELATIONS]
    assert unmet_relations(tmp_path) == [
        "t/a.md caused top: expected one document of this name, found none",
        "t/a.md supersedes gone.md: expected one document of this name, found none",
        "t/a.md supports twin.md: expected one document of this name, found 2",
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_relations_do_not_depend_on_the_order_of_rows(tmp_path: Path, seed: int) -> None:
    """GRA-1, ING-24: nor do the edges' bytes."""
    files = [a_page("t/a.md", (LinkKind.SUPERSEDES, "b.md"), (LinkKind.CAUSED, "gone.md")), a_page("t/b.md")]
    for folder, order in (("one", None), ("two", seed)):
        a_graph(tmp_path / folder, files, seed=order).close()
    for name in ("edges", "unmet"):
        assert len({(tmp_path / one / "graph" / f"{name}.parquet").read_bytes() for one in ("one", "two")}) == 1
