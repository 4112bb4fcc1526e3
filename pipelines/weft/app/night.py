"""A night over a store: what it is made of, and what it asks logged queries of (CON-9, EVA-7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from weft.app.lessons.pairs import tend_lessons
from weft.app.questions import by_chunk, deeper, improve_of, judged_questions, own, questions_of
from weft.app.rebuilding import Rebuild
from weft.app.searching.engines import masking_engines, opened
from weft.app.searching.replay import StoreReplay
from weft.catalog.catalog import Catalog
from weft.consolidation.candidate import Adopted
from weft.consolidation.night import Night, NightStep, Ranking, ReadLogged, Shadow
from weft.consolidation.pipeline import consolidate
from weft.consolidation.probes import probed, shown_matches
from weft.consolidation.report.writing import Report
from weft.consolidation.steps.citations import RefreshCitations
from weft.consolidation.steps.contradictions import FindContradictions
from weft.consolidation.steps.duplicates import FindDuplicates
from weft.consolidation.steps.expiry import Expiry
from weft.consolidation.steps.fitting import FitWeights
from weft.consolidation.steps.gate import Gate
from weft.consolidation.steps.lessons import MeasureLessons
from weft.consolidation.steps.links import FindLinks
from weft.consolidation.steps.merging import MergeEvidence
from weft.consolidation.steps.publish import Publish
from weft.consolidation.steps.recalibrate import Recalibrate
from weft.consolidation.steps.succession import FindSuccessions, superseded_contents
from weft.consolidation.steps.thinning import MEASURE, FindThinned
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import Query
from weft.evaluation.log.alarms import LOGGED_QUERIES
from weft.evaluation.log.questions import SHADOW_QUERIES, logged_signals, to_replay
from weft.evaluation.queries.reader import read_queries
from weft.feedback.run.partitions import states_in
from weft.ingestion.pipeline import Watch
from weft.learning.calibration.fit import Look
from weft.learning.calibration.matching import Probe
from weft.learning.parts import LearnedVersion
from weft.runtime.clock import Clock, system_clock
from weft.runtime.mlflow.runs import tracking_of
from weft.runtime.process import linear_algebra_threads
from weft.settings import Settings

JUDGING: Sequence[NightStep] = (
    MergeEvidence(),
    Recalibrate(),
    FitWeights(),
    Expiry(),
    MeasureLessons(),
    Gate(),
    Publish(),
    Report(),
)
"""A night that looks at evidence alone."""


def steps_of(settings: Settings, waits: Callable[[str], None], watch: Watch) -> list[NightStep]:
    """Everything that a night does, in its order: a step is one file, and one line here."""
    return [
        MergeEvidence(),
        RefreshCitations(),
        FindSuccessions(),
        FindDuplicates(),
        FindContradictions(),
        FindLinks(),
        FindThinned(),
        Rebuild(settings, acts=False),  # what the report says; it is done last
        Recalibrate(),
        FitWeights(),
        Expiry(),
        MeasureLessons(partial(tend_lessons, settings=settings, waits=waits)),
        Gate(),
        Publish(),
        Report(),
        Rebuild(settings, watch=watch),
    ]


@contextmanager
def asking_night(
    settings: Settings, *, waits: Callable[[str], None] = lambda _: None, watch: Watch = lambda _: None
) -> Iterator[Night]:
    """The night that the settings describe, which asks the store whatever there is to ask."""
    now, questions = system_clock(), questions_of(settings)
    with (
        closing(StoreReplay(settings, times=2)) as replay,
        closing(StoreReplay(settings, times=0, load=masking_engines(questions))) as masked,
    ):
        asked = [(judged_questions(settings, now=now), settings, replay), (own(questions), by_chunk(settings), masked)]
        asked = [each for each in asked if each[0].queries]
        superseded = partial(superseded_contents, Catalog(Path(settings.storage.root)))
        yield replace(
            night_of(settings, clock=lambda: now),
            steps=steps_of(settings, waits, watch),
            shadow=shadow_of(settings, replay),
            look=look_of(settings, replay),
            logged=logged_of(settings),
            recall=improve_of(
                [(deeper(one), under, of) for one, under, of in asked], settings, superseded, measures=[MEASURE]
            ),
            improve=improve_of(asked, settings, superseded),
        )


def night_of(settings: Settings, *, clock: Clock = system_clock) -> Night:
    """The night that the settings describe; nothing is replayed and nothing measured, unless fields are added."""
    root = Path(settings.storage.root)
    return Night(
        catalog=Catalog(root),
        tracking=tracking_of(settings.tracking, root),
        settings=settings,
        steps=JUDGING,
        now=clock(),
        facts={"settings": settings.fingerprint, "priors": settings.priors.fingerprint, "store": str(root.resolve())},
        probe=probe_of(settings),
        counters={str(state.partition): state.report().counts for state in states_in(root, settings.feedback)},
    )


def run_night(night: Night, *, dry_run: bool = False, adopted: Adopted | None = None) -> Mapping[str, Any]:
    """Do a night in few threads: its systems of equations are small, and more threads wait for one another."""
    with linear_algebra_threads(1):
        return consolidate(night, dry_run=dry_run, adopted=adopted)


def shadow_of(settings: Settings, replay: StoreReplay) -> Shadow | None:
    """What the night replays to judge a candidate: the newest logged queries; None where nothing was logged."""
    if not (queries := _newest(settings)):
        return None

    def rankings(learned: LearnedVersion) -> list[Ranking]:
        (ranked,) = replay.rankings(queries, [(settings, learned)])
        return [[placed.content_hash for placed in results] for results in ranked]

    return rankings


def look_of(settings: Settings, replay: StoreReplay) -> Look | None:
    """Asks the same queries of all channels and of each alone; None where nothing was logged."""
    if not (queries := _newest(settings)):
        return None
    depth = settings.evaluation.depth
    ask = lambda asked, retrieval: replay(asked, settings.model_copy(update={"retrieval": retrieval}))  # noqa: E731
    return lambda: shown_matches(ask, settings.retrieval, queries, depth=depth)


def logged_of(settings: Settings) -> ReadLogged | None:
    """Reads what became of the newest logged answers; None where nothing was logged."""
    queries = read_queries(Path(settings.storage.root), limit=LOGGED_QUERIES)
    return (lambda: logged_signals(queries, settings.feedback.credit)) if queries else None


def probe_of(settings: Settings) -> Probe | None:
    """Asks the configured queries of the live generation, and some of its own words; None where nothing is live."""
    rules, catalog = settings.consolidation.calibration, Catalog(Path(settings.storage.root))
    if not rules.probes or catalog.pointer().generation is None:
        return None

    def ask_probes() -> list[list[MatchFeatures]]:
        with opened(settings) as searcher, closing(catalog.open_live()) as generation:
            return probed(searcher.search_many, generation, rules, k=settings.retrieval.rerank.depth)

    return ask_probes


def _newest(settings: Settings) -> list[Query]:
    """The newest logged queries, as many as a night replays; none without anything to ask them of."""
    root = Path(settings.storage.root)
    if Catalog(root).pointer().generation is None:
        return []
    logged = read_queries(root, limit=LOGGED_QUERIES)
    return to_replay(logged, SHADOW_QUERIES)
