"""LRN-3: what one day, or one long history, can do to a belief, for every family of evidence alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from tests.support.outcomes import outcome_evidence
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import Beliefs, read_beliefs
from weft.learning.evidence import MICRO, Evidence
from weft.learning.families.gaussian_process import quality_masses
from weft.learning.families.survival import survival_masses
from weft.learning.families.threshold import threshold_masses
from weft.learning.parameters import reported_evidence
from weft.learning.pooling.agreement import AgreementPosterior, read_agreement
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
BOUNDS = PRIORS.robustness
DAY = 400
FLOOD = 100_000.0
VECTOR = list(Signal).index(Signal.VECTOR)
SCOPE = Scope(Domain.CODE, "m", "a")


class Learned(NamedTuple):
    """What is believed, and how often signals are believed to agree with outcomes."""

    beliefs: Beliefs
    weight: AgreementPosterior


class Family(NamedTuple):
    """How a family is told that something is good or bad, and what is then believed, higher where it is good."""

    masses: Callable[[float, bool], dict[str, int]]
    parameter: str
    believed: Callable[[Learned], float]
    observations: Callable[[Learned], float]
    cap: float = BOUNDS.reported_daily_cap

    def told(self, n: float, *, good: bool, day: int = DAY) -> Evidence:
        return reported_evidence(day, SCOPE, self.parameter, self.masses(n, good))


class Weights(Family):
    """The weights of signals, which follow from outcomes of results."""

    def told(self, n: float, *, good: bool, day: int = DAY) -> Evidence:
        facts = {"intent": "*", "score": 0.5, "content_hash": ContentHash("a" * 64), "weight": n / 2.0}
        each = (
            outcome_evidence(
                day=day, scope=SCOPE, signals={"vector": 0.9 if right == good else 0.1}, good=right, **facts
            )
            for right in (True, False)
        )
        return Evidence.sum(each)


def sides(good: str, bad: str) -> Callable[[float, bool], dict[str, int]]:
    return lambda n, is_good: {good if is_good else bad: round(n * MICRO)}


def curve(of: Learned) -> float:
    return float(of.beliefs.reported.quality("m", "a").predict(np.array([10.0]))[0][0])


FAMILIES = {
    "weights": Weights(
        sides("", ""),
        "",
        lambda of: float((of.weight.a / (of.weight.a + of.weight.b))[VECTOR].mean()),
        lambda of: float(of.weight.n_effective[VECTOR]) / 2.0,
        2.0 * BOUNDS.daily_cap,  # good and bad outcomes are counted apart
    ),
    "trust": Family(
        sides("verified", "refuted"),
        "trust.blog",
        lambda of: of.beliefs.reported.trust("blog", "m").mean,
        lambda of: of.beliefs.reported.trust("blog", "m").observations,
    ),
    "decay": Family(
        lambda n, good: survival_masses(100.0, accurate=good, weight=n),
        "decay",
        lambda of: of.beliefs.freshness(Domain.CODE, 100.0),
        lambda of: of.beliefs.reported.decay(Domain.CODE).observations,
    ),
    "thresholds": Family(
        lambda n, good: threshold_masses(0.5, good=good, weight=n),
        "threshold",
        lambda of: 1.0 - of.beliefs.reported.threshold(Domain.CODE).mean,
        lambda of: of.beliefs.reported.threshold(Domain.CODE).observations,
    ),
    "model quality": Family(
        lambda n, good: quality_masses(10, 0.9 if good else 0.1, weight=n),
        "quality",
        curve,
        lambda of: of.beliefs.reported.quality("m").observations,
    ),
}
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())


def read(*evidence: Evidence) -> Learned:
    total = Evidence.sum(evidence)
    agreement = read_agreement(PRIORS, total, DAY)
    return Learned(read_beliefs(PRIORS, total, now=DAY * 86_400.0), agreement.posterior(agreement.node(SCOPE)))


@every_family
@pytest.mark.parametrize("good", [True, False], ids=["praise", "blame"])
def test_a_flood_of_one_day_counts_as_the_cap(family: Family, good: bool) -> None:
    """LRN-3: a hundred thousand identical reports of one day are believed as the cap is, whatever they are about."""
    flood, cap = read(family.told(FLOOD, good=good)), read(family.told(family.cap, good=good))
    assert family.believed(flood) == pytest.approx(family.believed(cap), rel=1e-9)
    assert family.observations(flood) == pytest.approx(family.observations(cap), rel=1e-9)


@every_family
def test_a_flood_out_of_character_moves_what_is_settled_little(family: Family) -> None:
    """LRN-3: |z| > 3 against what thirty days say: down-weighted; the count stays in the evidence."""
    usual = Evidence.sum(
        family.told(share * family.cap, good=good, day=day)
        for day in range(DAY - 30, DAY)
        for share, good in ((0.16, True), (0.04, False))
    )
    flood = family.told(FLOOD, good=False)
    settled, moved, alone = (family.believed(read(*each)) for each in ((usual,), (usual, flood), (flood,)))
    assert alone < settled
    assert 0.0 < settled - moved < 0.25 * (settled - alone)
    assert usual + flood - usual == flood


@every_family
def test_a_belief_is_able_to_move_however_long_its_history_is(family: Family) -> None:
    """LRN-3: at most `effective_cap` observations stand against the prior: the surplus blends back to it."""
    days = [family.told(family.cap, good=False, day=day) for day in range(DAY - 200, DAY)]
    assert family.observations(read(*days)) <= BOUNDS.effective_cap + PRIORS.pooling.maximum


@every_family
def test_what_is_reported_within_the_bounds_all_counts(family: Family) -> None:
    """LRN-3: bounds hold floods; a day of ordinary use is heard in full."""
    some, more = (read(family.told(n, good=True)) for n in (20.0, 80.0))
    assert family.observations(more) - family.observations(some) == pytest.approx(60.0, rel=0.6)
    assert family.believed(more) > family.believed(some) > family.believed(read())
