"""ING-11, LRN-9: what outcomes of chunks make of the beliefs about their sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.outcomes import outcome_evidence
from weft.domain.chunks import MadeBy, Overflow
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.sizes import SIZES, last_day, read_sizing
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
STATED = {  # max, target, minimum, before, after; recursive, sentence, truncate
    Domain.CODE: ((4096, 200, 30, 50, 1), (3, 1, 1)),
    Domain.ACADEMIC: ((2048, 200, 100, 100, 50), (1, 3, 1)),
    Domain.HISTORY: ((1024, 200, 50, 100, 1), (3, 1, 1)),
    Domain.GENERAL: ((8192, 200, 50, 100, 50), (2, 2, 1)),
}
WHOLE = {"minimum": 30, "before": 50}


def outcome(made: MadeBy, *, good: bool, domain: Domain = Domain.CODE, weight: float = 1.0, day: int = 100) -> Evidence:
    return outcome_evidence(
        day=day,
        scope=Scope(domain),
        intent="*",
        signals={},
        score=0.5,
        content_hash=ContentHash("a" * 64),
        good=good,
        weight=weight,
        made=made,
    )


def expected(evidence: Evidence, domain: Domain = Domain.CODE):
    return read_sizing(PRIORS, evidence, 100)[domain].expected


def times(n: int, evidence: Evidence) -> Evidence:
    return Evidence.sum([evidence] * n)


@pytest.mark.parametrize("domain", Domain)
def test_without_evidence_the_beliefs_are_the_priors(domain: Domain) -> None:
    """ING-11: each Gamma(mean/10, 0.1), overflow Dirichlet as stated."""
    (most, *means), strategies = STATED[domain]
    belief = read_sizing(PRIORS, Evidence(), 0)[domain]
    assert PRIORS.sizing.domains[domain].max == most
    for size, mean in zip(SIZES, means, strict=True):
        assert (belief.sizes[size].shape, belief.sizes[size].rate) == (pytest.approx(mean / 10), 0.1)
        assert belief.sizes[size].mean == pytest.approx(mean)
    assert belief.overflow.alpha == pytest.approx(strategies)
    assert belief.expected.overflow is tuple(Overflow)[strategies.index(max(strategies))]


def test_a_useful_chunk_is_whole_evidence_at_its_size_and_an_unused_one_a_fifth_of_it() -> None:
    """LRN-9: (shape, rate) = (20 + Σw, 0.1 + Σw/x)."""
    good, bad = (times(400, outcome(MadeBy(tokens=100, **WHOLE), good=good)) for good in (True, False))
    useful, unused = (read_sizing(PRIORS, each, 100)[Domain.CODE] for each in (good, bad))
    assert useful.n_effective["target"] == pytest.approx(400.0)
    assert unused.n_effective["target"] == pytest.approx(80.0)
    assert useful.sizes["target"].shape == pytest.approx(20.0 + 400.0)
    assert unused.sizes["target"].shape == pytest.approx(20.0 + 80.0)
    assert 100 < useful.expected.target < unused.expected.target < 200


def test_lengths_that_have_nothing_to_do_with_usefulness_leave_the_target_where_it_is() -> None:
    """LRN-9: every chunk is shorter than its target, which is no reason for a shorter target."""
    short, long = (MadeBy(tokens=tokens, target=200, **WHOLE) for tokens in (70, 140))
    judged = [outcome(made, good=good) for made in (short, long) for good in (True, False)]
    assert expected(times(1, judged[0] + judged[2])).target == pytest.approx(200)
    assert expected(times(100, judged[0] + judged[2])).target == pytest.approx(200)
    assert expected(times(100, Evidence.sum(judged))).target == pytest.approx(200, rel=0.03)


def test_where_short_chunks_are_the_useful_ones_the_target_falls_and_else_it_rises() -> None:
    """LRN-9: to make chunks that long, the target moves as far as useful chunks stand from all judged ones."""
    short, long = (MadeBy(tokens=tokens, target=200, **WHOLE) for tokens in (60, 180))
    assert expected(times(60, outcome(short, good=True) + outcome(long, good=False))).target < 175
    assert expected(times(60, outcome(short, good=False) + outcome(long, good=True))).target > 225


def test_context_sizes_learn_from_useful_chunks_alone() -> None:
    """LRN-9."""
    made = MadeBy(tokens=200, minimum=30, before=20, after=10)
    unused = expected(times(50, outcome(made, good=False)))
    useful = expected(times(50, outcome(made, good=True)))
    assert (unused.before, unused.after) == (50.0, pytest.approx(1.0))
    assert 20 < useful.before < 40
    assert 1.0 < useful.after <= 10.0


def test_a_chunk_without_context_says_nothing_about_budgets_for_it() -> None:
    """LRN-9: only the sizes that made a chunk are told about by its outcomes."""
    assert expected(times(50, outcome(MadeBy(tokens=200, minimum=30), good=True))).before == 50.0


def test_tiny_unused_chunks_raise_the_minimum_and_tiny_useful_ones_lower_it() -> None:
    """LRN-9."""
    tiny = MadeBy(tokens=8, minimum=30)
    assert expected(times(100, outcome(tiny, good=False))).minimum > 35
    assert expected(times(100, outcome(tiny, good=True))).minimum < 15
    ordinary = MadeBy(tokens=200, minimum=30)
    assert expected(times(100, outcome(ordinary, good=False))).minimum == pytest.approx(30.0)


def test_strategies_are_judged_by_the_chunks_they_made() -> None:
    """LRN-9: useful parts speak for their strategy, unused ones for the others, whole units for none."""

    def share(evidence: Evidence, strategy: Overflow) -> float:
        return read_sizing(PRIORS, evidence, 100)[Domain.CODE].overflow.mean[list(Overflow).index(strategy)]

    part = MadeBy(tokens=200, minimum=30, overflow=Overflow.SENTENCE)
    useful = times(20, outcome(part, good=True))
    assert expected(useful).overflow is Overflow.SENTENCE
    assert share(useful, Overflow.SENTENCE) > 0.75
    unused = times(20, outcome(part, good=False))
    assert share(unused, Overflow.SENTENCE) < share(Evidence(), Overflow.SENTENCE) == pytest.approx(0.2)
    whole = times(20, outcome(MadeBy(tokens=200, minimum=30), good=True))
    assert share(whole, Overflow.SENTENCE) == pytest.approx(0.2)


def test_a_domain_without_evidence_follows_all_domains_and_a_confident_one_itself() -> None:
    """LRN-9: sizes half as large in code make those of history smaller, though by less; a hundred own outcomes outweigh
    it."""
    small = times(300, outcome(MadeBy(tokens=100, minimum=30), good=True))
    own = times(300, outcome(MadeBy(tokens=200, minimum=30), good=True, domain=Domain.HISTORY))
    followed = expected(small, Domain.HISTORY).target
    assert 0.5 * 200 < followed < 0.7 * 200
    assert expected(small + own, Domain.HISTORY).target == pytest.approx(200, rel=0.06)


def test_evidence_fades_with_its_days() -> None:
    """LRN-2: half as much after 30 days in a project."""
    made = outcome(MadeBy(tokens=100, **WHOLE), good=True, day=70)
    belief = read_sizing(PRIORS, times(40, made), 100)[Domain.CODE]
    assert belief.n_effective["target"] == pytest.approx(20.0)
    assert last_day(made + outcome(MadeBy(tokens=9, **WHOLE), good=True, day=71)) == 71
    assert last_day(Evidence()) is None


def test_the_statistics_are_those_of_a_gamma() -> None:
    """LRN-1: Σw, Σw·1000/x and Σw·ln x, in micro-units."""
    seen = outcome(MadeBy(tokens=250, **WHOLE), good=True, weight=0.5)
    masses = {key.bin: micro for key, micro in seen.counts.items() if key.parameter == "size.target.good"}
    log = round(0.5 * np.log(250) * MICRO)
    assert masses == {"weight": MICRO // 2, "inverse": 2 * MICRO, "log": log, "shortfall": MICRO // 2}


def test_draws_repeat_with_their_seed_and_follow_the_belief() -> None:
    """LRN-11: Thompson sampling explores in proportion to what is not known."""
    belief = read_sizing(PRIORS, Evidence(), 0)[Domain.CODE]
    assert belief.sampled(np.random.default_rng(3)) == belief.sampled(np.random.default_rng(3))
    draws = [belief.sampled(np.random.default_rng(seed)) for seed in range(2000)]
    assert np.mean([draw.target for draw in draws]) == pytest.approx(200, rel=0.02)
    assert np.std([draw.target for draw in draws]) == pytest.approx(np.sqrt(20.0) / 0.1, rel=0.05)
    firsts = np.mean([draw.overflow is Overflow.RECURSIVE for draw in draws])
    assert 0.6 < firsts < 0.9
