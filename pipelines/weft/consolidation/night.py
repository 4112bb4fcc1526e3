"""A night: what it reads and writes, the steps that it is made of, and what they came to so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, TypeVar

from weft.catalog.catalog import Catalog
from weft.consolidation.candidate import Adopted, Proposal
from weft.consolidation.champion import EXPERIMENT, TAGS
from weft.consolidation.improvement import Improve, Improvement
from weft.consolidation.settings import ConsolidationSettings
from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash, VersionName, number_of
from weft.embedding.settings import EmbeddingSettings
from weft.learning.beliefs import Beliefs, believed
from weft.learning.calibration.fit import Look
from weft.learning.calibration.matching import Probe
from weft.learning.calibration.scores import ScoreCalibration
from weft.learning.parts import LearnedVersion, Part, same
from weft.learning.pooling.fit import LoggedSignals
from weft.learning.pooling.fitted import FittedWeights
from weft.learning.priors import Priors
from weft.retrieval.settings import RetrievalSettings
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

CURVES = "retrieval, night by night"
"""The one run that every night adds a point to, so that MLflow draws curves over nights."""

CURVES_TAGS = {"weft.curves": "retrieval"}

Ranking: TypeAlias = Sequence[ContentHash]
"""What a query was answered with, best first, each content once."""

Shadow = Callable[[LearnedVersion], Sequence[Ranking]]
"""The ranking of every query of one fixed set, under the beliefs that follow from what was learned."""

ReadLogged = Callable[[], LoggedSignals]
"""Reads results that something became of from the log of a store, each with its signals."""

_JUDGED_PARTS = (FittedWeights, ScoreCalibration)  # they follow from evidence: without news they are none

T = TypeVar("T")


class NightSettings(Protocol):
    """The sections of the settings that steps read their own from."""

    @property
    def consolidation(self) -> ConsolidationSettings: ...  # noqa: D102  sections say what they are
    @property
    def priors(self) -> Priors: ...  # noqa: D102
    @property
    def embedding(self) -> EmbeddingSettings: ...  # noqa: D102
    @property
    def retrieval(self) -> RetrievalSettings: ...  # noqa: D102


class When(StrEnum):
    """Which nights a step belongs to."""

    ALWAYS = "always"
    FRESH = "fresh"  # those that begin anew: what a killed night published is not looked for again
    JUDGED = "judged"  # those with something to judge: between its first and its last such step the run is open


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step came to."""

    part: Part | None = None  # that becomes the candidate's; None leaves it as it is
    counts: Mapping[str, float] = field(default_factory=dict)  # `proposed` is what the part adds, unless it says so
    applied: float | None = None  # what of it acts once the night goes live; None: all that is proposed
    examples: Sequence[Mapping[str, Any]] = ()  # rows of equal names, the most important first: see `report.page`
    note: str = ""  # a sentence for people
    outcome: object = None  # what later steps ask for by its type


class NightStep(Protocol):
    """Something that a night does; asked once a night, in the order of the list that holds it.

    It changes nothing in the store but what is its alone, and may be killed at any instant: the next night asks again.

    Attributes:
        name: Of its counts, its examples and its run.
        says: What it is at, for people.
    """

    name: ClassVar[str]
    says: ClassVar[str]

    @property
    def when(self) -> When:
        """Which nights it belongs to."""

    def run(self, context: NightContext) -> StepResult:
        """What it finds, given the night and what came before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The store, the tracker, the rules and the steps of one night."""

    catalog: Catalog
    tracking: Tracking
    settings: NightSettings
    steps: Sequence[NightStep]
    now: float  # seconds since the epoch; all beliefs of the night are read at it
    # what the run records of its surroundings, such as the fingerprint of the settings
    facts: Mapping[str, object] = field(default_factory=dict)
    # what the updaters did with their records, by partition
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    shadow: Shadow | None = None  # replays queries for the gate, where there are any
    logged: ReadLogged | None = None  # for the fit of weights, where queries were logged
    improve: Improve | None = None  # measures retrieval under two versions, where there is something to measure it on
    recall: Improve | None = None  # measures what passing over contents costs; without it that is only proposed
    probe: Probe | None = None  # asks queries that have no answer, where there are any
    # tells what is shown, by all channels together and by each alone, where queries were logged
    look: Look | None = None
    announce: Callable[[NightStep], None] = lambda _: None  # told each step before it starts

    def as_of(self, version: VersionName) -> Night:
        """The night that published `version`: taken up again, it reads all beliefs as they were read then."""
        return replace(self, now=self.catalog.learned.manifest(version).created_at)

    def beliefs(self, learned: LearnedVersion) -> Beliefs:
        """What that makes be believed tonight."""
        return believed(self.settings.priors, learned, now=self.now)

    def compared(self, former: LearnedVersion, latter: LearnedVersion) -> Sequence[Improvement]:
        """Retrieval under two versions; empty where nothing measures it."""
        return () if self.improve is None else self.improve(former, latter)

    def recorded(self, *, limit: int) -> list[RecordedRun]:
        """What the newest nights left, the newest first."""
        return self.tracking.recorded(EXPERIMENT, NIGHT, limit=limit)

    def draw_curves(self, values: Mapping[str, float], version: VersionName) -> None:
        """Add a point to each of the curves over nights, at the number of the version that this one published."""
        if values:
            step = number_of(version) or 0
            self.tracking.extend(EXPERIMENT, CURVES, CURVES_TAGS, values, now=self.now, step=step)

    def page(self, *, dry_run: bool) -> AbstractContextManager[RunRecord]:
        """The run that the night is written to; none for a rehearsal."""
        if dry_run:
            return DryRunPage()
        self.tracking.close_abandoned(EXPERIMENT, TAGS)
        return self.tracking.run(EXPERIMENT, NIGHT, TAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightContext:
    """A night under way, as its steps see it."""

    night: Night
    dry_run: bool = False
    adopted: Adopted | None = None  # what another store learned and this night takes over
    unfinished: VersionName | None = None  # what a killed night published, where this one finishes it
    results: Mapping[str, StepResult] = field(default_factory=dict)  # of steps so far, by name
    seconds: Mapping[str, float] = field(default_factory=dict)
    page: RunRecord = field(default_factory=DryRunPage)  # the run that the night is written to, where it is open
    _beliefs: dict[bool, Beliefs] = field(default_factory=dict)  # read once: before and after

    @property
    def catalog(self) -> Catalog:
        """The store's."""
        return self.night.catalog

    @property
    def settings(self) -> NightSettings:
        """The sections that steps read their own from."""
        return self.night.settings

    @property
    def candidate(self) -> Proposal:
        """What the night began with.

        Raises:
            StoreError: Nothing was merged yet.
        """
        if (candidate := self.outcome(Proposal)) is None:
            raise StoreError("expected the step `merge` before all that builds on it, found none")
        return candidate

    @property
    def learned(self) -> LearnedVersion:
        """The candidate with all parts so far; a version that was published stays as it is."""
        learned = self.candidate.learned
        if self.candidate.published is None:
            for part in (result.part for result in self.results.values() if result.part is not None):
                learned = learned.with_part(type(part), part)
        return learned

    @property
    def before(self) -> Beliefs:
        """What the live version makes be believed."""
        return self._read(after=False)

    @property
    def after(self) -> Beliefs:
        """What the candidate makes be believed; asked for once all its parts are there."""
        return self._read(after=True)

    @property
    def is_changed(self) -> bool:
        """Whether there is something to judge: evidence or a part is other than in the version published last."""
        candidate, judged = self.candidate, {kind.name for kind in _JUDGED_PARTS}
        if candidate.published is not None or not candidate.fresh.is_empty:
            return True
        learned, last = self.learned.parts, candidate.last.parts
        names = (learned.keys() | last.keys()) - judged
        return any(not same(learned.get(name), last.get(name)) for name in names)

    @property
    def has_generation(self) -> bool:
        """Whether a generation is live."""
        return self.catalog.pointer().generation is not None

    def outcome(self, kind: type[T]) -> T | None:
        """What a step left for others, by its type; None where none did."""
        return next((each.outcome for each in self.results.values() if isinstance(each.outcome, kind)), None)

    @contextmanager
    def step(self, name: str, seconds: dict[str, float]) -> Iterator[RunRecord]:
        """Time a step, with the run open that it is written to, below that of the night."""
        started = time.perf_counter()
        with self.page.child(name) as note:
            yield note
        seconds[name] = time.perf_counter() - started

    def _read(self, *, after: bool) -> Beliefs:
        if after not in self._beliefs:
            self._beliefs[after] = self.night.beliefs(self.learned if after else self.candidate.live)
        return self._beliefs[after]
