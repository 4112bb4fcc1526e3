"""What MLflow keeps of a run, on a real SQLite-backed MLflow."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from mlflow.tracking import MlflowClient

from tests.support.small_disk import small_disk
from weft.consolidation.champion import CHAMPION
from weft.consolidation.figures import as_svg
from weft.domain.errors import TrackingUnavailableError
from weft.domain.ids import PRIORS_VERSION, VersionName
from weft.runtime.mlflow.tracking import REGISTERED_MODEL, Tracking
from weft.runtime.settings import TrackingSettings

SQLITE = TrackingSettings(uri="")
FIRST, SECOND = VersionName("first"), VersionName("second")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for the module: a new MLflow database takes seconds."""
    return tmp_path_factory.mktemp("tracked")


@pytest.fixture(scope="module")
def tracking(store: Path) -> Tracking:
    return Tracking.of(SQLITE, store)


@pytest.fixture(scope="module")
def client(tracking: Tracking) -> MlflowClient:
    return MlflowClient(tracking.uri, tracking.uri)


def artifact(client: MlflowClient, run_id: str, path: str) -> Path:
    return Path(client.download_artifacts(run_id, path))


def test_a_run_keeps_parameters_metrics_pictures_and_tables_below_the_store(
    store: Path, tracking: Tracking, client: MlflowClient
) -> None:
    """OPS-7: a run holds what a person reviews, and its files lie in the store."""
    with tracking.run("calibration", "night", {"job": "test"}) as run:
        run.parameters({"first": 1, "long": "x" * 10_000})
        run.metrics({"ece": 0.25}, now=12.5)
        run.picture("pictures/empty", as_svg(Figure()))
        run.table("weights", pa.table({"signal": ["vector"], "weight": [0.5]}))
        run.document("summary", {"decision": "safe"})
        run.note("# Night")
        with run.child("merge") as child:
            child.metrics({"added": 3.0}, now=12.5)
    found = client.get_run(run.run_id)
    assert found.info.status == "FINISHED"
    assert found.data.params["first"] == "1"
    assert found.data.metrics == {"ece": 0.25}
    assert client.get_metric_history(run.run_id, "ece")[0].timestamp == 12_500
    assert found.data.tags["mlflow.note.content"] == "# Night"
    assert client.get_run(child.run_id).data.tags["mlflow.parentRunId"] == run.run_id
    picture = artifact(client, run.run_id, "pictures/empty.svg")
    assert "<svg " in picture.read_text(encoding="utf-8")
    assert (
        store / "mlflow" / "artifacts" / "calibration" / run.run_id / "artifacts" / "pictures" / "empty.svg"
    ).is_file()
    rows = list(csv.DictReader(artifact(client, run.run_id, "weights.csv").open()))
    assert rows == [{"signal": "vector", "weight": "0.5"}]
    assert json.loads(artifact(client, run.run_id, "summary.json").read_text()) == {"decision": "safe"}


def test_a_run_that_raises_is_marked_failed_and_the_error_passes(tracking: Tracking, client: MlflowClient) -> None:
    """OPS-7: nobody takes half a night for a whole one."""
    with pytest.raises(ZeroDivisionError), tracking.run("calibration", "broken", {}) as run:
        raise ZeroDivisionError
    assert client.get_run(run.run_id).info.status == "FAILED"


def test_runs_of_killed_processes_are_closed_by_the_next(tracking: Tracking, client: MlflowClient) -> None:
    """OPS-7: a run that a killed process left open does not look as if it still ran."""
    order_uncertainty: Any = tracking.run("calibration", "killed", {"job": "killed"})
    run = order_uncertainty.__enter__()
    other: Any = tracking.run("calibration", "other", {"job": "other"})
    untouched = other.__enter__()
    assert tracking.close_abandoned("calibration", {"job": "killed"}) == 1
    assert client.get_run(run.run_id).info.status == "KILLED"
    assert client.get_run(untouched.run_id).info.status == "RUNNING"


def test_a_registered_version_points_at_artifacts_and_aliases_move(tracking: Tracking, client: MlflowClient) -> None:
    """CON-9, OPS-11: versions carry the learned version's id and the run's folder; registering twice is once."""
    assert tracking.alias(CHAMPION) is None
    with tracking.run("calibration", "night", {}) as run:
        run.document("learned/calibration", {})
        for learned in (FIRST, SECOND, FIRST):
            tracking.register(learned, run.run_id, "learned", note="", tags={"decision": "safe"})
    versions = client.search_model_versions(f"name='{REGISTERED_MODEL}'")
    assert sorted(version.tags["weft.learned"] for version in versions) == ["first", "second"]
    assert {version.source for version in versions} == {f"{client.get_run(run.run_id).info.artifact_uri}/learned"}
    tracking.set_alias(CHAMPION, SECOND)
    assert tracking.alias(CHAMPION) == SECOND
    client.set_registered_model_alias(REGISTERED_MODEL, CHAMPION, "1")  # what the UI does
    assert tracking.alias(CHAMPION) == FIRST
    tracking.tag(FIRST, "settled", "true")
    assert tracking.tags_of(FIRST) == {"weft.learned": "first", "decision": "safe", "settled": "true"}
    assert tracking.tags_of(VersionName("unknown")) is None
    tracking.drop_alias(CHAMPION)
    tracking.drop_alias(CHAMPION)
    assert tracking.alias(CHAMPION) is None


def test_versions_have_the_numbers_of_learned_versions(other: Path, caplog: pytest.LogCaptureFixture) -> None:
    """CON-9, OPS-7: whoever promotes "Version 3" gets v000003, whatever was registered before; the priors take none."""
    tracking = Tracking.of(SQLITE, other)
    third, fifth, late = (VersionName(f"v00000{number}") for number in (3, 5, 4))
    with tracking.run("calibration", "numbered", {}) as run:
        run.document("learned/calibration", {})
        tracking.register(PRIORS_VERSION, run.run_id, "learned", note="", tags={})
        for learned in (third, fifth):
            tracking.register(learned, run.run_id, "learned", note="", tags={})
    assert tracking.newest() == fifth
    assert not caplog.records
    client = MlflowClient(tracking.uri, tracking.uri)
    for learned in (third, fifth):
        client.set_registered_model_alias(REGISTERED_MODEL, CHAMPION, learned[-1])  # what the UI does
        assert tracking.alias(CHAMPION) == learned
    tracking.set_alias(CHAMPION, PRIORS_VERSION)
    assert tracking.alias(CHAMPION) == PRIORS_VERSION
    client.set_registered_model_alias(REGISTERED_MODEL, CHAMPION, "3")
    assert tracking.alias(CHAMPION) == third
    tracking.register(late, run.run_id, "learned", note="", tags={})
    assert "v000004 is version 6 of MLflow's model weft-learned" in caplog.text


def test_a_kind_that_a_person_gave_an_experiment_stays(tracking: Tracking, client: MlflowClient) -> None:
    """CON-10: only an experiment without a kind gets one."""
    own = client.create_experiment("own", tags={"mlflow.experimentKind": "genai_development"})
    bare = client.create_experiment("bare")
    for name in ("own", "bare"):
        with tracking.run(name, "run", {}):
            pass
    kinds = [client.get_experiment(each).tags["mlflow.experimentKind"] for each in (own, bare)]
    assert kinds == ["genai_development", "custom_model_development"]


def test_finished_runs_of_a_name_are_read_newest_first(tracking: Tracking) -> None:
    """CON-10: what a report shows of the nights before; runs under way and those of other names are none."""
    for value in (1.0, 2.0, 3.0):
        with tracking.run("nights", "night", {}) as run:
            run.metrics({"steps/merge/proposed": value}, now=value)
            run.parameters({"learned": f"v{value:.0f}"})
    with tracking.run("nights", "other", {}), tracking.run("nights", "night", {}):
        recorded = tracking.recorded("nights", "night", limit=2)
    assert [one.metrics["steps/merge/proposed"] for one in recorded] == [3.0, 2.0]
    assert [one.parameters for one in recorded] == [{"learned": "v3"}, {"learned": "v2"}]


def test_reading_an_alias_creates_no_database(tmp_path: Path) -> None:
    """OPS-11: whoever only follows writes nothing."""
    assert Tracking.of(SQLITE, tmp_path).alias(CHAMPION) is None
    assert Tracking.of(SQLITE, tmp_path).recorded("calibration", "consolidate", limit=3) == []
    assert list(tmp_path.iterdir()) == []


_FIRST_USE = """
import sys
from pathlib import Path
from weft.runtime.mlflow.tracking import Tracking
from weft.runtime.settings import TrackingSettings
Path(sys.argv[1], "mlflow").mkdir(exist_ok=True)
Path(sys.argv[1], "mlflow", "mlflow.db").touch()  # as it is while another makes its tables
sys.stdin.readline()
tracking = Tracking.of(TrackingSettings(uri=""), Path(sys.argv[1]))
with tracking.run("calibration", "night", {}):
    print(tracking.alias("champion"))
"""


@pytest.mark.slow
def test_a_database_is_made_by_one_of_those_that_come_at_once(tmp_path: Path) -> None:
    """OPS-15, OPS-7: a first night and updaters that follow what it records."""
    command = [sys.executable, "-c", _FIRST_USE, str(tmp_path)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    ended = [(*process.communicate(), process.returncode) for process in processes]
    assert [(out, code) for out, _, code in ended] == [("None\n", 0)] * 3, [err for _, err, _ in ended]


@pytest.fixture
def other(tmp_path: Path, store: Path, tracking: Tracking) -> Path:
    """A store of its own with a copy of the module's database, or as much of it as there is by now."""
    with tracking.run("calibration", "first", {}):
        copied = tmp_path / "store" / "mlflow" / "mlflow.db"
        copied.parent.mkdir(parents=True)
        with closing(sqlite3.connect(store / "mlflow" / "mlflow.db")) as source, closing(sqlite3.connect(copied)) as to:
            source.backup(to)
    return tmp_path / "store"


@pytest.mark.parametrize(
    "name",
    ["job_feature%2Flogin", "50%25 off", "q?1=a#b", "back\\slash", "colon:at@host", 'it\'s "quoted"', "ünï cödé", "~"],
)
def test_a_store_keeps_its_registry_wherever_it_lies(tmp_path: Path, other: Path, name: str) -> None:
    """OPS-15, OPS-7: no sign in a path means anything to the registry, and nothing is made beside the store."""
    root = other.rename(tmp_path / name)
    tracking = Tracking.of(SQLITE, root)
    with tracking.run("evaluation", "run", {}) as run:
        run.document("learned/calibration", {})
    tracking.register(FIRST, run.run_id, "learned", note="", tags={})
    tracking.set_alias(CHAMPION, FIRST)
    assert Tracking.of(SQLITE, root).alias(CHAMPION) == FIRST
    with closing(sqlite3.connect(root / "mlflow" / "mlflow.db")) as database:
        assert database.execute("select count(*) from runs where run_uuid = ?", [run.run_id]).fetchone() == (1,)
    assert [path.name for path in root.rglob("calibration.json")] == ["calibration.json"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("experiment", ["indexing", "calibration", "evaluation"])
def test_a_deleted_experiment_is_restored(
    tracking: Tracking, client: MlflowClient, experiment: str, caplog: pytest.LogCaptureFixture
) -> None:
    """OPS-15, CON-10: a run after someone deleted the experiment is recorded in it, and a line says so; the UI opens it
    as model training.
    """
    with tracking.run(experiment, "before", {}):
        pass
    deleted = client.get_experiment_by_name(experiment).experiment_id
    client.delete_experiment(deleted)
    with tracking.run(experiment, "after", {}) as run:
        run.note("recorded")
    assert client.get_run(run.run_id).info.experiment_id == deleted
    assert client.get_experiment(deleted).lifecycle_stage == "active"
    assert client.get_experiment(deleted).tags["mlflow.experimentKind"] == "custom_model_development"
    assert f"experiment {experiment} had been deleted: it is restored" in caplog.text


def test_a_run_that_is_deleted_under_way_says_what_helps(tracking: Tracking, client: MlflowClient) -> None:
    """OPS-15: the next run records in a new one, so running again is what helps."""

    def recorded() -> None:
        with tracking.run("calibration", "deleted", {}) as run:
            client.delete_run(run.run_id)
            run.note("lost")

    with pytest.raises(TrackingUnavailableError, match="somebody deleted it meanwhile; run again"):
        recorded()


def test_a_version_that_is_removed_under_way_names_the_command(tracking: Tracking) -> None:
    """OPS-15: what the registry lost is registered from the store."""
    with pytest.raises(TrackingUnavailableError, match="weft learned promote removed"):
        tracking.set_alias(CHAMPION, VersionName("removed"))


@pytest.mark.parametrize(
    ("uri", "advice"),
    [
        ("http://127.0.0.1:9", "start the server, or correct tracking.uri$"),
        ("nothing://here", "correct tracking.uri$"),
        ("postgresql://ada:secret@127.0.0.1:9/mlflow", "install that package"),
    ],
)
def test_a_server_that_does_not_answer_is_one_error_with_what_helps(tmp_path: Path, uri: str, advice: str) -> None:
    """OPS-11, OPS-15: callers meet one error, soon; no password is in it."""
    tracking = Tracking.of(SQLITE.model_copy(update={"uri": uri}), tmp_path)
    with pytest.raises(TrackingUnavailableError, match=advice) as raised:
        tracking.alias(CHAMPION)
    assert "secret" not in str(raised.value)


def _damage(database: Path) -> None:
    database.write_text("no database at all")


def _write_with_newer_mlflow(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("update alembic_version set version_num = 'feedfeedfeed'")


def _write_with_older_mlflow(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("update alembic_version set version_num = '0584bdc529eb'")


def _put_a_folder_there(database: Path) -> None:
    database.unlink()
    database.mkdir()


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        (_damage, "file is not a database: bring back a copy of it, or move it away"),
        (_write_with_newer_mlflow, "install that version"),
        (_write_with_older_mlflow, "copy it, then run `mlflow db upgrade sqlite"),
        (_put_a_folder_there, "let this user read and write there"),
    ],
)
def test_a_database_that_cannot_be_used_says_what_helps(
    other: Path, change: Callable[[Path], None], advice: str
) -> None:
    """OPS-15: the advice comes from what SQLite and MLflow say; it is given at once."""
    change(other / "mlflow" / "mlflow.db")
    with pytest.raises(TrackingUnavailableError, match=advice):
        Tracking.of(SQLITE, other).alias(CHAMPION)


def test_a_database_that_is_locked_says_to_wait(other: Path) -> None:
    """OPS-15: a lock is no damage."""
    with closing(sqlite3.connect(other / "mlflow" / "mlflow.db")) as holder:
        holder.execute("begin exclusive")
        with pytest.raises(
            TrackingUnavailableError, match="held by another process; wait for the process that holds it"
        ):
            Tracking.of(SQLITE, other).alias(CHAMPION)


def test_a_full_disk_under_the_database_is_named(tmp_path: Path) -> None:
    """OPS-15: the cause lies beneath what SQLAlchemy and MLflow say; running again would not help."""
    with small_disk(tmp_path / "disk", mib=4) as disk:
        tracking = Tracking.of(SQLITE, disk.path)
        with tracking.run("calibration", "night", {"job": "test"}) as run:
            disk.fill()
            with pytest.raises(TrackingUnavailableError, match=rf"mlflow\.db: .* free space on {disk.path}$"):
                run.parameters({str(number): "x" * 5_000 for number in range(90)})
            disk.free()
            run.parameters({"a": "b"})
