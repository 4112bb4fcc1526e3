"""What is dear to make and asked for again, such as a model: reused within a block, made each time outside of one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Made = TypeVar("Made")

_made: dict[Any, Any] | None = None


@contextlib.contextmanager
def reusing() -> Iterator[None]:
    """Keep what `reused` makes within the block, which one thread runs; it is let go at the end."""
    global _made  # noqa: PLW0603  makers lie deep in what is passed along as values, and processes of a cluster keep none
    _made = {}
    try:
        yield
    finally:
        _made = None


def reused(make: Callable[..., Made], *arguments: Any) -> Made:
    """What `make` gives for these arguments; within `reusing`, what it gave the first time.

    Examples:
        >>> reused(list, "ab") is reused(list, "ab")
        False
        >>> with reusing():
        ...     reused(list, "ab") is reused(list, "ab")
        True
    """
    if _made is None:
        return make(*arguments)
    key = (make, repr(arguments))  # settings hold lists and tables, which have no hash
    if key not in _made:
        _made[key] = make(*arguments)
    value: Made = _made[key]
    return value
