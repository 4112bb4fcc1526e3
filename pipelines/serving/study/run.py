"""A study: measure, let users teach, and measure again (EVA-6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pipelines.evaluation.measures.beir import Dataset
from pipelines.evaluation.simulation.study import averaged, row
from pipelines.learning.evidence import Evidence
from pipelines.runtime.kafka.broker import EmbeddedBroker
from pipelines.serving.collections import indexed
from pipelines.serving.study.bench import HIDDEN, Bench, baselines, measure_probabilities
from pipelines.serving.study.report import Studied
from pipelines.serving.study.sessions import scaled_to_days, taught
from pipelines.serving.updaters import apart
from pipelines.settings import Settings

PRIOR = "weft at its priors"
WITH_USAGE = ", with usage"
"""What the row is named by, behind its sessions, in which what is known of single contents counts."""


def run(
    lessons: Dataset,
    held_out: Dataset,
    settings: Settings,
    marks: Sequence[int],
    strangers: Sequence[Dataset] = (),
    *,
    bare: bool = False,
    probabilities: bool = True,
) -> Studied:
    """Measure, teach and measure again, in a store of its own that is gone afterwards.

    Args:
        settings: With `simulation.deals`, of whose measures by query means are taken; evidence is that of the first.
        bare: Leave out what does not depend on learning, and what its probabilities are worth: less than half the time.
        probabilities: Whether to look at what they are worth; not where it is bare.
    """
    stored = indexed(held_out, settings)
    with _streamed(stored, marks) as streamed:
        bench = Bench(streamed, held_out)
        values, weight = ({}, None) if bare else baselines(bench, lessons)
        values[PRIOR] = bench.values(Evidence(), hidden=HIDDEN)
        taught_by = [taught(streamed, lessons, bench.encoders, marks)]
        taught_by += (_taught_anew(stored, lessons, bench, marks, deal) for deal in range(1, settings.simulation.deals))
        dealt = {
            f"{count:,} sessions": [bench.values(each[count], hidden=HIDDEN) for each in taught_by] for count in marks
        }
        dealt[f"{marks[-1]:,} sessions{WITH_USAGE}"] = [bench.values(each[marks[-1]]) for each in taught_by]
        values |= {name: averaged(of_deals) for name, of_deals in dealt.items()}
        looked_at = taught_by if probabilities and not bare else []
        worth = [measure_probabilities(bench, lessons, each[marks[-1]], strangers) for each in looked_at]
        weights = {PRIOR: bench.weights(Evidence())}
        weights |= {
            f"{count:,} sessions": averaged([bench.weights(each[count]) for each in taught_by]) for count in marks
        }
    after = list(values)[list(values).index(PRIOR) + 1 :]
    rows = [
        row(
            name,
            measured,
            settings.evaluation,
            against=values[PRIOR] if name in after else None,
            weights=weights.get(name),
            deals=dealt.get(name, ()),
        )
        for name, measured in values.items()
    ]
    return Studied(rows, values, weight, taught_by[0], worth)


@contextmanager
def _streamed(stored: Settings, marks: Sequence[int]) -> Iterator[Settings]:
    """A store and a broker of its own for one deal of users, which are gone afterwards."""
    with apart(stored) as own, EmbeddedBroker() as broker:
        kafka = own.kafka.model_copy(update={"bootstrap": broker.bootstrap})
        yield scaled_to_days(own.model_copy(update={"kafka": kafka}), marks[-1])


def _taught_anew(
    stored: Settings, lessons: Dataset, bench: Bench, marks: Sequence[int], deal: int
) -> dict[int, Evidence]:
    """The evidence at every mark after other users, who begin with nothing learned."""
    with _streamed(stored, marks) as streamed:
        return taught(streamed, lessons, bench.encoders, marks, deal=deal)
