"""How many threads linear algebra takes; the one importer of threadpoolctl."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def linear_algebra_threads(count: int) -> Iterator[None]:
    """Hold NumPy's and SciPy's products to so many threads, in all threads of the process; 0 leaves them as they are.

    After each product the threads of OpenBLAS wait for the next one by spinning, for tens of milliseconds: where
    products are small and many, they take more time from others than they save.
    """
    if not count:
        yield
        return
    with threadpool_limits(limits=count, user_api="blas"):
        yield
