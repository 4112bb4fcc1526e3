"""EVA-7: from searches that explored, what another configuration would have earned; the truth is known here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.logged_queries import a_logged, a_result, an_outcome
from tests.support.retrieval_fakes import MemoryGeneration, a_searcher
from weft.domain.ids import QueryId
from weft.domain.ranking import Answer, Query
from weft.evaluation.log.questions import explored
from weft.evaluation.measures.off_policy import Value, of_rankings
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).evaluation
WORDS = ("red", "green", "ripe", "sweet", "round")
FRUIT = ("apple", "pear", "plum", "fig")
TEXTS = [f"{word} {fruit}" for word in WORDS for fruit in FRUIT]
# Whoever asks wants trusted sources; how similar a text is says little.
TRUST = {text: {"trust_level": int(trust)} for text, trust in zip(TEXTS, np.linspace(0, 100, 20)[::-1], strict=True)}
GENERATION = MemoryGeneration({text: [text] for text in TEXTS}, TRUST)
LOOKS = np.array([1.0, 0.7, 0.5, 0.4, 0.3])
ASKED = 300


def liked(answer: Answer, often: float = 1.0) -> np.ndarray:
    """Probability of a click at each rank: looked at, and trusted; now and then, where users seldom click."""
    return often * np.array(
        [
            look * TRUST[result.uris[0]]["trust_level"] / 110.0
            for look, result in zip(LOOKS, answer.results, strict=True)
        ]
    )


def asked(number: int, *, explore: bool) -> Query:
    text = f"{WORDS[number % 5]} {FRUIT[number % 4]}"
    return Query(text=text, query_id=QueryId(f"q{number}"), k=5, explore=explore)


def logged(number: int, answer: Answer, clicks: np.ndarray):
    results = [
        replace(a_result(shown.content_hash, rank=shown.rank, relevance=shown.relevance), propensity=shown.propensity)
        for shown in answer.results
    ]
    outcomes = [an_outcome(shown.content_hash) for shown, click in zip(answer.results, clicks, strict=True) if click]
    heads = {channel.value: head for channel, head in answer.heads.items()}
    return a_logged(number, results, explored=True, outcomes=outcomes, heads=heads)


def estimated(without: list[str], often: float = 1.0) -> tuple[dict[str, Value], float]:
    """Estimates of a target from an exploring log, and what it really earns."""
    rng = np.random.default_rng(1)
    exploring, target = a_searcher(GENERATION), a_searcher(GENERATION, without_signals=without)
    log, wanted, earned = [], {}, []
    for number in range(ASKED):
        shown = exploring.search(asked(number, explore=True))
        log.append(logged(number, shown, rng.random(5) < liked(shown, often)))
        wanted[shown.query.query_id] = target.search(asked(number, explore=False))
        earned.append(liked(wanted[shown.query.query_id], often).sum())
    found = of_rankings(explored(log, wanted), settings=SETTINGS)
    return found, float(np.mean(earned))


@pytest.mark.parametrize(
    ("without", "often"),
    [([], 1.0), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((["lexical"], 1.0), ([], 0.3)))],
)
def test_what_a_configuration_would_earn_is_found_from_what_was_explored(without: list[str], often: float) -> None:
    """EVA-7: propensities of real searches; the estimates' intervals hold what the target really earns.

    Whoever clicks nothing says nothing: answers without clicks are most of them, and earned nothing.
    """
    found, truth = estimated(without, often)
    assert found["coverage"].estimate == pytest.approx(1.0, abs=0.2)
    for name in ("ips", "snips", "doubly_robust"):
        value = found[name]
        slack = (value.high - value.low) / 4.0
        assert value.low - slack <= truth <= value.high + slack, (name, value, truth)
        assert value.n == ASKED


def test_a_target_that_could_not_be_explored_is_told_by_its_coverage() -> None:
    """EVA-7: without trust ties are broken as no draw of the weights breaks them; the log knows nothing of it."""
    found, truth = estimated(["trust"])
    assert found["coverage"].estimate < 0.9
    assert found["coverage"].effective < ASKED / 10  # a few answers, weighed up, are all that speaks of it
    assert found["ips"].high < truth


def test_what_was_retrieved_and_left_out_earned_nothing() -> None:
    """EVA-7, FBK-12: to be found is no reason to be shown; what was put into a context has earned something."""
    shown = [a_result("left"), a_result("put", rank=2)]
    outcomes = [an_outcome("left", "retrieval"), an_outcome("put", "inclusion")]
    query = a_logged(0, shown, explored=True, outcomes=outcomes)
    answer = a_searcher(GENERATION).search(asked(0, explore=False))
    ((found, _),) = explored([query], {query.query_id: answer})
    assert [place.reward for place in found] == [0.0, 1.0]


def test_silence_of_who_never_reports_says_nothing() -> None:
    """EVA-7, FBK-12: an agent that says nothing of single results may not be able to."""
    answer = a_searcher(GENERATION).search(asked(0, explore=False))
    whole = an_outcome(None, "explicit", -1.0)
    log = [
        a_logged(0, [a_result("a")], explored=True, agent="chat", outcomes=[an_outcome("a")]),
        a_logged(1, [a_result("b")], explored=True, agent="chat"),
        a_logged(2, [a_result("c")], explored=True, agent="batch", outcomes=[whole]),
    ]
    found = explored(log, {query.query_id: answer for query in log})
    assert [[place.reward for place in shown] for shown, _ in found] == [[1.0], [0.0]]
