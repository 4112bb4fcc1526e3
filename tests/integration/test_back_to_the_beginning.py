"""CON-9, CON-7a: rolled back to the priors, searches rank as they did before any night."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.integration.test_night_duplicates import stored
from tests.support.nights import a_day, stream
from weft.app.night import night_of
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.cli.main import main
from weft.consolidation.champion import CHAMPION, ChampionFollower
from weft.consolidation.pipeline import consolidate
from weft.domain.ids import PRIORS_VERSION
from weft.domain.ranking import Answer, Query, Signal
from weft.retrieval.searcher import Searcher
from weft.runtime.clock import day_of, system_clock
from weft.settings import Settings

TEXTS = {
    "kettle": "Kettles are descaled with vinegar once a month, or the lime keeps them from switching off.",
    "garden": "Tomatoes are watered in the morning, at the root, so that their leaves stay dry.",
    "train": "Trains to the coast leave every hour, and every half hour in summer.",
}


QUERY = Query(text="when are tomatoes watered", k=3)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A store of these texts."""
    (tmp_path / "files").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "files" / f"{name}.md").write_text(f"# About {name}\n\n{text}\n", encoding="utf-8")
    return stored(tmp_path)


def two_nights(settings: Settings) -> str:
    """Two days of outcomes, each consolidated; what the second night published."""
    root, today = Path(settings.storage.root), day_of(system_clock())
    streamed = a_day(today - 2, telling=Signal.FRESHNESS)
    stream(root, 0, streamed)
    consolidate(night_of(settings))
    stream(root, 0, streamed + a_day(today - 1, telling=Signal.FRESHNESS))
    return str(consolidate(night_of(settings))["learned"])


def scores_of(answer: Answer) -> list[tuple[str, float]]:
    return [(result.content_hash, result.score) for result in answer.results]


def scores(settings: Settings) -> list[tuple[str, float]]:
    """By a searcher that is opened now."""
    with opened(settings) as searcher:
        return scores_of(searcher.search(QUERY))


def alike(some: list[tuple[str, float]], others: list[tuple[str, float]]) -> bool:
    """Whether two answers are one but for what its contents aged from the first to the second."""
    return [name for name, _ in some] == [name for name, _ in others] and [score for _, score in some] == pytest.approx(
        [score for _, score in others], rel=1e-4
    )


def answered_by(searcher: Searcher, version: str) -> Answer:
    """The first answer by a learned version; asked again and again for no longer than a decision may take."""
    until = time.monotonic() + Searcher.FOLLOW_S
    while (answer := searcher.search(QUERY)).learned != version:
        assert time.monotonic() < until, f"expected answers by {version}, found {answer.learned}"
        time.sleep(0.05)
    return answer


@pytest.mark.integration
def test_rolled_back_to_the_beginning_searches_rank_as_the_priors_do(settings: Settings) -> None:
    """CON-9, CON-7a: scores are those of before any feedback, to the bit, and change again with the version after."""
    root = Path(settings.storage.root)
    priors, last = scores(settings), two_nights(settings)
    assert main(["learned", "promote", last, "--store", str(root)]) == 0
    learned = scores(settings)
    assert learned != priors
    assert main(["learned", "promote", PRIORS_VERSION, "--store", str(root)]) == 0
    assert Catalog(root).pointer().learned == PRIORS_VERSION
    assert scores(settings) == priors
    assert main(["learned", "promote", last, "--store", str(root)]) == 0
    assert scores(settings) == learned


@pytest.mark.integration
def test_a_searcher_that_is_open_follows_the_alias_there_and_back(settings: Settings) -> None:
    """CON-9: to a promoted night, by an alias that was moved in the registry to the priors, and to the night again."""
    root = Path(settings.storage.root)
    with opened(settings) as searcher:
        priors, last = scores_of(searcher.search(QUERY)), two_nights(settings)
        assert main(["learned", "promote", last, "--store", str(root)]) == 0
        learned = scores_of(answered_by(searcher, last))
        assert alike(learned, scores(settings))
        assert not alike(learned, priors)
        assert main(["learned", "promote", PRIORS_VERSION, "--store", str(root)]) == 0
        assert alike(scores_of(answered_by(searcher, PRIORS_VERSION)), priors)
        follower = ChampionFollower(Catalog(root), night_of(settings).tracking, every_s=0.0, clock=system_clock)
        for version, ranked in ((last, learned), (PRIORS_VERSION, priors)):
            night_of(settings).tracking.set_alias(CHAMPION, version)  # as a person does in MLflow
            follower.tick()
            assert alike(scores_of(answered_by(searcher, version)), ranked)
        follower.close(Searcher.FOLLOW_S)
        assert (follower.moved, follower.failed) == (2, 0)
