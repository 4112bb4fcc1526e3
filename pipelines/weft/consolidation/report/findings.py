"""Everything that a night's report rests on, and what it says to machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.consolidation.candidate import Proposal
from weft.consolidation.improvement import Improvement, as_summary
from weft.consolidation.night import NightContext, StepResult, When
from weft.consolidation.steps.fitting import Fitting
from weft.consolidation.steps.gate import GateOutcome, GateVerdict, WeightMove, Weights, moves, weights_of
from weft.consolidation.steps.publish import Published
from weft.consolidation.steps.recalibrate import Measured, Recalibration
from weft.domain.errors import StoreError
from weft.domain.ids import VersionName
from weft.learning.beliefs import Beliefs
from weft.learning.calibration.scores import ScoreCalibration
from weft.learning.parts import Part
from weft.learning.priors import Priors
from weft.runtime.mlflow.runs import RecordedRun

TOP_MOVERS = 12
"""Rows in the picture of what moved most."""

MEASURES = {"ece": "ECE", "brier": "Brier", "log_loss": "log loss"}
"""Errors of calibration, and what people call them."""

NIGHTS = 13
"""Before this one that its report shows: two weeks."""

Steps = dict[str, dict[str, float]]
"""What each step came to, by its name: `proposed`, `applied`, `seconds`, and counts of its own."""


def counts_of(context: NightContext) -> Steps:
    """What each step of a night came to, of those that did not run nothing."""
    judgement = context.outcome(GateOutcome)
    acts = judgement is not None and judgement.verdict.decision.goes_live and not context.dry_run
    counts: Steps = {}
    for step in context.night.steps:
        result = context.results.get(step.name, StepResult(counts={"proposed": 0}))
        proposed = result.counts.get("proposed")
        if proposed is None:
            proposed = int(step.when is When.JUDGED) if result.part is None else _added(context, result.part)
        applied = proposed if result.applied is None else result.applied
        seconds = round(context.seconds.get(step.name, 0.0), 3)
        counts[step.name] = {"proposed": proposed, "applied": int(acts) * applied, "seconds": seconds, **result.counts}
    return counts


def _added(context: NightContext, part: Part) -> int:
    """How much a part says that the live version's does not."""
    return len(part.changes(context.candidate.live.part(type(part))).added)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything that a night's report rests on."""

    candidate: Proposal
    before: Beliefs  # What the live version and the candidate make be believed, read at the same time
    after: Beliefs
    recalibration: Recalibration
    verdict: GateVerdict
    now: float  # seconds since the epoch
    priors: Priors
    fitting: Fitting = field(default_factory=Fitting)  # fitted weights against counted ones
    improvements: Sequence[Improvement] = ()  # retrieval before and after, where something measures it
    # what the updaters did with their records, by partition
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    results: Mapping[str, StepResult] = field(default_factory=dict)  # by step
    steps: Steps = field(default_factory=dict)
    says: Mapping[str, str] = field(default_factory=dict)  # what a step is at, by its name, in the order of steps
    version: VersionName | None = None  # that it published; None of a rehearsal
    live: VersionName | None = None  # that is live now; None where the priors are
    store: str = ""  # where the store is, for commands
    nights: Sequence[RecordedRun] = ()  # what nights came to, this one first, then the newest

    @classmethod
    def of(cls, context: NightContext, nights: Sequence[RecordedRun] = ()) -> Findings:
        """What a night found so far.

        Raises:
            StoreError: No step judged it.
        """
        if (judgement := context.outcome(GateOutcome)) is None:
            raise StoreError("expected the step `gate` before a report, found none")
        published, former = context.outcome(Published), context.candidate.live.part(ScoreCalibration)
        return cls(
            candidate=context.candidate,
            before=context.before,
            after=context.after,
            recalibration=context.outcome(Recalibration)
            or Recalibration(former, refitted=False, reason="the former one stays"),
            verdict=judgement.verdict,
            now=context.night.now,
            priors=context.night.settings.priors,
            fitting=context.outcome(Fitting) or Fitting(),
            improvements=judgement.improvements,
            counters=context.night.counters,
            results=context.results,
            steps=counts_of(context),
            says={step.name: step.says for step in context.night.steps},
            version=None if published is None else published.version,
            live=context.catalog.pointer().learned,
            store=str(context.catalog.root.resolve()),
            nights=nights,
        )

    @property
    def weights_before(self) -> Weights:
        """The weights of the live version."""
        return weights_of(self.before)

    @property
    def weights_after(self) -> Weights:
        """The weights of the candidate."""
        return weights_of(self.after)

    @property
    def moves(self) -> list[WeightMove]:
        """Every weight's change, the largest first."""
        return moves(self.weights_before, self.weights_after)

    @property
    def moved(self) -> list[WeightMove]:
        """The largest changes, as many as a report shows."""
        return [move for move in self.moves[:TOP_MOVERS] if move.change]

    @property
    def dead_letters(self) -> int:
        """Records that could not become events, since the updaters began."""
        return sum(counts.get("dead_lettered", 0) for counts in self.counters.values())

    @property
    def measured(self) -> list[tuple[str, Measured]]:
        """What confidences were worth before and after, as far as it was measured."""
        both = (("before", self.recalibration.before), ("after", self.recalibration.after))
        return [(when, one) for when, one in both if one is not None]


def summary_of(findings: Findings) -> dict[str, Any]:
    """What a night came to, for machines."""
    return {
        "learned": findings.version,
        "parent": findings.candidate.parent,
        "decision": findings.verdict.decision.value,
        "reason": findings.verdict.reason,
        "calibration": findings.recalibration.reason,
        "recalibrated": findings.recalibration.refitted,
        **as_summary(findings.improvements),
        "fit": _contests(findings),
        **_errors(findings),
        "moved": [
            {"domain": move.domain.value, "signal": move.signal.value, "before": move.before, "after": move.after}
            for move in findings.moved
        ],
    }


def _errors(findings: Findings) -> dict[str, float | None]:
    """Errors of calibration: `ece_before`, `ece_after`, and of the others NAME_before and NAME."""
    values: dict[str, float | None] = {}
    for name in MEASURES:
        after = "ece_after" if name == "ece" else name
        for key, measured in ((f"{name}_before", findings.recalibration.before), (after, findings.recalibration.after)):
            values[key] = None if measured is None else getattr(measured.measures, name)
    return values


def _contests(findings: Findings) -> dict[str, Any]:
    return {
        domain.value: {
            "live": one.wins,
            "change": one.change,
            "questions": one.questions,
            "outcomes": one.fit.outcomes,
            "disagreement": one.disagreement,
        }
        for domain, one in findings.fitting.contests.items()
    }
