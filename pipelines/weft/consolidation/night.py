"""What a night reads and writes, and the run that it is written to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from weft.catalog.catalog import Catalog
from weft.consolidation.candidate import Proposal
from weft.consolidation.champion import EXPERIMENT, TAGS
from weft.consolidation.citations.refresh import RefreshCitations
from weft.consolidation.fitting import Fitting, ReadLogged, fitting_of
from weft.consolidation.gate import Shadow
from weft.consolidation.improvement import Improve, Improvement
from weft.consolidation.settings import ConsolidationSettings
from weft.consolidation.tending.contradictions import FindContradictions
from weft.consolidation.tending.duplicates import FindDuplicates
from weft.consolidation.tending.links import FindLinks
from weft.consolidation.tending.rebuild import Rebuild
from weft.consolidation.tending.succession import FindSuccessions
from weft.consolidation.tending.thinning import FindThinned
from weft.domain.ids import ContentHash, VersionName
from weft.learning.beliefs import Beliefs, read_beliefs
from weft.learning.calibration.fit import Look
from weft.learning.calibration.matching import MatchBins, Probe, match_bins
from weft.learning.calibration.scores import ScoreBins, score_bins
from weft.learning.evidence import Evidence
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.learning.observe.allowances import within_allowances
from weft.learning.observe.triggers import LearnedTrigger, read_triggers
from weft.learning.pooling.fitted import Learned
from weft.learning.priors import LearningSettings, Priors
from weft.runtime.clock import day_of
from weft.runtime.mlflow.runs import RecordedRun

if TYPE_CHECKING:
    from weft.runtime.mlflow.tracking import TrackedRun, Tracking  # seconds to import


class DryRunPage:
    """The page of a night that changes nothing: it keeps nothing."""

    run_id = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None: ...

    def child(self, _name: str) -> DryRunPage:
        """Itself."""
        return self

    def _ignore(self, *arguments: Any, **options: Any) -> None: ...

    parameters = metrics = picture = table = page = document = file = note = _ignore


RunRecord: TypeAlias = "TrackedRun | DryRunPage"
"""Where a night is written down."""

NIGHT = "consolidate"
"""The name of the run that a night is written to."""

TendLessons = Callable[[LessonBeliefs, bool], Mapping[str, float]]
"""Says which lessons are one, given what is believed and whether nothing may change; counts what came of it."""

CURVES = "retrieval, night by night"
"""The one run that every night adds a point to, so that MLflow draws curves over nights."""

CURVES_TAGS = {"weft.curves": "retrieval"}

STEPS = (
    "citations",
    "merge",
    "duplicates",
    "contradictions",
    "links",
    "expiry",
    "thinning",
    "recalibrate",
    "lessons",
    "gate",
    "publish",
    "report",
    "rebuild",
)

DOING = {
    "citations": "asking providers how much documents are relied on",
    "merge": "folding what was streamed into the base",
    "duplicates": "looking for near-duplicates across documents",
    "contradictions": "looking for contents that say opposite things",
    "links": "linking what is similar and what was used together",
    "expiry": "letting go of aliases and edges whose contents are gone",
    "thinning": "looking for chunks far from what their documents are about",
    "recalibrate": "checking what confidences are worth",
    "lessons": "measuring what lessons came to, and merging those that say the same",
    "gate": "comparing with what is live",
    "publish": "publishing and registering",
    "report": "drawing and writing the report",
    "rebuild": "cutting documents anew, where other sizes are believed in",
}
"""What a step is at, for people."""

TextLookup: TypeAlias = Callable[[Sequence[ContentHash]], Mapping[ContentHash, str]]
"""The texts of contents; of those that what is live lacks, none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The store, the tracker and the rules of one night."""

    catalog: Catalog
    tracking: Tracking
    priors: Priors
    learning: LearningSettings
    rules: ConsolidationSettings
    now: float  # seconds since the epoch; all beliefs of the night are read at it
    # what the run records of its surroundings, such as the fingerprint of the settings
    facts: Mapping[str, object] = field(default_factory=dict)
    shadow: Shadow | None = None  # replays queries for the gate, where there are any
    # reads results that something became of, for the fit of weights, where queries were logged
    logged: ReadLogged | None = None
    # measures retrieval under two states of evidence, where there is something to measure it on
    improve: Improve | None = None
    probe: Probe | None = None  # asks queries that have no answer, where there are any
    # tells what is shown, by all channels together and by each alone, where queries were logged
    look: Look | None = None
    # finds what supersedes what of what is live; None where nothing looks for it
    successions: FindSuccessions | None = None
    duplicates: FindDuplicates | None = None  # finds near-duplicates of what is live; None leaves aliases as they are
    # finds them among what is near and no duplicate; None leaves such edges as they are
    contradictions: FindContradictions | None = None
    # finds what is similar and what was used together; None leaves such edges as they are
    links: FindLinks | None = None
    thinning: FindThinned | None = None  # finds what could be passed over; None leaves it as it is
    recall: Improve | None = None  # measures what that costs; where nothing measures it, it is only proposed
    # cuts the live generation anew where sizes are not believed any more; None where nothing is live
    rebuild: Rebuild | None = None
    # merges lessons that say the same and counts the others; None leaves them as they are
    tend_lessons: TendLessons | None = None
    citations: RefreshCitations | None = None  # refreshes what providers count; None where none is on
    texts: TextLookup | None = None  # reads the texts of contents for the report; None where nothing is live
    # what the updaters did with their records, by partition
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # what each step took so far, by its name
    announce: Callable[[str], None] = lambda _: None  # told the name of each step before it starts

    def as_of(self, version: VersionName) -> Night:
        """The night that published `version`: taken up again, it reads all beliefs as they were read then."""
        return replace(self, now=self.catalog.learned.manifest(version).created_at)

    def beliefs(self, learned: Learned) -> Beliefs:
        """What that makes be believed tonight."""
        evidence, fitted, aliases, *_ = learned
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
        return within_allowances(evidence, alone=self.priors.robustness.alone)

    def compared(self, former: Learned, latter: Learned) -> Sequence[Improvement]:
        """Retrieval under two states of learning; empty where nothing measures it."""
        return () if self.improve is None else self.improve(former, latter)

    def triggers_of_live(self, candidate: Proposal) -> Sequence[LearnedTrigger]:
        """Learned triggers under the live version when it was made; none before the first."""
        if candidate.parent is None:
            return ()
        then = self.catalog.learned.manifest(candidate.parent).created_at
        return read_triggers(self.priors.triggers, candidate.former, day_of(then)).every()

    def recorded(self, *, limit: int) -> list[RecordedRun]:
        """What the newest nights left, the newest first."""
        return self.tracking.recorded(EXPERIMENT, NIGHT, limit=limit)

    def draw_curves(self, values: Mapping[str, float], version: VersionName) -> None:
        """Add a point to each of the curves over nights, at the number of the version that this one published."""
        if values:
            step = int(version.lstrip("v"))
            self.tracking.extend(EXPERIMENT, CURVES, CURVES_TAGS, values, now=self.now, step=step)

    def page(self, *, dry_run: bool) -> AbstractContextManager[RunRecord]:
        """The run that the night is written to; none for a rehearsal."""
        if dry_run:
            return DryRunPage()
        self.tracking.close_abandoned(EXPERIMENT, TAGS)
        return self.tracking.run(EXPERIMENT, NIGHT, TAGS)

    @contextmanager
    def step(self, page: RunRecord, name: str) -> Iterator[RunRecord]:
        """Announce and time one of `STEPS`, with the run open that it is written to, below that of the night."""
        self.announce(name)
        started = time.perf_counter()
        with page.child(name) as note:
            yield note
        self.seconds[name] = time.perf_counter() - started
