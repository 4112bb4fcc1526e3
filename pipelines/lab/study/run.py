"""A study: measure, let simulated users teach, and measure again (EVA-6)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from lab.settings import SimulationSettings
from lab.simulation.study import Values, averaged, best_weight, convex, headline, only, row
from lab.simulation.users import (
    PAGE,
    SESSIONS_A_DAY,
    kind_of_user,
    of_days,
    question_schedule,
    react,
    refreshes,
    send_reactions,
    with_replies,
    without_newcomers,
)
from lab.stores import BackgroundUpdaters, isolated_store
from lab.study.probabilities import ProbabilityReport, judged_bins, probability_report
from lab.study.report import CONVEX, FITTED, PRIOR, WITH_EFFECTS, StudyResult
from weft.app.collecting import collected
from weft.app.collections import document_id, indexed
from weft.app.night import logged_of
from weft.app.searching.engines import source_of
from weft.app.searching.replay import StoreReplay, caching_engines
from weft.catalog.catalog import Catalog
from weft.cli.console.terminal import stderr
from weft.consolidation.probes import probed, shown_matches
from weft.consolidation.settings import FOLDS, SEED
from weft.consolidation.steps.fitting import fit_all
from weft.consolidation.steps.recalibrate import curves_of
from weft.domain.errors import SourceError
from weft.domain.ids import QueryId, SessionId
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import Answer, Channel, Query, RankedResult, Scope, ScoredResult
from weft.evaluation.measures.beir import Dataset, JudgedQuery, Qrels
from weft.evaluation.measures.measuring import as_query
from weft.evaluation.measures.runs import Run, as_ranked
from weft.evaluation.queries.writer import QueryLog
from weft.feedback.events.producer import FeedbackProducer
from weft.learning.beliefs import Beliefs, read_beliefs
from weft.learning.calibration.fit import ShownResults, calibrate_matches, carried_over
from weft.learning.calibration.matching import MatchCalibration, answering_from, match_bins
from weft.learning.evidence import Evidence
from weft.learning.parts import LearnedVersion, parts_of
from weft.learning.pooling.fit import LoggedSignals
from weft.learning.pooling.fitted import FittedWeights
from weft.retrieval.searcher import Searcher
from weft.retrieval.settings import FusionMode, RetrievalSettings
from weft.runtime.clock import system_clock
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.settings import Settings

# Held-out queries asked under any evidence, and what ranks them beside weft (EVA-6, RET-15).

_CONVEX = np.linspace(0.0, 1.0, 21)  # weights of the lexical signal that are tried
_STRANGERS = 200  # queries of another data set that are asked
_TUNED_ON = 500  # queries at most that the fixed combination is tuned on
AGENT = "study"
_BASELINES: Mapping[str, Mapping[str, Any]] = {
    "BM25": {"channels": (Channel.LEXICAL,), "fusion": FusionMode.RRF},
    "dense": {"channels": (Channel.DENSE,), "fusion": FusionMode.RRF},
    "RRF": {"channels": (Channel.DENSE, Channel.LEXICAL), "fusion": FusionMode.RRF},
}
_WAYS: Mapping[str, Mapping[str, Any]] = {
    "both channels": {},
    "by reciprocal ranks": {"fusion": FusionMode.RRF},
    "by relative scores": {"fusion": FusionMode.RSF},
    "dense alone": {"channels": (Channel.DENSE,)},
    "lexical alone": {"channels": (Channel.LEXICAL,)},
}
"""Ways to search over which a probability should mean the same."""


class Bench:
    """Answers the held-out queries under any evidence, asking encoders and indexes for each of them once."""

    def __init__(self, settings: Settings, dataset: Dataset) -> None:
        self.settings = settings
        self.dataset = dataset
        engines = caching_engines(settings)
        self.encoders = engines.encoders
        self.terms = engines.terms
        self.document_id = document_id(dataset)
        self._now = system_clock()
        self._replay = StoreReplay(settings, times=0, load=lambda _: engines)

    def answers(self, queries: Sequence[JudgedQuery], *, k: int = PAGE, **changes: Any) -> list[Answer]:
        """Answers under the priors alone, with some settings of retrieval changed."""
        return self._replay(self._pages_of(queries, k), self._retrieving(**changes), Evidence())

    def probed(self) -> list[list[MatchFeatures]]:
        """The best match of queries that have no answer, by kind, as a night asks them."""
        rules, k = self.settings.consolidation.calibration, self.settings.retrieval.rerank.depth
        with closing(Catalog(Path(self.settings.storage.root)).open_live()) as generation:
            return probed(lambda queries: self._replay(queries, self.settings, Evidence()), generation, rules, k=k)

    def shown(self, queries: Sequence[JudgedQuery], evidence: Evidence) -> ShownResults:
        """What is shown under what the evidence says, as a night asks for it."""

        def ask(asked: Sequence[Query], retrieval: RetrievalSettings) -> list[Answer]:
            return self._replay(asked, self.settings.model_copy(update={"retrieval": retrieval}), evidence)

        depth = self.settings.evaluation.depth
        return shown_matches(ask, self._retrieving(effects=False).retrieval, self._pages_of(queries), depth=depth)

    def names(self, answers: Sequence[Answer]) -> dict[str, list[str]]:
        """Ids that judgements name each content by."""
        results = (result for answer in answers for result in answer.results)
        return {str(result.content_hash): [self.document_id(uri) for uri in result.uris] for result in results}

    def measured(self, results: Mapping[str, Sequence[RankedResult | ScoredResult]]) -> Values:
        """The headline measure of results by query."""
        depth = self.settings.evaluation.depth
        run: Run = {name: as_ranked(each, depth, document_id=self.document_id) for name, each in results.items()}
        return headline(run, self.dataset.qrels)

    def values(self, evidence: Evidence, *, effects: bool, fitted: FittedWeights | None = None) -> Values:
        """The headline measure on the held-out queries under what the evidence says, and what a night fitted."""
        asking = self._pages_of(self.dataset.queries)
        (rankings,) = self._replay.rankings(
            asking, [(self._retrieving(effects=effects), LearnedVersion(evidence, parts_of(fitted)))]
        )
        return self.measured({query.query_id: placed for query, placed in zip(asking, rankings, strict=True)})

    def learned(self, evidence: Evidence, *, effects: bool) -> list[Answer]:
        """Answers to the held-out queries under what the evidence says."""
        return self._replay(self._pages_of(self.dataset.queries), self._retrieving(effects=effects), evidence)

    def weights(self, evidence: Evidence) -> Mapping[str, float]:
        """What the evidence says each signal of similarity should weigh, in the domain of the corpus."""
        first = self.answers(self.dataset.queries[:1])[0].results
        signals = {signal for result in first for signal in result.signals}
        beliefs, scope = self._beliefs(evidence), Scope(first[0].domain, agent=AGENT)
        return {signal.value: belief.mean for signal, belief in beliefs.weights(scope, signals).items()}

    def fitted(self, logged: LoggedSignals, evidence: Evidence) -> FittedWeights:
        """What a night fits to logged outcomes."""
        return fit_all(logged, self.settings.priors, self._beliefs(evidence))

    def _retrieving(self, **changes: Any) -> Settings:
        retrieval = self.settings.retrieval.model_copy(update=changes)
        return self.settings.model_copy(update={"retrieval": retrieval})

    def _pages_of(self, queries: Sequence[JudgedQuery], k: int = PAGE) -> list[Query]:
        return [replace(as_query(query, self.settings.evaluation), k=k, agent=AGENT) for query in queries]

    def _beliefs(self, evidence: Evidence) -> Beliefs:
        return read_beliefs(self.settings.priors, evidence, now=self._now)


def measure_probabilities(
    bench: Bench, lessons: Dataset, evidence: Evidence, foreign_queries: Sequence[Dataset]
) -> ProbabilityReport:
    """What the judgements of the queries learned from make of held-out queries, and of those of other data sets."""
    settings, held_out = bench.settings, bench.dataset
    rules = settings.consolidation.calibration
    sample = _some(lessons, settings)
    taught, looked = bench.answers(sample), bench.shown(sample, evidence)
    judged = judged_bins(taught, lessons.qrels, bench.names(taught))
    fit = calibrate_matches(judged, None, folds=FOLDS, seed=SEED, least_gain=rules.least_gain).calibration
    fit = carried_over(fit, looked.alone, least=rules.minimum_observations)
    verdicts = match_bins(evidence, settings.priors, now=system_clock())
    from_verdicts = curves_of(verdicts, settings.priors.verdicts, rules, lambda: looked)
    answering = answering_from(bench.probed(), bound=rules.answering_bound, confidence=rules.answering_confidence)
    unanswerable = {
        each.name: bench.answers([replace(query, metadata={}) for query in each.queries[:_STRANGERS]])
        for each in foreign_queries
    }
    answers = {name: bench.answers(held_out.queries, **changes) for name, changes in _WAYS.items()}
    answers["as learned"] = bench.learned(evidence, effects=False)
    return probability_report(
        replace(fit, answering=answering),
        from_verdicts or MatchCalibration(None, None, None),
        answers,
        held_out.qrels,
        unanswerable,
        names=bench.names([answer for some in answers.values() for answer in some]),
    )


def _some(lessons: Dataset, settings: Settings) -> list[JudgedQuery]:
    """Queries that the fixed combination and the probabilities are learned from: at random, files are in order."""
    rng = random.Random(settings.evaluation.seed)  # noqa: S311  a sample, repeatable by its seed
    return rng.sample(lessons.queries, min(_TUNED_ON, len(lessons.queries)))


def baselines(bench: Bench, lessons: Dataset) -> tuple[dict[str, Values], float | None]:
    """Each channel alone, their fusion by rank, and the best fixed combination; and its weight."""
    queries, depth = bench.dataset.queries, bench.settings.evaluation.depth
    values = {
        name: bench.measured({each.query.query_id: each.results for each in bench.answers(queries, **changes)})
        for name, changes in _BASELINES.items()
    }
    candidates = bench.answers(_some(lessons, bench.settings), k=depth), bench.answers(queries, k=depth)
    tuned = {float(weight): _combined(bench, candidates[0], lessons.qrels, float(weight)) for weight in _CONVEX}
    best = best_weight(tuned)
    return {**values, CONVEX: _combined(bench, candidates[1], bench.dataset.qrels, best)}, best


def _combined(bench: Bench, answers: Sequence[Answer], qrels: Qrels, weight: float) -> Values:
    run: Run = {
        str(answer.query.query_id): {
            bench.document_id(uri): -float(place)
            for place, result in reversed(list(enumerate(results)))
            for uri in result.uris
        }
        for answer, results in convex(answers, weight)
    }
    return headline(run, qrels)


def run(
    lessons: Dataset,
    held_out: Dataset,
    settings: Settings,
    users: SimulationSettings,
    marks: Sequence[int],
    foreign_queries: Sequence[Dataset] = (),
    *,
    least: float = 0.0,
    bare: bool = False,
    fit: bool = False,
    probabilities: bool = True,  # whether to look at what they are worth; not where it is bare
) -> StudyResult:
    """Measure, teach and measure again, in a store of its own that is gone afterwards."""
    stored = indexed(held_out, settings)
    if least > 0.0:
        lessons, held_out = (_reaching(least, each, stored) for each in (lessons, held_out))
    with _streamed(stored, marks) as streamed:
        bench = Bench(streamed, held_out)
        values, weight = ({}, None) if bare else baselines(bench, lessons)
        values[PRIOR] = bench.values(Evidence(), effects=False)
        taught = [_taught(streamed, users, lessons, bench, marks, deal=0, fit=fit)]
        for deal in range(1, users.deals):
            with _streamed(stored, marks) as anew:
                taught.append(_taught(anew, users, lessons, bench, marks, deal=deal, fit=fit))
        counted = [{count: learned.evidence for count, learned in each.items()} for each in taught]
        by_deal = {_named(count): [bench.values(each[count], effects=False) for each in counted] for count in marks}
        by_deal[_named(marks[-1]) + WITH_EFFECTS] = [bench.values(each[marks[-1]], effects=True) for each in counted]
        for count in marks if fit else ():
            nights = [each[count] for each in taught]
            by_deal[_named(count) + FITTED] = [
                bench.values(night.evidence, effects=False, fitted=night.part(FittedWeights)) for night in nights
            ]
        worth = [
            measure_probabilities(bench, lessons, each[marks[-1]], foreign_queries)
            for each in (counted if probabilities and not bare else [])
        ]
        weights = {PRIOR: bench.weights(Evidence())}
        weights |= {_named(count): averaged([bench.weights(each[count]) for each in counted]) for count in marks}
    values |= {name: averaged(of_deals) for name, of_deals in by_deal.items()}
    rows = [
        row(
            name,
            measured,
            settings.evaluation,
            against=values[PRIOR] if name in by_deal else None,
            weights=weights.get(name),
            deals=by_deal.get(name, ()),
        )
        for name, measured in values.items()
    ]
    return StudyResult(rows, values, weight, counted[0], worth)


def _reaching(least: float, dataset: Dataset, settings: Settings) -> Dataset:
    """The data set with those queries alone whose measure is at least that at the priors."""
    values = Bench(settings, dataset).values(Evidence(), effects=False)
    reaching = only(dataset, {query for query, value in values.items() if value >= least})
    if not reaching.queries:
        raise SourceError(
            f"{dataset.name} {dataset.split}: expected queries that reach {least} at the priors, found none"
        )
    return reaching


def scaled_to_days(settings: Settings, sessions: int) -> Settings:
    """The settings for sessions that take minutes and stand for days, of `SESSIONS_A_DAY` each.

    As much counts as of so many days, and everybody has a history. Beliefs change when searches are told to look, and
    not in between: repeatable.
    """
    days = sessions / SESSIONS_A_DAY
    retrieval = settings.retrieval.model_copy(update={"refresh_s": 1e9})
    limits = settings.feedback.limits.model_copy(update={"newcomers": settings.feedback.limits.principals})
    feedback = settings.feedback.model_copy(update={"limits": limits})
    priors = without_newcomers(of_days(settings.priors, days), limits.newcomers)
    values = {"retrieval": retrieval, "feedback": feedback, "priors": priors}
    return settings.model_copy(update=values)


def _named(sessions: int) -> str:
    return f"{sessions:,} sessions"


@contextmanager
def _streamed(stored: Settings, marks: Sequence[int]) -> Iterator[Settings]:
    """A store and a broker of its own for one deal of users, which are gone afterwards."""
    with isolated_store(stored) as own, EmbeddedBroker() as broker:
        kafka = own.kafka.model_copy(update={"bootstrap": broker.bootstrap})
        yield scaled_to_days(own.model_copy(update={"kafka": kafka}), marks[-1])


def _taught(
    settings: Settings,
    users: SimulationSettings,
    lessons: Dataset,
    bench: Bench,
    marks: Sequence[int],
    *,
    deal: int,
    fit: bool,
) -> dict[int, LearnedVersion]:
    """Let users ask what they know the answer of, through Kafka and the updaters; what was learned at every mark."""
    catalog = Catalog(Path(settings.storage.root))
    rng = random.Random(settings.evaluation.seed + deal)  # noqa: S311  a simulation, repeatable by its seed
    questions = question_schedule(lessons.queries, marks[-1], rng)
    root, learned, done, (first, *further) = Path(settings.storage.root), {}, 0, bench.encoders
    source = source_of(settings)
    with (
        BackgroundUpdaters(settings, local=True) as updaters,
        Searcher(source, first, settings.retrieval, clock=system_clock, further=further, terms=bench.terms) as searcher,
        closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer,
    ):
        for upto in track(refreshes(marks), "teaching", console=stderr, transient=True):
            batch = list(enumerate(questions[done:upto], start=done))
            shown_now = list(_shown(searcher, batch, settings))
            if fit:
                _log([answer for _, answer in shown_now], settings)
            for number, answer in shown_now:
                grades = lessons.qrels[questions[number].query_id]
                right = [
                    result.content_hash
                    for result in answer.results
                    if any(grades.get(bench.document_id(uri), 0) > 0 for uri in result.uris)
                ]
                producer.impression(answer)
                shown, kind = [result.content_hash for result in answer.results], kind_of_user(users, rng)
                reactions = react(shown, right, users, rng, kind=kind)
                send_reactions(producer, answer.query, with_replies(answer, reactions, right, kind=kind))
            producer.flush()
            updaters.caught_up()
            searcher.refresh()
            done = upto
            if upto in marks:
                evidence, logged = catalog.live.evidence(), None
                if fit:
                    collected(root, settings)
                    logged = logged_of(settings)
                learned[upto] = LearnedVersion(evidence, parts_of(bench.fitted(logged(), evidence) if logged else None))
    return learned


def _log(answers: Sequence[Answer], settings: Settings) -> None:
    """Write answers to the query log of the store, all of them."""
    every = settings.query_log.model_copy(update={"sample": 1.0})
    with QueryLog(Path(settings.storage.root), every, waiting=len(answers)) as log:
        for answer in answers:
            log.emit(answer)


def _shown(
    searcher: Searcher, batch: Sequence[tuple[int, JudgedQuery]], settings: Settings
) -> Iterator[tuple[int, Answer]]:
    """What each session of a batch is shown."""
    size = settings.retrieval.encode_batch
    for start in range(0, len(batch), size):
        part = batch[start : start + size]
        queries = [_question(number, query, settings) for number, query in part]
        yield from zip((number for number, _ in part), searcher.search_many(queries), strict=True)


def _question(number: int, query: JudgedQuery, settings: Settings) -> Query:
    return replace(
        as_query(query, settings.evaluation),
        query_id=QueryId(f"{number}-{query.query_id}"),
        k=PAGE,
        agent=AGENT,
        session_id=SessionId(f"study-{number}"),
        principal=f"user-{number}",
    )
