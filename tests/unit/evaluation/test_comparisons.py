"""EVA-1, EVA-10: what a difference between two runs is worth."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from weft.domain.errors import SourceError
from weft.evaluation.measures import metrics
from weft.evaluation.measures.compare import compare, compare_runs
from weft.evaluation.measures.runs import order_of, read_run, write_run
from weft.evaluation.measures.significance import (
    EvidenceStrength,
    Half,
    half_of,
    randomisation_p,
    smallest_effect,
    strength_of,
    unjudged,
)
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).evaluation
QRELS = {f"q{n}": {"good": 1} for n in range(400)}


def a_run(right: float, seed: int) -> dict[str, dict[str, float]]:
    """The right document first with that probability, second otherwise."""
    rng = np.random.default_rng(seed)
    return {name: {"good": 1.0, "bad": 2.0 * float(rng.random() > right)} for name in QRELS}


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_with_few_queries_every_sign_is_tried(changes: list[int]) -> None:
    """EVA-1: the p-value is exactly the share of sign changes that are at least as extreme."""
    values = [float(change) for change in changes]
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, values, strict=True)))
        for signs in product((1, -1), repeat=len(values))
    ]
    expected = sum(total >= abs(sum(values)) for total in sums) / len(sums)
    assert randomisation_p(values, draws=100, seed=1) == pytest.approx(expected)


def test_with_many_queries_random_signs_agree_with_the_t_test() -> None:
    """EVA-1: on well-behaved changes both tests see the same (Smucker et al.)."""
    changes = np.random.default_rng(2).normal(0.02, 0.15, 200)
    expected = stats.ttest_1samp(changes, 0.0).pvalue
    assert randomisation_p(list(changes), draws=20_000, seed=1) == pytest.approx(expected, abs=0.01)


def test_without_a_difference_one_in_twenty_comparisons_is_called_significant() -> None:
    """EVA-10: the test keeps its level: of 400 comparisons of equals, 5 % within chance (99.9 %)."""
    rng = np.random.default_rng(5)
    found = [randomisation_p(list(rng.laplace(0.0, 0.2, 40)), draws=400, seed=n) < 0.05 for n in range(400)]
    low, high = stats.binom.interval(0.999, 400, 0.05)
    assert low <= sum(found) <= high


def test_the_smallest_detectable_effect_is_detected_as_often_as_stated() -> None:
    """EVA-10: samples whose true change is that effect are shown to be better four times in five."""
    rng = np.random.default_rng(6)
    effect = smallest_effect(list(rng.normal(0.0, 0.2, 20_000)), level=0.95, power=0.8) * math.sqrt(20_000 / 100)
    seen = [stats.ttest_1samp(rng.normal(effect, 0.2, 100), 0.0).pvalue < 0.05 for _ in range(1000)]
    assert np.mean(seen) == pytest.approx(0.8, abs=0.05)
    assert smallest_effect([0.1], level=0.95, power=0.8) == math.inf


@pytest.mark.parametrize(
    ("queries", "strength"),
    [
        (29, EvidenceStrength.ANECDOTAL),
        (30, EvidenceStrength.DIRECTIONAL),
        (50, EvidenceStrength.DIRECTIONAL),
        (100, EvidenceStrength.MODERATE),
        (200, EvidenceStrength.MODERATE),
        (300, EvidenceStrength.STRONG),
    ],
)
def test_a_sample_is_called_by_its_size(queries: int, strength: EvidenceStrength) -> None:
    """EVA-10: 30 to 50 directional, 100 to 200 moderate, 300 and more strong."""
    assert strength_of(queries) is strength


def test_a_comparison_holds_everything_that_it_takes_to_judge_it() -> None:
    """EVA-10: differences of every measure, both halves, the strength, and what nobody judged."""
    found = compare_runs(a_run(0.5, 1), a_run(0.8, 2), QRELS, SETTINGS)
    change = found.differences["hit_rate_at_1"]
    assert change.significant
    assert change.change.mean == pytest.approx(0.3, abs=0.1)
    assert change.p < 0.001
    assert change.detectable < 0.15
    assert found.strength is EvidenceStrength.STRONG
    assert found.unjudged == (0.5, 0.5)
    assert {half: each.significant for half, each in found.halves.items()} == dict.fromkeys(Half, True)
    assert sum(each.better + each.worse for each in found.halves.values()) == change.better + change.worse
    losses = list(found.changes.values())
    assert losses == sorted(losses)


@pytest.mark.parametrize("queries", [1, 2, 5, 20])
def test_equals_are_seldom_told_apart_however_few_queries_there_are(
    queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EVA-10: a change as likely up as down is called one in one sample of twenty at most; resampling alone would
    call any single query one, and two queries that both gain.
    """
    rng = np.random.default_rng(9)
    monkeypatch.setattr(metrics, "BOOTSTRAP_DRAWS", 200)
    names = [str(number) for number in range(queries)]
    equal = dict.fromkeys(names, 0.5)
    told = [
        compare(equal, dict(zip(names, rng.normal(0.5, 0.1, queries).tolist(), strict=True)), SETTINGS).significant
        for _ in range(200)
    ]
    assert np.mean(told) <= 0.08  # of 200 samples, .05 and two standard deviations
    if queries <= 5:
        assert not any(told)  # the least p is 2^(1 − 5)


def test_what_was_only_chance_does_not_hold_on_the_other_half() -> None:
    """EVA-10: the best of thirty equals, chosen on one half, is no better on the other."""
    control = dict.fromkeys(QRELS, 0.5)
    rng = np.random.default_rng(8)
    equals = [{name: 0.5 + float(rng.normal(0.0, 0.2)) for name in QRELS} for _ in range(30)]
    gains = [
        {half: np.mean([run[name] - 0.5 for name in QRELS if half_of(name, 1) is half]) for half in Half}
        for run in equals
    ]
    best = max(gains, key=lambda gain: gain[Half.TUNED])
    assert best[Half.TUNED] > 0.02
    assert abs(best[Half.HELD_OUT]) < 0.02
    assert compare(control, control, SETTINGS).p == 1.0


def test_a_query_keeps_its_half_whatever_else_is_asked() -> None:
    """EVA-10: halves are about equal, and depend on nothing but query and seed."""
    halves = [half_of(f"q{n}", 7) for n in range(2000)]
    assert abs(halves.count(Half.TUNED) - 1000) < 100
    assert halves != [half_of(f"q{n}", 8) for n in range(2000)]


def test_a_run_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    """EVA-5: scores and order survive; a query that was not answered is not in the file."""
    run = {"q1": {"b": 2.0, "a": 1.5}, "q2": {"c": 0.25}}
    write_run(tmp_path / "run.txt", run, "weft")
    assert read_run(tmp_path / "run.txt") == run
    assert order_of({"a": 1.0, "b": 1.0, "c": 2.0}) == ["c", "b", "a"]


@pytest.mark.parametrize("line", ["q1 Q0 d1 1 0.5", "q1 Q0 d1 1 high weft", "q1 Q0 d1 1 nan weft"])
def test_a_line_that_is_none_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    """EVA-5."""
    (tmp_path / "run.txt").write_text(f"q1 Q0 d0 1 0.9 weft\n{line}\n")
    with pytest.raises(SourceError, match=r"run\.txt:2: expected"):
        read_run(tmp_path / "run.txt")
    with pytest.raises(SourceError, match="expected a TREC run file"):
        read_run(tmp_path / "absent.txt")


def test_a_document_that_a_run_has_twice_is_refused(tmp_path: Path) -> None:
    """EVA-5: as trec_eval does, by the lines of both; other queries may have it."""
    (tmp_path / "run.txt").write_text(
        "q1 Q0 d 1 0.9 weft\nq2 Q0 d 1 0.9 weft\nq1 Q0 e 2 0.5 weft\nq1 Q0 d 3 0.1 weft\n"
    )
    with pytest.raises(SourceError, match=r"run\.txt:4: expected every document of a query once, .*q1 d.* line 1:"):
        read_run(tmp_path / "run.txt")


def test_unjudged_results_are_counted_over_what_was_returned() -> None:
    """EVA-10: an empty answer has nothing that was not judged."""
    assert unjudged({}, QRELS, 10) == 0.0
    assert unjudged({"q0": {"bad": 1.0}}, QRELS, 10) == 1.0
