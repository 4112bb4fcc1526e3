"""How many examples a law is tried on: its own number, or fewer where a profile of Hypothesis says so."""

from __future__ import annotations

import hypothesis

_EVERYDAY = hypothesis.settings.get_profile("weft").max_examples


def examples(most: int) -> int:
    """That number; under a profile of fewer examples than usual, as `make check` has, what that allows."""
    allowed = hypothesis.settings.default.max_examples
    return most if allowed >= _EVERYDAY else min(most, allowed)
