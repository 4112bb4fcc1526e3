"""Stage 1: from queries to what channels find for them; the next batch is searched for while one is ranked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from pipelines.domain.ranking import Channel, Query
from pipelines.retrieval.channels.graph import GraphChannel
from pipelines.retrieval.channels.run import (
    ChannelRankings,
    ChannelRequest,
    run_channels,
)
from pipelines.retrieval.channels.second_pass import Hints, search_again
from pipelines.retrieval.query.plan import Plan, make_plan
from pipelines.retrieval.resources import Resources


def search(resources: Resources, queries: Sequence[Query]) -> tuple[list[Plan], ChannelRankings]:
    """Plan, search, and search again for queries that need it."""
    plans = [make_plan(query, resources.facts, resources.snapshot.filters, resources.settings) for query in queries]
    first = _run(resources, [ChannelRequest(plan.words, plan.channels, plan.depth, plan.among) for plan in plans])
    return search_again(plans, first, partial(_run, resources), _hints(resources), resources.settings)


def _run(resources: Resources, requests: Sequence[ChannelRequest]) -> ChannelRankings:
    tuned = resources.settings
    return run_channels(resources.channels, requests, budget_ms=tuned.budget_ms, threads=resources.threads)


def _hints(resources: Resources) -> Hints:
    graph = resources.channels.following.get(Channel.GRAPH)
    return Hints(
        texts_of=resources.texts_of,
        names_near=graph.names_near if isinstance(graph, GraphChannel) else lambda _text, _count: [],
    )


Batch = TypeVar("Batch")
Searched = TypeVar("Searched")
Result = TypeVar("Result")


def one_ahead(
    batches: Sequence[Batch], search: Callable[[Batch], Searched], rank: Callable[[Searched], list[Result]]
) -> list[Result]:
    """`rank(search(batch))` of all batches, in their order; no more than one batch is searched for ahead."""
    if len(batches) == 1:
        return rank(search(batches[0]))
    results: list[Result] = []
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as ahead:
        upcoming = [ahead.submit(search, batch) for batch in batches[:1]]
        for at in range(len(batches)):
            searched = upcoming.pop().result()
            upcoming += [ahead.submit(search, batch) for batch in batches[at + 1 : at + 2]]
            results += rank(searched)
    return results
