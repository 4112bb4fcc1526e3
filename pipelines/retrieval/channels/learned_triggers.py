"""Contents that a query's words were taught to lead to, as hits of the trigger channel (RET-17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Channel
from pipelines.learning.observe.triggers import LEARNED, LearnedTriggers
from pipelines.retrieval.channels.rankings import Floats, Hits, Ints
from pipelines.retrieval.channels.run import Ranked
from pipelines.retrieval.channels.triggers import words_of
from pipelines.retrieval.query.plan import Plan


def with_learned_triggers(
    plan: Plan,
    found: Mapping[Channel, Ranked],
    triggers: LearnedTriggers,
    row_of: Callable[[ContentHash], int | None],
    is_name: Callable[[str], bool],
) -> tuple[Plan, dict[Channel, Ranked]]:
    """What the channels found and what learned triggers lead to; triggers on trial are told in the plan, and no more.

    A content counts as found by the share of the query's words that are its triggers. Names that the generation knows
    trigger nothing: they belong to its vocabulary, and lead to everything that bears them.

    Args:
        found: Of one query, by channel; the trigger channel may be missing.
        row_of: Row of a content; None of one that the generation does not hold.
        is_name: Whether the generation knows an entity of that name.
    """
    if Channel.TRIGGERS not in found:
        return plan, dict(found)
    if not triggers.count:
        return plan, dict(found)
    words = words_of(plan.text)
    matched = [each for each in triggers.of(words) if not is_name(each.term)]
    trial: dict[str, str] = {each.content_hash: f"{LEARNED}{each.term}" for each in matched if each.on_trial}
    told = replace(plan, understanding=replace(plan.understanding, shadowed=trial))
    shares: dict[int, float] = {}
    for trigger in matched:
        row = None if trigger.on_trial else row_of(trigger.content_hash)
        if row is not None and (plan.among is None or plan.among.mask[row]):
            shares[row] = shares.get(row, 0.0) + words.count(trigger.term) / len(words)
    return told, {**found, Channel.TRIGGERS: _joined(found[Channel.TRIGGERS], shares, plan.depth)}


def _joined(declared: Ranked, learned: Mapping[int, float], depth: int) -> Ranked:
    if not learned:
        return declared
    known = dict(declared.ranking)
    scores = {row: max(learned.get(row, 0.0), known.get(row, 0.0)) for row in {*learned, *known}}
    ranking = Hits.of(sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))[:depth])
    other = declared.score_rows

    def score_rows(rows: Ints) -> Floats:
        taught = np.array([learned.get(row, 0.0) for row in rows.tolist()], dtype=np.float64)
        return taught if other is None else np.maximum(taught, other(rows))

    return replace(declared, ranking=ranking, score_rows=score_rows)
