"""What an operator watches, as Prometheus text: one file that any agent can scrape (FBK-12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.feedback.fold.names import BLAME, IMPRESSION, OUTCOMES, PRAISE, SWEEP, NameKind, SourceCounts
from weft.feedback.publish.snapshot import NAME, rows_of
from weft.feedback.run.partitions import partition_folder, states_in
from weft.feedback.run.updater import PartitionProgress
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.checkpoints import checkpoints_in
from weft.feedback.store.report import losses_in
from weft.feedback.store.state import STATE_FILE
from weft.feedback.store.tables import WaitingQuery, sessions_shown_in, source_counts_in, waiting_in
from weft.runtime.storage.files import write_atomically

METRICS_FILE = "logs/feedback.prom"
"""In a store, replaced whole about once a second while updaters run."""

# When a source is flagged: below so many answers or verdicts it may be chance.
LEAST_IMPRESSIONS, LEAST_VERDICTS = 100, 20
_RATE_FACTOR = 5.0  # times as many verdicts per answer as others

_COUNTERS = ("consumed", "applied", "duplicate", "dead_lettered", "late", "skipped", "holes", "unjoined", "dropped")


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one metric of one partition."""

    name: str
    kind: str
    labels: tuple[tuple[str, str], ...]
    value: float


@dataclass(frozen=True, slots=True)
class SourceActivity:
    """How one source compares with all others of its kind."""

    kind: str
    name: str
    impressions: int
    seen: Mapping[str, float]  # events per impression by type; by itself where there are no impressions
    expected: Mapping[str, float]  # the same over all other sources of its kind
    flags: tuple[str, ...]  # what is wrong with it, in words


def partition_progress(store: Path, rules: FeedbackSettings) -> tuple[list[PartitionProgress], list[SourceActivity]]:
    """Where the partitions of a store stand, without their lag, and its sources, those with flags first."""
    all_progress: list[PartitionProgress] = []
    counts: SourceCounts = Counter()
    for state in states_in(store, rules):
        all_progress.append(PartitionProgress(state.report(), None))
        counts.update(state.read(source_counts_in))
    return all_progress, compare_sources(counts)


def losses_of(store: Path, rules: FeedbackSettings) -> list[dict[str, Any]]:
    """What the partitions of a store gave up of their logs, for machines."""
    return [
        {"partition": state.partition, **loss._asdict()}
        for state in states_in(store, rules)
        for loss in state.read(losses_in)
    ]


@dataclass(frozen=True, slots=True)
class UnmetQuery:
    """A query that feedback waits for in vain so far, and why."""

    waiting: WaitingQuery
    shown_in: str | None  # the session that a query of this id was shown in; None where none was

    @property
    def advice(self) -> str:
        """What is wrong with it, and what to do."""
        if self.shown_in is None:
            return "no such query was shown: does its search service send impressions (`producer.emit`)?"
        if self.shown_in == self.waiting.session_id:
            return "shown in another partition: a record's key is its session id"
        return f"shown in session {self.shown_in}: send it with the answer's token, which says so"


NAMED_QUERIES = 5
"""Queries that feedback waits for which are named: as many as a person looks into."""


def unmet_queries(store: Path, rules: FeedbackSettings) -> tuple[list[WaitingQuery], list[UnmetQuery]]:
    """What feedback in a store waits for, the longest first, and more of the first few."""
    waiting = sorted(
        (each for state in states_in(store, rules) for each in state.read(waiting_in)), key=lambda each: each.since_ms
    )
    named = waiting[:NAMED_QUERIES]
    wanted, shown_in = {each.query_id for each in named}, dict[str, str]()
    if wanted:
        for state in states_in(store, rules):
            shown_in |= state.read(sessions_shown_in, wanted)
    return waiting, [UnmetQuery(each, shown_in.get(each.query_id)) for each in named]


class EventRates:
    """Events per second of every partition, between one look and the one before it."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[float, int]] = {}

    def of(self, all_progress: Sequence[PartitionProgress], *, at: float) -> Mapping[int, float]:
        """By partition, those that were looked at before."""
        paces: dict[int, float] = {}
        for report in (progress.report for progress in all_progress):
            then, consumed = self._before.get(report.partition, (at, report.consumed))
            if at > then:
                paces[report.partition] = (report.consumed - consumed) / (at - then)
            self._before[report.partition] = (at, report.consumed)
        return paces


def samples(
    store: Path, all_progress: Sequence[PartitionProgress], *, now: float, paces: Mapping[int, float] | None = None
) -> list[Sample]:
    """Everything that is known of partitions without asking a broker again."""
    by_pace = (Sample("events_per_second", "gauge", _label(each), pace) for each, pace in (paces or {}).items())
    return [*(sample for progress in all_progress for sample in _of(store, progress, now)), *by_pace]


def prometheus(metrics: Iterable[Sample]) -> str:
    """The text exposition format, metrics by name."""
    lines: list[str] = []
    named = ""
    for sample in sorted(metrics, key=lambda each: (each.name, each.labels)):
        if sample.name != named:
            lines.append(f"# TYPE weft_feedback_{sample.name} {sample.kind}")
            named = sample.name
        labels = ",".join(f'{name}="{value}"' for name, value in sample.labels)
        lines.append(f"weft_feedback_{sample.name}{{{labels}}} {sample.value:.15g}")
    return "".join(f"{line}\n" for line in lines)


def write_metrics(
    store: Path, all_progress: Sequence[PartitionProgress], *, now: float, paces: Mapping[int, float] | None = None
) -> Path:
    """Replace the file that scrapers read."""
    path = store / METRICS_FILE
    write_atomically(path, prometheus(samples(store, all_progress, now=now, paces=paces)).encode())
    return path


def _label(partition: int) -> tuple[tuple[str, str]]:
    return (("partition", str(partition)),)


def _of(store: Path, progress: PartitionProgress, now: float) -> Iterator[Sample]:
    report = progress.report
    partition = _label(report.partition)
    folder = partition_folder(store, report.partition)
    if progress.answers is not None:
        yield Sample("broker_answers", "gauge", partition, progress.answers)
    if progress.lag is not None:
        yield Sample("lag_records", "gauge", partition, progress.lag)
    if progress.answers is not None:
        yield Sample("open_transaction_seconds", "gauge", partition, progress.open_transaction_s or 0.0)
    for name in _COUNTERS:
        yield Sample(f"{name}_total", "counter", partition, getattr(report, name))
    for reason, count in report.reasons.items():
        yield Sample("dead_letters_total", "counter", (*partition, ("reason", reason)), count)
    yield Sample("dead_letters_waiting", "gauge", partition, report.dead_letters_waiting)
    yield Sample("lost_records_total", "counter", partition, report.lost)
    yield Sample("waiting_events", "gauge", partition, report.waiting)
    yield Sample("open_sessions", "gauge", partition, report.open_sessions)
    yield Sample("state_bytes", "gauge", partition, (folder / STATE_FILE).stat().st_size)
    if (snapshot := folder / NAME).exists():
        yield Sample("evidence_rows", "gauge", partition, rows_of(snapshot))
        yield Sample("evidence_bytes", "gauge", partition, snapshot.stat().st_size)
    for newest in checkpoints_in(folder)[:1]:
        yield Sample("checkpoint_age_seconds", "gauge", partition, max(0.0, now - newest.stat().st_mtime))
        yield Sample("checkpoint_behind_records", "gauge", partition, report.next_offset - int(newest.name))


def compare_sources(counts: SourceCounts) -> list[SourceActivity]:
    """Every source beside all others of its kind, those with flags first."""
    totals: dict[str, Counter[str]] = {}
    sources: dict[tuple[str, str], Counter[str]] = {}
    for (kind, name, what), events in counts.items():
        totals.setdefault(kind, Counter())[what] += events
        sources.setdefault((kind, name), Counter())[what] += events
    activities = [_activity(kind, name, counts, totals[kind]) for (kind, name), counts in sources.items()]
    return sorted(activities, key=lambda source: (not source.flags, source.kind, source.name))


def _activity(kind: str, name: str, counts: Counter[str], total: Counter[str]) -> SourceActivity:
    others = Counter({what: total[what] - counts[what] for what in total})
    seen, expected = _rates(counts, total), _rates(others, total)
    flags = []
    if counts[IMPRESSION] >= LEAST_IMPRESSIONS and not any(counts[what] for what in OUTCOMES):
        flags.append("shows results and reports no outcome")
    if counts[PRAISE] >= LEAST_VERDICTS and not counts[BLAME]:
        flags.append("reports only praise")
    if kind == NameKind.PRINCIPAL and (pages := counts[SWEEP]):
        flags.append(f"opens all of a page, or much of it at once, which counts for nothing (pages: {pages:,})")
    if counts[PRAISE] + counts[BLAME] >= LEAST_VERDICTS and others[IMPRESSION] >= LEAST_IMPRESSIONS:
        own, usual = (rates.get(PRAISE, 0.0) + rates.get(BLAME, 0.0) for rates in (seen, expected))
        if own > _RATE_FACTOR * usual > 0.0:
            flags.append(f"reports {own / usual:.0f} times as many verdicts per answer as others")
    return SourceActivity(kind, name, counts[IMPRESSION], seen, expected, tuple(flags))


def _rates(counts: Counter[str], of: Iterable[str]) -> dict[str, float]:
    return {what: counts[what] / max(counts[IMPRESSION], 1) for what in sorted(of) if what != IMPRESSION}
