"""What commands that ask have in common, by a service or without."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from weft.cli.console.terminal import warn
from weft.domain.ids import QueryId
from weft.domain.ranking import Query


def new_id() -> QueryId:
    """An id that no other query has."""
    return QueryId(uuid.uuid4().hex)


def warn_of_depth(requests: Sequence[Query], depth: int) -> None:
    """Say so where more results are asked for than each channel finds."""
    asked = max((each.k for each in requests if not each.adaptive), default=0)
    if asked > depth:
        warn(f"each channel finds {depth} at most; for more: --set retrieval.depth={asked}")
