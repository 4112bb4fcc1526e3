"""What a run has done so far, and what it did in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft.domain.ids import GenerationId
from weft.indexes.merge import MergedTables
from weft.runtime.clock import Clock

REJECTED = "rejected:"
"""Prefix of counts by reason."""

LEFT_OUT = "left_out:"
"""Prefix of counts of entries that listing the sources left out, by reason."""

NO_SUMMARY = "summary_crashed"
"""The reason noted for a document that summing up failed at."""

NOTES = frozenset(
    {
        "parser_crashed",
        "parser_timeout",
        "parser_memory",
        "restored",
        "bad_front_matter",
        "bad_sidecar",
        "decoded",
        "flood",
        "left_out",
        "too_many_chunks",
        NO_SUMMARY,
    }
)
"""Reasons noted for documents that were indexed all the same: in plain windows, or without what belongs to them."""


def refused(counts: Mapping[str, int]) -> dict[str, int]:
    """Of counts by reason those of items that did not become documents: the others are notes."""
    return {reason: count for reason, count in counts.items() if reason not in NOTES}


_RECENCY = 2
"""How much more later work weighs: in proportion to how much was done before it; 1 would be the plain mean."""


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """A run under way."""

    phase: str  # what it is doing, for people
    total: int  # Work units
    begun: float  # Seconds on a clock that only runs forward
    now: float
    done: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)  # sums over the units done
    work: float | None = None  # what is left to do in this phase, in whatever work is measured in; None counts units
    worked: float | None = None  # what was done in this phase since its first, in the same measure; None before that
    # seconds for one of it, later work weighing more. Before the first, models load: that is soon forgotten
    pace: float = 0.0
    paced_at: float | None = None  # up to when time is in the pace

    def after(
        self, counts: Mapping[str, int], now: float, *, units: int = 1, work: float | None = None
    ) -> IndexProgress:
        """The progress after one more unit, or several."""
        total = Counter(dict(self.counts))
        total.update(dict(counts))
        return replace(self._paced(units if work is None else work, now), done=self.done + units, counts=dict(total))

    def _paced(self, work: float, now: float) -> IndexProgress:
        if work <= 0.0:
            return replace(self, now=now)
        worked = 0.0 if self.worked is None else self.worked + work
        former = 1.0 - work / worked if worked else 0.0
        last = (now - (self.begun if self.paced_at is None else self.paced_at)) / work
        left = None if self.work is None else max(0.0, self.work - work)
        pace = former**_RECENCY * self.pace + (1.0 - former**_RECENCY) * last
        return replace(self, work=left, worked=worked, pace=pace, paced_at=now, now=now)

    def entering(self, phase: str, now: float, *, work: float | None = None) -> IndexProgress:
        """The progress at the start of another phase, in which so much is to be done."""
        return replace(self, phase=phase, now=now, work=work, worked=None, pace=0.0, paced_at=now)

    @property
    def seconds(self) -> float:
        """How long the run has taken."""
        return self.now - self.begun

    def rate(self, name: str) -> float:
        """How many per second, over the whole run so far."""
        return self.counts.get(name, 0) / self.seconds if self.seconds > 0.0 else 0.0

    @property
    def rejected(self) -> dict[str, int]:
        """Rejected items by reason."""
        return self._by_reason(REJECTED)

    @property
    def left_out(self) -> dict[str, int]:
        """Entries of sources that are not read, by reason."""
        return self._by_reason(LEFT_OUT)

    def _by_reason(self, prefix: str) -> dict[str, int]:
        counts = self.counts.items()
        return dict(sorted((name.removeprefix(prefix), count) for name, count in counts if name.startswith(prefix)))

    @property
    def seconds_left(self) -> float | None:
        """Time that what is left in this phase takes at the pace of what was done; None before the first of it."""
        if self.worked is None:
            return None
        return self.pace * (self.total - self.done if self.work is None else self.work)


class ProgressReporter:
    """Keeps the progress of a run, and reports it after every step."""

    def __init__(self, watch: Callable[[IndexProgress], None], clock: Clock) -> None:
        self._watch = watch
        self._clock = clock
        self.progress = IndexProgress("listing sources", 0, clock(), clock())

    def begin(self, total: int) -> None:
        """Say how many units there are."""
        self.progress = replace(self.progress, total=total)

    def enter(self, phase: str, *, work: float | None = None) -> None:
        """Report the start of a phase."""
        self._report(self.progress.entering(phase, self._clock(), work=work))

    def add(self, counts: Mapping[str, int], *, work: float, units: int = 1) -> None:
        """Report units that are done."""
        self._report(self.progress.after(counts, self._clock(), units=units, work=work))

    def _report(self, progress: IndexProgress) -> None:
        self.progress = progress
        self._watch(progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOutcome:
    """What a run did."""

    generation: GenerationId  # the live generation at its end
    content_hash: str
    published: bool  # whether it was this run that made it; False where the content was live already
    documents: int  # What the generation holds
    chunks: int
    entities: int
    unchanged: int  # documents taken from the generation before, neither cut, read by models nor embedded again
    embedded: int  # Distinct texts per unit by where their vector or mentions came from
    embedding_cache_hits: int
    extracted: int
    entity_cache_hits: int
    skipped: int  # items that did not become documents: all of these rows but those of documents cut by a fallback
    rejected: Mapping[str, int]  # rows of the rejected table by reason
    by_type: Mapping[str, int]  # Documents
    by_domain: Mapping[str, int]
    by_language: Mapping[str, int]
    seconds: float
    # entries of the sources that were not read, by reason (see `tree.SkipReason`); a folder counts once
    left_out: Mapping[str, int] = field(default_factory=dict)
    # declared sources that could not be read, each with its error; their documents stay as they were
    broken: Mapping[str, str] = field(default_factory=dict)
    # A line on each declared relation of the live generation whose target was not found (GRA-1)
    unmet_relations: Sequence[str] = ()


def outcome_of(
    merged: MergedTables,
    progress: IndexProgress,
    *,
    generation: GenerationId,
    content_hash: str,
    published: bool,
    extraction: bool,  # whether entities were wanted
    broken: Mapping[Path, str],
    unmet_relations: Sequence[str] = (),
) -> IndexOutcome:
    """The outcome of a run."""
    counts, rejected = Counter(dict(progress.counts)), merged.summaries["rejected"]
    return IndexOutcome(
        generation=generation,
        content_hash=content_hash,
        published=published,
        documents=merged.counts["documents"],
        chunks=merged.counts["chunks"],
        entities=merged.counts["mentions"],
        unchanged=merged.unchanged,
        embedded=counts["embedded"],
        embedding_cache_hits=counts["embedding_cache_hits"] + merged.unchanged_contents,
        extracted=counts["extracted"],
        entity_cache_hits=counts["entity_cache_hits"] + (merged.unchanged_contents if extraction else 0),
        rejected=rejected,
        skipped=sum(refused(rejected).values()),
        by_type=merged.summaries["by_type"],
        by_domain=merged.summaries["by_domain"],
        by_language=merged.summaries["by_language"],
        seconds=progress.seconds,
        left_out=progress.left_out,
        broken={str(place): error for place, error in broken.items()},
        unmet_relations=unmet_relations,
    )
