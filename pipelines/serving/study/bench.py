"""Held-out queries asked under any evidence, and what ranks them beside weft (EVA-6, RET-15)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pipelines.consolidation.probes import probed
from pipelines.consolidation.recalibrate import curves_of
from pipelines.domain.matching import MatchFeatures
from pipelines.domain.ranking import Answer, Channel, Query, Scope, Signal
from pipelines.evaluation.measures.answerable import ProbabilityReport, judged_bins, probability_report
from pipelines.evaluation.measures.beir import Dataset, JudgedQuery, Qrels
from pipelines.evaluation.measures.measuring import as_query
from pipelines.evaluation.measures.runs import Run, as_ranked
from pipelines.evaluation.replay.replay import Replay, shown_matches
from pipelines.evaluation.simulation.study import Values, best_weight, convex, headline
from pipelines.evaluation.simulation.users import PAGE
from pipelines.learning.beliefs import Beliefs, read_beliefs
from pipelines.learning.calibration.fit import ShownResults, calibrate_matches, carried_over
from pipelines.learning.calibration.matching import MatchCalibration, answering_from, match_bins
from pipelines.learning.evidence import Evidence
from pipelines.retrieval.settings import FusionMode, RetrievalSettings
from pipelines.retrieval.snapshot.snapshot import Snapshot
from pipelines.runtime.clock import system_clock
from pipelines.serving.collections import document_id
from pipelines.serving.engines import source_of
from pipelines.serving.replays import remembering_engines
from pipelines.serving.study.report import CONVEX
from pipelines.serving.study.sessions import AGENT
from pipelines.settings import Settings

_CONVEX = np.linspace(0.0, 1.0, 21)  # weights of the lexical signal that are tried
_STRANGERS = 200  # queries of another data set that are asked
_TUNED_ON = 500  # queries at most that the fixed combination is tuned on
HIDDEN = (Signal.USAGE, Signal.PRECEDENT)
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


class Bench:
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
        self.document_id = document_id(dataset)

    def answers(self, queries: Sequence[JudgedQuery], *, k: int = PAGE, **changes: Any) -> list[Answer]:
        """Answers under the priors alone, with some settings of retrieval changed."""
        changed = self.settings.retrieval.model_copy(update=dict(changes))
        return list(self._replay(self._pages_of(queries, k), settings=changed))

    def probed(self) -> list[list[MatchFeatures]]:
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
        hidden = (*self.settings.retrieval.without_signals, *HIDDEN)
        retrieval = self.settings.retrieval.model_copy(update={"without_signals": hidden})
        snapshot = replace(self._snapshot, beliefs=self._beliefs(evidence))
        return shown_matches(
            self._replay.otherwise(retrieval, snapshot), retrieval, asking, depth=self.settings.evaluation.depth
        )

    def names(self, answers: Sequence[Answer]) -> dict[str, list[str]]:
        """Ids that judgements name each content by."""
        return {
            str(result.content_hash): [self.document_id(uri) for uri in result.uris]
            for answer in answers
            for result in answer.results
        }

    def run_of(self, answers: Sequence[Answer]) -> Run:
        """The answers as a run over ids that judgements name."""
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
        signals = {signal for result in first for signal in result.signals} - set(HIDDEN)
        scope = Scope(first[0].domain, agent=AGENT)
        return {signal.value: belief.mean for signal, belief in self._beliefs(evidence).weights(scope, signals).items()}

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
        return [replace(as_query(query, self.settings.evaluation), k=k, agent=AGENT) for query in queries]

    def _beliefs(self, evidence: Evidence) -> Beliefs:
        return read_beliefs(self.settings.priors, evidence, now=self._now)


def measure_probabilities(
    bench: Bench, lessons: Dataset, evidence: Evidence, strangers: Sequence[Dataset]
) -> ProbabilityReport:
    """What the judgements of the queries learned from make of held-out queries, and of those of other data sets."""
    rules, bins = bench.settings.consolidation.calibration, bench.settings.learning.relevance_bins
    verdicts = match_bins(evidence, bench.settings.priors, now=system_clock())
    sample = _some(lessons, bench.settings)
    taught, looked = bench.answers(sample), bench.shown(sample, evidence)
    judged = judged_bins(taught, lessons.qrels, bench.names(taught))
    fit = calibrate_matches(judged, None, folds=rules.folds, seed=rules.seed, least_gain=rules.least_gain).calibration
    fit = carried_over(fit, looked.alone, least=rules.minimum_observations)
    curves = curves_of(verdicts, bench.settings.priors.verdicts, rules, lambda: looked)
    from_verdicts = curves or MatchCalibration(None, None, None)
    bound, confidence = rules.answering_bound, rules.answering_confidence
    answering = answering_from(bench.probed(), bound=bound, confidence=confidence)
    without = {each.name: bench.answers(_strange(each)) for each in strangers}
    answers = {name: bench.answers(bench.dataset.queries, **changes) for name, changes in _WAYS.items()}
    answers["as learned"] = bench.learned(evidence, hidden=HIDDEN)
    names = bench.names([answer for some in answers.values() for answer in some])
    calibration = replace(fit, answering=answering)
    return probability_report(calibration, from_verdicts, answers, bench.dataset.qrels, without, bins=bins, names=names)


def _some(lessons: Dataset, settings: Settings) -> list[JudgedQuery]:
    """Queries that the fixed combination and the probabilities are learned from: at random, files are in order."""
    rng = random.Random(settings.evaluation.seed)  # noqa: S311  a sample, repeatable by its seed
    return rng.sample(lessons.queries, min(_TUNED_ON, len(lessons.queries)))


def _strange(stranger: Dataset) -> list[JudgedQuery]:
    """Queries that have no answer here."""
    return [replace(query, metadata={}) for query in stranger.queries[:_STRANGERS]]


def baselines(bench: Bench, lessons: Dataset) -> tuple[dict[str, Values], float | None]:
    """Each channel alone, their fusion by rank, and the best fixed combination; and its weight."""
    queries = bench.dataset.queries
    values = {
        name: headline(bench.run_of(bench.answers(queries, **changes)), bench.dataset.qrels)
        for name, changes in _BASELINES.items()
    }
    depth = bench.settings.evaluation.depth
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
