"""What tests of nights share: days of evidence, a night that is killed, and what a person does in MLflow's UI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlflow.tracking import MlflowClient

from tests.support.nights import a_day
from weft.consolidation.champion import (
    CHAMPION,
    EXPERIMENT,
)
from weft.consolidation.night import Night
from weft.consolidation.pipeline import consolidate
from weft.domain.ids import PRIORS_VERSION, ContentHash, VersionName
from weft.learning.parts import LearnedVersion
from weft.runtime.mlflow.tracking import PRIORS_MODEL, REGISTERED_MODEL
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
DAY = 20_000
FIRST_DAY, SECOND_DAY, THIRD_DAY = (a_day(DAY + number) for number in range(3))


class Killed(BaseException):
    """What a SIGKILL is to the code that it interrupts: nothing catches it."""


def killed(*_arguments: object, **_options: object) -> None:
    raise Killed


def unmoved(learned: LearnedVersion) -> Sequence[Sequence[ContentHash]]:
    return [[ContentHash("a"), ContentHash("b")]]


def overturned(learned: LearnedVersion) -> Sequence[Sequence[ContentHash]]:
    """Rankings that whatever comes after the first day turns round."""
    ranking = [ContentHash(name) for name in "abcdefghij"]
    return [ranking if learned.evidence == FIRST_DAY else ranking[::-1]]


def go(night: Night, **options: Any) -> dict[str, Any]:
    return dict(consolidate(night, **options))


def the_ui(night: Night) -> MlflowClient:
    return MlflowClient(night.tracking.uri, night.tracking.uri)


def move_alias_in_the_ui(night: Night, learned: VersionName) -> None:
    """By MLflow's number, which is that of the learned version; to the beginning, in its own model."""
    if learned == PRIORS_VERSION:
        the_ui(night).set_registered_model_alias(PRIORS_MODEL, CHAMPION, "1")
        the_ui(night).delete_registered_model_alias(REGISTERED_MODEL, CHAMPION)
    else:
        the_ui(night).set_registered_model_alias(REGISTERED_MODEL, CHAMPION, str(int(learned.lstrip("v"))))


def runs(night: Night) -> list[Any]:
    experiment = the_ui(night).get_experiment_by_name(EXPERIMENT)
    return [] if experiment is None else list(the_ui(night).search_runs([experiment.experiment_id]))


def state_of(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


NIGHT, TRACKING = "weft.consolidation.pipeline", "weft.runtime.mlflow.tracking.Tracking"
PUBLISH = "weft.consolidation.steps.publish"
