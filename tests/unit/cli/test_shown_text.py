"""OPS-11: what jobs print of data sets, configurations and logs is shown as it was given: none of it is markup."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from lab import ablation, demo
from lab.study import report as study_report
from lab.study.probabilities import ProbabilityReport
from tests.support.logged_queries import a_logged, a_result
from weft.app import comparing, log_evaluation
from weft.cli.console.output import Result, Shown, TextOutput, show
from weft.cli.reports import comparison, evaluate, query_log
from weft.consolidation.steps.gate import Decision, GateVerdict
from weft.domain.ids import ContentHash
from weft.domain.ranking import Signal, WeightBelief
from weft.evaluation.log.alarms import MINIMUM
from weft.evaluation.measures.beir import Dataset, JudgedQuery
from weft.evaluation.measures.compare import HEADLINE
from weft.evaluation.measures.measuring import Measurement
from weft.evaluation.measures.metrics import estimates, measure
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
GIVEN, ESCAPE = "retrieval.channels=[lexical] [/b] :key:", "\x1b]0;owned\x07"
HOSTILE = f"{GIVEN} {ESCAPE}"
QRELS = {HOSTILE: {"right": 1}}
DATASET = Dataset(HOSTILE, "test", Path("corpus.jsonl"), (JudgedQuery(HOSTILE, HOSTILE, {}),), QRELS)
RUN, OTHER = {HOSTILE: {"right": 1.0}}, {HOSTILE: {"wrong": 1.0}}


def print_all(shown: Iterable[Shown]) -> None:
    TextOutput().show(Result([], shown))


def a_comparison() -> None:
    sides = comparing.Side(HOSTILE, OTHER), comparing.Side(HOSTILE, RUN)
    compared = comparing.compared(DATASET, *sides, SETTINGS)
    print_all(comparison.shown(compared, interval=SETTINGS.evaluation.interval))


def a_comparison_on_the_log() -> None:
    result = log_evaluation.LogComparison(queries=3, moved=GateVerdict(Decision.REVIEW, "so"), judged=None, values=[])
    print_all(query_log.comparison_shown((HOSTILE, HOSTILE), result))


def a_measurement() -> None:
    measured = measure(RUN, QRELS)
    result = Measurement(RUN, measured, estimates(measured, SETTINGS.evaluation), 1.0, 2.0, {}, {})
    show(evaluate.table(evaluate.described(DATASET, SETTINGS, result), result))


def an_ablation() -> None:
    mean = estimates(measure(RUN, QRELS), SETTINGS.evaluation)[HEADLINE]
    print_all(ablation.shown(DATASET, SETTINGS, ablation.Ablation(mean, 1, [], [], None)))


def a_study() -> None:
    show(study_report.table(HOSTILE, study_report.StudyResult([], {}, None, {}, [])))


def a_calibration() -> None:
    show(study_report.calibrated([ProbabilityReport({}, {}, {}, 1.0, {HOSTILE: 0.5}, None)]))


def a_farewell() -> None:
    night = {"learned": "v000001", "decision": "review"}
    demo.next_steps(Path(HOSTILE), Path(HOSTILE) / "learned.html", night, 1.0)


@pytest.mark.parametrize(
    ("shown", "times"),
    [
        (a_comparison, 5),  # the data set, A and B in the title; the query's id and text
        (a_comparison_on_the_log, 2),
        (a_measurement, 1),
        (an_ablation, 1),
        (a_study, 1),
        (a_calibration, 1),
        (a_farewell, 3),
    ],
    ids=lambda value: value.__name__ if callable(value) else f"{value}x",
)
def test_what_was_given_is_shown_whole(
    shown: Callable[[], None], times: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-11: names with brackets are neither eaten nor do they end the job; none steers a terminal."""
    shown()
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count(GIVEN) == times
    assert not {"\x1b", "\x07"} & set(printed)


def test_a_table_that_is_piped_is_not_folded(capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-1: what `make run` learned stands on one line a signal, also in a file."""
    belief = WeightBelief(0.25, 0.125, 0.5, 32.0, "domain")
    beliefs = dict.fromkeys(Signal, belief)
    demo.show_weights(beliefs, beliefs)
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == [signal.value for signal in Signal]


def test_what_a_log_holds_is_shown_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-11: names of channels come from the log, in the table of channels and in what an alarm says."""
    result = a_result(ContentHash("a"), channels={HOSTILE: 1})
    queries = [a_logged(n, [result], failed=[HOSTILE]) for n in range(MINIMUM)]
    report = log_evaluation.report(log_evaluation.Logged(queries, {}, tmp_path), SETTINGS)
    print_all(query_log.shown(report))
    printed = capsys.readouterr().out
    assert printed.count(GIVEN) == 2
    assert f"left out: {GIVEN}" in printed
    assert not {"\x1b", "\x07"} & set(printed)
