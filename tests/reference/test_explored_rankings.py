"""EVA-7: from searches that explored, what another configuration would have earned; the truth is known here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipelines.domain.ids import QueryId
from pipelines.domain.ranking import Answer, Query
from pipelines.evaluation.log_measures import explored
from pipelines.evaluation.off_policy import Value, of_rankings
from pipelines.settings import load_settings
from tests.support.logged_queries import a_logged, a_result, an_outcome
from tests.support.retrieval_fakes import MemoryGeneration, a_searcher

SETTINGS = load_settings(environment={}).evaluation
WORDS = ("red", "green", "ripe", "sweet", "round")
FRUIT = ("apple", "pear", "plum", "fig")
TEXTS = [f"{word} {fruit}" for word in WORDS for fruit in FRUIT]
# Whoever asks wants trusted sources; how similar a text is says little.
TRUST = {text: {"trust_level": int(trust)} for text, trust in zip(TEXTS, np.linspace(0, 100, 20)[::-1], strict=True)}
GENERATION = MemoryGeneration({text: [text] for text in TEXTS}, TRUST)
LOOKS = np.array([1.0, 0.7, 0.5, 0.4, 0.3])
ASKED = 300


def liked(answer: Answer) -> np.ndarray:
    """Probability of a click at each rank: looked at, and trusted."""
    return np.array(
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
    # An answer without clicks was looked at as well: it says that nothing was wanted.
    heads = {channel.value: head for channel, head in answer.heads.items()}
    told = outcomes or [an_outcome(None, "explicit", -1.0)]
    return a_logged(number, results, explored=True, outcomes=told, heads=heads)


def estimated(without: list[str]) -> tuple[dict[str, Value], float]:
    """Estimates of a target from an exploring log, and what it really earns."""
    rng = np.random.default_rng(1)
    exploring, target = a_searcher(GENERATION), a_searcher(GENERATION, without_signals=without)
    log, wanted, earned = [], {}, []
    for number in range(ASKED):
        shown = exploring.search(asked(number, explore=True))
        log.append(logged(number, shown, rng.random(5) < liked(shown)))
        wanted[shown.query.query_id] = target.search(asked(number, explore=False))
        earned.append(liked(wanted[shown.query.query_id]).sum())
    found = of_rankings(explored(log, wanted), strength=SETTINGS.reward_strength, settings=SETTINGS)
    return found, float(np.mean(earned))


@pytest.mark.parametrize("without", [[], ["lexical"]])
def test_what_a_configuration_would_earn_is_found_from_what_was_explored(without: list[str]) -> None:
    """EVA-7: propensities of real searches; the estimates' intervals hold what the target really earns."""
    found, truth = estimated(without)
    assert found["coverage"].estimate == pytest.approx(1.0, abs=0.2)
    for name in ("ips", "snips", "doubly_robust"):
        value = found[name]
        slack = (value.high - value.low) / 4.0
        assert value.low - slack <= truth <= value.high + slack, (name, value, truth)
        assert value.n == ASKED


def test_a_target_that_could_not_be_explored_is_told_by_its_coverage() -> None:
    """EVA-7: without trust ties are broken as no draw of the weights breaks them; the log knows nothing of it."""
    found, truth = estimated(["trust"])
    assert found["coverage"].high < 0.9
    assert found["ips"].high < truth
