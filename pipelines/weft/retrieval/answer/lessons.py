"""Lessons beside the results of a search: what fits the question, and moves no ranking (LES-8)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

import numpy as np

from weft.domain.lesson_match import ChosenLesson
from weft.domain.ranking import Query
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.lessons.finding import LessonFinder, RelevanceWeights, ToolUse, finder_of, meanings_of
from weft.lessons.settings import DuplicateSettings

Embed = Callable[[Sequence[str]], np.ndarray]
"""Texts to unit vectors, float32 (n, dimension)."""

Stored = Callable[[Sequence[str]], Sequence[str]]
"""Those of some texts that take no time to embed."""

_AT_ONCE = 32  # texts that one search embeds: some tens of milliseconds


class LessonRetriever:
    """Finds lessons for queries among those that are believed; shared by threads.

    The cosine from which meaning alone shows one is read from everyday questions, nearly all of which are to show
    nothing.
    """

    def __init__(
        self,
        weights: RelevanceWeights,
        *,
        most: int,
        duplicates: DuplicateSettings,
        embed: Embed | None = None,
        stored: Stored = lambda _: (),
        everyday: Sequence[str] = (),
        ask: Embed | None = None,  # embeds questions; None where `embed` does
    ) -> None:
        self._weights, self._most, self._duplicates, self._embed = weights, most, duplicates, embed
        self._stored, self._everyday, self._ask = stored, everyday, ask or embed
        self._lock = threading.Lock()
        self._held: _Held | None = None

    def of(self, query: Query, beliefs: LessonBeliefs, vector: np.ndarray | None = None) -> tuple[ChosenLesson, ...]:
        """The lessons that fit a query, best first; its id draws those on trial, its `vector` finds by meaning."""
        draws = random.Random(query.query_id)  # noqa: S311 - it draws what is tried
        held = self._current(beliefs, embedded=vector is not None)
        cosines = [] if vector is None else held.cosines(vector)
        use = ToolUse(text=query.text)
        return tuple(held.finder.find(use, limit=self._most, rng=draws, cosines=cosines, near=held.near))

    def _current(self, beliefs: LessonBeliefs, *, embedded: bool) -> _Held:
        held = self._held
        if held is None or held.beliefs is not beliefs or (embedded and self._embed and held.missing):
            with self._lock:
                held = self._held = self._next(self._held, beliefs, embedded=embedded)
        return held

    def _next(self, held: _Held | None, beliefs: LessonBeliefs, *, embedded: bool) -> _Held:
        former = {} if held is None else held.vectors
        same = held is not None and held.beliefs is beliefs
        finder = held.finder if held is not None and same else finder_of(beliefs, self._weights, self._duplicates)
        texts = [text for each in finder.lessons for text in meanings_of(each.lesson)]
        texts += self._everyday if texts else ()
        vectors = {text: former[text] for text in texts if text in former}
        if embedded and self._embed is not None:
            absent = [text for text in dict.fromkeys(texts) if text not in vectors]
            at_hand = dict.fromkeys(self._stored(absent))
            new = [*at_hand, *[text for text in absent if text not in at_hand][:_AT_ONCE]]
            for embed, some in ((self._embed, set(new).difference(self._everyday)), (self._ask, self._everyday)):
                of_side = [text for text in new if text in some]
                vectors |= zip(of_side, embed(of_side), strict=True) if embed and of_side else {}
        return _Held(beliefs, finder, vectors, self._everyday, self._weights, missing=len(set(texts)) - len(vectors))


class _Held:
    """What is kept for one state of beliefs."""

    def __init__(
        self,
        beliefs: LessonBeliefs,
        finder: LessonFinder,
        vectors: dict[str, np.ndarray],
        everyday: Sequence[str],
        weights: RelevanceWeights,
        *,
        missing: int,
    ) -> None:
        self.beliefs, self.finder, self.vectors, self.missing = beliefs, finder, vectors, missing
        meanings = [meanings_of(each.lesson) for each in finder.lessons]
        self._places = [at for at, texts in enumerate(meanings) if all(text in vectors for text in texts)]
        rows = [vectors[text] for at in self._places for text in meanings[at]]
        self._matrix = np.stack(rows) if rows else None
        self.near = weights.near
        asked = [vectors[text] for text in everyday if text in vectors]
        if self._matrix is not None and asked:
            nearest = (self._matrix @ np.stack(asked, axis=1)).max(axis=0)
            self.near = max(self.near, float(np.quantile(nearest, weights.everyday)))

    def cosines(self, vector: np.ndarray) -> list[float]:
        """Of a query to each lesson, the nearer of what it is embedded by; 0 to one that is not embedded yet."""
        cosines = np.zeros(len(self.finder.lessons))
        if self._matrix is not None:
            cosines[self._places] = (self._matrix @ vector).reshape(len(self._places), -1).max(axis=1)
        return [float(each) for each in cosines]
