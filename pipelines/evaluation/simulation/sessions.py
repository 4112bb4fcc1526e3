"""Simulated users at work: what they do with an answer, as events on the topic (EVA-6)."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable

from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Answer, Query
from pipelines.evaluation.settings import SimulationSettings
from pipelines.evaluation.simulation.users import Reaction, UserKind, answered
from pipelines.feedback.events.producer import FeedbackProducer
from pipelines.learning.priors import Priors

PAGE = 10
"""Results that a simulated user is shown."""


def of_days(priors: Priors, days: float) -> Priors:
    """The priors for what happens within minutes and stands for days: as much counts as of so many days (LRN-3)."""
    cap = priors.robustness.daily_cap * max(1.0, days)
    return priors.model_copy(update={"robustness": priors.robustness.model_copy(update={"daily_cap": cap})})


def tell(producer: FeedbackProducer, query: Query, reactions: Iterable[Reaction]) -> None:
    """Say what a user did about the results of a query."""
    for reaction in reactions:
        if reaction.satisfaction is None:
            producer.selection(query, reaction.content_hash, reaction.rank)
        else:
            producer.explicit(
                query, reaction.satisfaction, content_hash=reaction.content_hash, asked=reaction.requested
            )


def with_replies(
    answer: Answer,
    reactions: Iterable[Reaction],
    right: Collection[ContentHash],
    settings: SimulationSettings,
    *,
    kind: UserKind = UserKind.HONEST,
) -> list[Reaction]:
    """What a user does, and says about the result that the answer asks about, which is said once."""
    rng = random.Random(f"asked-{answer.query.query_id}")  # noqa: S311  a simulation, repeatable by the query
    about = [(result.content_hash, result.rank) for result in answer.results if result.asked]
    replies = [each for content, rank in about for each in answered(content, rank, right, settings, rng, kind=kind)]
    replied = {each.content_hash for each in replies}
    return [each for each in reactions if each.satisfaction is None or each.content_hash not in replied] + replies
