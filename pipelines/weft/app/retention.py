"""What a store keeps of the past, by its policy (OPS-12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from weft.catalog.catalog import Catalog
from weft.settings import Settings

LEARNED = 60
"""Learned versions that are kept, the newest: two months of nights, each a few megabytes."""


def prune(settings: Settings) -> Mapping[str, Sequence[str]]:
    """Remove generations and learned versions beyond those that are kept, and what killed runs left; by kind.

    What is live, what was live before and what waits for its verdict always stay. Logs keep their days
    (`query_log.keep_days`), updaters two checkpoints each, sessions and answers the newest: each looks to it by itself.
    """
    catalog = Catalog(Path(settings.storage.root))
    return {
        "generations": catalog.prune(settings.storage.keep_generations),
        "learned": catalog.learned.prune(LEARNED),
        "leftovers": [path.name for path in (*catalog.clean_leftovers(), *catalog.learned.staging.clean_leftovers())],
    }
