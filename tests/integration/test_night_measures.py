"""EVA-4, CON-8: a night measures what it makes of retrieval, and MLflow shows that over nights."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.support.nights import a_day, stream
from weft.app.indexing import plan_of
from weft.app.questions import questions_of
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.cli.commands.consolidate import consolidate
from weft.cli.console.options import run_job
from weft.consolidation.champion import EXPERIMENT
from weft.consolidation.night import CURVES
from weft.domain.ids import QueryId
from weft.domain.ranking import Query, Signal
from weft.evaluation.ground_truth.collect import JudgementSource, judged, keep
from weft.evaluation.queries.days import OUTCOME_LOG, day_folder
from weft.evaluation.queries.schema import OUTCOMES
from weft.evaluation.queries.writer import QueryLog, write_rows
from weft.evaluation.replay.masking import MaskedTexts, Masks
from weft.ingestion.pipeline import ingest
from weft.runtime.clock import day_of, system_clock
from weft.runtime.mlflow.tracking import Tracking
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

SOURCES = [ROOT / "pipelines" / "weft" / "learning" / "pooling"]

NO_PROBES = "consolidation.calibration.probes=''"
"""They ask a store what it has no answer to, which is another matter."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A store of a package, in which nobody asked or judged anything."""
    root = tmp_path_factory.mktemp("night")
    stored = load_settings(assignments=[f"storage.root={root}", "extraction.enabled=false"], environment={})
    ingest(plan_of(stored, SOURCES), Catalog(root), HERE, lambda _: None, clock=time.monotonic)
    return stored


def night(settings: Settings, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the job says of a night."""
    assert run_job(consolidate, ["--store", settings.storage.root, "--set", NO_PROBES, "--json"]) == 0
    summary: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return summary


@pytest.mark.slow
def test_nights_measure_and_curves_grow(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """EVA-4, CON-8: from the first night on, on own questions; the gate decides by judged ones once there are any."""
    root, today = Path(settings.storage.root), day_of(system_clock())
    nothing = night(settings, capsys)
    assert (nothing["decision"], nothing["ndcg_at_10"]) == ("nothing new", None)

    stream(root, 0, a_day(today))
    first = night(settings, capsys)
    own = questions_of(settings)
    assert first["ndcg_at_10"]["questions"] == len(own) > 50
    assert first["ndcg_at_10"].keys() >= {"before", "after", "questions", "intervals"}
    assert first["ndcg_at_10"]["sources"].keys() == {"own"}
    assert 0.0 < first["ndcg_at_10"]["before"] < 1.0
    low, high = first["ndcg_at_10"]["intervals"]["before"]
    assert low < first["ndcg_at_10"]["before"] < high
    assert f"on {len(own)} own questions nDCG@10" in first["reason"]

    now = system_clock()
    answers = [judged(one.text, one.content_hash, 3, source=JudgementSource.JUDGED, by="ada", now=now) for one in own]
    keep(root, answers[:40], now=now)
    stream(root, 0, a_day(today) + a_day(today, seed=1))
    second = night(settings, capsys)
    assert second["ndcg_at_10"]["questions"] == 40
    assert second["ndcg_at_10"]["sources"].keys() == {"judged", "own"}
    assert second["ndcg_at_10"]["before"] != second["ndcg_at_10"]["sources"]["own"]["before"]
    assert "on 40 judged questions nDCG@10" in second["reason"]

    client = Tracking.of(settings.tracking, root)._client
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    (curves,) = (run for run in client.search_runs([experiment]) if run.info.run_name == CURVES)
    for name in ("ndcg_at_10/own/after", "mrr_at_10/own/before", "ndcg_at_10/own/after_low"):
        points = client.get_metric_history(curves.info.run_id, name)
        assert [point.step for point in points] == [int(each["learned"].lstrip("v")) for each in (first, second)]
    (point,) = client.get_metric_history(curves.info.run_id, "ndcg_at_10/judged/after")
    assert point.value == pytest.approx(second["ndcg_at_10"]["after"])
    assert curves.info.status == "FINISHED"


def test_masked_contents_hold_what_is_left_of_them(settings: Settings) -> None:
    """EVA-4, RET-17: whether a word is too common to be a trigger is told of what questions are asked of."""
    with closing(Catalog(Path(settings.storage.root)).open_live()) as generation:
        (first,) = generation.chunks.contents([0])
        masked = MaskedTexts(generation, Masks.of(generation.chunks, {first.content_hash: "none"}))
        # A word that is not told apart, such as "there", stands everywhere: masking takes nothing from it.
        words = [
            word
            for word in re.findall(r"(?<![\w.])[a-z]{5,}(?![\w.])", first.text)
            if 0.0 < generation.lexical.share_of(word) < 1.0
        ]
        assert words
        for word in words:
            lost = 1 / len(generation.contents)
            assert masked.share_of(word) == pytest.approx(generation.lexical.share_of(word) - lost)


def logged_answers(settings: Settings, *, questions: int) -> None:
    """Answers to own questions, of which users judge each result: good is what their words match."""
    root, now = Path(settings.storage.root), system_clock()
    rows = []
    with opened(settings) as searcher, QueryLog(root, settings.query_log) as log:
        for number, question in enumerate(questions_of(settings)[:questions]):
            answer = searcher.search(Query(text=question.text, query_id=QueryId(f"q{number}"), k=10))
            log.emit(answer)
            middle = median(result.signals[Signal.LEXICAL] for result in answer.results)
            rows += [
                {
                    "said_at": round(now * 1000),
                    "event_id": f"e{number}-{result.rank}",
                    "query_id": f"q{number}",
                    "session_id": "s",
                    "principal": f"user-{number}",
                    "kind": "explicit",
                    "rank": None,
                    "value": 1.0 if result.signals[Signal.LEXICAL] > middle else -1.0,
                    "content_hash": result.content_hash,
                }
                for result in answer.results
            ]
    write_rows(day_folder(root / OUTCOME_LOG, day_of(now)), rows, OUTCOMES)


@pytest.mark.slow
def test_the_fit_competes_over_what_was_logged(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """CON-8: it reads the query log with its outcomes, and the night tells how it compares with what was counted."""
    root, today = Path(settings.storage.root), day_of(system_clock())
    misled = a_day(today, telling=Signal.FRESHNESS, seed=7)
    stream(root, 0, misled)
    assert night(settings, capsys)["fit"] == {}
    logged_answers(settings, questions=40)
    stream(root, 0, misled + a_day(today, outcomes=4, telling=Signal.FRESHNESS, seed=8))
    contest = night(settings, capsys)["fit"]["code"]
    assert contest["change"] > 0.1
    assert contest["outcomes"] > 100.0
    assert 0.0 < contest["disagreement"] <= 1.0
