"""Which documents say what changed from version to version: changelogs, news, release notes (RET-13)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from pipelines.domain.documents import ContentType
from pipelines.indexes.chunk_store import StoredDocument

_PAGES = frozenset({ContentType.MARKDOWN, ContentType.RST, ContentType.MARKUP, ContentType.TEXT})


def is_release_notes(document: StoredDocument, names: Sequence[str]) -> bool:
    """Whether a page's file, or a folder that it lies in, has one of some names, whatever version stands behind it."""
    return document.content_type in _PAGES and bool(names) and named_so(document.uri, tuple(names))


def named_so(uri: str, names: tuple[str, ...]) -> bool:
    """Whether a file or one of its folders has one of some names.

    Examples:
        >>> names = ("changes", "whatsnew")
        >>> [named_so(uri, names) for uri in ("docs/changes.rst", "whatsnew-5.3.md", "whatsnew/5.3.rst", "a:CHANGES")]
        [True, True, True, True]
        >>> [named_so(uri, names) for uri in ("docs/tracking-changes.md", "docs/changes-of-state.md")]
        [False, False]
    """
    return _pattern(names).search(uri) is not None


@lru_cache(maxsize=8)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    some = "|".join(map(re.escape, names))
    return re.compile(rf"(?:^|[/:])(?:{some})(?:[-_. ]?v?\d[^/]*?)?(?=/|\.\w+$|$)", re.IGNORECASE)
