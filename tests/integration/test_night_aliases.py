"""CON-2, CON-7a: what a night makes of the near-duplicates that it finds, on a real catalog and MLflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.nights import a_day, stream
from weft.app.night import JUDGING
from weft.catalog.catalog import Catalog
from weft.consolidation import pipeline
from weft.consolidation.champion import CHAMPION, follow_champion
from weft.consolidation.night import Night, NightContext, StepResult
from weft.consolidation.pipeline import consolidate
from weft.consolidation.report import writing
from weft.consolidation.steps import gate, publish, recalibrate
from weft.consolidation.steps.duplicates import Duplicates, FindDuplicates, duplicates_result
from weft.consolidation.steps.merging import MergeEvidence
from weft.domain.ids import ContentHash, content_hash
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.evidence import Evidence
from weft.learning.parts import LearnedVersion, parts_of
from weft.runtime.clock import SECONDS_PER_DAY
from weft.runtime.mlflow.tracking import Tracking
from weft.settings import load_settings

pytestmark = pytest.mark.integration

SETTINGS = load_settings(environment={})
DAY = 20_000
A, B, C = (content_hash(f"content {number}") for number in range(3))
FOUND = Duplicates(ContentAliases({B: A, C: A}), 3, (), ())


class Killed(BaseException):
    """What a SIGKILL is to the code that it interrupts: nothing catches it."""


def killed(*_arguments: object, **_options: object) -> None:
    raise Killed


def by_aliases(learned: LearnedVersion) -> Sequence[Sequence[ContentHash]]:
    """Rankings that aliases turn round."""
    ranking = [ContentHash(name) for name in "abcdefghij"]
    return [ranking[::-1] if learned.part(ContentAliases) else ranking]


class FoundDuplicates(FindDuplicates):
    """The step that looks for near-duplicates, where these are there."""

    def __init__(self, there: Duplicates) -> None:
        self._there = there

    def run(self, context: NightContext) -> StepResult:
        return duplicates_result(self._there, context)


@pytest.fixture
def night(tmp_path: Path) -> Night:
    """A night over a day of outcomes that finds two near-duplicates of a content."""
    stream(tmp_path, 0, a_day(DAY))
    return Night(
        catalog=Catalog(tmp_path),
        tracking=Tracking.of(SETTINGS.tracking, tmp_path),
        settings=SETTINGS,
        steps=[MergeEvidence(), FoundDuplicates(FOUND), *JUDGING[1:]],
        now=(DAY + 2.5) * SECONDS_PER_DAY,
        shadow=lambda _: [[A, B]],
    )


def live_aliases(night: Night) -> dict[ContentHash, ContentHash]:
    learned = night.catalog.pointer().learned
    return (
        {}
        if learned is None
        else dict((night.catalog.learned.read(learned).part(ContentAliases) or NO_ALIASES).representatives)
    )


def test_a_roll_back_takes_aliases_back(night: Night) -> None:
    """CON-7a: aliases are a file of the learned version; with the former version every content speaks for itself."""
    first = consolidate(replace(night, steps=JUDGING))["learned"]
    again = dict(consolidate(night))
    assert again["learned"] != first  # nothing new was heard, and the memory is tended nevertheless
    assert again["steps"]["duplicates"]["applied"] == again["steps"]["duplicates"]["proposed"] == 2
    assert live_aliases(night) == {B: A, C: A}
    believed = night.beliefs(LearnedVersion(night.catalog.live.evidence(), parts_of(FOUND.aliases))).content_signals(
        [A, B, C]
    )
    assert len(set(believed.usage.tolist())) == 1
    night.tracking.set_alias(CHAMPION, first)
    follow_champion(night.catalog, night.tracking)
    assert live_aliases(night) == {}
    assert consolidate(night)["decision"] == "nothing new"  # what was taken back is not proposed at once again


def test_a_night_that_a_person_is_to_judge_changes_nothing_meanwhile(night: Night) -> None:
    """CON-7a, CON-9: where aliases turn rankings round they wait, and are nobody's until somebody promotes them."""
    summary = dict(consolidate(replace(night, shadow=by_aliases)))
    assert (summary["decision"], summary["steps"]["duplicates"]["applied"]) == ("review", 0)
    assert live_aliases(night) == {}
    assert consolidate(night)["decision"] == "nothing new"
    night.tracking.set_alias(CHAMPION, summary["learned"])
    follow_champion(night.catalog, night.tracking)
    assert live_aliases(night) == {B: A, C: A}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "step"),
    [
        (recalibrate, "recalibrate"),
        (gate, "judge"),
        (publish, "keep_files"),
        (publish, "follow_champion"),
        (writing, "report"),
        (pipeline, "settle"),
    ],
)
def test_a_killed_night_leaves_the_same_bits_to_the_next(
    night: Night, tmp_path_factory: pytest.TempPathFactory, module: object, step: str
) -> None:
    """CON-2: wherever it is killed, the next run publishes one version, with the aliases that an unbroken night has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, step, killed)
        with pytest.raises(Killed):
            consolidate(night)
    summary = consolidate(night)
    assert night.catalog.learned.versions() == [summary["learned"]]
    elsewhere = tmp_path_factory.mktemp("unbroken")
    stream(elsewhere, 0, a_day(DAY))
    unbroken = replace(night, catalog=Catalog(elsewhere), tracking=Tracking.of(SETTINGS.tracking, elsewhere))
    consolidate(unbroken)
    files = [
        night_.catalog.learned.manifest(summary["learned"]).files["aliases.parquet"] for night_ in (night, unbroken)
    ]
    assert files[0] == files[1]
    assert live_aliases(night) == {B: A, C: A}


@pytest.mark.slow
def test_who_is_unsupported_gives_way(night: Night) -> None:
    """CON-6: an alias that is not found again expires, and evidence is what it was."""
    consolidate(night)
    fewer = replace(
        night, steps=[MergeEvidence(), FoundDuplicates(Duplicates(ContentAliases({B: A}), 1, (), ())), *JUDGING[1:]]
    )
    summary = dict(consolidate(fewer))
    assert (summary["steps"]["expiry"]["applied"], live_aliases(night)) == (1, {B: A})
    assert night.catalog.live.evidence() == a_day(DAY) + Evidence()
