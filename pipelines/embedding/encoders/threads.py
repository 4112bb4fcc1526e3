"""How many threads PyTorch's products take: a number of every thread that computed, the last one set for all others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def computing_with(threads: int) -> Iterator[None]:
    """Hold products that this thread asks for to so many threads; 0 leaves the choice to PyTorch.

    Threads that compute for the first time meanwhile take that number over, and keep it.

    Threads that were started for a product go on looking for work for a while: where a small one is shared by two, as
    that of a query is, it takes a sixth less time and two thirds more of the processor.

    Examples:
        >>> with computing_with(1):
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    if threads in (0, before):
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
