"""May a night go live? Neither rankings of replayed queries nor weights may jump (EVA-7)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from scipy import stats

from weft.consolidation.champion import DECISION_TAG, REASON_TAG
from weft.consolidation.improvement import Improvement, deciding
from weft.consolidation.night import NightContext, Ranking, StepResult, When
from weft.consolidation.settings import MovementSettings, ShadowSettings
from weft.domain.documents import Domain
from weft.domain.ids import VersionName
from weft.domain.ranking import Scope, Signal, WeightBelief
from weft.learning.beliefs import Beliefs

if TYPE_CHECKING:
    from weft.runtime.mlflow.tracking import Tracking  # seconds to import

Weights = Mapping[Domain, Mapping[Signal, WeightBelief]]
"""What is believed about every signal's weight, by domain."""


@dataclass(frozen=True, slots=True)
class WeightMove:
    """How one weight changed, as shares of the score in [0, 1]."""

    domain: Domain
    signal: Signal
    before: float
    after: float

    @property
    def change(self) -> float:
        """What it gained, negative where it lost."""
        return self.after - self.before


def weights_of(beliefs: Beliefs) -> Weights:
    """The weights of every domain as a searcher without a model or agent reads them, all signals active."""
    return {domain: beliefs.weights(Scope(domain), list(Signal)) for domain in Domain}


def moves(before: Weights, after: Weights) -> list[WeightMove]:
    """Every weight's change, the largest first, ties in the order of domains and signals."""
    every = [
        WeightMove(domain, signal, before[domain][signal].mean, after[domain][signal].mean)
        for domain in Domain
        for signal in Signal
    ]
    return sorted(every, key=lambda move: -abs(move.change))


DEPTH = 10
"""Ranks compared per replayed query: what a first page shows."""


class Decision(StrEnum):
    """What becomes of a candidate."""

    SAFE = "safe"
    MONITORED = "monitored"
    REVIEW = "review"

    @property
    def goes_live(self) -> bool:
        """Whether the candidate becomes the champion without a person."""
        return self is not Decision.REVIEW


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """A decision, why, and the figures it rests on."""

    decision: Decision
    reason: str
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """What the gate found, and decided."""

    verdict: GateVerdict
    improvements: Sequence[Improvement]  # retrieval before and after, where something measures it


class Gate:
    """Compares the candidate with what is live; a verdict that was registered with it stands."""

    name: ClassVar[str] = "gate"
    says: ClassVar[str] = "comparing with what is live"
    when: ClassVar[When] = When.JUDGED

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`."""
        improvements = context.night.compared(context.candidate.live, context.learned)
        verdict = recorded_verdict(context.night.tracking, context.candidate.published)
        verdict = verdict or judge(context, deciding(improvements))
        return StepResult(note=verdict.reason, outcome=GateOutcome(verdict, improvements))


def recorded_verdict(tracking: Tracking, version: VersionName | None) -> GateVerdict | None:
    """The verdict that a version was registered with, None where it was not registered."""
    tags = None if version is None else tracking.tags_of(version)
    return None if tags is None else GateVerdict(Decision(tags[DECISION_TAG]), tags[REASON_TAG])


def judge(context: NightContext, measured: Improvement | None) -> GateVerdict:
    """Compare the candidate with the live version: by replayed queries where there are any, else by weights.

    Where it was measured on questions, they have the last word: see `weighed`.
    """
    shadow, rules = context.night.shadow, context.settings.consolidation
    if shadow is None:
        verdict = judge_movement(weights_of(context.before), weights_of(context.after), rules.movement)
    else:
        verdict = judge_rankings(shadow(context.candidate.live), shadow(context.learned), rules.shadow)
    return verdict if measured is None else weighed(verdict, measured)


def weighed(verdict: GateVerdict, measured: Improvement) -> GateVerdict:
    """A verdict in the light of a measurement.

    How far rankings moved says nothing about whether they moved for the better: a change that is shown to be better
    need not wait for a person, and one that is shown to be worse must, however small it is.
    """
    decision = verdict.decision
    change = measured.change
    if measured.significant and change.mean < 0.0:
        decision = Decision.REVIEW
    elif measured.significant and change.mean > 0.0 and decision is Decision.REVIEW:
        decision = Decision.MONITORED
    shown = f"{_LABEL} {change.mean:+.3f} ({change.low:+.3f} to {change.high:+.3f})"
    reason = f"{verdict.reason}; on {measured.questions} {measured.source} questions {shown}"
    return GateVerdict(decision, reason, {**verdict.figures, "improvement": change.mean})


_LABEL = "nDCG@10"  # of the headline measure


def judge_rankings(control: Sequence[Ranking], treatment: Sequence[Ranking], settings: ShadowSettings) -> GateVerdict:
    """Compare what the live version and the candidate answer to the same queries.

    Raises:
        ValueError: There are no queries, or not as many answers on both sides.
    """
    if not control or len(control) != len(treatment):
        raise ValueError(f"expected the same queries on both sides, found {len(control)} and {len(treatment)}")
    pairs = [(left[:DEPTH], right[:DEPTH]) for left, right in zip(control, treatment, strict=True)]
    tau = math.fsum(kendall_tau(left, right) for left, right in pairs) / len(pairs)
    overlap = math.fsum(jaccard(left, right) for left, right in pairs) / len(pairs)
    decision = _of_shadow(tau, overlap, settings)
    reason = f"{len(pairs)} replayed queries: Kendall tau {tau:.3f}, Jaccard@{DEPTH} {overlap:.3f}"
    return GateVerdict(decision, reason, {"kendall_tau": tau, "jaccard": overlap, "queries": float(len(pairs))})


def judge_movement(before: Weights, after: Weights, settings: MovementSettings) -> GateVerdict:
    """Judge a candidate by the domain whose weights moved furthest, where no queries can be replayed."""
    moved = {domain: movement(before[domain], after[domain]) for domain in after}
    furthest = max(sorted(moved), key=moved.__getitem__)
    share = moved[furthest]
    decision = Decision.REVIEW
    if share <= settings.safe:
        decision = Decision.SAFE
    elif share <= settings.monitored:
        decision = Decision.MONITORED
    reason = f"no queries replayed; {share:.1%} of the score changed hands in {furthest.value}"
    return GateVerdict(decision, reason, {"movement": share})


def movement(before: Mapping[Signal, WeightBelief], after: Mapping[Signal, WeightBelief]) -> float:
    """Share of the score that changed hands: half the sum of |after − before|, in [0, 1] (total variation)."""
    return math.fsum(abs(after[signal].mean - before[signal].mean) for signal in after) / 2.0


def kendall_tau(left: Ranking, right: Ranking) -> float:
    """Kendall's τ-b over everything either ranking holds; what one of them lacks ties below its last rank.

    The top-k form of Fagin, Kumar and Sivakumar (SODA 2003). Equal rankings agree
    fully, an empty one says nothing about another.
    """
    if list(left) == list(right):
        return 1.0
    if not left or not right:
        return 0.0
    union = sorted({*left, *right})
    places = [{item: rank for rank, item in enumerate(ranking)} for ranking in (left, right)]
    ranks = [[place.get(item, len(place)) for item in union] for place in places]
    return float(stats.kendalltau(*ranks).statistic)


def jaccard(left: Ranking, right: Ranking) -> float:
    """Share of what either ranking holds that both hold; two empty rankings agree."""
    union = {*left, *right}
    return len({*left} & {*right}) / len(union) if union else 1.0


def _of_shadow(tau: float, overlap: float, settings: ShadowSettings) -> Decision:
    if tau >= settings.safe_tau and overlap >= settings.safe_jaccard:
        return Decision.SAFE
    return Decision.MONITORED if tau >= settings.monitored_tau else Decision.REVIEW
