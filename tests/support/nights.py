"""Builders for tests of the night: days of outcomes, as an updater would leave them in a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tests.support.outcomes import observe_outcome
from weft.consolidation.improvement import Improvement, MeanInterval, QuestionSource
from weft.domain.documents import Domain
from weft.domain.ids import content_hash
from weft.domain.ranking import Scope, Signal
from weft.learning.evidence import Evidence
from weft.learning.observe.tallies import Tally


def a_day(day: int, *, outcomes: int = 200, telling: Signal = Signal.LEXICAL, seed: int = 0) -> Evidence:
    """Outcomes of one day, in which one signal tells good results from bad ones and the others know nothing.

    Scores say too much: a result with score s is good with probability s².
    """
    rng = np.random.default_rng([day, seed])
    tally = Tally()
    for number in range(outcomes):
        score = float(rng.random())
        good = bool(rng.random() < score**2)
        signals = {signal.value: float(rng.random()) for signal in Signal}
        signals[telling.value] = float(np.clip(rng.normal(0.8 if good else 0.2, 0.1), 0.0, 1.0))
        observe_outcome(
            tally,
            day=day,
            scope=Scope(list(Domain)[number % len(Domain)]),
            intent="*",
            signals=signals,
            score=score,
            content_hash=content_hash(f"content {number % 50}"),
            good=good,
            weight=1.0,
        )
    return tally.freeze()


def stream(root: Path, partition: int, evidence: Evidence) -> None:
    """Leave evidence as the snapshot of an updater, over the one that was there."""
    path = root / "updaters" / str(partition) / "evidence.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(evidence.to_table(), path, write_page_checksum=True)


def improved(
    measure: str,
    before: float,
    after: float,
    *,
    reach: float = 0.01,
    questions: int = 100,
    source: QuestionSource = QuestionSource.JUDGED,
) -> Improvement:
    """A measurement whose interval of the change reaches so far either way."""
    change = after - before
    return Improvement(
        measure=measure,
        source=source,
        before=MeanInterval(before, before - 0.05, before + 0.05),
        after=MeanInterval(after, after - 0.05, after + 0.05),
        change=MeanInterval(change, change - reach, change + reach),
        questions=questions,
        significant=abs(change) > reach,
    )
