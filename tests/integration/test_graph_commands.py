"""GRA-1, GRA-3, RET-18: relations from the files that declare them to what searches and `weft graph` tell of them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft
from tests.support.ingestion import a_plan
from tests.support.printed import print_answer
from tests.support.retrieval_fakes import a_query
from tests.support.small_store import DirectionEncoder
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.catalog.live import RELATIONS_FILE
from weft.cli.main import main
from weft.domain.links import LinkKind, RelationSource
from weft.domain.ranking import Answer, RankedResult
from weft.domain.reasons import reason, reasons, sentence_of
from weft.ingestion.pipeline import ingest
from weft.ingestion.report import IndexOutcome
from weft.learning.edges import LearnedEdge, LearnedEdges
from weft.learning.evidence import Evidence
from weft.learning.parts import parts_of
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.runtime.stages import HERE
from weft.settings import load_settings

pytestmark = pytest.mark.integration

PAGES = {
    "old.md": "# Locks\n\nLocks are released after a minute.\n",
    "new.md": "---\nsupersedes: old.md\n---\n# Locks\n\nLocks are released at once.\n",
    "deep/doubt.md": "# Doubt\n\nLocks are never released.\n\n## Why\n\nNobody knows why locks stay.\n",
    "deep/er/cause.md": "# Cause\n\nThe upgrade of the broker.\n",
    "far.md": "# Far\n\nZebras graze in the steppe.\n",
}
SIDECARS: dict[str, list[dict[str, str]]] = {
    "deep/doubt.md": [{"kind": "contradicts", "target": "../new.md"}, {"kind": "supports", "target": "gone.md"}],
    "deep/er/cause.md": [{"kind": "caused", "target": "tree/new.md"}],
}


@dataclass
class Store:
    root: Path
    catalog: Catalog
    outcome: IndexOutcome
    searcher: Searcher
    capsys: pytest.CaptureFixture[str]

    def answer(self, question: str = "locks are released") -> Answer:
        self.searcher.refresh()
        return self.searcher.search(a_query(question))

    def result(self, uri: str, question: str = "locks are released") -> RankedResult:
        return next(one for one in self.answer(question).results if one.uris[0] == uri)

    def run(self, *arguments: str) -> Any:
        assert main(["graph", *arguments, "--store", str(self.root), "--json"]) == 0
        return json.loads(self.capsys.readouterr().out)


@pytest.fixture
def store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Store]:
    tree, root = tmp_path / "tree", tmp_path / "store"
    for name, text in PAGES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    for name, relations in SIDECARS.items():
        (tree / f"{name}.meta.json").write_text(json.dumps({"relations": relations}))
    rows = [{"id": "1", "text": "Pens write.", "relations": [{"kind": "derived_from", "target": "2"}]}]
    rows += [{"id": "2", "text": "Ink flows.", "relations": []}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "notes.parquet")
    catalog, plan = Catalog(root), replace(a_plan(tree, root), sources=[tree, tmp_path / "notes.parquet"])
    outcome = ingest(plan, catalog, HERE, lambda _: None, clock=time.monotonic)
    settings = load_settings([], [f"storage.root={root}"], environment={})
    source = CatalogSource(catalog, settings.priors, clock=time.time)
    encoder = DirectionEncoder()
    encoder.name = "model"  # as the plan's is called
    with Searcher(source, encoder, settings.retrieval, clock=time.time) as searcher:
        yield Store(root, catalog, outcome, searcher, capsys)


def said(related: Sequence[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {(each["says"], each["direction"], each["source"]) for each in related}


def test_a_superseded_result_names_its_successor_wherever_it_is_shown(store: Store) -> None:
    """GRA-1, RET-18: in the search's lines, in reasons, in the one sentence and in JSON."""
    answer = store.answer()
    old = next(one for one in answer.results if one.uris[0] == "tree/old.md")
    assert reasons(old)[0] == "superseded by tree/new.md"
    assert reason(old).startswith("superseded by tree/new.md; ")
    (shown,) = (one for one in answer.to_dict()["results"] if one["uris"][0] == "tree/old.md")
    (relation,) = shown["relations"]
    assert (relation["kind"], relation["inward"], relation["uri"]) == ("supersedes", True, "tree/new.md")
    assert (relation["source"], relation["says"]) == ("declared", "superseded by tree/new.md")
    print_answer(answer)
    lines = store.capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if "tree/old.md:" in line)
    assert "superseded by tree/new.md" in "\n".join(lines[at : at + 4])


def test_a_contradiction_is_told_from_both_sides(store: Store) -> None:
    """GRA-1, RET-18: as a warning; what a document supersedes or what caused it speaks not against it."""
    assert "contradicts tree/deep/doubt.md" in reasons(store.result("tree/new.md"))
    assert "contradicts tree/new.md" in reasons(store.result("tree/deep/doubt.md"))
    assert not any("caused" in each or "supersedes" in each for each in reasons(store.result("tree/new.md")))


def test_show_prints_what_nights_found_from_both_ends(store: Store) -> None:
    """CON-3, GRA-1: what is similar (source auto) and what was used together (learned), by document and by content."""
    far, old, cause = (store.run("show", name)["contents"][0] for name in ("far.md", "old.md", "cause.md"))
    similar, together = sorted((far, old)), sorted((far, cause))
    edges = LearnedEdges.of(
        [
            LearnedEdge(similar[0], LinkKind.SIMILAR, similar[1], RelationSource.AUTO, 900_000),
            LearnedEdge(together[0], LinkKind.CO_USED, together[1], RelationSource.LEARNED, 500_000),
        ]
    )
    learned = LearnedState(parent=None, evidence=Evidence(), cut=Evidence(), parts=parts_of(edges))
    store.catalog.make_live(store.catalog.learned.publish(learned, expected_newest=None))

    def found(name: str) -> set[tuple[str, str, str, float]]:
        rows = store.run("show", name)["edges"]
        return {(each["kind"], each["source"], each["content_hash"], each["confidence"]) for each in rows}

    assert {("similar", "auto", old, 0.9), ("co_used", "learned", cause, 0.5)} <= found("far.md")
    assert found("far.md") == found(far)
    assert ("similar", "auto", far, 0.9) in found("old.md")
    assert ("co_used", "learned", far, 0.5) in found("cause.md")
    assert main(["graph", "show", "far.md", "--store", str(store.root)]) == 0
    assert "co_used" in store.capsys.readouterr().out


def test_targets_that_are_not_found_are_counted_and_named(store: Store) -> None:
    """GRA-1: the run succeeds, and says so; the document says so, too."""
    (line,) = store.outcome.unmet_relations
    assert line == "tree/deep/doubt.md supports gone.md: expected one document of this name, found none"
    counts = store.catalog.generations()[-1].counts
    assert (counts["unmet_relations"], counts["edges_supersedes"], counts["edges_derived_from"]) == (1, 1, 1)
    assert store.run("show", "deep/doubt.md")["unmet_relations"] == [line]


def test_show_prints_the_relations_of_a_document_a_content_and_a_record(store: Store) -> None:
    """GRA-1: by URI, by the end of a path, by hash; with direction, source, time and weight."""
    new = store.run("show", "tree/new.md")
    assert said(new["relations"]) == {
        ("supersedes tree/old.md", "out", "declared"),
        ("contradicts tree/deep/doubt.md", "in", "declared"),
        ("caused by tree/deep/er/cause.md", "in", "declared"),
    }
    (supersedes,) = (each for each in new["relations"] if each["kind"] == "supersedes")
    assert (supersedes["uri"], supersedes["target"], supersedes["weight"]) == ("tree/new.md", "tree/old.md", 0.6)
    assert supersedes["time"] == pytest.approx((store.root.parent / "tree" / "new.md").stat().st_mtime)
    assert store.run("show", "new.md") == new
    assert said(store.run("show", new["contents"][0][:12])["relations"]) == said(new["relations"])
    assert said(store.run("show", "notes:1")["relations"]) == {("derived from notes:2", "out", "declared")}
    assert main(["graph", "show", "nowhere.md", "--store", str(store.root)]) == 1
    assert main(["graph", "show", "new.md", "--store", str(store.root)]) == 0
    assert "supersedes tree/old.md (declared)" in store.capsys.readouterr().out


def test_folders_are_a_tree(store: Store) -> None:
    """GRA-3: the children of a folder and its parent, up to where all sources lie."""
    top = store.run("show", "tree")
    assert (top["parent"], top["folders"]) == ("", ["tree/deep"])
    assert top["documents"] == ["tree/far.md", "tree/new.md", "tree/old.md"]
    assert store.run("show", "tree/deep")["folders"] == ["tree/deep/er"]
    deepest = store.run("show", "tree/deep/er/")
    assert (deepest["parent"], deepest["documents"]) == ("tree/deep", ["tree/deep/er/cause.md"])
    assert store.run("show", ".")["folders"] == ["tree"]
    assert store.run("show", "tree/deep/doubt.md")["parent"] == "tree/deep"


def test_a_path_leads_over_relations_either_way(store: Store) -> None:
    """GRA-1: the fewest steps; nothing where no edge leads."""
    steps = store.run("path", "deep/er/cause.md", "old.md")["steps"]
    assert [(step["kind"], step["forward"]) for step in steps] == [("caused", True), ("supersedes", True)]
    assert [step["there"].partition(":")[0] for step in steps] == ["tree/new.md", "tree/old.md"]
    back = store.run("path", "old.md", "deep/er/cause.md")["steps"]
    assert [(step["kind"], step["forward"]) for step in back] == [("supersedes", False), ("caused", False)]
    assert store.run("path", "far.md", "old.md")["steps"] == []


def test_what_the_graph_says_of_each_place_is_kept_with_the_generation_and_scopes_searches(store: Store) -> None:
    """GRA-2: a row for every content and entity; `community` is a filter, and a word of the query that names it."""
    with closing(store.catalog.open_live()) as generation:
        table, contents = generation.graph.analytics, generation.contents
        assert table is not None
        assert table.num_rows == len(contents) + generation.graph.table("nodes").num_rows
        numbers = dict(zip(contents, table["community"].to_pylist(), strict=False))
    (facts,) = store.run("show", "old.md")["analytics"]
    assert (facts["causal_depth"], facts["contradiction"], facts["degree"] > 0.0) == (-1, -1, True)
    (facts,) = store.run("show", "new.md")["analytics"]
    assert (facts["causal_depth"], facts["contradiction"]) == (1, 0)
    number = numbers[store.result("tree/old.md").content_hash]
    store.searcher.refresh()
    for query in (
        a_query("locks are released", filters={"community": str(number)}),
        a_query(f"locks are released community:{number}"),
    ):
        shown = store.searcher.search(query).results
        assert {numbers[result.content_hash] for result in shown} == {number}
    assert store.searcher.search(a_query("locks", filters={"community": "999"})).results == ()
    assert {numbers[result.content_hash] for result in store.answer().results} != {number}


def test_a_result_names_the_whole_cluster_of_its_opponents(store: Store) -> None:
    """CON-4: new.md contradicts doubt.md, and that far.md: each of the three names both others, and whom directly."""
    store.run("declare", "far.md", "contradicts", "deep/doubt.md")
    related = store.result("tree/new.md").relations
    assert {(each.uri, each.direct) for each in related if each.kind.value == "contradicts"} == {
        ("tree/deep/doubt.md", True),
        ("tree/far.md", False),
    }
    assert reasons(store.result("tree/new.md"))[0] == (
        "contradicts tree/deep/doubt.md (also in this contradiction: tree/far.md)"
    )
    assert "contradicts tree/far.md" in reasons(store.result("tree/deep/doubt.md"))[0]
    shown = store.answer().to_dict()["results"]
    (new,) = (one for one in shown if one["uris"][0] == "tree/new.md")
    assert "in one contradiction with tree/far.md" in [each["says"] for each in new["relations"]]


def test_a_superseded_result_stands_after_what_supersedes_it(store: Store) -> None:
    """CON-4, ARC-7: though the older text matches better; what it loses for that is told, and scores still add up."""
    question = "locks are released after a minute"
    answer = store.answer(question)
    places = {one.uris[0]: one for one in answer.results}
    old, new = places["tree/old.md"], places["tree/new.md"]
    assert (old.rank, old.score < new.score) == (new.rank + 1, True)
    (lost,) = (part for part in old.contributions if part.name == "superseded")
    assert lost.amount < 0.0
    assert all(math.fsum(part.amount for part in one.contributions) == one.score for one in answer.results)
    assert "what supersedes it stands above it" in sentence_of(lost.name)


def test_a_relation_that_is_declared_reaches_searches_at_once_and_can_be_taken_back(store: Store) -> None:
    """GRA-1, RET-7, RET-18: without indexing anew: told, spread along, counted by degree; then as if never said."""
    before, question = store.answer("zebras graze"), "zebras graze"
    generation = store.catalog.pointer().generation
    facts = store.run("declare", "old.md", "enabled", "far.md")
    assert facts == {"uri": "tree/old.md", "kind": "enabled", "target": "tree/far.md", "retracted": False}
    weft.declare(store.root, "old.md", "enabled", "far.md")
    store.run("declare", "new.md", "contradicts", "deep/doubt.md#why")
    assert len(store.catalog.relations()) == 2
    far = store.result("tree/far.md", question)
    assert [(each.kind.value, each.inward, each.uri) for each in far.relations] == [("enabled", True, "tree/old.md")]
    assert "degree" in far.channels
    old = store.result("tree/old.md", question)
    assert old.signals["graph"] > 0.0
    assert ("enabled tree/far.md", "out", "declared") in said(store.run("show", "old.md")["relations"])
    assert [step["kind"] for step in store.run("path", "far.md", "old.md")["steps"]] == ["enabled"]
    part = store.run("show", "deep/doubt.md#why")
    assert ("contradicts tree/new.md", "in", "declared") in said(part["relations"])
    assert store.catalog.pointer().generation == generation
    weft.declare(store.root, "old.md", "enabled", "far.md", retract=True)
    store.run("declare", "new.md", "contradicts", "deep/doubt.md#why", "--retract")
    assert store.answer(question).results == before.results


def test_what_cannot_be_declared_is_refused(store: Store) -> None:
    """GRA-1: a kind that is none, a document that is none, a document and itself; nothing is written."""
    for kind, end in (("replaces", "far.md"), ("caused", "tree/old.md")):
        with pytest.raises(ValueError, match="expected"):
            weft.declare(store.root, "old.md", kind, end)
    at = ["--store", str(store.root)]
    assert main(["graph", "declare", "old.md", "replaces", "far.md", *at]) == 2
    assert main(["graph", "declare", "old.md", "caused", "gone.md", *at]) == 1
    assert main(["graph", "declare", "old.md", "caused", "tree/old.md", *at]) == 2
    assert not (store.root / RELATIONS_FILE).exists()


def test_a_damaged_file_of_relations_costs_no_search(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """GRA-1: it is named; what documents declare still holds, and no command writes over it."""
    (store.root / RELATIONS_FILE).write_text("[{")
    assert reasons(store.result("tree/old.md"))[0] == "superseded by tree/new.md"
    assert "relations.json" in caplog.text
    assert main(["graph", "declare", "old.md", "enabled", "far.md", "--store", str(store.root)]) == 1
    assert (store.root / RELATIONS_FILE).read_text() == "[{"


def test_relations_to_documents_that_left_are_named_and_come_back_with_them(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """GRA-1: what was declared stays declared while its documents are away."""
    store.run("declare", "old.md", "enabled", "far.md")
    tree = store.root.parent / "tree"
    (tree / "far.md").rename(store.root.parent / "far.md")
    ingest(a_plan(tree, store.root), store.catalog, HERE, lambda _: None, clock=time.monotonic)
    assert store.result("tree/old.md").relations[0].uri == "tree/new.md"
    assert "1 declared relations lead to no document of what is live: tree/old.md enabled tree/far.md" in caplog.text
    (store.root.parent / "far.md").rename(tree / "far.md")
    ingest(a_plan(tree, store.root), store.catalog, HERE, lambda _: None, clock=time.monotonic)
    assert "tree/far.md" in {each.uri for each in store.result("tree/old.md").relations}
