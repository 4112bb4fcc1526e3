"""The one module that talks to MLflow: runs, pictures, tables, and the registry of learned versions."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read once, while mlflow is imported

import pyarrow as pa
from alembic.util.exc import CommandError
from mlflow.entities import LifecycleStage, Metric, Param
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from pyarrow import csv
from sqlalchemy.engine import create_engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from weft.domain.errors import StoreError, TrackingUnavailableError
from weft.domain.ids import PRIORS_VERSION, VersionName, number_of
from weft.runtime.mlflow.errors import meaning_of, without_password
from weft.runtime.mlflow.runs import RecordedRun, uri_of
from weft.runtime.settings import HTTP_TIMEOUT_S, TrackingSettings
from weft.runtime.storage.errors import refusal_behind
from weft.runtime.storage.locks import Patience, locked

log = logging.getLogger(__name__)

REGISTERED_MODEL = "weft-learned"
"""The model whose versions are learned versions: MLflow's version 7 is v000007."""

PRIORS_MODEL = "weft-priors"
"""The model of the beginning: MLflow counts from 1, so that v000000 would take the number of v000001."""

LEARNED_TAG = "weft.learned"
_NEWEST_TAG = "weft.newest"  # of a model: the learned version that it got last

_KIND_TAG, _KIND = "mlflow.experimentKind", "custom_model_development"
"""What an experiment is: model training. MLflow 3.17 follows the choice at its top left instead."""

_MISSING = frozenset({"RESOURCE_DOES_NOT_EXIST"})
_CHATTY = {
    "alembic": logging.WARNING,
    "mlflow": logging.WARNING,
    "mlflow.store.db.utils": logging.CRITICAL,  # it logs the traceback of what it raises
    "urllib3.connectionpool": logging.ERROR,
}
_ERRORS = (MlflowException, SQLAlchemyError, CommandError, OSError, ImportError, UnicodeEncodeError)
_HTTP_RETRIES = "1"  # of a failed request: the next night or tick tries again anyway
_MAKING = Patience(stopped_s=120.0, seconds=120.0)  # making a database takes seconds, on a busy machine a minute
_PARAMS_PER_BATCH = 100  # MLflow's own limit for one request
_PARAM_LENGTH = 6_000  # MLflow's own limit for one value


class Tracking:
    """One MLflow server, or one SQLite database that needs none; connects on first use."""

    def __init__(self, uri: str, artifacts: Path | None) -> None:
        """Remember where to record; `artifacts` is where a database without a server keeps its files."""
        self.uri = uri
        self._artifacts = artifacts

    @classmethod
    def of(cls, settings: TrackingSettings, store: Path) -> Tracking:
        """The tracking that settings name, by default SQLite in the store."""
        os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # stdout carries a job's JSON
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # of a single file
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(HTTP_TIMEOUT_S))
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", _HTTP_RETRIES)
        folder = store.resolve() / "mlflow"
        served = settings.uri.startswith(("http://", "https://"))
        return cls(settings.uri or uri_of(store), None if served else folder / "artifacts")

    @property
    def is_local(self) -> bool:
        """Whether it is a database, and no server that other hosts reach."""
        return self._artifacts is not None

    @contextlib.contextmanager
    def run(self, experiment: str, name: str, tags: Mapping[str, str]) -> Iterator[TrackedRun]:
        """A run that is finished on leaving, as failed where the block raises."""
        with mapped(self.uri):
            run = TrackedRun(self._client, self._experiment(experiment), name, tags)
        with run:
            yield run

    def extend(
        self, experiment: str, name: str, tags: Mapping[str, str], values: Mapping[str, float], *, now: float, step: int
    ) -> None:
        """Add a step to the metrics of the one run with these tags, which is made where there is none."""
        wanted = " and ".join(f"tags.`{key}` = '{value}'" for key, value in sorted(tags.items()))
        with mapped(self.uri):
            runs = self._client.search_runs([self._experiment(experiment)], wanted, max_results=1)
        if not runs:
            with self.run(experiment, name, tags) as run:
                run.metrics(values, now=now, step=step)
            return
        with mapped(self.uri):
            self._client.log_batch(runs[0].info.run_id, metrics=_metrics(values, now=now, step=step))

    def recorded(self, experiment: str, name: str, *, limit: int) -> list[RecordedRun]:
        """The newest finished runs of a name, the newest first; none where nothing was recorded."""
        with mapped(self.uri):
            if self._is_absent() or (one := self._client.get_experiment_by_name(experiment)) is None:
                return []
            wanted = f"attributes.status = 'FINISHED' and attributes.run_name = '{name}'"
            runs = self._client.search_runs(
                [one.experiment_id], wanted, order_by=["attributes.start_time DESC"], max_results=limit
            )
        return [RecordedRun(run.info.start_time / 1000, dict(run.data.metrics), dict(run.data.params)) for run in runs]

    def fetch(self, run_id: str, artifact: str, out: Path) -> None:
        """Write a copy of a file that a run keeps."""
        with mapped(self.uri), tempfile.TemporaryDirectory() as scratch:
            shutil.copyfile(self._client.download_artifacts(run_id, artifact, scratch), out)

    def close_abandoned(self, experiment: str, tags: Mapping[str, str]) -> int:
        """Mark an experiment's runs with these tags that a killed process left open as killed; how many there were."""
        wanted = [f"tags.`{key}` = '{value}'" for key, value in sorted(tags.items())]
        with mapped(self.uri):
            runs = self._client.search_runs(
                [self._experiment(experiment)], " and ".join(["attributes.status = 'RUNNING'", *wanted])
            )
            for run in runs:
                self._client.set_terminated(run.info.run_id, "KILLED")
        return len(runs)

    def register(self, learned: VersionName, run_id: str, folder: str, *, note: str, tags: Mapping[str, str]) -> None:
        """Make a run's artifact folder a version of the registered model, numbered as the learned version is; once.

        MLflow numbers in the order of registering. Numbers before it that nothing was registered under are used up;
        where the number itself is taken, a warning says which one it became.
        """
        model, wanted = _model_of(learned), number_of(learned) or None
        with mapped(self.uri):
            self._ensure_model(model)
            if self._version_of(learned) is not None:
                return
            source = f"{self._client.get_run(run_id).info.artifact_uri}/{folder}"
            given = {"run_id": run_id, "tags": {LEARNED_TAG: learned, **tags}, "description": f"{learned}: {note}"}
            made = self._client.create_model_version(model, source=source, **given)
            while wanted is not None and int(made.version) < wanted:
                self._client.delete_model_version(model, made.version)
                made = self._client.create_model_version(model, source=source, **given)
            self._client.set_registered_model_tag(model, _NEWEST_TAG, learned)
        if wanted is not None and int(made.version) != wanted:
            log.warning(
                "%s is version %s of MLflow's model %s, whose numbers are not weft's: promote by `weft learned "
                "promote %s`, or delete that model in MLflow, and the next night registers every version anew",
                *(learned, made.version, model, learned),
            )

    def register_from(
        self,
        folder: Path,
        learned: VersionName,
        experiment: str,
        run_tags: Mapping[str, str],
        *,
        note: str,
        tags: Mapping[str, str],
    ) -> None:
        """Make a version of the registered model from a folder of files, which a run of its own keeps copies of."""
        with self.run(experiment, f"register {learned}", run_tags) as run:
            for path in sorted(folder.iterdir()):
                run.file(path, folder.name)
            self.register(learned, run.run_id, folder.name, note=note, tags=tags)

    def newest(self) -> VersionName | None:
        """The learned version that was registered last, whether it is still there or not; None before the first."""
        with mapped(self.uri):
            try:
                tags = {} if self._is_absent() else self._client.get_registered_model(REGISTERED_MODEL).tags
            except MlflowException as error:
                if not _says_missing(error):
                    raise
                tags = {}
        return None if (newest := tags.get(_NEWEST_TAG)) is None else VersionName(newest)

    def tags_of(self, learned: VersionName) -> dict[str, str] | None:
        """The tags a learned version is registered with, None where it is not registered."""
        with mapped(self.uri):
            if self._is_absent():
                return None
            version = self._version_of(learned)
        return None if version is None else dict(version.tags)

    def tag(self, learned: VersionName, key: str, value: str) -> None:
        """Set one tag of a registered learned version."""
        with mapped(self.uri):
            self._client.set_model_version_tag(_model_of(learned), self._number_of(learned), key, value)

    def alias(self, alias: str) -> VersionName | None:
        """The learned version that an alias points at; None without the alias, or on a version that is not weft's.

        The alias of the model of the priors counts where the model of learned versions has none.
        """
        with mapped(self.uri):
            if self._is_absent():
                return None
            versions = (self._named(model, alias) for model in (REGISTERED_MODEL, PRIORS_MODEL))
            return next((version for version in versions if version is not None), None)

    def set_alias(self, alias: str, learned: VersionName) -> None:
        """Point an alias at a registered learned version, and at no other of either model."""
        with mapped(self.uri):
            self._client.set_registered_model_alias(_model_of(learned), alias, self._number_of(learned))
            self._drop(
                REGISTERED_MODEL if learned == PRIORS_VERSION else PRIORS_MODEL, alias
            )  # last: one is always set

    def drop_alias(self, alias: str) -> None:
        """Remove an alias, if it is there."""
        with mapped(self.uri):
            for model in (PRIORS_MODEL, REGISTERED_MODEL):
                self._drop(model, alias)

    def _named(self, model: str, alias: str) -> VersionName | None:
        try:
            version = self._client.get_model_version_by_alias(model, alias)
        except MlflowException as error:
            if _says_missing(error):
                return None
            raise
        learned = version.tags.get(LEARNED_TAG)
        return None if learned is None else VersionName(learned)

    def _drop(self, model: str, alias: str) -> None:
        try:
            self._client.delete_registered_model_alias(model, alias)
        except MlflowException as error:
            if not _says_missing(error):
                raise

    @cached_property
    def _client(self) -> MlflowClient:
        for name, level in _CHATTY.items():
            logging.getLogger(name).setLevel(level)
        if (database := self._database()) is None:
            return MlflowClient(self.uri, self.uri)
        database.parent.mkdir(parents=True, exist_ok=True)
        with _alone(database):  # of two that make its tables at once, MLflow fails one
            self._try_once()
            return MlflowClient(self.uri, self.uri)

    def _try_once(self) -> None:
        """Open the database, for MLflow itself tries for minutes to open what cannot be opened."""
        engine = create_engine(self.uri)
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql("pragma schema_version")
        finally:
            engine.dispose()

    def _database(self) -> Path | None:
        return _database_of(self.uri)

    def _is_absent(self) -> bool:
        # Connecting would create the database: a reader leaves that to whoever records first.
        return (database := self._database()) is not None and not database.exists()

    def _experiment(self, name: str) -> str:
        if (experiment := self._client.get_experiment_by_name(name)) is not None:
            number = str(experiment.experiment_id)
            if experiment.lifecycle_stage == LifecycleStage.DELETED:
                self._restore(name, number)
            if _KIND_TAG not in experiment.tags:  # made by a person
                self._client.set_experiment_tag(number, _KIND_TAG, _KIND)
            return number
        location = None if self._artifacts is None else (self._artifacts / name).as_uri()
        return str(self._client.create_experiment(name, artifact_location=location, tags={_KIND_TAG: _KIND}))

    def _restore(self, name: str, experiment: str) -> None:
        try:
            self._client.restore_experiment(experiment)
        except MlflowException as error:
            raise TrackingUnavailableError(
                f"expected MLflow's experiment {name} to be there, found it deleted, and: "
                f"{str(error).partition(chr(10))[0]}: restore it (mlflow experiments restore --experiment-id "
                f"{experiment}) as a user who may"
            ) from error
        log.warning("MLflow's experiment %s had been deleted: it is restored, for runs are recorded in it", name)

    def _ensure_model(self, model: str) -> None:
        try:
            self._client.create_registered_model(model)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    def _version_of(self, learned: VersionName) -> Any | None:
        wanted = f"name='{_model_of(learned)}' and tag.`{LEARNED_TAG}`='{learned}'"
        versions = self._client.search_model_versions(wanted)
        return min(versions, key=lambda version: int(version.version), default=None)

    def _number_of(self, learned: VersionName) -> str:
        if (version := self._version_of(learned)) is None:
            raise TrackingUnavailableError(
                f"expected learned version {learned} in MLflow's model {_model_of(learned)}, found it removed "
                f"meanwhile: run `weft learned promote {learned}`, which registers it from the store"
            )
        return str(version.version)


class TrackedRun:
    """One MLflow run being written; children nest under it."""

    def __init__(
        self, client: MlflowClient, experiment: str, name: str, tags: Mapping[str, str], parent: str | None = None
    ) -> None:
        nested = {} if parent is None else {"mlflow.parentRunId": parent}
        info = client.create_run(experiment, run_name=name, tags={**tags, **nested}).info
        self._client, self._experiment, self._tags = client, experiment, dict(tags)
        self._uri = str(client.tracking_uri)
        self.run_id: str = info.run_id

    def __enter__(self) -> TrackedRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with mapped(self._uri):
            self._client.set_terminated(self.run_id, "FINISHED" if kind is None else "FAILED")

    def child(self, name: str) -> TrackedRun:
        """A nested run; use it as a context."""
        with mapped(self._uri):
            return TrackedRun(self._client, self._experiment, name, self._tags, self.run_id)

    def parameters(self, values: Mapping[str, object]) -> None:
        """Record what went in; names may nest with dots, values are cut to MLflow's limit."""
        params = [Param(name, str(value)[:_PARAM_LENGTH]) for name, value in sorted(values.items())]
        with mapped(self._uri):
            for batch in _batches(params, _PARAMS_PER_BATCH):
                self._client.log_batch(self.run_id, params=batch)

    def metrics(self, values: Mapping[str, float], *, now: float, step: int = 0) -> None:
        """Record what came out, at a time in seconds since the epoch."""
        with mapped(self._uri):
            self._client.log_batch(self.run_id, metrics=_metrics(values, now=now, step=step))

    def picture(self, name: str, svg: str) -> None:
        """Keep a picture as `<name>.svg`."""
        with self._staged(name, ".svg") as path:
            path.write_text(svg, encoding="utf-8")

    def table(self, name: str, table: pa.Table) -> None:
        """Keep a table as `<name>.csv`, which the UI shows and a spreadsheet opens."""
        with self._staged(name, ".csv") as path:
            csv.write_csv(table, path)

    def page(self, name: str, html: str) -> None:
        """Keep a page as `<name>.html`, which the UI shows and a browser opens."""
        with self._staged(name, ".html") as path:
            path.write_text(html, encoding="utf-8")

    def document(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep a JSON document as `<name>.json`."""
        with self._staged(name, ".json") as path:
            path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")

    def file(self, path: Path, folder: str | None = None) -> None:
        """Keep a copy of a file."""
        with mapped(self._uri):
            self._client.log_artifact(self.run_id, str(path), folder)

    def note(self, markdown: str) -> None:
        """Say in Markdown what the run's page shows at its top."""
        with mapped(self._uri):
            self._client.set_tag(self.run_id, "mlflow.note.content", markdown)

    @contextlib.contextmanager
    def _staged(self, name: str, suffix: str) -> Iterator[Path]:
        folder, _, stem = name.rpartition("/")
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / f"{stem}{suffix}"
            yield path
            self.file(path, folder or None)


def _model_of(learned: VersionName) -> str:
    return PRIORS_MODEL if learned == PRIORS_VERSION else REGISTERED_MODEL


def _metrics(values: Mapping[str, float], *, now: float, step: int) -> list[Metric]:
    return [Metric(name, float(value), int(now * 1000), step) for name, value in sorted(values.items())]


def _says_missing(error: MlflowException) -> bool:
    # A missing alias comes as INVALID_PARAMETER_VALUE, told from other wrong parameters by its text only.
    return error.error_code in _MISSING or ("alias" in str(error).lower() and "not found" in str(error).lower())


def _batches(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _database_of(uri: str) -> Path | None:
    database = make_url(uri).database if uri.startswith("sqlite") else None
    return None if database is None else Path(database)


@contextlib.contextmanager
def _alone(database: Path) -> Iterator[None]:
    """Hold the lock under which a database is made; whoever may not write there makes none, and needs no lock.

    Its file goes with it: whoever waited for it finds the database made, and needs nobody kept out.
    """
    lock = database.with_name(f"{database.name}.opening")
    with contextlib.ExitStack() as holding:
        try:
            holding.enter_context(locked(lock, _MAKING))
        except StoreError as error:
            raise TrackingUnavailableError(str(error)) from error
        except PermissionError:
            pass
        yield
        with contextlib.suppress(OSError):
            lock.unlink()


@contextlib.contextmanager
def mapped(uri: str) -> Iterator[None]:
    """Have whatever MLflow and its database raise leave the block as TrackingUnavailableError."""
    try:
        yield
    except _ERRORS as error:
        database = _database_of(uri)
        refusal = None if database is None else refusal_behind(database, error)
        problem = refusal or f"expected it to answer, found: {meaning_of(error, uri)}"
        raise TrackingUnavailableError(f"MLflow ({without_password(uri)}): {problem}") from error
