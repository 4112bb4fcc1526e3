"""LRN-22: what a choice says of signals, whatever weights arranged the page that it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from weft.domain.chunks import MadeBy
from weft.domain.documents import Domain
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, SECONDS_PER_DAY, Evidence
from weft.learning.observe.outcomes import OutcomeScope
from weft.learning.observe.tallies import Tally
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
SLOPE = SETTINGS.feedback.credit.choice_slope
DAY = 20_000
SIGNALS = (Signal.VECTOR, Signal.LEXICAL, Signal.LATE_INTERACTION)
UNDER = OutcomeScope("*", "*", "*", "", "", SLOPE)
LOOKED_AT = 0.8
"""Share of those who look at a rank that look at the next."""
STEEP = 1e9
"""A slope at which what is expected of the first is bounded by its score alone."""


class Shown(NamedTuple):
    """A result on a page."""

    signals: dict[str, float]
    score: float
    content_hash: str
    domain: Domain = Domain.GENERAL
    rank: int = 1
    made: MadeBy | None = None
    match: MatchFeatures | None = None
    asked: float = 0.0
    precedent: float | None = None


def page_of(values: np.ndarray, weights: np.ndarray, *, results: int) -> list[Shown]:
    """The best results by those weights, (candidates, signals), best first."""
    scores = values @ weights
    return [
        Shown(
            {signal.value: float(value) for signal, value in zip(SIGNALS, values[at], strict=True)},
            float(scores[at]),
            f"{at:064}",
        )
        for at in np.argsort(-scores, kind="stable")[:results]
    ]


def noted(page: Sequence[Shown], good: Sequence[bool], *, slope: float) -> Evidence:
    tally = Tally()
    for result, is_good in zip(page, good, strict=False):
        tally.note(result, OutcomeScope("*", "*", "*", "", "", slope), day=DAY, good=is_good, weight=1.0, page=page)
    return tally.freeze()


def agreement(evidence: Evidence, kind: str) -> np.ndarray:
    """Observations for less those against, by signal."""
    counts: dict[tuple[str, str], int] = {}
    for key, micro in evidence.counts.items():
        counts[key.parameter, key.bin] = counts.get((key.parameter, key.bin), 0) + micro
    names = [f"signal.{signal.value}.{kind}" for signal in SIGNALS]
    return np.array([counts.get((each, "for"), 0) - counts.get((each, "against"), 0) for each in names]) / MICRO


pages = st.tuples(st.integers(0, 2**32), st.integers(2, 10)).map(
    lambda drawn: (np.random.default_rng(drawn[0]), drawn[1])
)


@given(drawn=pages)
def test_choices_at_random_speak_for_no_signal(drawn: tuple[np.random.Generator, int]) -> None:
    """LRN-22: of a page that any weights arranged, whoever chooses each result as often says nothing of any signal."""
    rng, results = drawn
    page = page_of(rng.uniform(0.3, 0.7, (30, 3)), rng.dirichlet(np.ones(3)), results=results)
    evidence = noted(page, [True] * results, slope=0.0)
    for kind in ("good", "bad"):
        assert agreement(evidence, kind) == pytest.approx(0.0, abs=1e-4)


@given(drawn=pages)
def test_choices_at_random_speak_neither_for_nor_against_the_weights(drawn: tuple[np.random.Generator, int]) -> None:
    """LRN-22: with what is expected of the first one in its place: nothing for the score, which these weights make."""
    rng, results = drawn
    weights = rng.dirichlet(np.ones(3))
    page = page_of(rng.uniform(0.4, 0.6, (30, 3)), weights, results=results)
    assume(page[0].score - page[-1].score > 0.01)  # millionths matter where scores hardly differ
    evidence = noted(page, [True] * results, slope=STEEP)
    assert agreement(evidence, "good") @ weights == pytest.approx(0.0, abs=5e-3)


@given(drawn=pages, good=st.lists(st.booleans(), min_size=10, max_size=10))
def test_what_was_merely_bad_on_a_page_says_nothing_of_signals(
    drawn: tuple[np.random.Generator, int], good: list[bool]
) -> None:
    """LRN-22: who reads from the top finds bad what the weights put there."""
    rng, results = drawn
    page = page_of(rng.random((30, 3)), rng.dirichlet(np.ones(3)), results=results)
    passed_over = noted(page, [False] * results, slope=SLOPE)
    assert {key.parameter for key in passed_over.counts} == {"relevance"}
    both = noted(page, good, slope=SLOPE)
    chosen = [result for result, is_good in zip(page, good, strict=False) if is_good]
    tally = Tally()
    for result in chosen:
        tally.note(result, UNDER, day=DAY, good=True, weight=1.0, page=page)
    signals = {key: micro for key, micro in both.counts.items() if key.parameter != "relevance"}
    assert signals == {key: micro for key, micro in tally.freeze().counts.items() if key.parameter != "relevance"}


@given(drawn=pages, slope=st.sampled_from([0.0, SLOPE, STEEP]))
def test_what_was_chosen_weighs_as_much_as_what_stood_beside_it(
    drawn: tuple[np.random.Generator, int], slope: float
) -> None:
    """LRN-4, LRN-22: an outcome of either kind, with the same products; so many observations stand behind both."""
    rng, results = drawn
    page = page_of(rng.random((30, 3)), rng.dirichlet(np.ones(3)), results=results)
    counts = noted(page, [True] * results, slope=slope).counts
    for key, micro in counts.items():
        if key.parameter.startswith("product."):
            assert counts[key._replace(parameter=key.parameter.replace(".good", ".bad"))] == micro
    masses = {
        kind: sum(micro for key, micro in counts.items() if key.parameter == f"signal.vector.{kind}")
        for kind in ("good", "bad")
    }
    assert masses == {"good": results * MICRO, "bad": results * MICRO}


def candidates(rng: np.random.Generator) -> np.ndarray:
    """One signal that is nearly normal, one that is high for few, and one that varies less, (40, 3)."""
    columns = [0.5 + 0.1 * rng.normal(size=40), 0.3 + 0.5 * rng.random(40) ** 3, 0.5 + 0.05 * rng.normal(size=40)]
    return np.clip(np.column_stack(columns), 0.0, 1.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("solved", [False, True])
def test_weights_that_arrange_their_own_pages_stay_where_nothing_is_to_be_learned(*, solved: bool, seed: int) -> None:
    """LRN-22: users read from the top and take the first good one, which any may be; or it is the first as stated."""
    rng, evidence = np.random.default_rng(seed), Evidence()
    stated = weights_of(evidence)
    for _ in range(8):
        weights, tallied = weights_of(evidence), Tally()
        for _ in range(150):
            values = candidates(rng)
            page, good = page_of(values, weights, results=10), rng.random(10) > LOOKED_AT
            if solved:
                (best,) = page_of(values, stated, results=1)
                good = np.array([each.content_hash == best.content_hash for each in page])
            read(tallied, page, good)
        evidence = evidence + tallied.freeze()
    assert np.abs(weights_of(evidence) - stated).max() < 0.05


def read(tally: Tally, page: Sequence[Shown], good: np.ndarray) -> None:
    """Note what is passed over, down to the first good one, and that one, by how often their ranks are looked at."""
    for rank, (result, is_good) in enumerate(zip(page, good.tolist(), strict=True)):
        weight = (0.4 if is_good else 0.1) * min(1.0 / LOOKED_AT**rank, SETTINGS.feedback.credit.inverse_clip)
        tally.note(result, UNDER, day=DAY, good=is_good, weight=weight, page=page)
        if is_good:
            break


def weights_of(evidence: Evidence) -> np.ndarray:
    priors = SETTINGS.priors.model_copy(
        update={"robustness": SETTINGS.priors.robustness.model_copy(update={"daily_cap": 1e6})}
    )
    believed = read_beliefs(priors, evidence, now=DAY * SECONDS_PER_DAY).weights(Scope(Domain.GENERAL), SIGNALS)
    return np.array([believed[signal].mean for signal in SIGNALS])
