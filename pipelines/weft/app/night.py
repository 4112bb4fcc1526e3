"""A night over a store: what it asks logged queries of, and how it runs before people (CON-9, EVA-7)."""

from __future__ import annotations

import pkgutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from weft.app.lessons.pairs import tend_lessons
from weft.app.questions import by_chunk, deeper, improve_of, judged_questions, own, questions_of
from weft.app.rebuilding import rebuild_of
from weft.app.searching.engines import masking_engines, opened
from weft.app.searching.replay import StoreReplay
from weft.app.succession import successions_of, superseded_contents
from weft.app.thinning import thinning_finder
from weft.catalog.catalog import Catalog
from weft.cli.console.terminal import stderr
from weft.consolidation.candidate import Adopted
from weft.consolidation.citations.refresh import (
    PROVIDERS,
    RefreshCitations,
    RefreshResult,
    distinct,
    due,
    refreshed,
)
from weft.consolidation.fitting import ReadLogged
from weft.consolidation.gate import Ranking, Shadow
from weft.consolidation.night import DOING, STEPS, Night, TextLookup
from weft.consolidation.pipeline import consolidate
from weft.consolidation.probes import probed, shown_matches
from weft.consolidation.tending.contradictions import (
    Contradictions,
    DeclaredContradictions,
    FindContradictions,
    find_contradictions,
)
from weft.consolidation.tending.duplicates import (
    Duplicates,
    FindDuplicates,
    GenerationContents,
    NearPair,
    find_duplicates,
)
from weft.consolidation.tending.links import ExistingEdges, FindLinks, Links, find_links
from weft.consolidation.tending.thinning import MEASURE
from weft.domain.arrays import Ints
from weft.domain.errors import CorruptionError, StoreError
from weft.domain.ids import ContentHash
from weft.domain.links import Relation, RelationSource, works_of
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import Query
from weft.embedding.static_vectors import static_vectors
from weft.evaluation.log.alarms import LOGGED_QUERIES
from weft.evaluation.log.questions import SHADOW_QUERIES, to_replay
from weft.evaluation.log.signals import logged_signals
from weft.evaluation.queries.reader import read_queries
from weft.feedback.run.partitions import states_in
from weft.indexes.dense.close_pairs import Rows
from weft.indexes.generation import Generation
from weft.indexes.graph.graph import EdgeKind
from weft.learning.aliases import ContentAliases
from weft.learning.calibration.fit import Look
from weft.learning.calibration.matching import Probe
from weft.learning.edges import NO_EDGES, LearnedEdges
from weft.learning.evidence import Evidence
from weft.learning.pooling.fitted import Learned
from weft.quality.statements import WordLists
from weft.retrieval.snapshot.relations import resolve_relations
from weft.runtime.clock import Clock, day_of, system_clock
from weft.runtime.process import linear_algebra_threads
from weft.settings import Settings


@contextmanager
def asking_night(settings: Settings) -> Iterator[Night]:
    """The night that the settings describe, which asks the store whatever there is to ask."""
    now, questions = system_clock(), questions_of(settings)
    with (
        closing(StoreReplay(settings, times=2)) as replay,
        closing(StoreReplay(settings, times=0, load=masking_engines(questions))) as masked,
    ):
        asked = [(judged_questions(settings, now=now), settings, replay), (own(questions), by_chunk(settings), masked)]
        superseded = partial(superseded_contents, Catalog(Path(settings.storage.root)))
        yield replace(
            night_of(settings, clock=lambda: now),
            shadow=shadow_of(settings, replay),
            look=look_of(settings, replay),
            logged=logged_of(settings),
            successions=successions_of(settings),
            duplicates=duplicates_of(settings),
            contradictions=contradictions_of(settings),
            links=links_of(settings, now),
            thinning=thinning_finder(settings),
            rebuild=rebuild_of(settings),
            recall=improve_of(
                [(deeper(one), under, of) for one, under, of in asked if one.queries],
                settings,
                superseded,
                measures=[MEASURE],
            ),
            citations=citations_of(settings, now),
            texts=texts_of(settings),
            tend_lessons=lambda beliefs, dry_run: tend_lessons(beliefs, settings, dry_run=dry_run),
            improve=improve_of([each for each in asked if each[0].queries], settings, superseded),
        )


def night_of(settings: Settings, *, clock: Clock = system_clock) -> Night:
    """The night that the settings describe; nothing is replayed and nothing measured, unless fields are added."""
    from weft.runtime.mlflow.tracking import Tracking  # noqa: PLC0415  seconds to import

    root = Path(settings.storage.root)
    return Night(
        catalog=Catalog(root),
        tracking=Tracking.of(settings.tracking, root),
        priors=settings.priors,
        learning=settings.learning,
        rules=settings.consolidation,
        now=clock(),
        facts={"settings": settings.fingerprint, "priors": settings.priors.fingerprint, "store": str(root.resolve())},
        probe=probe_of(settings),
        counters={str(state.partition): state.report().counts for state in states_in(root, settings.feedback)},
    )


def run_visibly(night: Night, *, dry_run: bool = False, adopted: Adopted | None = None) -> Mapping[str, Any]:
    """Consolidate, and say on stderr what is done and what came of it."""
    with linear_algebra_threads(1):  # of small systems: more threads wait for one another
        summary = consolidate(replace(night, announce=_announce), dry_run=dry_run, adopted=adopted)
    if "reason" in summary:
        version = summary["learned"] or "rehearsal, nothing published"
        outcome = f"learned version {version}: {summary['decision']} ({summary['reason']}); {summary['calibration']}"
    else:
        outcome = f"nothing new since learned version {summary['learned'] or 'none'}"
    stderr.print(outcome)
    return summary


def shadow_of(settings: Settings, replay: StoreReplay) -> Shadow | None:
    """What the night replays to judge a candidate: the newest logged queries; None where nothing was logged."""
    if not (queries := _newest(settings)):
        return None

    def rankings(learned: Learned) -> list[Ranking]:
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


def duplicates_of(settings: Settings) -> FindDuplicates | None:
    """Finds near-duplicates in the live generation; None where nothing is live."""
    catalog, rules, lists = (
        Catalog(Path(settings.storage.root)),
        settings.consolidation.duplicates,
        word_lists(settings),
    )
    if catalog.pointer().generation is None:
        return None

    def find(evidence: Evidence, superseded: Collection[ContentHash]) -> Duplicates:
        vectors = static_vectors(settings.embedding)
        with closing(catalog.open_live()) as generation:
            memory = GenerationContents(generation.contents, generation.chunks)
            return find_duplicates(memory, vectors, evidence, lists, rules, superseded=superseded)

    return find


def contradictions_of(settings: Settings) -> FindContradictions | None:
    """Finds contradictions in the live generation, beside those that are declared; None where nothing is live."""
    catalog, rules = Catalog(Path(settings.storage.root)), settings.consolidation
    if catalog.pointer().generation is None:
        return None

    def find(duplicates: Duplicates, newer: LearnedEdges, evidence: Evidence) -> Contradictions:
        with closing(catalog.open_live()) as generation:
            declared, least = declared_in(generation, catalog.relations(), newer), rules.duplicates.least_overlap
            lists = word_lists(settings)
            return find_contradictions(duplicates, declared, evidence, lists, rules.contradictions, least=least)

    return find


def links_of(settings: Settings, now: float) -> FindLinks | None:
    """Finds what is similar in the live generation, and what was used together; None where nothing is live."""
    catalog, rules = Catalog(Path(settings.storage.root)), settings.consolidation.links
    if catalog.pointer().generation is None:
        return None

    def find(aliases: ContentAliases, contradictions: LearnedEdges, evidence: Evidence) -> Links:
        with closing(catalog.open_live()) as generation:
            memory = GenerationContents(generation.contents, generation.chunks)
            vectors = lambda: _vectors(generation)  # noqa: E731
            joined = ExistingEdges(_linked(generation, catalog.relations()), aliases, contradictions)
            return find_links(memory, vectors, joined, evidence, rules, today=day_of(now))

    return find


def _vectors(generation: Generation) -> Rows:
    """The vector of each content by the encoder that its graph is built with; none where it has no encoder."""
    if not generation.encoders:
        return np.zeros((0, 1), np.float32)
    return generation.dense(min(generation.encoders))


def _linked(generation: Generation, relations: Sequence[Relation]) -> Ints:
    """Pairs of contents that an edge of the generation or of the store joins, as rows."""
    try:
        edges = resolve_relations(generation, relations).extend_edges(
            generation.graph.arrays(), dict.fromkeys(RelationSource, 1.0)
        )
    except StoreError:  # built without a graph
        return np.zeros((0, 2), np.int64)
    ends = np.stack([edges.source, edges.target], axis=1)
    return np.unique(np.sort(ends[edges.target < edges.contents], axis=1), axis=0)


def declared_in(
    generation: Generation, relations: Sequence[Relation], newer: LearnedEdges = NO_EDGES
) -> DeclaredContradictions:
    """What people declared of what a generation holds, in documents and in the store."""
    strengths = dict.fromkeys(RelationSource, 1.0)
    try:
        edges = resolve_relations(generation, relations, newer).extend_edges(generation.graph.arrays(), strengths)
    except StoreError:  # built without a graph
        return DeclaredContradictions()
    numbers = [list(EdgeKind).index(kind) for kind in (EdgeKind.CONTRADICTS, EdgeKind.SUPERSEDES)]
    ends = np.stack([edges.source, edges.target], axis=1)
    pairs = [sorted(pair) for pair in np.unique(ends[edges.kind == numbers[0]], axis=0).tolist()]
    rows = sorted({row for pair in pairs for row in pair})
    content_at = dict(zip(rows, generation.chunks.contents(rows), strict=True))
    both = [[content_at[row] for row in pair] for pair in sorted(set(map(tuple, pairs)))]
    named = [NearPair(one.content_hash, other.content_hash, 0.0, one.text, other.text) for one, other in both]
    settled = {
        frozenset((one, other))
        for pair in ends[np.isin(edges.kind, numbers)].tolist()
        for one, other in product(*(_documents(generation, row) for row in pair))
    }

    def is_settled(content: ContentHash, other: ContentHash) -> bool:
        here, there = (_documents(generation, row) for row in generation.chunks.rows_of([content, other]).tolist())
        return any(frozenset(pair) in settled for pair in product(here, there))

    return DeclaredContradictions(named, is_settled) if settled else DeclaredContradictions()


def _documents(generation: Generation, row: int) -> list[int]:
    """The numbers of the documents that a content stands in."""
    numbers: list[int] = generation.chunks.occurrence_arrays([row])[2].tolist()
    return numbers


def citations_of(settings: Settings, now: float) -> RefreshCitations | None:
    """Asks the providers that are on of what live documents declare to be; None where none is on or nothing is live."""
    catalog, rules = Catalog(Path(settings.storage.root)), settings.consolidation.citations
    if not rules.providers or catalog.pointer().generation is None:
        return None

    def refresh(dry_run: bool) -> RefreshResult:
        with closing(catalog.open_live()) as generation:
            works = distinct(works_of(document.metadata) for document in generation.chunks.documents())
        try:
            stored = catalog.citations.read()
        except CorruptionError:
            stored = {}
        if dry_run:
            return RefreshResult(due=len(due(works, stored, rules, now)))
        providers = pkgutil.resolve_name(PROVIDERS)(rules, now)
        counted, outcome = refreshed(works, stored, providers, rules, now)
        if outcome.due:
            catalog.citations.write(counted)
        return outcome

    return refresh


def texts_of(settings: Settings) -> TextLookup | None:
    """Reads texts of the live generation; None where nothing is live."""
    catalog = Catalog(Path(settings.storage.root))
    if catalog.pointer().generation is None:
        return None

    def read(contents: Sequence[ContentHash]) -> dict[ContentHash, str]:
        with closing(catalog.open_live()) as generation:
            rows = sorted({row for each in contents if (row := generation.chunks.row_of(each)) is not None})
            names = [generation.contents[row] for row in rows]
            return dict(zip(names, generation.chunks.texts(rows), strict=True))

    return read


def word_lists(settings: Settings) -> WordLists:
    """Words in which near-duplicates must agree: those of questions, and of lessons."""
    rules, near, words = settings.consolidation.duplicates, settings.priors.near, settings.lessons.words
    return WordLists.of(
        near.negations,
        rules.absolutes,
        rules.numerals,
        rules.order,
        (*near.opposites, *words.opposites),
        near.idle_words,
        words.units,
        rules.conditions,
    )


def _newest(settings: Settings) -> list[Query]:
    """The newest logged queries, as many as a night replays; none without anything to ask them of."""
    root = Path(settings.storage.root)
    if Catalog(root).pointer().generation is None:
        return []
    logged = read_queries(root, limit=LOGGED_QUERIES)
    return to_replay(logged, SHADOW_QUERIES)


def _announce(step: str) -> None:
    stderr.print(f"step {STEPS.index(step) + 1} of {len(STEPS)} · {step}: {DOING[step]}")
