"""CON-7a, OPS-15: a store in another folder goes on as before, with what MLflow recorded of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from tests.support.nights import a_day, stream
from weft.app.night import night_of
from weft.catalog.catalog import Catalog
from weft.cli.main import main
from weft.consolidation.champion import CHAMPION
from weft.consolidation.pipeline import consolidate
from weft.domain.ids import VersionName
from weft.runtime.clock import SECONDS_PER_DAY
from weft.runtime.mlflow.moving import correct_places
from weft.runtime.mlflow.tracking import REGISTERED_MODEL, Tracking
from weft.settings import load_settings

DAY = 20_000
HOLD = "import sys; held = open(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


def a_night(root: Path, day: int) -> dict[str, Any]:
    """A night over this day and those before it."""
    settings = load_settings(assignments=[f"storage.root={root}"], environment={})
    streamed = a_day(DAY)
    for other in range(1, day + 1):
        streamed = streamed + a_day(DAY + other)
    stream(root, 0, streamed)
    return dict(consolidate(night_of(settings, clock=lambda: (DAY + day + 1.5) * SECONDS_PER_DAY)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A store after a night, for tests to take copies of it to where it was made."""
    root = tmp_path_factory.mktemp("made") / "a store, 50%"
    return root, a_night(root, 0)


@pytest.fixture
def store(made: tuple[Path, dict[str, Any]]) -> Iterator[Path]:
    """The store where it was made, with everything that it was."""
    root, _ = made
    kept = root.with_name("kept")
    shutil.copytree(root, kept)
    yield root
    shutil.rmtree(root, ignore_errors=True)
    kept.rename(root)


def files_in_mlflow(root: Path, run: str) -> set[str]:
    """Names of what MLflow's client reads among a run's artifacts."""
    uri = Tracking.of(load_settings(environment={}).tracking, root).uri
    folder = Path(MlflowClient(uri, uri).download_artifacts(run, ""))
    assert folder.is_relative_to(root.resolve())
    return {path.name for path in folder.iterdir()}


def check_that_it_goes_on(root: Path, night: dict[str, Any]) -> None:
    """Artifacts open, a version can be promoted by its files, and the next night records beside the first."""
    assert {"report.html", "pictures", "tables", "learned"} <= files_in_mlflow(root, night["run"])
    assert main(["learned", "promote", night["learned"], "--store", str(root)]) == 0
    tracking = Tracking.of(load_settings(environment={}).tracking, root)
    assert tracking.alias(CHAMPION) == Catalog(root).pointer().learned == night["learned"]
    client = MlflowClient(tracking.uri, tracking.uri)
    sources = [each.source for each in client.search_model_versions(f"name='{REGISTERED_MODEL}'")]
    below = (root.resolve() / "mlflow" / "artifacts").as_uri()
    assert sources
    assert all(source.startswith(f"{below}/") for source in sources)
    second = a_night(root, 1)
    assert second["learned"] == VersionName("v000002")
    assert "report.html" in files_in_mlflow(root, second["run"])


@pytest.mark.integration
def test_a_store_moves_with_its_records(
    store: Path, made: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CON-7a: after `weft store move` everything is found at the new place, and nothing is left at the old one."""
    new = tmp_path / "grüner Ort" / "store"
    new.parent.mkdir()
    assert main(["store", "move", str(store), str(new)]) == 0
    assert f"the store is in {new}" in capsys.readouterr().out
    check_that_it_goes_on(new, made[1])
    assert not store.exists()
    assert correct_places(new) == 0


@pytest.mark.integration
@pytest.mark.parametrize("carry", [shutil.move, shutil.copytree])
def test_a_store_that_was_moved_by_other_means_is_put_right(
    store: Path, made: tuple[Path, dict[str, Any]], tmp_path: Path, carry: Any
) -> None:
    """CON-7a: also a copy, which then records beside itself and not into the store that it was copied from."""
    new = tmp_path / "elsewhere"
    carry(str(store), str(new))
    before = sorted(str(path) for path in store.rglob("*"))
    assert main(["store", "moved", str(new)]) == 0
    check_that_it_goes_on(new, made[1])
    assert sorted(str(path) for path in store.rglob("*")) == before


@pytest.mark.integration
def test_a_store_that_somebody_works_in_stays(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-15: who works in it is named, and nothing has changed; likewise where there is no store or no room."""
    new = tmp_path / "new"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store / "mlflow" / "mlflow.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert main(["store", "move", str(store), str(new)]) == 1
        assert f"found process {process.pid}" in capsys.readouterr().err
        assert main(["store", "moved", str(store)]) == 1
        process.kill()
    assert store.is_dir()
    assert main(["store", "move", str(tmp_path), str(new)]) == 1
    assert "found none of store.json" in capsys.readouterr().err
    new.mkdir()
    assert main(["store", "move", str(store), str(new)]) == 1
    assert "expected no" in capsys.readouterr().err
    assert (store.is_dir(), list(new.iterdir())) == (True, [])


@pytest.mark.integration
def test_what_only_the_former_place_holds_stays_there(store: Path, tmp_path: Path) -> None:
    """CON-7a: a copy that was used before it was put right loses no file of that time."""
    new = tmp_path / "copy"
    shutil.copytree(store, new)
    second = a_night(new, 1)
    assert main(["store", "moved", str(new)]) == 0
    uri = Tracking.of(load_settings(environment={}).tracking, new).uri
    folder = Path(MlflowClient(uri, uri).download_artifacts(second["run"], ""))
    assert folder.is_relative_to(store.resolve())
    assert (folder / "report.html").is_file()
