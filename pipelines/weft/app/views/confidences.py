"""What confidences are worth now: predicted against observed, as nights measure it (CON-8)."""

from __future__ import annotations

from weft.catalog.catalog import Catalog
from weft.consolidation.steps.recalibrate import Measured, measured
from weft.learning.calibration.scores import ScoreCalibration, score_bins
from weft.learning.evidence import Evidence
from weft.learning.observe.allowances import within_allowances
from weft.learning.priors import Priors
from weft.runtime.clock import system_clock


def reliability_of(catalog: Catalog, priors: Priors, live: Evidence) -> Measured | None:
    """How far confidences of live results can be relied on, as a night measures it; None where there is no outcome."""
    learned = catalog.pointer().learned
    state = None if learned is None else catalog.learned.read(learned)
    evidence = within_allowances(live, alone=priors.robustness.alone)
    outcomes = score_bins(evidence, priors.recency, now=system_clock())
    if outcomes.observations < 1.0:
        return None
    return measured(None if state is None else state.part(ScoreCalibration), outcomes)
