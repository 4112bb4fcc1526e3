"""What learning is worth: simulated users ask queries of one split, retrieval is measured on another that nobody asked.

    python -m jobs.study --dataset DIR --learn-from train --split test [--sessions 100,500,2000,all] [--random 0.2]
        [--adversarial 0.1] [--deals 5] [--hold-out 0.5] [--foreign DIR:SPLIT] [--bare] [--json]
        [--set retrieval.rerank.late_interaction=false]

Every session is a user who asks one query, reads, opens and judges what is shown; what they do travels through Kafka to
the updaters, and what the updaters learned ranks what later users are shown. The table sets beside it each channel
alone, reciprocal rank fusion, and the best fixed convex combination tuned on the queries that were learned from. What
is known of single contents (usage) is left out of every row but the last one: held-out queries may ask for the same.
Who asks what, and does what about it, is drawn: with `--deals` as often, each time from nothing, and means are told.
A study takes minutes and stands for days, of `simulation.sessions_a_day` each: what a day brings is capped for those.
Exit codes: 0 measured, 1 with a reason (unreadable data set, no such split), 2 usage.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from jobs import _job, evaluate
from jobs._background import apart
from jobs._probing import probed, shown
from jobs._replay import remembering_engines
from jobs._study_report import CONVEX, Studied, calibrated, described, table
from jobs._teaching import AGENT, taught
from jobs._users import PAGE, standing_for_days
from pipelines.consolidation.recalibrate import curves_of
from pipelines.domain.errors import SourceError
from pipelines.domain.matching import Match
from pipelines.domain.ranking import Answer, Channel, Query, Scope, Signal
from pipelines.evaluation.measures.answerable import Held, held, judged_bins
from pipelines.evaluation.measures.beir import Dataset, JudgedQuery, Qrels, read_dataset
from pipelines.evaluation.measures.measuring import asked
from pipelines.evaluation.measures.runs import Run, as_ranked
from pipelines.evaluation.replay.replay import Replay
from pipelines.evaluation.simulation.study import Values, averaged, best_weight, convex, dealt_apart, headline, row
from pipelines.learning.beliefs import Beliefs, read_beliefs
from pipelines.learning.calibration.fit import ShownResults, calibrate_matches, carried_over
from pipelines.learning.calibration.matching import MatchCalibration, answering_from, match_bins
from pipelines.learning.evidence import Evidence
from pipelines.retrieval.settings import FusionMode, RetrievalSettings
from pipelines.retrieval.snapshot.snapshot import Snapshot
from pipelines.runtime.clock import system_clock
from pipelines.runtime.kafka.broker import EmbeddedBroker
from pipelines.runtime.ray.cluster import connect
from pipelines.serving.engines import source_of
from pipelines.serving.terminal import Conf, Store, tell
from pipelines.settings import Settings

PRIOR = "weft at its priors"
WITH_USAGE = ", with usage"
"""What the row is named by, behind its sessions, in which what is known of single contents counts."""
ALL = "all"
_CONVEX = np.linspace(0.0, 1.0, 21)  # weights of the lexical signal that are tried
_STRANGERS = 200  # queries of another data set that are asked
_TUNED_ON = 500  # queries at most that the fixed combination is tuned on
_HIDDEN = (Signal.USAGE, Signal.PRECEDENT)
_BASELINES: Mapping[str, Mapping[str, Any]] = {
    "BM25": {"channels": (Channel.LEXICAL,), "fusion": FusionMode.RRF},
    "dense": {"channels": (Channel.DENSE,), "fusion": FusionMode.RRF},
    "RRF": {"channels": (Channel.DENSE, Channel.LEXICAL), "fusion": FusionMode.RRF},
}
_WAYS: Mapping[str, Mapping[str, Any]] = {
    "both channels": {},
    "by reciprocal ranks": {"fusion": FusionMode.RRF},
    "by relative scores": {"fusion": FusionMode.RSF},
    "by distributions of scores": {"fusion": FusionMode.DBSF},
    "dense alone": {"channels": (Channel.DENSE,)},
    "lexical alone": {"channels": (Channel.LEXICAL,)},
}
"""Ways to search over which a probability should mean the same."""


def study(
    dataset: Annotated[Path, typer.Option("--dataset", help="Folder with corpus, queries and qrels/.")],
    learn_from: Annotated[str, typer.Option("--learn-from", help="Which judgements users know.")] = "train",
    split: Annotated[str, typer.Option("--split", help="Which judgements are measured, and never asked.")] = "test",
    sessions: Annotated[
        str, typer.Option("--sessions", help="Measured after so many; all is simulation.sessions.")
    ] = "100,500,2000,all",
    random_users: Annotated[
        float | None, typer.Option("--random", help="Share of users who judge at random; default simulation.random.")
    ] = None,
    adversarial: Annotated[
        float | None,
        typer.Option("--adversarial", help="Share who praise what is wrong; default simulation.adversarial."),
    ] = None,
    deals: Annotated[
        int | None, typer.Option("--deals", help="Draws of users; default simulation.deals.", min=1)
    ] = None,
    foreign: Annotated[
        list[str], typer.Option("--foreign", help="DIR:SPLIT, whose queries have no answer here; repeatable.")
    ] = [],
    hold_out: Annotated[
        float,
        typer.Option(
            "--hold-out", min=0.0, max=1.0, help="Share of the queries to learn from that is measured as well, unasked."
        ),
    ] = 0.0,
    bare: Annotated[
        bool, typer.Option("--bare", help="Learning alone: no other ways to rank beside it, no probabilities.")
    ] = False,
    conf: Conf = [],
    assignments: _job.Assignments = [],
    store: Store = None,
    as_json: _job.AsJson = False,
) -> None:
    """Measure what learning from simulated users is worth on queries that were never shown."""
    if bare and foreign:
        raise typer.BadParameter("--foreign is about probabilities, which --bare leaves out: give one of them")
    elsewhere = [_place_of(each) for each in foreign]
    named = {"random": random_users, "adversarial": adversarial, "deals": deals}
    chosen = [f"simulation.{name}={value}" for name, value in named.items() if value is not None]
    settings = evaluate.measuring(_job.settings_of(conf, [*assignments, *chosen], store))
    marks = marks_of(sessions, settings)
    lessons, held_out = read_dataset(dataset, learn_from), read_dataset(dataset, split)
    lessons, held_out = dealt_apart(lessons, held_out, hold_out, random.Random(settings.evaluation.seed))  # noqa: S311
    for part in (lessons, held_out):
        if not part.queries:
            raise SourceError(f"{part.name} {part.split}: expected queries to learn from and others to ask, found none")
    strangers = [read_dataset(folder, part) for folder, part in elsewhere]
    found = run(lessons, held_out, settings, marks, strangers, bare=bare)
    tell(table(f"{held_out.name} {split}, learned from {learn_from}", found))
    if found.held:
        tell(calibrated(found.held))
    _job.emit(described(held_out, learn_from, found), as_json=as_json)


def _place_of(text: str) -> tuple[Path, str]:
    folder, _, part = text.rpartition(":")
    if not folder or not part:
        raise typer.BadParameter(f"--foreign takes DIR:SPLIT, found {text!r}")
    return Path(folder), part


def marks_of(text: str, settings: Settings) -> list[int]:
    """Numbers of sessions in a list such as "100,500,all".

    Raises:
        BadParameter: One of them is neither a number from 1 on nor "all".
    """
    names = [name.strip() for name in text.split(",")]
    if not all(name == ALL or (name.isdecimal() and int(name) > 0) for name in names):
        raise typer.BadParameter(f"expected numbers of sessions or {ALL!r}, separated by commas, found {text!r}")
    return sorted({settings.simulation.sessions if name == ALL else int(name) for name in names})


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
    stored = evaluate.indexed(held_out, settings, before=lambda: connect(settings.cluster))
    with _streamed(stored, marks) as streamed:
        bench = _Bench(streamed, held_out)
        values, weight = ({}, None) if bare else _baselines(bench, lessons)
        values[PRIOR] = bench.values(Evidence(), hidden=_HIDDEN)
        taught_by = [taught(streamed, lessons, bench.encoders, marks)]
        taught_by += (_taught_anew(stored, lessons, bench, marks, deal) for deal in range(1, settings.simulation.deals))
        dealt = {
            f"{count:,} sessions": [bench.values(each[count], hidden=_HIDDEN) for each in taught_by] for count in marks
        }
        dealt[f"{marks[-1]:,} sessions{WITH_USAGE}"] = [bench.values(each[marks[-1]]) for each in taught_by]
        values |= {name: averaged(of_deals) for name, of_deals in dealt.items()}
        looked_at = taught_by if probabilities and not bare else []
        worth = [_held(bench, lessons, each[marks[-1]], strangers) for each in looked_at]
        weights = {PRIOR: bench.weights(Evidence())}
        weights |= {
            f"{count:,} sessions": averaged([bench.weights(each[count]) for each in taught_by]) for count in marks
        }
    after = list(values)[list(values).index(PRIOR) + 1 :]
    rows = [
        row(
            name,
            found,
            settings.evaluation,
            against=values[PRIOR] if name in after else None,
            weights=weights.get(name),
            deals=dealt.get(name, ()),
        )
        for name, found in values.items()
    ]
    return Studied(rows, values, weight, taught_by[0], worth)


@contextmanager
def _streamed(stored: Settings, marks: Sequence[int]) -> Iterator[Settings]:
    """A store and a broker of its own for one deal of users, which are gone afterwards."""
    with apart(stored) as own, EmbeddedBroker() as broker:
        kafka = own.kafka.model_copy(update={"bootstrap": broker.bootstrap})
        yield standing_for_days(own.model_copy(update={"kafka": kafka}), marks[-1])


def _taught_anew(
    stored: Settings, lessons: Dataset, bench: _Bench, marks: Sequence[int], deal: int
) -> dict[int, Evidence]:
    """The evidence at every mark after other users, who begin with nothing learned."""
    with _streamed(stored, marks) as streamed:
        return taught(streamed, lessons, bench.encoders, marks, deal=deal)


class _Bench:
    """Answers the held-out queries under any evidence, asking encoders and indexes for each of them once."""

    def __init__(self, settings: Settings, dataset: Dataset) -> None:
        self.settings = settings
        self.dataset = dataset
        self.encoders = remembering_engines(settings).encoders
        self._now, rules = system_clock(), settings.evaluation
        snapshot = source_of(settings).take(None)
        self._replay = Replay(
            snapshot, self.encoders, settings.retrieval, now=self._now, batch=rules.batch, most=rules.remembered
        )
        self._snapshot = self._replay.snapshot
        self.document_id = evaluate.document_id(dataset)

    def answers(self, queries: Sequence[JudgedQuery], *, k: int = PAGE, **changes: Any) -> list[Answer]:
        """Answers under the priors alone, with some settings of retrieval changed."""
        changed = self.settings.retrieval.model_copy(update=dict(changes))
        return list(self._replay(self._pages_of(queries, k), settings=changed))

    def probed(self) -> list[list[Match]]:
        """The best match of queries that have no answer, by kind, as a night asks them."""
        rules = self.settings.consolidation.calibration
        return probed(
            lambda queries: list(self._replay(queries)),
            self._snapshot.generation,
            rules,
            k=self.settings.retrieval.rerank.depth,
        )

    def shown(self, queries: Sequence[JudgedQuery], evidence: Evidence) -> ShownResults:
        """What is shown under what the evidence says, as a night asks for it."""
        asking = self._pages_of(queries, PAGE)
        hidden = (*self.settings.retrieval.without_signals, *_HIDDEN)
        retrieval = self.settings.retrieval.model_copy(update={"without_signals": hidden})
        snapshot = replace(self._snapshot, beliefs=self._beliefs(evidence))
        settings = self.settings.model_copy(update={"retrieval": retrieval})
        return shown(self._replay.otherwise(retrieval, snapshot), settings, asking)

    def names(self, answers: Sequence[Answer]) -> dict[str, list[str]]:
        """Ids that judgements name each content by."""
        return {
            str(result.content_hash): [self.document_id(uri) for uri in result.uris]
            for answer in answers
            for result in answer.results
        }

    def run_of(self, answers: Sequence[Answer]) -> Run:
        depth = self.settings.evaluation.depth
        return {
            answer.query.query_id: as_ranked(answer.results, depth, document_id=self.document_id) for answer in answers
        }

    def values(self, evidence: Evidence, *, hidden: Sequence[Signal] = ()) -> Values:
        """The headline measure on the held-out queries under what the evidence says."""
        asking, settings, snapshot = self._asking(evidence, hidden)
        rankings = self._replay.rankings(asking, settings=settings, snapshot=snapshot)
        run: Run = {
            query.query_id: as_ranked(placed, self.settings.evaluation.depth, document_id=self.document_id)
            for query, placed in zip(asking, rankings, strict=True)
        }
        return headline(run, self.dataset.qrels)

    def learned(self, evidence: Evidence, *, hidden: Sequence[Signal] = ()) -> list[Answer]:
        """Answers to the held-out queries under what the evidence says."""
        asking, settings, snapshot = self._asking(evidence, hidden)
        return list(self._replay(asking, settings=settings, snapshot=snapshot))

    def weights(self, evidence: Evidence) -> Mapping[str, float]:
        """What the evidence says each signal of similarity should weigh, in the domain of the corpus."""
        first = self.answers(self.dataset.queries[:1])[0].results
        told = {signal for result in first for signal in result.signals} - set(_HIDDEN)
        scope = Scope(first[0].domain, agent=AGENT)
        return {signal.value: belief.mean for signal, belief in self._beliefs(evidence).weights(scope, told).items()}

    def _asking(self, evidence: Evidence, hidden: Sequence[Signal]) -> tuple[list[Query], RetrievalSettings, Snapshot]:
        """The held-out queries, and what they are asked under for the sake of what the evidence says."""
        hidden = (*self.settings.retrieval.without_signals, *hidden)
        settings = self.settings.retrieval.model_copy(update={"without_signals": hidden})
        return (
            self._pages_of(self.dataset.queries, PAGE),
            settings,
            replace(self._snapshot, beliefs=self._beliefs(evidence)),
        )

    def _pages_of(self, queries: Sequence[JudgedQuery], k: int) -> list[Query]:
        return [replace(asked(query, self.settings.evaluation), k=k, agent=AGENT) for query in queries]

    def _beliefs(self, evidence: Evidence) -> Beliefs:
        return read_beliefs(self.settings.priors, evidence, now=self._now)


def _held(bench: _Bench, lessons: Dataset, evidence: Evidence, strangers: Sequence[Dataset]) -> Held:
    """What the judgements of the queries learned from make of held-out queries, and of those of other data sets."""
    rules, bins = bench.settings.consolidation.calibration, bench.settings.learning.relevance_bins
    verdicts = match_bins(evidence, bench.settings.priors, now=system_clock())
    known = _some(lessons, bench.settings)
    taught, looked = bench.answers(known), bench.shown(known, evidence)
    judged = judged_bins(taught, lessons.qrels, bench.names(taught))
    fit = calibrate_matches(judged, None, folds=rules.folds, seed=rules.seed, least_gain=rules.least_gain).calibration
    fit = carried_over(fit, looked.alone, least=rules.minimum_observations)
    told = curves_of(verdicts, bench.settings.priors.verdicts, rules, lambda: looked)
    from_verdicts = told or MatchCalibration(None, None, None)
    bound, confidence = rules.answering_bound, rules.answering_confidence
    answering = answering_from(bench.probed(), bound=bound, confidence=confidence)
    without = {each.name: bench.answers(_strange(each)) for each in strangers}
    answers = {name: bench.answers(bench.dataset.queries, **changes) for name, changes in _WAYS.items()}
    answers["as learned"] = bench.learned(evidence, hidden=_HIDDEN)
    names = bench.names([answer for some in answers.values() for answer in some])
    calibration = replace(fit, answering=answering)
    return held(calibration, from_verdicts, answers, bench.dataset.qrels, without, bins=bins, names=names)


def _some(lessons: Dataset, settings: Settings) -> list[JudgedQuery]:
    """Queries that the fixed combination and the probabilities are learned from: at random, files are in order."""
    rng = random.Random(settings.evaluation.seed)  # noqa: S311  a sample, repeatable by its seed
    return rng.sample(lessons.queries, min(_TUNED_ON, len(lessons.queries)))


def _strange(stranger: Dataset) -> list[JudgedQuery]:
    """Queries that have no answer here."""
    return [replace(query, metadata={}) for query in stranger.queries[:_STRANGERS]]


def _baselines(bench: _Bench, lessons: Dataset) -> tuple[dict[str, Values], float | None]:
    """Each channel alone, their fusion by rank, and the best fixed combination; and its weight."""
    queries = bench.dataset.queries
    found = {
        name: headline(bench.run_of(bench.answers(queries, **changes)), bench.dataset.qrels)
        for name, changes in _BASELINES.items()
    }
    depth = bench.settings.evaluation.depth
    told = bench.answers(_some(lessons, bench.settings), k=depth), bench.answers(queries, k=depth)
    tuned = {float(weight): _combined(bench, told[0], lessons.qrels, float(weight)) for weight in _CONVEX}
    best = best_weight(tuned)
    return {**found, CONVEX: _combined(bench, told[1], bench.dataset.qrels, best)}, best


def _combined(bench: _Bench, answers: Sequence[Answer], qrels: Qrels, weight: float) -> Values:
    run: Run = {
        str(answer.query.query_id): {
            bench.document_id(uri): -float(place)
            for place, result in reversed(list(enumerate(results)))
            for uri in result.uris
        }
        for answer, results in convex(answers, weight)
    }
    return headline(run, qrels)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job."""
    return _job.run(study, argv)


if __name__ == "__main__":
    sys.exit(main())
