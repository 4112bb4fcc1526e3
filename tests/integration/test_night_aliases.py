"""CON-2, CON-7a: what a night makes of the near-duplicates that it finds, on a real catalog and MLflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.nights import a_day, stream
from weft.catalog.catalog import Catalog
from weft.catalog.learned import ALIASES_FILE
from weft.consolidation import pipeline, publish
from weft.consolidation.champion import CHAMPION, follow_champion
from weft.consolidation.night import Night
from weft.consolidation.pipeline import consolidate
from weft.consolidation.tending.duplicates import Duplicates
from weft.domain.ids import ContentHash, content_hash
from weft.learning.aliases import ContentAliases
from weft.learning.evidence import Evidence
from weft.learning.pooling.fitted import Learned
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


def by_aliases(learned: Learned) -> Sequence[Sequence[ContentHash]]:
    """Rankings that aliases turn round."""
    ranking = [ContentHash(name) for name in "abcdefghij"]
    return [ranking[::-1] if len(learned.aliases) else ranking]


@pytest.fixture
def night(tmp_path: Path) -> Night:
    """A night over a day of outcomes that finds two near-duplicates of a content."""
    stream(tmp_path, 0, a_day(DAY))
    return Night(
        catalog=Catalog(tmp_path),
        tracking=Tracking.of(SETTINGS.tracking, tmp_path),
        priors=SETTINGS.priors,
        learning=SETTINGS.learning,
        rules=SETTINGS.consolidation,
        now=(DAY + 2.5) * SECONDS_PER_DAY,
        shadow=lambda _: [[A, B]],
        duplicates=lambda *_: FOUND,
    )


def live_aliases(night: Night) -> dict[ContentHash, ContentHash]:
    learned = night.catalog.pointer().learned
    return {} if learned is None else dict(night.catalog.learned.read(learned).aliases.representatives)


def test_a_roll_back_takes_aliases_back(night: Night) -> None:
    """CON-7a: aliases are a file of the learned version; with the former version every content speaks for itself."""
    first = consolidate(replace(night, duplicates=None))["learned"]
    again = dict(consolidate(night))
    assert again["learned"] != first  # nothing new was heard, and the memory is tended nevertheless
    assert again["steps"]["duplicates"]["applied"] == again["steps"]["duplicates"]["proposed"] == 2
    assert live_aliases(night) == {B: A, C: A}
    believed = night.beliefs(Learned(night.catalog.live.evidence(), aliases=FOUND.aliases)).content_signals([A, B, C])
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


@pytest.mark.parametrize(
    ("module", "step"),
    [
        (pipeline, "recalibrate"),
        (pipeline, "judge"),
        (publish, "_keep"),
        (publish, "follow_champion"),
        (pipeline, "report"),
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
    files = [night_.catalog.learned.manifest(summary["learned"]).files[ALIASES_FILE] for night_ in (night, unbroken)]
    assert files[0] == files[1]
    assert live_aliases(night) == {B: A, C: A}


def test_who_is_unsupported_gives_way(night: Night) -> None:
    """CON-6: an alias that is not found again expires, and evidence is what it was."""
    consolidate(night)
    fewer = replace(night, duplicates=lambda *_: Duplicates(ContentAliases({B: A}), 1, (), ()))
    summary = dict(consolidate(fewer))
    assert (summary["steps"]["expiry"]["applied"], live_aliases(night)) == (1, {B: A})
    assert night.catalog.live.evidence() == a_day(DAY) + Evidence()
