"""Which lessons a use calls for, by their conditions alone; active ones, and now and then one on trial (LES-8).

    relevance = tool + file + action words + context words, each its weight times how far it is met
    rank      = relevance · P(good) · factor of the priority

Of a free question, where cosines of its vector to those of lessons are at hand, meaning is one more addend.

A lesson that states no context words is met by those of its own text. One whose files are all others than those in use
is ruled out, and so is one whose tools are all others, unless a file is met: "Write" edits a file as "Edit" does.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Protocol

from weft.domain.lesson import Lesson, LessonId, LessonPriority
from weft.domain.lesson_match import BelievedLesson, ChosenLesson, LessonMatch, MatchedCondition
from weft.lessons.duplicates import ConflictChecker, pattern_forms
from weft.lessons.settings import DuplicateSettings
from weft.wording.lexicon import sure_stem
from weft.wording.text import named
from weft.wording.words import words_of

_WILD = re.compile(r"[*?\[]")


class RelevanceWeights(Protocol):
    """The numbers of `conf/priors.yaml` that relevance is made of, as `LessonRelevancePrior` says them."""

    tool: float
    tool_wildcard: float
    file: float
    actions: float
    words: float
    meaning: float
    near: float
    everyday: float
    enough_words: int
    least: float
    priorities: dict[LessonPriority, float]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What an agent is about to do."""

    tool: str = ""  # its name, such as "Bash"; empty where that is not known
    files: tuple[str, ...] = ()  # paths that it touches
    text: str = ""  # what is done and why: the command, the request, what was said last


@lru_cache(maxsize=4096)
def file_pattern(pattern: str) -> re.Pattern[str]:
    """What a pattern of files meets: `*`, `?` and `[ab]` within a name, `**` across folders, `{a,b}` either.

    One without a slash is about the file's name; others are about the end of its path, and one that ends in a slash is
    about all that lies in that folder.

    Examples:
        >>> places = [("*.py", "src/app/main.py"), ("migrations/**", "db/migrations/1.sql"), ("src/*.py", "src/a/b.py")]
        >>> [bool(file_pattern(pattern).search(path)) for pattern, path in places]
        [True, True, False]
        >>> places = [("*.{ts,tsx}", "a/b.tsx"), ("gen/", "api/gen/v1/a.go"), ("[a-c]?.sql", "b1.sql")]
        >>> [bool(file_pattern(pattern).search(path)) for pattern, path in places]
        [True, True, True]
    """
    bodies = "|".join("".join(map(_path_part, _PATH_PARTS.split(form))) for form in pattern_forms(pattern))
    try:
        return re.compile(rf"(?:^|/)(?:{bodies})$")
    except re.error:  # a range that ends before it begins
        return re.compile(rf"(?:^|/){re.escape(pattern)}$")


_PATH_PARTS = re.compile(r"(\*\*/?|\*|\?|\[!?[\w.-]+\])")
_WILD_PARTS = {"": "", "**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}


def _path_part(part: str) -> str:
    if part[:1] == "[" and part[-1:] == "]":
        # Some frameworks name files so: "[id].tsx".
        return rf"(?:[{part[1:-1].replace('!', '^', 1)}]|{re.escape(part)})"
    return _WILD_PARTS.get(part) or re.escape(part)


class ConditionIndex:
    """Lessons by their conditions; built once for a snapshot, and shared by threads."""

    def __init__(self, lessons: Sequence[BelievedLesson], weights: RelevanceWeights) -> None:
        self._lessons = lessons
        self._weights = weights
        self._factors = [believed.p_good * weights.priorities[believed.lesson.priority] for believed in lessons]
        self._actions: dict[str, list[int]] = defaultdict(list)
        self._words: dict[str, list[int]] = defaultdict(list)
        self._enough: list[tuple[int, int]] = []
        self._group_of: list[int] = []
        groups: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
        for at, believed in enumerate(lessons):
            conditions = believed.lesson.conditions
            self._group_of.append(groups.setdefault((conditions.tools, conditions.files), len(groups)))
            actions = action_words(believed)
            words = context_words(believed)
            most = weights.enough_words
            self._enough.append((max(1, min(len(actions), most)), max(1, min(len(words), most))))
            for index, values in ((self._actions, actions), (self._words, words)):
                for value in values:
                    index[value].append(at)
        self._groups = list(groups)
        self._tools = sorted({tool for tools, _ in groups for tool in tools})
        self._files = sorted({file for _, files in groups for file in files})
        # Of lessons with the same tools and files whose words say nothing, the better one always comes first.
        self._best: list[list[int]] = [[] for _ in groups]
        for at in sorted(range(len(lessons)), key=lambda at: (-self._factors[at], lessons[at].lesson.id)):
            self._best[self._group_of[at]].append(at)

    def find(self, use: ToolUse, *, limit: int, cosines: Sequence[float] = (), near: float = 1.0) -> list[LessonMatch]:
        """The best `limit` lessons for a tool use, best first, ties by id; none where none fits."""
        groups = self._met_groups(use)
        words = self._met_words(use)
        candidates = {at for group, shares in groups.items() if any(shares) for at in self._best[group][:limit]}
        alike = {at for at, cosine in enumerate(cosines) if cosine >= near}
        candidates.update(at for at in words.keys() | alike if self._group_of[at] in groups)
        ranked = []
        for at in candidates:
            stated = (*groups[self._group_of[at]], *words.get(at, (0.0, 0.0)))
            if at not in alike and sum(self._amounts((*stated, 0.0))) < self._weights.least:
                continue
            shares = (*stated, min(1.0, max(0.0, cosines[at])) if cosines else 0.0)
            relevance = sum(self._amounts(shares))
            ranked.append((-relevance * self._factors[at], self._lessons[at].lesson.id, at, shares))
        return [self._match(at, shares) for _, _, at, shares in heapq.nsmallest(limit, ranked)]

    def _met_groups(self, use: ToolUse) -> dict[int, tuple[float, float, float]]:
        """By group of equal tools and files, how far these are met: exact tool, tool by pattern, file.

        Groups that the use rules out are left out.
        """
        paths = [path.replace("\\", "/") for path in use.files]
        asked = use.tool.casefold()  # people write "bash", agents "Bash"
        exact = {tool for tool in self._tools if tool.casefold() == asked and tool}
        wild = {tool for tool in self._tools if _WILD.search(tool) and fnmatchcase(asked, tool.casefold())} - exact
        met_files = {file for file in self._files if any(map(file_pattern(file).search, paths))}
        met: dict[int, tuple[float, float, float]] = {}
        for group, (tools, files) in enumerate(self._groups):
            by_name, by_pattern = not exact.isdisjoint(tools), not wild.isdisjoint(tools)
            file = not met_files.isdisjoint(files)
            other_files = bool(files and paths) and not file
            other_tool = bool(tools and use.tool) and not (by_name or by_pattern or file)
            if not (other_files or other_tool):
                met[group] = (float(by_name), float(by_pattern), float(file))
        return met

    def _met_words(self, use: ToolUse) -> dict[int, tuple[float, float]]:
        """By lesson that has a word of the use, how far its action words and its context words are met."""
        stems = set(map(sure_stem, words_of(use.text)))
        actions = Counter(at for stem in stems.intersection(self._actions) for at in self._actions[stem])
        words = Counter(at for stem in stems.intersection(self._words) for at in self._words[stem])
        met: dict[int, tuple[float, float]] = {}
        for at in actions.keys() | words.keys():
            enough_actions, enough_words = self._enough[at]
            met[at] = (min(1.0, actions[at] / enough_actions), min(1.0, words[at] / enough_words))
        return met

    def _amounts(self, shares: Sequence[float]) -> tuple[float, ...]:
        weights = self._weights
        tool = weights.tool if shares[0] else weights.tool_wildcard * shares[1]
        of_words = (weights.actions * shares[3], weights.words * shares[4])
        return (tool, weights.file * shares[2], *of_words, weights.meaning * shares[5])

    def _match(self, at: int, shares: Sequence[float]) -> LessonMatch:
        weights = self._weights
        tool = ("tool", weights.tool) if shares[0] else ("tool_wildcard", weights.tool_wildcard)
        of_words = [("actions", weights.actions), ("words", weights.words), ("meaning", weights.meaning)]
        of_conditions = [tool, ("file", weights.file), *of_words]
        values = [max(shares[0], shares[1]), *shares[2:]]
        amounts = self._amounts(shares)
        contributions = tuple(
            MatchedCondition(name=name, value=value, weight=weight, amount=amount)
            for (name, weight), value, amount in zip(of_conditions, values, amounts, strict=True)
            if value
        )
        believed = self._lessons[at]
        relevance = sum(amounts)
        priority = weights.priorities[believed.lesson.priority]
        return LessonMatch(believed, relevance, priority, relevance * self._factors[at], contributions)


def context_words(believed: BelievedLesson) -> Collection[str]:
    """Stems of the words that the context is to name: the stated ones, or those of the lesson's own text."""
    stated = believed.lesson.conditions.words
    return _stems(stated) if stated else frozenset(named(believed.lesson.content))


def action_words(believed: BelievedLesson) -> Collection[str]:
    """Stems of the words that say what is to be done."""
    return _stems(believed.lesson.conditions.actions)


def _stems(stated: Sequence[str]) -> frozenset[str]:
    """Stems of stated words, each as a context has it: of "git push" both."""
    return frozenset(sure_stem(word) for each in stated for word in words_of(each))


_FURTHER = 3  # times as many are looked at as are wanted: some are not drawn


class Uniform(Protocol):
    """Draws numbers, as `random.Random` does."""

    def random(self) -> float:
        """One in [0, 1)."""


class LessonFinder:
    """Finds lessons for tool uses; built once for what is believed at one time, and shared by threads."""

    def __init__(
        self,
        lessons: Sequence[BelievedLesson],
        propensities: Mapping[LessonId, float],
        weights: RelevanceWeights,
        opposed: ConflictChecker,
    ) -> None:
        self.lessons = lessons
        self._index = ConditionIndex(lessons, weights)
        self._propensities = propensities
        self._opposed = opposed

    def find(
        self, use: ToolUse, *, limit: int, rng: Uniform, cosines: Sequence[float] = (), near: float = 1.0
    ) -> list[ChosenLesson]:
        """The best `limit` lessons for a tool use, best first; of those in need of validation, whichever are drawn.

        Of two that contradict one another, the better one alone: the other is left for `weft lessons review`.
        """
        chosen: list[ChosenLesson] = []
        for match in self._index.find(use, limit=_FURTHER * limit, cosines=cosines, near=near):
            lesson = match.believed.lesson
            propensity = self._propensities[lesson.id]
            drawn = propensity >= 1.0 or rng.random() < propensity
            if drawn and not any(self._opposed(each.match.believed.lesson, lesson) for each in chosen):
                chosen.append(ChosenLesson(match, propensity))
                if len(chosen) == limit:
                    break
        return chosen


def meanings_of(lesson: Lesson) -> tuple[str, str]:
    """The texts that a lesson is embedded by: as advice, and as what goes wrong without it, which questions name, too.

    Examples:
        >>> meanings_of(Lesson(section="db", content="Vacuum after bulk deletes"))
        ('You should Vacuum after bulk deletes', 'Problem when you do not: Vacuum after bulk deletes')
    """
    content, words = lesson.content, lesson.conditions.words
    return f"You should {content}", " ".join((f"Problem when you do not: {content}", *words))


class LessonBeliefSource(Protocol):
    """What is believed of lessons."""

    @property
    def separate(self) -> Container[frozenset[str]]:
        """Pairs of ids that somebody keeps apart: both hold, whatever they look like."""

    def injectable(self) -> list[BelievedLesson]:
        """Those that may be shown."""

    def propensity(self, lesson_id: str) -> float:
        """The probability that one is, where it fits."""


def finder_of(beliefs: LessonBeliefSource, weights: RelevanceWeights, duplicates: DuplicateSettings) -> LessonFinder:
    """What finds lessons among those that may be shown."""
    lessons = beliefs.injectable()
    propensities = {each.lesson.id: beliefs.propensity(each.lesson.id) for each in lessons}
    return LessonFinder(lessons, propensities, weights, ConflictChecker(duplicates, beliefs.separate))
