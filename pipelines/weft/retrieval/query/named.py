"""What of a generation a query names, looked up exactly: definitions by their names, files by their paths (RET-22)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from weft.domain.arrays import Flags
from weft.domain.documents import ContentType
from weft.indexes.chunk_store import ChunkStore, DefinedPlace
from weft.indexes.rows import RowSet
from weft.retrieval.query.names import MentionedName, MentionedPath, names_in, other_words, paths_in

_REMEMBERED = 1024  # texts: planning and searching read the same one
_MOST_PLACES = 1_000  # chunks that define a name, beyond which it tells nothing apart
_MOST_NAMES = 16  # of a text that are looked up: a page of text names more than it asks for
_DECLARATIONS = frozenset({"declaration", "prototype"})
"""Kinds of chunks that bear a name and do not hold its body."""


class Grade(IntEnum):
    """How much a chunk is what is named, the most last; as a score, its share of the highest."""

    OTHER = 1  # it bears the name, and what qualifies that in the query is not known of it
    CONTINUES = 2  # a further part of what bears the name, or of the file
    ASIDE = 3  # as one of the next two, in a test, in an example or in less trusted code, such as generated
    DECLARED = 4  # the name is declared, or one of several that are defined there
    DEFINED = 5  # the definition begins there; the file does, or holds the line there


Grades = Mapping[int, Grade]
"""By row of the content."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a text names."""

    names: tuple[str, ...] = ()  # as they stand in it
    grades: Grades = field(default_factory=lambda: MappingProxyType({}))
    first: RowSet | None = None  # rows that answer it, where it is little else than names


NOTHING_NAMED = Named()


class NamedPlaces:
    """Looks up what texts name in one generation; shared by threads."""

    def __init__(self, chunks: ChunkStore, asides: Flags, asking: Iterable[str] = ()) -> None:
        """Take a generation's chunks, which documents are tests or examples, and phrases that ask for one thing."""
        self._chunks = chunks
        self._asides = asides
        self._asking = frozenset(word for phrase in asking for word in other_words(phrase))
        self._documents = chunks.documents()
        self._files: defaultdict[str, list[tuple[tuple[str, ...], int]]] = defaultdict(list)
        self._modules: defaultdict[str, list[int]] = defaultdict(list)
        for number, facts in enumerate(self._documents):
            if parts := tuple(filter(None, facts.uri.split("/"))):
                self._files[parts[-1]].append((parts, number))
                if facts.content_type is ContentType.CODE:
                    self._modules[_one_spelling(parts[-1].partition(".")[0])].append(number)
        self.of = lru_cache(_REMEMBERED)(self._of)

    def _of(self, text: str) -> Named:
        paths, rest = paths_in(text, self._files.__contains__)
        placed = [(path, numbers) for path in paths if (numbers := self._numbers(path, alone=not rest))]
        if not placed:
            return self._defined(text)
        named = self._defined(rest)
        other = sum(word not in self._asking for word in other_words(rest))
        stated = any(path.stated for path, _ in placed)
        decides = stated or other <= max(1, sum(len(other_words(path.typed)) for path, _ in placed) // 2)
        graded_rows = [self._in_file(path, at, named, alone=not rest) for path, numbers in placed for at in numbers]
        grades = _best([*graded_rows, dict.fromkeys(named.grades, Grade.OTHER)])
        first = [row for row, grade in grades.items() if grade is Grade.DEFINED]
        typed = dict.fromkeys([*(path.typed for path, _ in placed), *named.names])
        return Named(tuple(typed), grades, self._set(first if decides else ()))

    def _set(self, rows: Collection[int]) -> RowSet | None:
        if not rows:
            return None
        mask = np.zeros(len(self._chunks), dtype=bool)
        mask[list(rows)] = True
        return RowSet(mask)

    # Files.

    def _numbers(self, path: MentionedPath, *, alone: bool) -> list[int]:
        """The documents that a path leads to; of several that nothing else tells apart, that of the shortest path."""
        own = self._files.get(path.parts[-1], [])
        shared = [_shared_end(path.parts, parts) for parts, _ in own]
        # A source's own name begins its URIs, and seldom a path; what a machine's path begins with is not known here.
        wanted = [
            max(shared) if path.absolute else min(len(path.parts), len(parts) - (len(parts) > 1)) for parts, _ in own
        ]
        fitting = [each for each, least, common in zip(own, wanted, shared, strict=True) if common >= least]
        fitting.sort(key=lambda each: (len(each[0]), each[0]))
        return [number for _, number in (fitting[:1] if alone else fitting)]

    def _in_file(self, path: MentionedPath, number: int, named: Named, *, alone: bool) -> Grades:
        """Rows of a file: that of the line, else what it defines of what else is named, else its first, or all."""
        chunks = self._chunks.chunks_of_document(self._documents[number].uri)
        rows = self._chunks.rows_of([chunk.content_hash for chunk in chunks]).tolist()
        at = [
            (chunk.end_line - chunk.start_line, row)
            for chunk, row in zip(chunks, rows, strict=True)
            if path.line is not None and chunk.start_line <= path.line <= chunk.end_line
        ]
        defined = [row for row in rows if named.grades.get(row, Grade.OTHER) > Grade.CONTINUES]
        best = [min(at)[1]] if at else defined or (rows[:1] if alone or path.line is not None else rows)
        return {row: Grade.DEFINED if row in best else Grade.CONTINUES for row in rows}

    # Definitions.

    def _defined(self, text: str) -> Named:
        mentions = list(dict.fromkeys(names_in(text)))[:_MOST_NAMES]
        other = {word for word in other_words(_joined(mentions)) if word not in self._asking}
        called = [each for each in mentions if each.called] or [each for each in mentions if each.marked]
        typed: list[str] = []
        graded_rows: list[Grades] = []
        first: set[int] = set()
        for mention in mentions:
            places = self._places_of(mention)
            if not places:
                continue
            beside = other.difference(*(other_words(each.typed) for each in {mention, *called}))
            own = _answering(mention.parts[-1], text, places, beside) if mention in (called or mentions) else set()
            if own or mention.marked or mention.capital:
                typed.append(mention.typed)
                graded_rows.append({row: grade for row, (grade, _) in places.items()})
                first |= own
        return Named(tuple(typed), _best(graded_rows), self._set(first))

    def _places_of(self, mention: MentionedName) -> dict[int, tuple[Grade, DefinedPlace]]:
        """Where a name is defined in code, by row; of what no unit bears, the files of code that are called so."""
        *qualifiers, name = mention.parts
        places = [
            each
            for signed in (name, f"{name}!", f"{name}?")  # a sign behind a name may be the sentence's
            for each in self._chunks.defining(signed, most=_MOST_PLACES)
            if self._documents[each.document].content_type is ContentType.CODE
        ]
        if not any(each.bears for each in places):
            places += [self._file(number, name) for number in self._modules.get(_one_spelling(name), ())]
        trusted = max((self._documents[each.document].trust_level for each in places), default=0)
        graded = [(self._grade(each, qualifiers, trusted), each) for each in places]
        # A content that stands in several places is the best of them.
        return {place.row: (grade, place) for grade, place in sorted(graded, key=lambda each: each[0])}

    def _file(self, number: int, name: str) -> DefinedPlace:
        first, *_ = self._chunks.chunks_of_document(self._documents[number].uri)
        (row,) = self._chunks.rows_of([first.content_hash]).tolist()
        return DefinedPlace(row, number, "file", name, "", bears=True, begins=True)

    def _grade(self, place: DefinedPlace, qualifiers: Sequence[str], trusted: int) -> Grade:
        document = self._documents[place.document]
        if not set(qualifiers) <= {*_parts(place.symbol), *_parts(document.uri)}:
            return Grade.OTHER
        if not place.begins:
            return Grade.CONTINUES
        if self._asides[place.document] or document.trust_level < trusted:
            return Grade.ASIDE
        return Grade.DEFINED if place.bears and place.kind not in _DECLARATIONS else Grade.DECLARED


def _answering(name: str, text: str, places: Mapping[int, tuple[Grade, DefinedPlace]], beside: set[str]) -> set[int]:
    """Rows of the best definitions, where a query says no more than they do up to the name: owner, kind, type.

    Of several, those whose signature is typed as far as the query goes.
    """
    best = max(grade for grade, _ in places.values())
    if best <= Grade.CONTINUES:
        return set()
    own = {
        row: set(other_words(place.signature))
        for row, (grade, place) in places.items()
        if grade is best and beside <= {*other_words(f"{place.symbol} {place.kind} {_before(name, place.signature)}")}
    }
    typed = set(other_words(text))
    return {row for row, signature in own.items() if typed <= signature} or set(own)


def _joined(mentions: Sequence[MentionedName]) -> str:
    return " ".join(each.typed for each in mentions)


def _before(name: str, signature: str) -> str:
    return re.split(rf"\b{re.escape(name)}\b", signature, maxsplit=1)[0]


def _parts(name: str) -> list[str]:
    return name.replace("/", ".").replace("::", ".").split(".")


def _one_spelling(name: str) -> str:
    """A name however it is written: `TaskQueue` is `task_queue` and `task-queue`."""
    return re.sub(r"[\W_]", "", name).casefold()


def _shared_end(one: Sequence[str], other: Sequence[str]) -> int:
    """How many of their last parts two paths share."""
    count = 0
    for mine, theirs in zip(reversed(one), reversed(other), strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _best(graded_rows: Iterable[Grades]) -> Grades:
    grades: dict[int, Grade] = {}
    for each in graded_rows:
        for row, grade in each.items():
            grades[row] = max(grade, grades.get(row, grade))
    return MappingProxyType(grades)
