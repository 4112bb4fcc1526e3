"""CON-9, CON-7a: rolled back to the priors, searches rank as they did before any night."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.catalog.catalog import Catalog
from pipelines.consolidation.pipeline import consolidate
from pipelines.domain.ids import PRIORS_VERSION
from pipelines.domain.ranking import Query, Signal
from pipelines.runtime.clock import day_of, system_clock
from pipelines.serving.night import night_of
from pipelines.serving.searching.engines import opened
from tests.integration.test_night_duplicates import stored
from tests.support.nights import a_day, stream
from weft.cli import main

TEXTS = {
    "kettle": "Kettles are descaled with vinegar once a month, or the lime keeps them from switching off.",
    "garden": "Tomatoes are watered in the morning, at the root, so that their leaves stay dry.",
    "train": "Trains to the coast leave every hour, and every half hour in summer.",
}


@pytest.mark.integration
def test_rolled_back_to_the_beginning_searches_rank_as_the_priors_do(tmp_path: Path) -> None:
    """CON-9, CON-7a: scores are those of before any feedback, to the bit, and change again with the version after."""
    (tmp_path / "files").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "files" / f"{name}.md").write_text(f"# About {name}\n\n{text}\n", encoding="utf-8")
    settings = stored(tmp_path)
    root, today = Path(settings.storage.root), day_of(system_clock())
    catalog, query = Catalog(root), Query(text="when are tomatoes watered", k=3)

    def scores() -> list[tuple[str, float]]:
        with opened(settings) as searcher:
            return [(result.content_hash, result.score) for result in searcher.search(query).results]

    priors = scores()
    streamed = a_day(today - 2, telling=Signal.FRESHNESS)
    stream(root, 0, streamed)
    consolidate(night_of(settings))
    stream(root, 0, streamed + a_day(today - 1, telling=Signal.FRESHNESS))
    last = consolidate(night_of(settings))["learned"]
    assert main(["learned", "promote", last, "--store", str(root)]) == 0
    learned = scores()
    assert learned != priors
    assert main(["learned", "promote", PRIORS_VERSION, "--store", str(root)]) == 0
    assert catalog.pointer().learned == PRIORS_VERSION
    assert scores() == priors
    assert main(["learned", "promote", last, "--store", str(root)]) == 0
    assert scores() == learned
