"""CON-4, CON-7a, CON-10: a night over real texts with planted opposites, and what searches say of them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.test_night_duplicates import TEXTS, files_of, hashes, night, stored
from tests.support.near_duplicates import denied, renumbered
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.consolidation.champion import CHAMPION, follow_champion
from weft.consolidation.steps.contradictions import contradictions_in
from weft.consolidation.steps.duplicates import duplicates_in
from weft.domain.links import LinkKind, Relation, RelationSource
from weft.domain.ranking import Query
from weft.domain.reasons import warnings
from weft.learning.edges import NO_EDGES, LearnedEdges
from weft.learning.evidence import Evidence
from weft.runtime.mlflow.tracking import Tracking
from weft.settings import Settings

ASKED = "proteins of the membrane isolated from cells of patients"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A store of texts, of each a denied and a renumbered one in files of their own."""
    rng = random.Random(5)
    (tmp_path / "files").mkdir()
    for name, text in TEXTS.items():
        for kind, changed in {"own": text, "denied": denied(text, rng), "renumbered": renumbered(text, rng)}.items():
            (tmp_path / "files" / f"{name}-{kind}.txt").write_text(f"{changed}\n", encoding="utf-8")
    # Searches show a text with another number in place of both others, as a near-duplicate (RET-12); here each stands.
    return stored(tmp_path, "retrieval.diversity.duplicate_cosine=1.1")


def said(settings: Settings) -> dict[str, list[str]]:
    """What a search warns of, by the file of the result."""
    with opened(settings) as searcher:
        answer = searcher.search(Query(text=ASKED, k=10))
    return {Path(result.uris[0]).stem: warnings(result) for result in answer.results}


@pytest.mark.integration
@pytest.mark.slow
def test_a_night_names_what_contradicts_what(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """CON-4, CON-7a: what one text denies of another becomes an edge of the learned version, answers and the graph name
    the other side, another number is only proposed, and a roll-back takes all of it away.
    """
    root, of = Path(settings.storage.root), hashes(settings)
    catalog = Catalog(root)
    assert night(settings, capsys, "--dry-run")["steps"]["contradictions"]["acting"] == len(TEXTS)
    assert not catalog.learned.versions()
    summary = night(settings, capsys)
    step = summary["steps"]["contradictions"]
    assert (step["proposed"], step["applied"], step["acting"]) == (len(TEXTS), len(TEXTS), len(TEXTS))
    assert step["waiting"] >= len(TEXTS)
    edges = (catalog.learned.read(summary["learned"]).part(LearnedEdges) or NO_EDGES).edges
    assert {(each.content, each.target) for each in edges} == {
        tuple(sorted((of[f"{name}-own"], of[f"{name}-denied"]))) for name in TEXTS
    }
    assert {(each.kind, each.source) for each in edges} == {(LinkKind.CONTRADICTS, RelationSource.AUTO)}

    warned = said(settings)
    assert any("contradicts" in line and "cells-denied" in line for line in warned["cells-own"])
    assert any("contradicts" in line and "cells-own" in line for line in warned["cells-denied"])
    assert not warned.get("cells-renumbered")
    command = [sys.executable, "-m", "weft", "graph", "show", "files/cells-own.txt", "--json", "--store", str(root)]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert [(each["kind"], each["source"]) for each in shown["relations"]] == [("contradicts", "auto")]

    before = files_of(root)
    again = night(settings, capsys)
    assert (again["decision"], again["steps"]["contradictions"]["proposed"]) == ("nothing new", 0)
    assert files_of(root) == before

    tracking = Tracking.of(settings.tracking, root)
    (tables,) = list((root / "mlflow").rglob("contradictions.csv"))
    assert "denial" in tables.read_text(encoding="utf-8")
    catalog.declare(Relation(uri_of(catalog, "cells-own"), LinkKind.SUPERSEDES, uri_of(catalog, "cells-denied")))
    settled = night(settings, capsys)
    assert settled["steps"]["contradictions"]["acting"] == len(TEXTS) - 1
    assert settled["steps"]["expiry"]["proposed"] == 1
    tracking.set_alias(CHAMPION, summary["learned"])
    follow_champion(catalog, tracking)
    live = catalog.learned.read(catalog.pointer().learned or summary["learned"])
    assert len(live.part(LearnedEdges) or NO_EDGES) == len(TEXTS)


def uri_of(catalog: Catalog, stem: str) -> str:
    """The URI of a file."""
    return next(uri for uri in catalog.open_live().chunks.uris() if Path(uri).stem == stem)


@pytest.mark.integration
@pytest.mark.slow
def test_declared_and_found_contradictions_form_clusters(settings: Settings) -> None:
    """CON-4, CON-10: what people declared stands in the report beside what was found, clusters hold both."""
    catalog = Catalog(Path(settings.storage.root))
    catalog.declare(Relation(uri_of(catalog, "cells-own"), LinkKind.CONTRADICTS, uri_of(catalog, "signing-own")))
    duplicates = duplicates_in(catalog, Evidence(), (), settings)
    detected = contradictions_in(catalog, duplicates, NO_EDGES, Evidence(), settings)
    assert (detected.declared, detected.clusters) == (1, len(TEXTS) - 1)
    first = next(each for each in detected.examples if each.source == "declared")
    assert first.text
    assert first.other_text
    assert first.cluster == 1
