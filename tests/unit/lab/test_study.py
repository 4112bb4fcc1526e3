"""EVA-6, RET-15: what a study sums up, apart from the searching and the learning."""

from __future__ import annotations

from dataclasses import replace

import pytest
import typer
from msgspec import structs

from lab.settings import simulated_users
from lab.simulation.study import averaged, best_weight, convex, row
from lab.simulation.users import of_days
from lab.study.command import marks_of
from lab.study.probabilities import ProbabilityQuality, probability_report
from lab.study.report import mean_error
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import Answer, Signal
from weft.learning.calibration.matching import Answering, MatchCalibration, MatchCurve
from weft.learning.calibration.reliability import Reliability
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
FRUIT = MemoryGeneration({"a": ["red apple"], "b": ["red pear"], "c": ["green apple pie"], "d": ["plum"]})


def test_sessions_are_counted_or_all() -> None:
    """EVA-6."""
    assert marks_of("500, 100,all", simulated_users()) == [100, 500, simulated_users().sessions]
    for wrong in ("0", "many", "100,,200"):
        with pytest.raises(typer.BadParameter):
            marks_of(wrong, simulated_users())


def test_what_takes_minutes_and_stands_for_days_counts_as_of_so_many() -> None:
    """EVA-6, LRN-3: four thousand users within minutes are no flood, and half of a day's are a day's."""
    cap = SETTINGS.priors.robustness.daily_cap
    assert of_days(SETTINGS.priors, 40.0).robustness.daily_cap == 40.0 * cap
    assert of_days(SETTINGS.priors, 0.5) == SETTINGS.priors


def test_the_fixed_combination_ranks_by_two_signals_alone() -> None:
    """EVA-6: the baseline that learning has to beat; at its ends it is one channel."""
    answer = a_searcher(FRUIT).search(a_query("apple pie"))
    for weight, signal in ((0.0, Signal.VECTOR), (1.0, Signal.LEXICAL)):
        ((_, ranked),) = convex([answer], weight)
        values = [result.signals.get(signal, 0.0) for result in ranked]
        assert values == sorted(values, reverse=True)
        assert len(ranked) == len(answer.results)


def test_the_best_weight_is_the_one_of_the_highest_mean() -> None:
    """EVA-6: of equals the least."""
    assert best_weight({0.5: {"q": 0.4, "r": 0.6}, 0.1: {"q": 0.5, "r": 0.5}, 0.9: {"q": 0.1, "r": 0.2}}) == 0.1


def test_several_deals_of_users_are_told_by_their_mean_and_one_by_one() -> None:
    """EVA-6: the interval is that of other queries, and what chance did to users is told beside it."""
    deals = [{"q": 0.6, "r": 0.8}, {"q": 0.4, "r": 0.4}]
    found = row("after", averaged(deals), SETTINGS.evaluation, against={"q": 0.5, "r": 0.5}, deals=deals)
    assert found.mean.mean == pytest.approx(0.55)
    assert found.deals == (pytest.approx(0.7), pytest.approx(0.4))
    assert row("after", deals[0], SETTINGS.evaluation, deals=deals[:1]).deals == ()


def test_an_error_of_probabilities_is_the_mean_over_the_deals_that_gave_some() -> None:
    """RET-15, EVA-6."""
    one, other = (ProbabilityQuality(Reliability(ece, 0.1, 0.3, 100.0), chance=0.01) for ece in (0.02, 0.04))
    assert mean_error([one, None, other]) == pytest.approx(0.03)
    assert mean_error([None]) is None


def test_a_row_is_compared_query_by_query() -> None:
    """EVA-6, EVA-1."""
    found = row("after", {"q": 0.6, "r": 0.8}, SETTINGS.evaluation, against={"q": 0.5, "r": 0.5})
    assert found.change is not None
    assert (found.mean.mean, found.change.change.mean) == (pytest.approx(0.7), pytest.approx(0.2))
    assert found.deals == ()


def seen_by(answer: Answer, measure: str) -> Answer:
    """The answer of one channel alone."""
    known = (MatchFeatures(**{measure: getattr(result.match, measure)}) for result in answer.results)
    results = [structs.replace(result, match=match) for result, match in zip(answer.results, known, strict=True)]
    return replace(answer, results=tuple(results))


def test_a_calibration_is_measured_over_any_channels_and_against_queries_without_answers() -> None:
    """RET-15: error by view, the share answered, and the share answered that should not be."""
    curve = MatchCurve(6.0, 3.0, -4.0)
    calibration = MatchCalibration(curve, None, MatchCurve(0.0, 6.0, -3.0), Answering(0.5, 0.5, 0.05, 100))
    searcher = a_searcher(FRUIT)
    own, strange = searcher.search(a_query("red apple")), searcher.search(a_query("violin concerto"))
    names = {result.content_hash: [result.uris[0]] for result in own.results}
    ways = {"both": [own], "dense": [seen_by(own, "dense")], "lexical": [seen_by(own, "lexical")]}
    qrels = {own.query.query_id: {"a": 1}}
    found = probability_report(calibration, calibration, ways, qrels, {"music": [strange]}, names=names)
    assert (found.answered, found.answered_without, found.threshold) == (1.0, {"music": 0.0}, 0.5)
    assert found.from_judgements["dense"] is None
    told = [
        calibration.probability(MatchFeatures(lexical=result.match and result.match.lexical)) for result in own.results
    ]
    both = [calibration.probability(result.match) for result in own.results]
    assert found.moved["both"] == 0.0
    assert found.moved["lexical"] == max(
        abs((one or 0.0) - (other or 0.0)) for one, other in zip(told, both, strict=True)
    )
    good = [result.uris[0] == "a" for result in own.results]
    words = found.from_judgements["lexical"]
    assert words is not None
    assert words.chance > 0.0
    assert words.reliability.brier == pytest.approx(
        sum((g - (p or 0.0)) ** 2 for g, p in zip(good, told, strict=True)) / len(good)
    )
