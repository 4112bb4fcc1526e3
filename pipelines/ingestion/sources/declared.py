"""Sources that the configuration declares (OPS-3b): which of their files, and what holds for all their documents."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pipelines.ingestion.git.ignore import IgnoreRules
from pipelines.ingestion.settings import IngestSettings, SourceSettings
from pipelines.ingestion.sources.corpus import SUFFIXES, corpus_name
from pipelines.ingestion.sources.items import TABLE_SUFFIX, FileItem, SourceItem, StoredItem, escaped, table_name
from pipelines.ingestion.sources.sources import SourceListing, list_source
from pipelines.ingestion.sources.tree import SkipReason


def list_declared(source: SourceSettings, settings: IngestSettings, *, store: Path) -> SourceListing:
    """Items of a declared source, each with the declaration.

    Raises:
        SourceError: There is no such source, or it cannot be opened at all.
    """
    listing = list_source(source.place, settings, store=store)
    wanted = [_with_source(item, source) for item in listing.items if _is_wanted(item, source)]
    left_out = Counter(listing.left_out)
    if excluded := len(listing.items) - len(wanted):
        left_out[SkipReason.DECLARED] += excluded
    return SourceListing(wanted, dict(left_out))


def uri_prefixes(path: Path) -> tuple[str, ...]:
    """How URIs of the documents of a source begin, told from its path alone: it may not be there any more.

    Examples:
        >>> uri_prefixes(Path("/data/app")), uri_prefixes(Path("/data/notes.jsonl"))
        (('app/', 'data/app'), ('notes:',))
    """
    if path.name.endswith(SUFFIXES):
        return (f"{corpus_name(path)}:",)
    if path.name.endswith(TABLE_SUFFIX):
        return (f"{table_name(path, 0)}:", f"{table_name(path, 1)}:")
    return (f"{escaped(path.name)}/", f"{escaped(path.parent.name)}/{escaped(path.name)}")


def _is_wanted(item: SourceItem, source: SourceSettings) -> bool:
    if not isinstance(item, FileItem):
        return True
    path = os.fsencode("/".join(item.path))
    return (not source.include or _matches(path, source.include)) and not _matches(path, source.exclude)


def _matches(path: bytes, globs: Iterable[str]) -> bool:
    """Whether globs match a file, or a folder that it lies in."""
    rules = IgnoreRules("\n".join(globs).encode())
    ends = [at for at, byte in enumerate(path) if byte == ord("/")]
    steps = [*((path[:end], True) for end in ends), (path, False)]
    verdicts = [rules.verdict(step, is_folder=is_folder) for step, is_folder in steps]
    return next((verdict for verdict in reversed(verdicts) if verdict is not None), False)


def _with_source(item: SourceItem, source: SourceSettings) -> SourceItem:
    return item if isinstance(item, StoredItem) else replace(item, source=source)
