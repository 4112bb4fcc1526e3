"""What a night reads and writes, and the run that it is written to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

from pipelines.catalog.catalog import Catalog
from pipelines.consolidation.champion import EXPERIMENT
from pipelines.consolidation.citations.refresh import RefreshCitations
from pipelines.consolidation.fitting import Fitting, ReadLogged, fitting_of
from pipelines.consolidation.gate import Shadow
from pipelines.consolidation.improvement import Improve, Improvement
from pipelines.consolidation.settings import ConsolidationSettings
from pipelines.consolidation.tending.contradictions import FindContradictions
from pipelines.consolidation.tending.duplicates import FindDuplicates
from pipelines.domain.ids import LearnedVersion
from pipelines.learning.beliefs import Beliefs, read_beliefs
from pipelines.learning.calibration.fit import Look
from pipelines.learning.calibration.matching import MatchBins, Probe, match_bins
from pipelines.learning.calibration.scores import ScoreBins, score_bins
from pipelines.learning.evidence import Evidence
from pipelines.learning.lessons.beliefs import LessonBeliefs
from pipelines.learning.observe.allowances import in_force
from pipelines.learning.pooling.fitted import Learned
from pipelines.learning.priors import Priors
from pipelines.learning.settings import LearningSettings
from pipelines.runtime.mlflow.tracking import TrackedRun, Tracking


class Rehearsal:
    """The page of a night that changes nothing: it keeps nothing."""

    run_id = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None: ...

    def child(self, _name: str) -> Rehearsal:
        """Itself."""
        return self

    def _ignore(self, *arguments: Any, **options: Any) -> None: ...

    parameters = metrics = figure = table = document = file = note = _ignore


RunRecord: TypeAlias = "TrackedRun | Rehearsal"
"""Where a night is written down."""

TendLessons = Callable[[LessonBeliefs, bool], Mapping[str, float]]
"""Says which lessons are one, given what is believed and whether nothing may change; counts what came of it."""

TAGS = {"weft.job": "consolidate", "mlflow.source.name": "jobs.consolidate", "mlflow.source.type": "JOB"}

CURVES = "retrieval, night by night"
"""The one run that every night adds a point to, so that MLflow draws curves over nights."""

CURVES_TAGS = {"weft.curves": "retrieval"}

STEPS = (
    "citations",
    "merge",
    "duplicates",
    "contradictions",
    "expiry",
    "recalibrate",
    "lessons",
    "gate",
    "publish",
    "report",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The store, the tracker and the rules of one night.

    Attributes:
        now: Seconds since the epoch; all beliefs of the night are read at it.
        facts: What the run records of its surroundings, such as the fingerprint of the settings.
        shadow: Replays queries for the gate, where there are any.
        logged: Reads results that something became of, for the fit of weights, where queries were logged.
        improve: Measures retrieval under two states of evidence, where there is something to measure it on.
        probe: Asks queries that have no answer, where there are any.
        look: Tells what is shown, by all channels together and by each alone, where queries were logged.
        duplicates: Finds near-duplicates of what is live; None leaves aliases as they are.
        contradictions: Finds them among what is near and no duplicate; None leaves edges as they are.
        tend_lessons: Merges lessons that say the same and counts the others; None leaves them as they are.
        citations: Refreshes what providers count; None where none is on.
        counters: What the updaters did with their records, by partition.
        seconds: What each step took so far, by its name.
        announce: Told the name of each step before it starts.
    """

    catalog: Catalog
    tracking: Tracking
    priors: Priors
    learning: LearningSettings
    rules: ConsolidationSettings
    now: float
    facts: Mapping[str, object] = field(default_factory=dict)
    shadow: Shadow | None = None
    logged: ReadLogged | None = None
    improve: Improve | None = None
    probe: Probe | None = None
    look: Look | None = None
    duplicates: FindDuplicates | None = None
    contradictions: FindContradictions | None = None
    tend_lessons: TendLessons | None = None
    citations: RefreshCitations | None = None
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    announce: Callable[[str], None] = lambda _: None

    def as_of(self, version: LearnedVersion) -> Night:
        """The night that published `version`: taken up again, it reads all beliefs as they were read then."""
        return replace(self, now=self.catalog.learned_manifest(version).created_at)

    def beliefs(self, learned: Learned) -> Beliefs:
        """What that makes be believed tonight."""
        evidence, fitted, aliases, _ = learned
        return read_beliefs(self.priors, evidence, now=self.now, fitted=fitted, aliases=aliases)

    def fitting(self, evidence: Evidence) -> Fitting:
        """Weights fitted to what was logged, where anything was, against those that the evidence counts."""
        if self.logged is None:
            return Fitting()
        return fitting_of(self.logged(), self.priors, self.beliefs(Learned(evidence)))

    def outcomes(self, evidence: Evidence) -> ScoreBins:
        """Outcomes by score, of all domains."""
        return score_bins(self._in_force(evidence), self.priors.recency, now=self.now)

    def verdicts(self, evidence: Evidence) -> MatchBins:
        """Verdicts by how well their results matched, of all domains."""
        return match_bins(self._in_force(evidence), self.priors, now=self.now)

    def _in_force(self, evidence: Evidence) -> Evidence:
        return in_force(evidence, alone=self.priors.robustness.alone)

    def compared(self, former: Learned, latter: Learned) -> Sequence[Improvement]:
        """Retrieval under two states of learning; empty where nothing measures it."""
        return () if self.improve is None else self.improve(former, latter)

    def draw_curves(self, values: Mapping[str, float], version: LearnedVersion) -> None:
        """Add a point to each of the curves over nights, at the number of the version that this one published."""
        if values:
            step = int(version.lstrip("v"))
            self.tracking.extend(EXPERIMENT, CURVES, CURVES_TAGS, values, now=self.now, step=step)

    def page(self, *, dry_run: bool) -> AbstractContextManager[RunRecord]:
        """The run that the night is written to; none for a rehearsal."""
        if dry_run:
            return Rehearsal()
        self.tracking.close_abandoned(EXPERIMENT, TAGS)
        return self.tracking.run(EXPERIMENT, "consolidate", TAGS)

    @contextmanager
    def step(self, page: RunRecord, name: str) -> Iterator[RunRecord]:
        """Announce and time one of `STEPS`, with the run open that it is written to, below that of the night."""
        self.announce(name)
        started = time.perf_counter()
        with page.child(name) as note:
            yield note
        self.seconds[name] = time.perf_counter() - started
