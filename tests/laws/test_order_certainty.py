"""RET-18, EVA-7: how sure an order is, and how likely an exploring search was to show it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.nights import a_day
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from weft.domain.documents import Domain
from weft.domain.ranking import Query, Scope, Signal
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import Evidence
from weft.retrieval.answers import ScoreComponents, rank_confidence
from weft.retrieval.ranking.fusion import believed_draws
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
BELIEFS = read_beliefs(PRIORS, Evidence(), now=0.0)
ACTIVE = frozenset(Signal)
SCOPE = Scope(Domain.CODE)
TEXTS = {"a": ["red apple"], "b": ["red pear"], "c": ["green apple pie"], "d": ["apple"]}
TRUSTED = {"a": {"trust_level": 0}, "b": {"trust_level": 90}, "c": {"trust_level": 100}}
FRUIT = MemoryGeneration(TEXTS, TRUSTED)
TWINS = MemoryGeneration({**TEXTS, "e": ["red apple red apple"]}, {**TRUSTED, "e": {"trust_level": 10}})


values = st.fixed_dictionaries({signal: st.floats(0.0, 1.0) for signal in Signal})


def results(*told: tuple[dict[Signal, float], float]) -> ScoreComponents:
    """Results with these values of all signals, and something else that adds to their scores."""
    values = np.array([[of[signal] for signal in Signal] for of, _ in told])
    bonus = np.array([added for _, added in told])
    return ScoreComponents(values, bonus, np.ones(len(told), dtype=bool), [Domain.CODE] * len(told))


def draws_of(n: int):
    return believed_draws(Query(text="", query_id="q", k=1), BELIEFS, ACTIVE, n)


@settings(max_examples=examples(30))
@given(values, values, st.floats(0.0, 0.3))
def test_either_of_two_belongs_above_the_other(left, right, bonus) -> None:
    """RET-18: P(a above b) + P(b above a) = 1, whatever else adds to the scores."""
    one, _ = rank_confidence(results((left, bonus), (right, 0.0)), draws_of(200))
    other, last = rank_confidence(results((right, 0.0), (left, bonus)), draws_of(200))
    assert one + other == pytest.approx(1.0)
    assert last is None


@settings(max_examples=examples(20))
@given(values)
def test_what_is_better_in_everything_is_certain_and_twins_are_even(value) -> None:
    """RET-18: dominance needs no knowledge of the weights; equals are told apart by nothing."""
    better = {signal: min(1.0, share + 0.01) for signal, share in value.items()}
    worse = {signal: min(share, better[signal] - 0.01) for signal, share in value.items()}
    sure, _ = rank_confidence(results((better, 0.0), (worse, 0.0)), draws_of(200))
    even, _ = rank_confidence(results((value, 0.1), (value, 0.1)), draws_of(200))
    assert (sure, even) == (1.0, 0.5)


def test_the_certainty_is_calibrated_under_the_beliefs() -> None:
    """RET-18: of pairs told with probability p, a share of p is in the order of weights from the posterior."""
    rng = np.random.default_rng(3)
    told, right = [], []
    true = BELIEFS.weight_draws(SCOPE, ACTIVE, 1900)
    for case in range(1500):
        left, right_values = ({signal: float(rng.random()) for signal in Signal} for _ in range(2))
        above, _ = rank_confidence(results((left, 0.0), (right_values, 0.0)), draws_of(400))
        told.append(above)
        margin = sum(true[signal][400 + case] * (left[signal] - right_values[signal]) for signal in Signal)
        right.append(margin > 0.0)
    bands = np.digitize(told, [0.1, 0.3, 0.5, 0.7, 0.9])
    for band in range(6):
        chosen = bands == band
        expected, n = np.mean(np.array(told)[chosen]), chosen.sum()
        assert abs(np.mean(np.array(right)[chosen]) - expected) < 4.0 * np.sqrt(expected * (1 - expected) / n) + 0.01


def test_evidence_makes_an_order_surer() -> None:
    """RET-18, LRN-4: two results that differ in the telling signal alone against ones that differ in another."""
    taught = read_beliefs(PRIORS, a_day(0, outcomes=2000), now=0.0)
    weights = {name: beliefs.weights(SCOPE, ACTIVE) for name, beliefs in (("before", BELIEFS), ("after", taught))}
    assert weights["after"][Signal.LEXICAL].mean > weights["before"][Signal.LEXICAL].mean
    query = Query(text="", query_id="q", k=1)
    lexical = dict.fromkeys(Signal, 0.5) | {Signal.LEXICAL: 0.7}
    vector = dict.fromkeys(Signal, 0.5) | {Signal.VECTOR: 0.7}
    before, after = (
        rank_confidence(results((lexical, 0.0), (vector, 0.0)), believed_draws(query, beliefs, ACTIVE, 400))[0]
        for beliefs in (BELIEFS, taught)
    )
    assert before < 0.75
    assert after > 0.95


def test_draws_are_the_same_for_the_same_beliefs_and_lead_on() -> None:
    """ARC-9: the first draws of more are the draws of fewer."""
    few, many = (BELIEFS.weight_draws(SCOPE, ACTIVE, n) for n in (50, 100))
    for signal in Signal:
        assert few[signal].tolist() == many[signal][:50].tolist()
    assert np.allclose(sum(many.values()), 1.0)


def test_fusion_by_rank_tells_no_certainty() -> None:
    """RET-18: where no learned weight ranks, there is no posterior of an order."""
    answer = a_searcher(FRUIT, fusion="rrf").search(a_query("red apple"))
    assert {result.above_next for result in answer.results} == {None}
    explored = a_searcher(FRUIT, fusion="rrf").search(a_query("red apple", explore=True))
    assert {result.propensity for result in explored.results} == {1.0}


@pytest.mark.parametrize("generation", [FRUIT, TWINS], ids=["fruit", "twins"])
def test_propensities_of_exploring_searches_are_how_often_ranks_are_taken(generation: MemoryGeneration) -> None:
    """EVA-7: over many query ids, each of which draws its own weights, and 1 without exploration.

    Near-duplicates of what stands above are left out (RET-12), and do not take the ranks of what is shown.
    """
    searcher = a_searcher(generation)
    assert {result.propensity for result in searcher.search(a_query("red apple")).results} == {1.0}
    taken: dict[tuple[str, int], int] = {}
    told: dict[tuple[str, int], float] = {}
    asked = 400
    for number in range(asked):
        answer = searcher.search(Query(text="red apple", query_id=f"q{number}", k=2, explore=True))
        for result in answer.results:
            place = (result.content_hash, result.rank)
            taken[place] = taken.get(place, 0) + 1
            told[place] = result.propensity
    assert len(taken) > 2
    for place, count in taken.items():
        assert told[place] == pytest.approx(count / asked, abs=0.1)
