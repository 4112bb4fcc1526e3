"""Everything that a night's report rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.consolidation.candidate import Proposal
from weft.consolidation.figures import Curve
from weft.consolidation.fitting import Fitting
from weft.consolidation.gate import GateVerdict, WeightMove, Weights, moves, weights_of
from weft.consolidation.improvement import Improvement, as_summary
from weft.consolidation.recalibrate import Measured, Recalibration
from weft.consolidation.tending.steps import MaintenanceFindings, Steps
from weft.domain.documents import Domain
from weft.domain.ids import VersionName
from weft.learning.beliefs import Beliefs
from weft.runtime.mlflow.runs import RecordedRun

TOP_MOVERS = 12
"""Rows in the picture of what moved most."""

MEASURES = {"ece": "ECE", "brier": "Brier", "log_loss": "log loss"}
"""Errors of calibration, and what people call them."""

_HOURS_PER_YEAR = 24.0 * 365.0
_AGES = np.concatenate([[0.0], np.geomspace(1.0, 10.0 * _HOURS_PER_YEAR, 200)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything that a night's report rests on."""

    candidate: Proposal
    before: Beliefs  # What the live version and the candidate make be believed, read at the same time
    after: Beliefs
    recalibration: Recalibration
    verdict: GateVerdict
    fitting: Fitting = field(default_factory=Fitting)  # fitted weights against counted ones
    improvements: Sequence[Improvement] = ()  # retrieval before and after, where something measures it
    # what the updaters did with their records, by partition
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # what was found of near-duplicates and contradictions
    tended: MaintenanceFindings = field(default_factory=MaintenanceFindings)
    lessons: Mapping[str, float] = field(default_factory=dict)  # measures of success of lessons (LES-11)
    expired: Sequence[Mapping[str, Any]] = ()  # examples of what expires, in the form of `report.examples`

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
    def ageing(self) -> Mapping[Domain, Curve]:
        """How each domain is believed to age."""
        return {domain: _curve(self.after, domain) for domain in Domain}

    @property
    def dead_letters(self) -> int:
        """Records that could not become events, since the updaters began."""
        return sum(counts.get("dead_lettered", 0) for counts in self.counters.values())

    @property
    def measured(self) -> list[tuple[str, Measured]]:
        """What confidences were worth before and after, as far as it was measured."""
        both = (("before", self.recalibration.before), ("after", self.recalibration.after))
        return [(when, one) for when, one in both if one is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContext:
    """What surrounds a night's findings, for who decides."""

    version: VersionName | None  # that it published; None of a rehearsal
    live: VersionName | None  # that is live now; None where the priors are
    store: str  # where the store is, for commands
    now: float  # seconds since the epoch
    steps: Steps  # what each step came to
    nights: Sequence[RecordedRun]  # what nights came to, this one first, then the newest


def summary_of(findings: Findings, version: VersionName | None) -> dict[str, Any]:
    """What a night came to, for machines."""
    return {
        "learned": version,
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


def _curve(beliefs: Beliefs, domain: Domain) -> Curve:
    freshness = beliefs.freshness_many(domain, _AGES)
    half = float(np.interp(-0.5, -freshness, _AGES)) if freshness[-1] <= 0.5 else float("inf")
    return Curve(_AGES.tolist(), freshness.tolist(), half)
