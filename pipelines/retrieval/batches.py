"""Batches of queries, of which the next is searched for while one is ranked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

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
