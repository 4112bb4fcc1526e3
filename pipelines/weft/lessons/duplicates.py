"""Which lessons are one, said in other words, and which contradict one another (LES-13).

What their texts say is compared by `wording`; here stands what lessons have beside a text: conditions of use, of which
those that exclude each other leave nothing to contradict, and an index, since not all can be compared with all.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np

from weft.domain.arrays import Ints
from weft.domain.lesson import Conditions, Lesson, LessonId
from weft.wording.comparison import Comparison, TextRelation, Thresholds, compare, may_be_about_the_same
from weft.wording.text import Text

if TYPE_CHECKING:
    from weft.lessons.settings import DuplicateSettings

_SLACK = 1e-9  # a share of words is no exact number
_WILD = re.compile(r"[*?\[]")
_ENDS_WILD = re.compile(r"[*?\]]")
Embed = Callable[[Sequence[str]], np.ndarray]
"""Texts to unit vectors, float32 (n, dimension)."""
_ASKED = 3  # pairs of one lesson that only its meaning makes: a person is not to compare all of a subject
_AT_ONCE = 2_000_000  # pairs that are compared together: some hundred megabytes


def sharing(left: Ints, right: Ints, shared: int) -> Ints:
    """Pairs of rows of which at least `shared` numbers are the same, each once, int64 (pairs, 2).

    Of sets with a and b members that share s, both have k of the shared ones among their first a − s + k and b − s + k
    in any order of all numbers. With k = 2 and the rarest numbers first, few sets meet by chance.

    Args:
        left, right: Ascending numbers >= 0, each once in a row, int64 (rows, size); the rarest is the smallest. The
            same array twice: pairs within it, the smaller row first.
        shared: >= 1, and at most the size of either.

    Examples:
        >>> sharing(np.array([[1, 2, 3], [4, 5, 6]]), np.array([[2, 3, 9], [4, 8, 9]]), 2).tolist()
        [[0, 0]]
    """
    together = min(2, shared)
    most = int(max(left.max(initial=0), right.max(initial=0))) + 1
    ours, our_rows = _keys(left, left.shape[1] - shared + together, together, most)
    theirs, their_rows = (
        (ours, our_rows) if left is right else _keys(right, right.shape[1] - shared + together, together, most)
    )
    # Within one array, each meets those that stand behind it.
    begin = np.arange(1, len(ours) + 1) if left is right else np.searchsorted(theirs, ours, side="left")
    end = np.searchsorted(theirs, ours, side="right")
    parts = [np.zeros(0, dtype=np.int64)]
    for some in _portions(end - begin):
        counts = end[some] - begin[some]
        starts = np.cumsum(counts) - counts
        one = np.repeat(our_rows[some], counts)
        other = their_rows[np.arange(int(counts.sum())) - np.repeat(starts - begin[some], counts)]
        if left is right:
            one, other = np.minimum(one, other), np.maximum(one, other)
        both = distinct(one * len(right) + other)
        enough = _overlaps(left[both // len(right)], right[both % len(right)]) >= shared
        parts.append(both[enough])
    pairs = distinct(np.concatenate(parts))
    return np.stack([pairs // max(1, len(right)), pairs % max(1, len(right))], axis=1)


def distinct(values: Ints) -> Ints:
    """The values of an array, each once, ascending: by sorting, where `np.unique` hashes at a hundredth of the speed.

    Examples:
        >>> distinct(np.array([3, 1, 3])).tolist()
        [1, 3]
    """
    ordered = np.sort(values)
    different: Ints = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return different


def _keys(rows: Ints, prefix: int, together: int, most: int) -> tuple[Ints, Ints]:
    """Every choice of `together` numbers among the first of each row, as one number, ascending, and its row."""
    columns = [rows[:, list(chosen)] for chosen in combinations(range(min(prefix, rows.shape[1])), together)]
    keys = [each[:, 0] * most + each[:, 1] if together > 1 else each[:, 0] for each in columns]
    every = np.concatenate(keys)
    order = np.argsort(every)  # those of one key in any order: pairs are sorted at the end
    return every[order], order % len(rows)


def _portions(counts: Ints) -> Iterator[slice]:
    """Runs of keys whose pairs are compared together; one key's at least."""
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _AT_ONCE, side="right")))
        yield slice(begin, end)
        begin = end


def _overlaps(left: Ints, right: Ints) -> Ints:
    """How many numbers two rows share, row by row."""
    shared = np.zeros(len(left), dtype=np.int64)
    for column in left.T:
        shared += (right == column[:, None]).any(axis=1)
    return shared


def compare_lessons(one: Lesson, other: Lesson, settings: DuplicateSettings) -> Comparison:
    """What two lessons are to each other; the same whichever comes first."""
    return LessonTexts().compare(one, other, settings)


class LessonTexts:
    """Texts of lessons, each taken apart once, when it is first asked for."""

    def __init__(self) -> None:
        self._texts: dict[LessonId, Text] = {}

    def of(self, lesson: Lesson) -> Text:
        """What a lesson says."""
        cached = self._texts.get(lesson.id)
        if cached is None:
            cached = self._texts[lesson.id] = Text(lesson.content)
        return cached

    def compare(self, one: Lesson, other: Lesson, settings: DuplicateSettings) -> Comparison:
        """What two lessons are to each other: under conditions that exclude each other never the same or opposed."""
        comparison = compare(self.of(one), self.of(other), Thresholds(settings.proposed, settings.bound))
        decided = comparison.relation in {TextRelation.SAME, TextRelation.OPPOSITE} or comparison.rivals
        if decided and exclude(one.conditions, other.conditions):
            relation = TextRelation.PROPOSED if comparison.relation is TextRelation.SAME else TextRelation.OTHER
            return Comparison(relation, comparison.shared, "under conditions that exclude each other")
        return comparison


class ConflictChecker:
    """Tells which lessons cannot both be followed; each is taken apart once."""

    def __init__(self, settings: DuplicateSettings, settled: Container[frozenset[str]] = frozenset()) -> None:
        self._settings, self._settled = settings, settled
        self._texts = LessonTexts()

    def __call__(self, one: Lesson, other: Lesson) -> bool:
        """Whether they are about the same and contradict one another, and nobody said that both hold."""
        if frozenset({one.id, other.id}) in self._settled:
            return False
        if not may_be_about_the_same(self._texts.of(one), self._texts.of(other), self._settings.proposed):
            return False
        return self._texts.compare(one, other, self._settings).relation is TextRelation.OPPOSITE


def exclude(one: Conditions, other: Conditions) -> bool:
    """Whether no tool, or no file, meets the conditions of both.

    Examples:
        >>> conditions = [Conditions(files=(each,)) for each in ("*.go", "*.py", "src/*.py", "backend/**")]
        >>> [exclude(conditions[1], each) for each in conditions]
        [True, False, False, False]
        >>> exclude(Conditions(files=("frontend/**",)), conditions[3])
        True
    """
    tools = [(left, right) for left in one.tools for right in other.tools]
    files = [(left, right) for left in one.files for right in other.files]
    return (bool(tools) and not any(_one_tool(*pair) for pair in tools)) or (
        bool(files) and not any(_one_file(*pair) for pair in files)
    )


def _one_tool(one: str, other: str) -> bool:
    one, other = one.casefold(), other.casefold()
    return fnmatchcase(one, other) or fnmatchcase(other, one)


_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
MOST_FORMS = 64
"""Patterns that one with braces stands for; of more the braces are taken for letters."""


def pattern_forms(pattern: str) -> list[str]:
    """The patterns of files that one stands for: each with one choice of its braces; a folder is all that lies in it.

    Examples:
        >>> pattern_forms("src/*.{ts,tsx}"), pattern_forms("./gen/")
        (['src/*.ts', 'src/*.tsx'], ['gen/**'])
    """
    plain = _BEFORE_PATHS.sub("", pattern.replace("\\", "/"))
    forms = [f"{plain}**" if plain.endswith("/") else plain]
    while any(map(_BRACES.search, forms)):
        if len(forms) > MOST_FORMS:
            return [plain]
        forms = [each for form in forms for each in _chosen(form)]
    return forms


_BEFORE_PATHS = re.compile(r"^(?:~?/|\.{1,2}/)+")  # where a path begins is not asked: its end is


def _chosen(form: str) -> list[str]:
    braces = _BRACES.search(form)
    if braces is None:
        return [form]
    return [form[: braces.start()] + choice + form[braces.end() :] for choice in braces[1].split(",")]


def _one_file(one: str, other: str) -> bool:
    """Whether one path may meet both patterns."""
    return any(_one_form(left, right) for left in pattern_forms(one) for right in pattern_forms(other))


def _one_form(one: str, other: str) -> bool:
    """Whether what stands fixed at the beginnings of two patterns, and at their ends, agrees.

    A pattern without a folder is about names, wherever they are.
    """
    if "/" in one and "/" in other:
        heads = [_WILD.split(each)[0] for each in (one, other)]
        if not (heads[0].startswith(heads[1]) or heads[1].startswith(heads[0])):
            return False
    tails = [_ENDS_WILD.split(each)[-1] for each in (one, other)]
    return tails[0].endswith(tails[1]) or tails[1].endswith(tails[0])


class DuplicateIndex:
    """Lessons by the words in them, and by what they mean: those that may be one are found without comparing all.

    A text is taken apart when it is first compared with another; most never are.
    """

    def __init__(self, settings: DuplicateSettings, embed: Embed | None = None) -> None:
        """Take what makes unit vectors of texts; without it two lessons in other words are not found."""
        self._settings, self._embed = settings, embed
        self._lessons: dict[LessonId, tuple[Lesson, frozenset[str]]] = {}
        self._texts = LessonTexts()
        self._by_stem: dict[tuple[str, int], list[LessonId]] = defaultdict(list)  # by how many stems they have, too
        self._counts: Counter[str] = Counter()
        self._sizes: set[int] = set()
        self._bounds: dict[int, int] = {}

    def add(self, lesson: Lesson) -> None:
        """One more; one that is there already is left as it is."""
        if lesson.id in self._lessons:
            return
        stems = self._texts.of(lesson).content
        self._lessons[lesson.id] = (lesson, stems)
        self._sizes.add(len(stems))
        self._counts.update(stems)
        for stem in stems:
            self._by_stem[stem, len(stems)].append(lesson.id)

    def pairs(self) -> Iterator[tuple[Lesson, Lesson, Comparison]]:
        """All pairs of its lessons that are about the same, each once, the greater id first."""
        ids = sorted(self._lessons)
        hits: dict[int, list[LessonId]] = defaultdict(list)
        left, right = self._sharing(ids).T.tolist()
        for one, other in zip(left, right, strict=True):
            hits[max(one, other)].append(ids[min(one, other)])
        near = self._meaning_the_same(ids)
        for place in sorted({*hits, *near}):
            lesson, _ = self._lessons[ids[place]]
            by_words = self._near(lesson, hits[place])
            yield from ((lesson, *pair) for pair in by_words)
            paired = {other.id for other, _ in by_words}
            for other_id, cosine in near.get(place, ()):
                other, _ = self._lessons[other_id]
                if other_id not in paired and (comparison := self._by_meaning(lesson, other, cosine)):
                    yield lesson, other, comparison

    def _meaning_the_same(self, ids: Sequence[LessonId]) -> Mapping[int, Sequence[tuple[LessonId, float]]]:
        """Of the place of each lesson those before it that lie near it, the nearest first, with the cosine."""
        if self._embed is None or len(ids) < 2:
            return {}
        vectors = self._embed([self._lessons[each][0].content for each in ids])
        near: dict[int, list[tuple[LessonId, float]]] = {}
        for place in range(1, len(ids)):
            cosines = vectors[:place] @ vectors[place]
            order = np.argsort(-cosines, kind="stable")
            nearest = order[cosines[order] >= self._settings.meaning][:_ASKED]
            some = [(ids[at], float(cosines[at])) for at in nearest.tolist()]
            near |= {place: some} if some else {}
        return near

    def _by_meaning(self, one: Lesson, other: Lesson, cosine: float) -> Comparison | None:
        """What two lessons are whose words do not say that they are about the same; None where they deny it."""
        compared = self._texts.compare(one, other, self._settings)
        if compared.relation is not TextRelation.OTHER or compared.apart:
            return None
        return Comparison(TextRelation.PROPOSED, compared.shared, f"they lie near each other by meaning: {cosine:.2f}")

    def _sharing(self, ids: Sequence[LessonId]) -> Ints:
        """Pairs of places in `ids` of lessons that share enough stems, int64 (pairs, 2)."""
        numbers = {stem: at for at, stem in enumerate(self._ordered(frozenset(self._counts)))}
        rows: dict[int, list[int]] = defaultdict(list)  # one row behind the other
        for place, lesson_id in enumerate(ids):
            stems = self._lessons[lesson_id][1]
            row = rows[len(stems)]
            row.append(place)
            row.extend(map(numbers.__getitem__, stems))
        arrays = ((size, np.array(each, dtype=np.int64).reshape(-1, size + 1)) for size, each in sorted(rows.items()))
        groups = {size: (each[:, 0], np.sort(each[:, 1:], axis=1)) for size, each in arrays}
        parts = [np.zeros((0, 2), dtype=np.int64)]
        for one, other in combinations_with_replacement(groups, 2):
            shared = self._shared(one, other)
            if shared <= one:
                (here, left), (there, right) = groups[one], groups[other]
                pairs = sharing(left, right, shared)
                parts.append(np.stack([here[pairs[:, 0]], there[pairs[:, 1]]], axis=1))
        return np.concatenate(parts)

    def _ordered(self, stems: frozenset[str]) -> list[str]:
        return sorted(stems, key=lambda stem: (self._counts[stem], stem))

    def compared(self, lesson: Lesson) -> list[tuple[Lesson, Comparison]]:
        """Lessons that are about the same, those that share most first, ties by id."""
        stems = self._texts.of(lesson).content
        return self._near(lesson, self._candidates(stems) - {lesson.id})

    def _near(self, lesson: Lesson, candidates: Iterable[LessonId]) -> list[tuple[Lesson, Comparison]]:
        """Those of some that share enough stems, and are about the same as a lesson."""
        near = []
        for other_id in candidates:
            other, _ = self._lessons[other_id]
            if may_be_about_the_same(self._texts.of(lesson), self._texts.of(other), self._settings.proposed):
                comparison = self._texts.compare(lesson, other, self._settings)
                if comparison.relation is not TextRelation.OTHER:
                    near.append((other, comparison))
        return sorted(near, key=lambda pair: (-pair[1].shared, pair[0].id))

    def _shared(self, one: int, other: int) -> int:
        """So many stems two of such sizes are to share; an opposite counts, too: one word more may be."""
        total = one + other
        if total not in self._bounds:
            self._bounds[total] = max(1, math.ceil(self._settings.proposed * total / 2 - _SLACK) - 1)
        return self._bounds[total]

    def _candidates(self, stems: frozenset[str]) -> set[LessonId]:
        """Lessons that share enough: where s of n stems are to be shared, one of any n - s + 1 is; the rarest."""
        hits: set[LessonId] = set()
        ordered = self._ordered(stems)
        for size in self._sizes:
            for stem in ordered[: max(0, len(stems) - self._shared(len(stems), size) + 1)]:
                hits.update(self._by_stem.get((stem, size), ()))
        return {each for each in hits if self._enough(stems, self._lessons[each][1])}

    def _enough(self, stems: frozenset[str], theirs: frozenset[str]) -> bool:
        return len(stems & theirs) >= self._shared(len(stems), len(theirs))
