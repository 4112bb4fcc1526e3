"""CON-5, CON-7a: a night passes over chunks that are far from what their document is about, and gives them back."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.integration.test_night_duplicates import OPTIONS, files_of
from tests.support.nights import stream
from weft.app.indexing import plan_of
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.cli.commands.consolidate import consolidate
from weft.cli.console.options import run_job
from weft.consolidation.champion import CHAMPION, follow_champion
from weft.domain.ids import ContentHash
from weft.domain.ranking import Query
from weft.ingestion.pipeline import ingest
from weft.learning.evidence import MICRO, Evidence
from weft.learning.thinned import Thinned
from weft.learning.uses import UsageKey
from weft.runtime.clock import day_of, system_clock
from weft.runtime.mlflow.tracking import Tracking
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

SOURCES = [ROOT / "docs" / f"{name}.md" for name in ("learning", "retrieval", "ingestion", "calibration")]
PLAIN = "extraction.enabled=false", "embedding.tokens.enabled=false"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A store of some pages, in which chunks are nearer to their pages than a threshold of .3 would ask for."""
    here = load_settings(assignments=[f"storage.root={tmp_path / 'store'}", *PLAIN], environment={})
    ingest(plan_of(here, SOURCES), Catalog(tmp_path / "store"), HERE, lambda _: None, clock=time.monotonic)
    return here


def night(settings: Settings, capsys: pytest.CaptureFixture[str], least_cosine: float, *more: str) -> dict[str, Any]:
    """What the job says of a night that thins."""
    rules = ["enabled=true", f"least_cosine={least_cosine}"]
    asked = [part for rule in rules for part in ("--set", f"consolidation.thinning.{rule}")]
    plain = [part for each in PLAIN[1:] for part in ("--set", each)]
    options = ["--store", settings.storage.root, *OPTIONS, *plain, *asked, "--json", *more]
    assert run_job(consolidate, options) == 0
    summary: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return summary


def found(settings: Settings, text: str, **filters: str) -> list[ContentHash]:
    """What a search gives, with nothing left out for likeness."""
    with opened(settings) as searcher:
        return [each.content_hash for each in searcher.search(Query(text=text, k=50, filters=filters)).results]


@pytest.mark.integration
@pytest.mark.slow
def test_what_is_far_from_its_page_is_passed_over_and_given_back(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """CON-5, CON-7a: a rehearsal writes nothing; a night passes over what is far and nobody used; a second one changes
    nothing; who names a place or quotes words finds it; a roll-back gives all of it back, and the generation stays.
    """
    root = Path(settings.storage.root)
    catalog = Catalog(root)
    generation = catalog.open_live()
    rehearsal = night(settings, capsys, 0.5, "--dry-run")["steps"]["thinning"]
    assert rehearsal["proposed"] > 2
    assert rehearsal["applied"] == 0
    assert not catalog.learned.versions()

    first = night(settings, capsys, 0.5)
    step, thinned = first["steps"]["thinning"], catalog.learned.read(first["learned"]).part(Thinned) or Thinned()
    assert step["proposed"] == step["applied"] == step["thinned"] == len(thinned) == rehearsal["proposed"]
    assert step["own_recall_at_20_after"] >= 0.9 * step["own_recall_at_20_before"] > 0.0
    before = files_of(root)
    again = night(settings, capsys, 0.5)
    assert (again["decision"], again["steps"]["thinning"]["proposed"], files_of(root)) == ("nothing new", 0, before)

    gone = generation.chunks.contents(generation.chunks.rows_of(sorted(thinned)))
    text = max((each.text for each in gone), key=len)
    content = next(each for each in gone if each.text == text)
    words = max((line for line in text.splitlines() if '"' not in line), key=len)
    assert not thinned & set(found(settings, words))
    assert content.content_hash in found(settings, f'"{" ".join(words.split()[1:6])}"')
    assert content.content_hash in found(settings, words, domain=content.occurrences[0].domain)

    used = UsageKey(day_of(system_clock()), content.content_hash, "positive", "ada", "q")
    stream(root, 0, Evidence(usage={used: MICRO}))
    second = night(settings, capsys, 0.5)
    assert second["steps"]["thinning"]["restored"] == 1
    assert catalog.learned.read(second["learned"]).part(Thinned) == thinned - {content.content_hash}
    tracking = Tracking.of(settings.tracking, root)
    tracking.set_alias(CHAMPION, first["learned"])
    follow_champion(catalog, tracking)
    assert catalog.pointer().learned == first["learned"]
    assert content.content_hash not in found(settings, words)

    off = night(settings, capsys, -1.0)
    assert catalog.learned.read(off["learned"]).part(Thinned) is None
    assert content.content_hash in found(settings, words)
    assert catalog.verify(generation.manifest.id).content_hash == generation.manifest.content_hash


@pytest.mark.integration
@pytest.mark.slow
def test_what_would_cost_too_much_is_only_proposed(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """CON-5: where nearly all is called far, the store's own questions lose their answers, and nothing is applied."""
    summary = night(settings, capsys, 1.0)
    step = summary["steps"]["thinning"]
    assert step["proposed"] == step["waiting"] > 20
    assert (step["applied"], step["thinned"]) == (0, 0)
    assert step["own_recall_at_20_after"] < 0.9 * step["own_recall_at_20_before"]
    assert summary["decision"] == "nothing new"
