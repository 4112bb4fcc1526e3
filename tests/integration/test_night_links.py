"""CON-3, CON-7a, CON-10: a night links what is similar and what was used together, and a roll-back takes both away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_night_duplicates import TEXTS, files_of, hashes, night, stored
from tests.support.nights import stream
from weft.catalog.catalog import Catalog
from weft.consolidation.champion import CHAMPION, follow_champion
from weft.domain.ids import PRIORS_VERSION
from weft.domain.links import LinkKind, RelationSource
from weft.learning.edges import LearnedEdges
from weft.learning.evidence import MICRO, Evidence
from weft.learning.uses import UsageKey
from weft.runtime.clock import day_of, system_clock
from weft.runtime.mlflow.tracking import Tracking
from weft.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A store of texts that have nothing to do with one another."""
    (tmp_path / "files").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "files" / f"{name}.txt").write_text(f"{text}\n", encoding="utf-8")
    return stored(tmp_path)


def used(settings: Settings, *names: str) -> Evidence:
    """Three people found some of the texts good for one question today."""
    of, today = hashes(settings), day_of(system_clock())
    return Evidence(
        usage={UsageKey(today, of[name], "positive", who, "why"): MICRO for name in names for who in ("a", "b", "c")}
    )


@pytest.mark.integration
@pytest.mark.slow
def test_a_night_links_what_was_used_together(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """CON-3, CON-7a: three uses make an edge of half the greatest strength, of source learned; a rehearsal publishes
    nothing, a second night nothing new, and rolling back to the night before takes the edge away.
    """
    root = Path(settings.storage.root)
    catalog, of = Catalog(root), hashes(settings)
    stream(root, 0, used(settings, "cells"))
    alone = night(settings, capsys)
    assert alone["steps"]["links"]["co_used"] == 0
    stream(root, 0, used(settings, "cells", "signing"))
    rehearsal = night(settings, capsys, "--dry-run")["steps"]["links"]
    assert (rehearsal["proposed"], rehearsal["applied"], rehearsal["co_used"]) == (1, 0, 1)
    summary = night(settings, capsys)
    step = summary["steps"]["links"]
    assert (step["proposed"], step["applied"], step["similar"]) == (1, 1, 0)
    assert step["seconds"] > 0.0
    (edge,) = (catalog.learned.read(summary["learned"]).part(LearnedEdges) or LearnedEdges()).edges
    assert {edge.content, edge.target} == {of["cells"], of["signing"]}
    assert (edge.kind, edge.source, edge.micro) == (LinkKind.CO_USED, RelationSource.LEARNED, MICRO // 2)
    assert any('"co_used","learned"' in table.read_text("utf-8") for table in (root / "mlflow").rglob("links.csv"))

    before = files_of(root)
    assert night(settings, capsys)["decision"] == "nothing new"
    assert files_of(root) == before
    tracking = Tracking.of(settings.tracking, root)
    tracking.set_alias(CHAMPION, alone["learned"])
    follow_champion(catalog, tracking)
    assert catalog.learned.read(catalog.pointer().learned or PRIORS_VERSION).part(LearnedEdges) is None
