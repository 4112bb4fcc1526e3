"""Questions with known answers, asked of a store before and after a night (EVA-4, CON-8)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft.app.collections import measuring
from weft.app.searching.replay import StoreReplay
from weft.catalog.catalog import Catalog
from weft.consolidation.improvement import Improve, Improvement, MeanInterval, QuestionSource
from weft.domain.ids import ContentHash, QueryId
from weft.domain.ranking import Query, ScoredResults
from weft.evaluation.ground_truth.collect import BEST, JudgementSource, grades_of, stored_judgements
from weft.evaluation.measures.beir import Qrels
from weft.evaluation.measures.compare import compare
from weft.evaluation.measures.metrics import Estimate, estimate, measure
from weft.evaluation.settings import EvaluationSettings
from weft.ingestion.questions import StoredQuestion, stored_questions
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.edges import LearnedEdges
from weft.learning.parts import LearnedVersion
from weft.retrieval.settings import ResultUnit
from weft.settings import Settings

PAGE = 10
"""Results that are asked for: what a first page shows."""

MEASURED = ("ndcg_at_10", "mrr_at_10")
"""Measures of a page."""

DEEP = 20
"""Results that are asked for where the question is what is found at all."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions whose answers are known: grades by content, by query."""

    source: QuestionSource
    queries: Sequence[Query]
    qrels: Qrels


def current(questions: QuestionSet, superseded: Collection[ContentHash]) -> QuestionSet:
    """Those with an answer that nothing supersedes: what only an outdated page answers, no night should keep first."""
    qrels = {
        query: grades
        for query, grades in questions.qrels.items()
        if any(grade > 0 and content not in superseded for content, grade in grades.items())
    }
    queries = [query for query in questions.queries if query.query_id in qrels]
    return replace(questions, queries=queries, qrels=qrels)


def deeper(questions: QuestionSet) -> QuestionSet:
    """The same questions, of which more results are looked at."""
    return replace(questions, queries=[replace(query, k=DEEP) for query in questions.queries])


Asked = tuple[QuestionSet, Settings, StoreReplay]
"""Questions, and what they are asked under and of."""


FindSuperseded = Callable[[LearnedEdges | None], Collection[ContentHash]]
"""Contents of what is live that stand in nothing but what something supersedes, by declared and these edges."""


def improve_of(
    asked: Sequence[Asked], settings: Settings, superseded: FindSuperseded, *, measures: Sequence[str] = MEASURED
) -> Improve | None:
    """Asks questions under both states of evidence and measures the answers; None where there are none."""
    if not asked:
        return None

    def improvements(former: LearnedVersion, candidate: LearnedVersion) -> list[Improvement]:
        measured: list[Improvement] = []
        outdated = superseded(candidate.part(LearnedEdges))
        for every, under, replay in asked:
            questions = current(every, outdated)
            if not questions.queries:
                continue
            rankings = replay.rankings(questions.queries, [(under, former), (under, candidate)])
            aliases = candidate.part(ContentAliases) or NO_ALIASES
            measured += improvements_of(questions, rankings, settings.evaluation, measures=measures, aliases=aliases)
        return measured

    return improvements


def improvements_of(
    questions: QuestionSet,
    rankings: Sequence[Sequence[ScoredResults]],
    rules: EvaluationSettings,
    *,
    measures: Sequence[str] = MEASURED,
    aliases: ContentAliases = NO_ALIASES,
) -> list[Improvement]:
    """What the rankings of the same questions are worth, those before and those after."""
    qrels = {query: _by_representative(grades, aliases) for query, grades in questions.qrels.items()}
    runs = [
        {
            str(query.query_id): {name: -float(rank) for rank, name in enumerate(_names(scored_results, aliases))}
            for query, scored_results in zip(questions.queries, side, strict=True)
        }
        for side in rankings
    ]
    control, treatment = (measure(run, qrels) for run in runs)
    return [improvement_of(name, questions.source, control[name], treatment[name], rules) for name in measures]


def improvement_of(
    name: str,
    source: QuestionSource,
    control: Mapping[str, float],
    treatment: Mapping[str, float],
    rules: EvaluationSettings,
) -> Improvement:
    """One measure of the same questions before and after."""
    difference = compare(control, treatment, rules)
    before, after = (estimate(list(values.values()), rules) for values in (control, treatment))
    return Improvement(
        measure=name,
        source=source,
        before=_interval(before),
        after=_interval(after),
        change=_interval(difference.change),
        questions=len(control),
        significant=difference.significant,
    )


def own(questions: Sequence[StoredQuestion]) -> QuestionSet:
    """A store's own questions, each answered by the content that it was taken from."""
    queries = [Query(text=one.text, query_id=QueryId(f"own-{at}"), k=PAGE) for at, one in enumerate(questions)]
    return QuestionSet(
        QuestionSource.OWN, queries, {f"own-{at}": {str(one.content_hash): BEST} for at, one in enumerate(questions)}
    )


def judged_questions(settings: Settings, *, now: float) -> QuestionSet:
    """What people or a model judged; what feedback implies is what was learned from, and measures nothing."""
    judgements = stored_judgements(Path(settings.storage.root))
    grades = grades_of((one for one in judgements if one.source is JudgementSource.JUDGED), now=now)
    queries = [Query(text=text, query_id=QueryId(f"judged-{at}"), k=PAGE) for at, text in enumerate(grades)]
    by_query = zip(queries, grades.values(), strict=True)
    return QuestionSet(
        QuestionSource.JUDGED,
        queries,
        {str(query.query_id): {str(content): grade for content, grade in one.items()} for query, one in by_query},
    )


def by_chunk(settings: Settings) -> Settings:
    """The settings under which a store asks itself: every chunk stands for itself, and no channel is cut short."""
    patient = measuring(settings)
    retrieval = patient.retrieval.model_copy(update={"unit": ResultUnit.CHUNK})
    return patient.model_copy(update={"retrieval": retrieval})


def questions_of(settings: Settings) -> list[StoredQuestion]:
    """The questions of what is live in a store; none where nothing is."""
    catalog = Catalog(Path(settings.storage.root))
    generation = catalog.pointer().generation
    return [] if generation is None else stored_questions(catalog.folder_of(generation))


def _names(scored_results: ScoredResults, aliases: ContentAliases) -> Iterable[str]:
    """What is shown, best first, each content once, by its representative."""
    return dict.fromkeys(str(aliases.of(placed.content_hash)) for placed in scored_results)


def _by_representative(grades: Mapping[str, int], aliases: ContentAliases) -> dict[str, int]:
    """The best grade of each class of contents."""
    best: dict[str, int] = {}
    for content, grade in grades.items():
        name = str(aliases.of(content))
        best[name] = max(grade, best.get(name, 0))
    return best


def _interval(estimate: Estimate) -> MeanInterval:
    return MeanInterval(estimate.mean, estimate.low, estimate.high)
