"""Which weights go live, those that were counted or those that were fitted, by domain (CON-8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from weft.consolidation.improvement import Improvement, deciding
from weft.consolidation.night import NightContext, StepResult, When
from weft.consolidation.settings import FOLDS
from weft.domain.documents import Domain
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import Beliefs
from weft.learning.parts import LearnedVersion
from weft.learning.pooling.fit import LoggedSignals, better, fit_weights, held_out, only
from weft.learning.pooling.fitted import DomainFit, FittedWeights
from weft.learning.priors import Priors

_Z = 1.645  # standard errors by which the fit must be better: chance alone shows that one time in twenty


@dataclass(frozen=True, slots=True, kw_only=True)
class FitComparison:
    """What became of one domain."""

    fit: DomainFit  # its weights by the fit, and by counting the same night
    change: float  # mean gain of the share of pairs that are in the right order, on questions that the fit had not seen
    questions: int  # how many these were
    wins: bool  # whether the fit goes live

    @property
    def disagreement(self) -> float:
        """Share of the score on which both differ, in [0, 1]."""
        return float(abs(self.fit.shares - self.fit.counted).sum() / 2.0)

    @property
    def says(self) -> str:
        """What came of it, for people."""
        live = "fitted" if self.wins else "counted"
        return (
            f"{live} weights; the fit orders {self.change:+.3f} more of the pairs rightly on {self.questions} "
            f"questions that it had not seen, and weighs {self.disagreement:.0%} of the score otherwise"
        )


@dataclass(frozen=True, slots=True)
class Fitting:
    """The fit of a night, and where it wins."""

    # what goes live; None where counting is better everywhere, or nothing was logged
    fitted: FittedWeights | None = None
    contests: Mapping[Domain, FitComparison] = field(default_factory=dict)  # by domain that enough came of
    note: str = ""  # what else decided, for people

    @property
    def reason(self) -> str:
        """What came of it, for people."""
        if not self.contests:
            return "too few logged outcomes to fit weights: those that were counted are live"
        return "; ".join(f"{domain}: {one.says}" for domain, one in self.contests.items()) + self.note

    def refused(self, measured: Improvement) -> Fitting:
        """The same where questions showed the fit to be worse: what was counted stays."""
        contests = {domain: replace(one, wins=False) for domain, one in self.contests.items()}
        change = measured.change
        note = f"; on {measured.questions} {measured.source} questions the fit was worse by {-change.mean:.3f}"
        return Fitting(None, contests, note)


class FitWeights:
    """Fits weights to what was logged, and compares them with those that the evidence counts."""

    name: ClassVar[str] = "fit"
    says: ClassVar[str] = "fitting weights to what became of logged answers"
    when: ClassVar[When] = When.JUDGED

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`; what questions show to be worse stays out."""
        night, learned = context.night, context.learned
        fitting = Fitting()
        if night.logged is not None:
            counted = night.beliefs(LearnedVersion(learned.evidence))
            fitting = fitting_of(night.logged(), context.settings.priors, counted)
        if fitting.fitted is not None:
            former, latter = (learned.with_part(FittedWeights, each) for each in (None, fitting.fitted))
            measured = deciding(night.compared(former, latter))
            if measured is not None and measured.significant and measured.change.mean < 0.0:
                fitting = fitting.refused(measured)
        return StepResult(part=fitting.fitted, note=fitting.reason, outcome=fitting)


def fitting_of(logged: LoggedSignals, priors: Priors, counted: Beliefs) -> Fitting:
    """Fit the weights of all domains, and compare them with those that were counted on held-out questions."""
    rules, shares = priors.signals, _shares_by_domain(counted, logged)
    fitted = fit_weights(logged, rules, shares)
    if not fitted.by_domain:
        return Fitting()
    changes = held_out(logged, rules, shares, deviation=fitted.deviation, folds=FOLDS)
    wins = better(changes, z=_Z)
    contests = {
        domain: FitComparison(
            fit=fit,
            change=float(changes[domain].mean()) if len(changes.get(domain, ())) else 0.0,
            questions=len(changes.get(domain, ())),
            wins=wins.get(domain, False),
        )
        for domain, fit in fitted.by_domain.items()
    }
    live = only(fitted, wins)
    return Fitting(live if live.by_domain else None, contests)


def fit_all(logged: LoggedSignals, priors: Priors, counted: Beliefs) -> FittedWeights:
    """The fit of all domains that enough came of, whether it is better or not."""
    return fit_weights(logged, priors.signals, _shares_by_domain(counted, logged))


def _shares_by_domain(counted: Beliefs, logged: LoggedSignals) -> dict[Domain, dict[Signal, float]]:
    return {domain: _shares(counted, domain, logged) for domain in Domain}


def _shares(counted: Beliefs, domain: Domain, logged: LoggedSignals) -> dict[Signal, float]:
    """What counting says of the signals that were told."""
    active = logged.present() or tuple(Signal)
    return {signal: belief.mean for signal, belief in counted.weights(Scope(domain), active).items()}
