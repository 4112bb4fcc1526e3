"""From when on a match counts as an answer, in a generation that nobody has judged yet (RET-15).

A generation's own questions are asked of it, each of a content that lacks the words it is asked with. How well their
answers match says what an answer looks like here; how many queries on other matters match as well says what passes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

from weft.app.searching.engines import Engines, load_engines
from weft.consolidation.probes import probes
from weft.consolidation.settings import CalibrationSettings
from weft.domain.errors import WeftError
from weft.domain.ids import QueryId
from weft.domain.matching import NO_MATCH, Coverage, MatchFeatures, best_match
from weft.domain.ranking import Answer, Query
from weft.domain.understanding import Complexity
from weft.evaluation.replay.masking import Masks, masked
from weft.indexes.generation import Generation, open_generation
from weft.indexes.manifest import ANSWERING
from weft.ingestion.questions import StoredQuestion, stored_questions
from weft.learning.beliefs import believed
from weft.learning.calibration.fit import answered_curve
from weft.learning.calibration.matching import Answering, AskedMatch, answering_of
from weft.learning.evidence import Evidence
from weft.learning.parts import LearnedVersion
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.filters import RowFilter
from weft.retrieval.snapshot.live import PRIORS_ONLY
from weft.retrieval.snapshot.snapshot import OneSnapshot, Snapshot
from weft.runtime.clock import system_clock
from weft.settings import Settings

log = logging.getLogger(__name__)


def answering_facts(settings: Settings, folder: Path) -> Mapping[str, object]:
    """What tells answers from gaps in a staged generation, as facts of its manifest.

    Returns:
        Nothing where it has too few questions of its own, or cannot be searched, which is logged: a generation without
        it is searched all the same.
    """
    rules = settings.consolidation.calibration
    questions = stored_questions(folder)[: rules.own_questions]
    if len(questions) * rules.answerable_bound < 1.0:
        return {}
    try:
        answering = _fitted(settings, folder, questions)
    except WeftError as error:
        log.warning("no threshold of answers: %s", error)
        return {}
    return {} if answering is None else {ANSWERING: asdict(answering)}


def _fitted(settings: Settings, folder: Path, questions: Sequence[StoredQuestion]) -> Answering | None:
    rules, engines = settings.consolidation.calibration, load_engines(settings)
    with closing(open_generation(folder, verify=False)) as generation:
        if engines.encoders[0].name not in generation.encoders:
            return None
        snapshot = _as_asked(generation, questions, engines, settings)
        encoder, *further = engines.encoders
        with Searcher(
            OneSnapshot(snapshot), encoder, settings.retrieval, clock=system_clock, further=further, terms=engines.terms
        ) as searcher:
            own = _answers(searcher, [question.text for question in questions], settings)
            others = _answers(searcher, probes(rules.probes), settings)
        answering = answering_of(_best(own), _best(others), marked=rules.answerable_bound)
        return None if answering is None else _with_curve(answering, own, others, snapshot, rules)


def _with_curve(
    answering: Answering,
    own: Sequence[Answer],
    others: Sequence[Answer],
    snapshot: Snapshot,
    rules: CalibrationSettings,
) -> Answering:
    """The same with P(answered), and the share of queries on other matters that passes by it."""

    def asked(answers: Sequence[Answer]) -> list[AskedMatch]:
        covered = [_coverage(answer, snapshot) for answer in answers]
        both = (answering.asked(*each) for each in zip(_best(answers), covered, strict=True))
        return [each for each in both if each is not None]

    first, second = asked(own), asked(others)
    curve = answered_curve(first, second, marked=rules.answerable_bound, spread=rules.answered_spread)
    if curve is None:
        return answering
    passed = sum(curve.probability(each) > curve.least for each in second) / len(second)
    return replace(answering, curve=curve, bound=passed)


def _as_asked(
    generation: Generation, questions: Sequence[StoredQuestion], engines: Engines, settings: Settings
) -> Snapshot:
    """The generation at the priors, its contents without what they are asked with."""
    learned, filters = LearnedVersion(Evidence()), RowFilter(generation.chunks)
    beliefs = believed(settings.priors, learned, now=generation.created_at)
    plain = Snapshot(generation.manifest.id, generation, filters, PRIORS_ONLY, learned, beliefs)
    rests = {question.content_hash: question.rest for question in questions}
    masks = Masks.of(generation.chunks, rests, [question.text for question in questions])
    pooling = settings.embedding.tokens.pooling
    return masked(plain, masks, engines.encoders, pooling=pooling, terms=engines.terms)


def _answers(searcher: Searcher, texts: Sequence[str], settings: Settings) -> list[Answer]:
    k = settings.retrieval.understanding.router.limits[Complexity.MODERATE]
    queries = [Query(text=text, query_id=QueryId(f"own-{number}"), k=k) for number, text in enumerate(texts)]
    return searcher.search_many(queries)


def _best(answers: Sequence[Answer]) -> list[MatchFeatures]:
    return [best_match(result.match for result in answer.results) if answer.results else NO_MATCH for answer in answers]


def _coverage(answer: Answer, snapshot: Snapshot) -> Coverage:
    return snapshot.generation.lexical.coverage(answer.query.text, [each.full_text for each in answer.results])
