"""A store and a night over it, for tests of nights."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.consolidating import DAY, SETTINGS, unmoved
from weft.app.night import JUDGING
from weft.catalog.catalog import Catalog
from weft.consolidation.night import Night
from weft.runtime.clock import SECONDS_PER_DAY
from weft.runtime.mlflow.tracking import Tracking


@pytest.fixture(scope="session")
def empty_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new MLflow database, made once: its migrations take seconds."""
    root = tmp_path_factory.mktemp("empty")
    with Tracking.of(SETTINGS.tracking, root).run("none", "none", {}):
        return root / "mlflow" / "mlflow.db"


@pytest.fixture
def root(tmp_path: Path, empty_mlflow: Path) -> Path:
    """An empty store with a new MLflow."""
    (tmp_path / "mlflow").mkdir()
    shutil.copy(empty_mlflow, tmp_path / "mlflow" / "mlflow.db")
    return tmp_path


@pytest.fixture
def night(root: Path) -> Night:
    """A night two days after the first, without queries to replay."""
    return Night(
        catalog=Catalog(root),
        tracking=Tracking.of(SETTINGS.tracking, root),
        settings=SETTINGS,
        steps=JUDGING,
        now=(DAY + 2.5) * SECONDS_PER_DAY,
        facts={"settings": SETTINGS.fingerprint},
        shadow=unmoved,
    )
