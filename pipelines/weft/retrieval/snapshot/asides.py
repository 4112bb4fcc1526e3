"""What stands beside what is looked for, and says much of the same words: release notes, tests, examples (RET-13)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from types import MappingProxyType

from weft.domain.arrays import Flags, Ints
from weft.domain.chunks import LINK_LIST
from weft.domain.documents import ContentType
from weft.indexes.chunk_store import ChunkStore, StoredDocument
from weft.indexes.graph.links import TEST_FILES

PAGES = frozenset({ContentType.MARKDOWN, ContentType.RST, ContentType.MARKUP, ContentType.TEXT})
CODE = frozenset({ContentType.CODE, ContentType.CONFIGURATION})


class Aside(StrEnum):
    """A kind of document that stands aside where nobody asks for it."""

    RELEASE_NOTES = "release_notes"  # what changed once names everything and explains little
    TESTS = "tests"  # they call what they test, by its names
    EXAMPLES = "examples"  # they use what they show
    CONTENTS = "contents"  # lists of links, which lead to what is looked for; told by chunk


@dataclass(frozen=True, slots=True)
class AsideKind:
    """What tells documents of one kind, and questions that ask for them."""

    types: frozenset[ContentType]
    paths: re.Pattern[str] | None  # of their files; None where no path tells them
    asked_by: tuple[str, ...]  # phrases


_RELEASE_NOTES = (
    "changelog changelogs change-log change_log changes history news release-notes release_notes releasenotes releases "
    "whatsnew whats-new whats_new announce"
)
_CHANGES = (
    "changelog, change log, release notes, release note, what's new, whats new, what is new, what changed, "
    "what has changed, changed in, changed since, changed between, changes in, changes since, changes between, new in, "
    "which version, what version, which release, what release, since version, since when, in version, introduced in, "
    "introduced, removed in, deprecated in, breaking change, breaking changes, released"
)
_TESTING = "test, tests, tested, testing, mock, mocks, mocked, fixture, fixtures, spec, assert, asserts"
_EXAMPLES = "example examples _example _examples sample samples demo demos"
_USING = "example, examples, sample, samples, demo, demos, how to use, usage"
_LINKS = "contents, table of contents, list of, index of, links, overview"


def paths_of(names: str) -> re.Pattern[str]:
    """Paths of files that have one of some names, or lie in a folder that has, whatever version stands behind it.

    Examples:
        >>> notes = paths_of("changes whatsnew")
        >>> [notes.search(uri) is not None for uri in ("docs/changes.rst", "whatsnew-5.3.md", "whatsnew/5.3.rst")]
        [True, True, True]
        >>> [notes.search(uri) is not None for uri in ("a:CHANGES", "docs/tracking-changes.md", "changes-of-state.md")]
        [True, False, False]
    """
    some = "|".join(map(re.escape, names.split()))
    return re.compile(rf"(?:^|[/:])(?:{some})(?:[-_. ]?v?\d[^/]*?)?(?=/|\.\w+$|$)", re.IGNORECASE)


def _kind(types: frozenset[ContentType], paths: re.Pattern[str] | None, asked_by: str) -> AsideKind:
    return AsideKind(types, paths, tuple(asked_by.split(", ")))


ASIDES: Mapping[Aside, AsideKind] = MappingProxyType(
    {
        Aside.RELEASE_NOTES: _kind(PAGES, paths_of(_RELEASE_NOTES), _CHANGES),
        Aside.TESTS: _kind(CODE, re.compile(TEST_FILES), _TESTING),
        Aside.EXAMPLES: _kind(CODE, paths_of(_EXAMPLES), _USING),
        Aside.CONTENTS: _kind(PAGES, None, _LINKS),
    }
)


def is_aside(document: StoredDocument, kind: Aside) -> bool:
    """Whether a document is of a kind: by its type, and the name of its file or of a folder that it lies in."""
    rules = ASIDES[kind]
    return rules.paths is not None and document.content_type in rules.types and bool(rules.paths.search(document.uri))


def asks_for(text: str, kind: Aside) -> bool:
    """Whether a query asks for documents of a kind.

    Examples:
        >>> asks_for("Which version removed nose?", Aside.RELEASE_NOTES), asks_for("use nose", Aside.RELEASE_NOTES)
        (True, False)
    """
    return phrases(ASIDES[kind].asked_by).search(text) is not None


_SOME_WORDS = r"\b.{1,60}?\b"


class LinkLists:
    """Which contents of one generation are lists of links, as their chunks say; shared by threads."""

    def __init__(self, chunks: ChunkStore) -> None:
        self._chunks = chunks

    def among(self, rows: Ints, pages: Flags) -> Flags:
        """Which of some contents are such lists, bool (n,), among those of pages."""
        return pages & self._mask[rows]

    @cached_property
    def _mask(self) -> Flags:
        return self._chunks.mask_of_attribute(LINK_LIST)


@lru_cache(maxsize=64)
def phrases(some: Sequence[str]) -> re.Pattern[str]:
    """A pattern of any of some phrases, longer ones first, between words; " … " in them stands for some words.

    Examples:
        >>> phrases(("where is … decided",)).search("where is the next job decided?") is not None
        True
    """
    ordered = sorted(some, key=lambda phrase: (-len(phrase), phrase))
    pattern = "|".join(_SOME_WORDS.join(map(re.escape, phrase.split(" … "))) for phrase in ordered)
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
