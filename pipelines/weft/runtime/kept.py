"""What is dear to make and asked for again, such as a model: kept within a block, made each time outside of one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Made = TypeVar("Made")

_kept: dict[Any, Any] | None = None


@contextlib.contextmanager
def keeping() -> Iterator[None]:
    """Keep what `kept` makes within the block, which one thread runs; it is let go at the end."""
    global _kept  # noqa: PLW0603  makers lie deep in what is passed along as values, and processes of a cluster keep none
    _kept = {}
    try:
        yield
    finally:
        _kept = None


def kept(make: Callable[..., Made], *arguments: Any) -> Made:
    """What `make` gives for these arguments; within `keeping`, what it gave the first time.

    Examples:
        >>> kept(list, "ab") is kept(list, "ab")
        False
        >>> with keeping():
        ...     kept(list, "ab") is kept(list, "ab")
        True
    """
    if _kept is None:
        return make(*arguments)
    key = (make, repr(arguments))  # settings hold lists and tables, which have no hash
    if key not in _kept:
        _kept[key] = make(*arguments)
    made: Made = _kept[key]
    return made
