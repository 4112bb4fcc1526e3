"""CON-5: what recall@20 loses by what is passed over, on judged and on a store's own questions; slow."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from tests.conftest import ROOT
from tests.evaluation.test_conversation_retrieval import DEV, questions
from weft.app.indexing import plan_of
from weft.app.night import asking_night
from weft.catalog.catalog import Catalog
from weft.consolidation.steps.thinning import thinning_in
from weft.evaluation.ground_truth.collect import JudgementSource, judged, keep
from weft.ingestion.pipeline import ingest
from weft.learning.aliases import NO_ALIASES
from weft.learning.evidence import Evidence
from weft.learning.parts import LearnedVersion, parts_of
from weft.runtime.clock import system_clock
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(1800)]

THRESHOLDS = (0.3, 0.4, 0.5, 0.6)


def stored(store: Path, sources: list[Path]) -> Settings:
    assignments = [f"storage.root={store}", "extraction.enabled=false", "consolidation.thinning.enabled=true"]
    settings = load_settings(assignments=assignments, environment={})
    ingest(plan_of(settings, sources), Catalog(store), HERE, lambda _: None, clock=time.monotonic)
    return settings


def conversations(data: Path, folder: Path) -> Settings:
    """LoCoMo's dev conversations; a question is answered by every chunk that holds a turn of its evidence."""
    text = gzip.decompress((data / "locomo" / "locomo_conv1-6.json.gz").read_bytes()).decode()
    path = folder / "conversations.json"
    path.write_text(json.dumps([one for one in json.loads(text) if one["sample_id"] in DEV]), encoding="utf-8")
    settings = stored(folder / "store", [path])
    holding: dict[str, set[str]] = {}
    for content in Catalog(folder / "store").open_live().chunks:
        for each in content.occurrences:
            name = each.metadata["conversation"]
            for turn in each.chunk.attributes.get("turns", "").split():
                holding.setdefault(f"{name}:{turn}", set()).add(content.content_hash)
    now = system_clock()
    answers = [
        judged(asked, content, 3, source=JudgementSource.JUDGED, by="locomo", now=now)
        for _, asked, turns in questions(data).values()
        for content in sorted({content for turn in turns for content in holding.get(turn, ())})
    ]
    keep(folder / "store", answers, now=now)
    return settings


def test_what_is_passed_over_costs_little_recall(data_root: Path, tmp_path: Path) -> None:
    """CON-5: at the stated threshold recall@20 falls by a tenth at most, on judged and on own questions."""
    table = Table("store", "below", "passed over", "of", "questions", "before", "after", title="recall@20")
    places = {"locomo": tmp_path / "locomo", "docs": tmp_path / "docs"}
    for folder in places.values():
        folder.mkdir()
    stores = {
        "LoCoMo dev": conversations(data_root, places["locomo"]),
        "docs": stored(places["docs"] / "store", [ROOT / "docs"]),
    }
    for name, settings in stores.items():
        contents = len(Catalog(Path(settings.storage.root)).open_live().contents)
        for threshold in THRESHOLDS:
            rules = settings.consolidation.thinning.model_copy(update={"least_cosine": threshold})
            consolidation = settings.consolidation.model_copy(update={"thinning": rules})
            with asking_night(settings.model_copy(update={"consolidation": consolidation})) as night:
                assert night.recall is not None
                found = thinning_in(night.catalog, Evidence(), NO_ALIASES, night.settings)
                for one in night.recall(
                    LearnedVersion(Evidence()), LearnedVersion(Evidence(), parts_of(found.proposed))
                ):
                    row = name, f"{threshold:.1f}", len(found.proposed), contents, f"{one.questions} {one.source}"
                    table.add_row(*map(str, row), f"{one.before.mean:.4f}", f"{one.after.mean:.4f}")
                    if threshold == THRESHOLDS[0]:
                        assert one.after.mean >= (1.0 - rules.most_loss) * one.before.mean > 0.0
    Console(width=140).print(table)
