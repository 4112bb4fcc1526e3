"""Channels that start from what others found: spreading activation and degree (RET-7)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from scipy import sparse

from weft.domain.arrays import Floats, Ints
from weft.domain.ranking import Channel
from weft.indexes.graph.aliases import entity_key, entity_keys
from weft.indexes.graph.graph import EdgeArrays, EdgeKind
from weft.indexes.rows import RowSet
from weft.retrieval.channels.run import NOTHING, Among, Hits, Ranked
from weft.retrieval.settings import GraphSettings

_WORD = re.compile(r"[^\s,;:!?()\[\]{}\"“”]+")
_MEMBER = re.compile(r"[.#]|::|->")


_NAME_WORDS = 5  # of the longest name that is looked for
_NAME_CHARACTERS = 3  # of the shortest: shorter ones stand in every text


class Vocabulary:
    """Which entities each name may mean, whatever its case and punctuation; a member of a type by its last name too."""

    def __init__(self, names: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Take names up."""
        self._named: defaultdict[str, list[int]] = defaultdict(list)
        self._first: dict[int, str] = {}
        for entity, spellings in names:
            self._first[entity] = next(iter(spellings), "")
            for key in {key for spelling in spellings for key in _keys(spelling)}:
                self._named[key].append(entity)

    def named_in(self, text: str) -> list[Sequence[int]]:
        """The entities that each name in a text may mean; of names within a longer one only that."""
        words = _WORD.findall(text)
        keys = entity_keys(words, _NAME_WORDS)
        entities: list[Sequence[int]] = []
        start = 0
        while start < len(words):
            length, named = self._longest_of(keys[start])
            entities += [named] if named else []
            start += length
        return entities

    def name_of(self, entity: int) -> str:
        """One spelling of an entity."""
        return self._first[entity]

    def _longest_of(self, keys: Sequence[str]) -> tuple[int, Sequence[int]]:
        for length in range(len(keys), 0, -1):
            name = keys[length - 1]
            if len(name) >= _NAME_CHARACTERS and (entities := self._named.get(name)):
                return length, entities
        return 1, ()


def _keys(spelling: str) -> set[str]:
    return {entity_key(spelling), entity_key(_MEMBER.split(spelling.rstrip("()"))[-1])} - {""}


Energies = tuple[np.ndarray, np.ndarray]
"""Places, int64 (n,), each once and in their order, and the energy of each, float64 (n,)."""


class GraphChannel:
    """Follows the edges of one generation's graph, both ways."""

    def __init__(
        self, edges: EdgeArrays, names: Vocabulary, weights: Mapping[EdgeKind, float], settings: GraphSettings
    ) -> None:
        self._contents = edges.contents
        self._names = names
        self._settings = settings
        self._passes = passing(edges, weights)

    def follow(
        self, texts: Sequence[str], among: Among, first: Sequence[Mapping[Channel, Ranked]], depth: int
    ) -> list[Ranked]:
        """The `depth` contents of each text that most energy reached, not counting what they started with."""
        seeds = [self._seeds(text, ranked) for text, ranked in zip(texts, first, strict=True)]
        size = self._passes.shape[0]
        keys = np.concatenate([NOTHING.rows, *(at * size + places for at, (places, _) in enumerate(seeds))])
        reached, energies = spread(
            (keys, np.concatenate([NOTHING.scores, *(energy for _, energy in seeds)])), self._passes, self._settings
        )
        bounds = np.searchsorted(reached, np.arange(len(texts))[:, None] * size + [0, self._contents]).tolist()
        return [
            _ranked(reached[start:end] - at * size, energies[start:end], among[at], depth)
            for at, (start, end) in enumerate(bounds)
        ]

    def names_near(self, text: str, count: int) -> list[str]:
        """At most `count` names that most energy reaches from those in a text, by way of contents that hold both."""
        places, energies = spread(self._seeds(text, {}), self._passes, self._settings)
        entities, energies = places[places >= self._contents] - self._contents, energies[places >= self._contents]
        return [self._names.name_of(int(entities[at])) for at in np.lexsort((entities, -energies))[:count]]

    def _seeds(self, text: str, first: Mapping[Channel, Ranked]) -> Energies:
        energies: dict[int, float] = {}
        for entities in self._names.named_in(text):
            # A name that may mean several is shared by them.
            for entity in entities:
                place = self._contents + entity
                energies[place] = energies.get(place, 0.0) + 1.0 / len(entities)
        for ranked in first.values():
            for rank, row in enumerate(ranked.ranking.rows[: self._settings.seed_hits].tolist(), start=1):
                energies[row] = energies.get(row, 0.0) + 1.0 / rank
        places = sorted(energies)
        return np.array(places, dtype=np.int64), np.array([energies[place] for place in places], dtype=np.float64)


def _weighed(edges: EdgeArrays, weights: Mapping[EdgeKind, float]) -> np.ndarray:
    """Weight of its kind times strength of each edge; 0 of what leads to where it comes from."""
    of_kind = np.array([weights.get(kind, 0.0) for kind in EdgeKind])
    return np.asarray(of_kind[edges.kind] * edges.strength * (edges.source != edges.target))


def passing(edges: EdgeArrays, weights: Mapping[EdgeKind, float]) -> sparse.csr_array:
    """What a place gives to each other, by row: weight of the edge · its strength / √(edges of the place)."""
    weight = _weighed(edges, weights)
    some = np.flatnonzero(weight > 0.0)
    source, target, weight = edges.source[some], edges.target[some], weight[some]
    size = edges.contents + edges.entities
    both = (np.concatenate([source, target]), np.concatenate([target, source]))
    passes = sparse.csr_array((np.concatenate([weight, weight]), both), shape=(size, size))
    passes.sum_duplicates()
    np.minimum(passes.data, 1.0, out=passes.data)
    fanout = np.diff(passes.indptr)
    passes.data /= np.sqrt(np.repeat(fanout, fanout))
    return passes


def spread(seeds: Energies, passes: sparse.csr_array, settings: GraphSettings) -> Energies:
    """Energy that reaches each place in `hops` steps, the energy it starts with not counted."""
    reached: list[Energies] = []
    places, energies = seeds
    for _ in range(settings.hops):
        places, energies = _passed(places, energies, passes)
        energies = energies * settings.decay
        reached.append((places, energies))
        strong = energies >= settings.least_energy
        places, energies = places[strong], energies[strong]
    return _summed(*map(np.concatenate, zip(*reached, strict=True)))


def _passed(keys: np.ndarray, energies: np.ndarray, passes: sparse.csr_array) -> Energies:
    """What the neighbours of places get."""
    places = keys % passes.shape[0]
    starts = passes.indptr[places].astype(np.int64)
    counts = passes.indptr[places + 1] - starts
    edges = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    reached = np.repeat(keys - places, counts) + passes.indices[edges]
    return _summed(reached, np.repeat(energies, counts) * passes.data[edges])


def _summed(places: np.ndarray, energies: np.ndarray) -> Energies:
    """Energies of equal places as one, in the order of places."""
    distinct, at = np.unique(places, return_inverse=True)
    return distinct, np.bincount(at, weights=energies, minlength=len(distinct))


def _ranked(rows: np.ndarray, energies: np.ndarray, among: RowSet | None, depth: int) -> Ranked:
    if among is not None:
        rows, energies = rows[among.mask[rows]], energies[among.mask[rows]]
    # Of thousands that energy reached, those are put in order that can be among the first, ties with the last included.
    some = np.arange(len(rows))
    if len(rows) > depth:
        some = np.flatnonzero(energies >= np.partition(energies, -depth)[-depth])
    best = some[np.lexsort((rows[some], -energies[some]))[:depth]]
    return Ranked(Hits(rows[best], energies[best]), partial(_look_up, rows, energies))


def _look_up(places: Ints, energies: Floats, rows: Ints) -> Floats:
    if not len(places):
        return np.zeros(len(rows))
    at = np.minimum(np.searchsorted(places, rows), len(places) - 1)
    return np.where(places[at] == rows, energies[at], 0.0)


class DegreeChannel:
    """Ranks the hits of other channels by degree; it has none of its own, since degree knows no query."""

    def __init__(self, edges: EdgeArrays, weights: Mapping[EdgeKind, float], *, excluded: Collection[int] = ()) -> None:
        """Weigh every content's edges once."""
        self._scores = degree_scores(edges, weights, excluded=excluded)

    def follow(
        self,
        _texts: Sequence[str],
        _among: Among,  # the others' hits are among what may be found
        first: Sequence[Mapping[Channel, Ranked]],
        depth: int,
    ) -> list[Ranked]:
        """The first `depth` hits of each text that have any edges, the most connected first."""
        return [self._ranked(of_text, depth) for of_text in first]

    def _ranked(self, first: Mapping[Channel, Ranked], depth: int) -> Ranked:
        rows = np.unique(np.concatenate([NOTHING.rows, *(ranked.ranking.rows for ranked in first.values())]))
        scores = self._scores[rows]
        order = np.argsort(-scores, kind="stable")[:depth]
        order = order[scores[order] > 0.0]
        return Ranked(Hits(rows[order], scores[order]), lambda rows: np.asarray(self._scores[rows]))


def degree_scores(
    edges: EdgeArrays, weights: Mapping[EdgeKind, float], *, excluded: Collection[int] = ()
) -> np.ndarray:
    """log(1 + d) / log(1 + d_max), where d is the sum of weight · strength of a content's edges."""
    weight = _weighed(edges, weights)
    degree = np.zeros(edges.contents + edges.entities)
    np.add.at(degree, edges.source, weight)
    np.add.at(degree, edges.target, weight)
    of_contents: np.ndarray = degree[: edges.contents]
    of_contents[list(excluded)] = 0.0
    highest = of_contents.max(initial=0.0)
    if highest <= 0.0:
        return of_contents
    scores: np.ndarray = np.log1p(of_contents) / np.log1p(highest)
    return scores
