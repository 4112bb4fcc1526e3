from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.ingestion import a_plan, a_tree
from weft.catalog.catalog import Catalog
from weft.cli.commands.reindex import keep_record
from weft.ingestion.pipeline import ingest
from weft.ingestion.plan import IndexPlan
from weft.ingestion.record import EXPERIMENT
from weft.ingestion.report import IndexOutcome
from weft.runtime.stages import HERE
from weft.settings import load_settings


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[IndexPlan, IndexOutcome]:
    folder = tmp_path_factory.mktemp("recorded")
    plan = a_plan(a_tree(folder, files=3), folder / "store", "extraction.enabled=true")
    return plan, ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)


def test_a_run_is_kept_with_what_went_in_and_what_came_out(done: tuple[IndexPlan, IndexOutcome]) -> None:
    """ING-27: the experiment `indexing` holds settings, counts, rates, recall and the reasons of what was left out."""
    from mlflow.tracking import MlflowClient

    plan, outcome = done
    keep_record(load_settings(environment={}), plan, outcome)
    client = MlflowClient(f"sqlite:///{plan.store / 'mlflow' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name(EXPERIMENT)
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    metrics, parameters = run.data.metrics, run.data.params
    assert run.info.status == "FINISHED"
    assert (metrics["documents"], metrics["chunks"], metrics["entities"]) == (3 + 1, outcome.chunks, outcome.entities)
    assert metrics["chunks_per_second"] == pytest.approx(outcome.chunks / outcome.seconds)
    assert (metrics["rejected.binary"], metrics["rejected.blank"], metrics["type.code"]) == (1, 1, 3)
    assert [value for name, value in metrics.items() if name.startswith("recall.")] == [1.0]  # a small corpus: exact
    assert parameters["index.vectors.target_recall"] == str(plan.index.vectors.target_recall)
    assert run.data.tags["weft.generation"] == outcome.generation


def test_a_tracker_that_does_not_answer_fails_nothing(
    done: tuple[IndexPlan, IndexOutcome], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """ING-27: the generation is live all the same, and the log says what is missing."""
    plan, outcome = done
    nowhere = load_settings(assignments=["tracking.uri=http://127.0.0.1:9"], environment={})
    keep_record(nowhere, plan, outcome)
    assert "not recorded in MLflow" in caplog.text
    caplog.clear()
    keep_record(load_settings(environment={}), plan, replace(outcome, generation="removed"))
    assert "not recorded in MLflow" in caplog.text
