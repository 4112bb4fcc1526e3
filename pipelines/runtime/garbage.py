"""When Python looks for cyclic garbage: at times of a loop's choosing instead of after so many new objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage within a block that makes only what is kept: Python would look at all of it repeatedly."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class UnhurriedCollection:
    """Looks for cyclic garbage every so often, as long as a loop lasts that leaves next to none behind.

    Python looks whenever more objects were made than freed, at all of them time and again. Counting references goes on
    as ever. Switching is for the whole process: whoever begins it ends it.

    Examples:
        >>> gc.freeze()  # what a program holds from its start on need not be looked through
        >>> collection = UnhurriedCollection(every_s=30.0)
        >>> collection.begin()
        >>> [collection.look(now) for now in (0.0, 10.0, 31.0)]
        [False, False, True]
        >>> collection.end()
        >>> gc.unfreeze()
    """

    def __init__(self, *, every_s: float) -> None:
        """Change nothing yet.

        Args:
            every_s: Seconds from one look to the next.
        """
        self._every_s = every_s
        self._at: float | None = None
        self._was_on = False

    def begin(self) -> None:
        """Leave garbage where it is from now on."""
        self._was_on = self._was_on or gc.isenabled()
        gc.disable()

    def look(self, now: float) -> bool:
        """Collect when it is time to; whether it was.

        Args:
            now: Seconds of a clock that never goes back.
        """
        due = self._at is not None and now >= self._at
        if due:
            gc.collect()
        if due or self._at is None:
            self._at = now + self._every_s
        return due

    def end(self) -> None:
        """Leave it to Python again, where it was."""
        if self._was_on:
            gc.enable()
            self._was_on = False
