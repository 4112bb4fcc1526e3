"""Entities that a query names, found by its words: no model runs for a query."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from pipelines.indexes.graph.aliases import entity_key, entity_keys

_WORD = re.compile(r"[^\s,;:!?()\[\]{}\"“”]+")
_MEMBER = re.compile(r"[.#]|::|->")


class Vocabulary:
    """Which entities each name may mean, whatever its case and punctuation; a member of a type by its last name too."""

    def __init__(
        self, names: Iterable[tuple[int, Sequence[str]]], *, longest: int, shortest: int, most_words: int
    ) -> None:
        """Take names up.

        Args:
            names: Each entity with its spellings.
            longest: Words that a name has at most; longer ones are not found in queries.
            shortest: Characters that a name has at least: shorter ones stand in every text.
            most_words: Words of a text that are looked at.
        """
        self._most_words = most_words
        self._longest = longest
        self._shortest = shortest
        named: defaultdict[str, list[int]] = defaultdict(list)
        self._first: dict[int, str] = {}
        for entity, spellings in names:
            self._first[entity] = next(iter(spellings), "")
            for key in {key for spelling in spellings for key in _keys(spelling)}:
                named[key].append(entity)
        self._named: Mapping[str, Sequence[int]] = named

    def named_in(self, text: str) -> list[Sequence[int]]:
        """The entities that each name in a text may mean; of names within a longer one only that.

        Examples:
            >>> names = [(0, ["Kafka"]), (1, ["Apache Kafka"]), (2, ["Store.get_page"])]
            >>> known = Vocabulary(names, longest=4, shortest=3, most_words=99)
            >>> known.named_in("does apache kafka call get_page()?")
            [[1], [2]]
        """
        words = [match.group() for match in islice(_WORD.finditer(text), self._most_words)]
        keys = entity_keys(words, self._longest)
        found: list[Sequence[int]] = []
        start = 0
        while start < len(words):
            length, entities = self._longest_of(keys[start])
            if entities:
                found.append(entities)
            start += length
        return found

    def name_of(self, entity: int) -> str:
        """One spelling of an entity."""
        return self._first[entity]

    def _longest_of(self, keys: Sequence[str]) -> tuple[int, Sequence[int]]:
        for length in range(len(keys), 0, -1):
            name = keys[length - 1]
            if len(name) >= self._shortest and (entities := self._named.get(name)):
                return length, entities
        return 1, ()


def _keys(spelling: str) -> set[str]:
    return {entity_key(spelling), entity_key(_MEMBER.split(spelling.rstrip("()"))[-1])} - {""}
