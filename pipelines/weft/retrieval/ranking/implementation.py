"""Where a query asks how code works, what functions do comes before what is said about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.domain.documents import Domain
from weft.domain.understanding import QueryType
from weft.retrieval.query.understanding import Plan
from weft.retrieval.ranking.batch import RankingBatch, ScoreTerm, best_first
from weft.retrieval.ranking.context import RankingContext
from weft.retrieval.ranking.final_score import Apart, together
from weft.retrieval.ranking.signals import may_answer
from weft.retrieval.settings import FusionMode, RetrievalSettings
from weft.retrieval.snapshot.asides import phrases
from weft.retrieval.snapshot.documents import DOMAINS, GenerationFacts

IMPLEMENTATION = "implementation"
"""Name of the contribution that lowers what is no function, where a query asks how code works."""

_USES = ("how do i", "how do you", "how do we", "how does one", "how can", "how to")
"""Of questions how something works, those that ask how to use it, and so for documentation."""


def with_functions_first(
    candidates: RankingBatch,  # contents, best first
    facts: GenerationFacts,
    settings: RetrievalSettings,
) -> RankingBatch:
    """Candidates; where a query asks how code works, those that are no functions lose a share of their score.

    Talk about code repeats the question, and loses more.

    Only where a function that may be an answer is among the best: of what is said in prose alone nothing is lowered.
    """
    loses, talk = settings.quality.aside_loses, settings.quality.talk_loses
    if settings.fusion is not FusionMode.LEARNED or not (loses or talk) or not facts.functions.any():
        return candidates
    functions = facts.functions[candidates.place]
    lowered = np.zeros(len(candidates), dtype=bool)
    for query, lines in candidates.queries:
        if asks_how_code_works(candidates.contexts[query].plan):
            best = range(lines.start, min(lines.stop, lines.start + settings.rerank.depth))
            if any(functions[line] and may_answer(candidates.take(np.array([line]))) for line in best):
                lowered[lines] = ~functions[lines]
    if not lowered.any():
        return candidates
    values = np.where(lowered, candidates.total, np.nan)
    shares = -np.array([talk if domain is Domain.HISTORY else loses for domain in DOMAINS])[candidates.domain]
    return best_first(candidates.add_terms([ScoreTerm(IMPLEMENTATION)], values[:, None], shares[:, None]))


def functions_apart(contexts: Sequence[RankingContext], facts: GenerationFacts) -> Apart:
    """Functions where a query asks how code works: of one file that asks for more than one."""
    asked = np.array([asks_how_code_works(each.plan) for each in contexts], dtype=bool)
    return lambda queries, places: (
        asked[queries] & facts.functions[places] if asked.any() else together(queries, places)
    )


def asks_how_code_works(plan: Plan) -> bool:
    """Whether a query asks how something works, rather than how to use it."""
    return plan.understanding.type is QueryType.HOW and phrases(_USES).search(plan.text) is None
