"""Which lessons a tool use calls for, by their conditions alone: no encoder, no model (LES-8).

    relevance = tool + file + action words + context words, each its weight times how far it is met
    rank      = relevance · P(good) · factor of the priority

A lesson that states no context words is met by those of its own text. One whose files are all others than those in use
is ruled out, and so is one whose tools are all others, unless a file is met: "Write" edits a file as "Edit" does.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Protocol

from pipelines.domain.lesson import BelievedLesson, LessonMatch, LessonPriority, MetCondition
from pipelines.lessons.wording import LessonWords, words_of

_WILD = re.compile(r"[*?\[]")


class RelevanceWeights(Protocol):
    """The numbers of `conf/priors.yaml` that relevance is made of."""

    @property
    def tool(self) -> float:
        """Of a tool that is named exactly."""

    @property
    def tool_wildcard(self) -> float:
        """Of a tool that a pattern names."""

    @property
    def file(self) -> float:
        """Of a file that a pattern meets."""

    @property
    def actions(self) -> float:
        """Of action words that are all met."""

    @property
    def words(self) -> float:
        """Of context words that are all met."""

    @property
    def enough_words(self) -> int:
        """So many words of a condition that are met count as all."""

    @property
    def least(self) -> float:
        """Relevance below which a lesson is not shown."""

    @property
    def priorities(self) -> Mapping[LessonPriority, float]:
        """Factor of each priority on the rank."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What an agent is about to do.

    Attributes:
        tool: Its name, such as "Bash"; empty where that is not known.
        files: Paths that it touches.
        text: What is done and why: the command, the request, what was said last.
    """

    tool: str = ""
    files: tuple[str, ...] = ()
    text: str = ""


@lru_cache(maxsize=4096)
def file_pattern(pattern: str) -> re.Pattern[str]:
    """What a pattern of files meets: `*` and `?` within a name, `**` across folders.

    One without a slash is about the file's name; others are about the end of its path.

    Examples:
        >>> places = [("*.py", "src/app/main.py"), ("migrations/**", "db/migrations/1.sql"), ("src/*.py", "src/a/b.py")]
        >>> [bool(file_pattern(pattern).search(path)) for pattern, path in places]
        [True, True, False]
    """
    parts = re.split(r"(\*\*/?|\*|\?)", pattern.replace("\\", "/").removeprefix("./").removeprefix("/"))
    wild = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    body = "".join(wild.get(part) or re.escape(part) for part in parts)
    return re.compile(rf"(?:^|/){body}$")


class ConditionIndex:
    """Lessons by their conditions; built once for a snapshot, and shared by threads.

    Args:
        lessons: Those that may be shown.
    """

    def __init__(self, lessons: Sequence[BelievedLesson], weights: RelevanceWeights, lexicon: LessonWords) -> None:
        self._lessons = lessons
        self._weights = weights
        self._lexicon = lexicon
        self._tools: dict[str, list[int]] = defaultdict(list)
        self._files: dict[str, list[int]] = defaultdict(list)
        self._actions: dict[str, list[int]] = defaultdict(list)
        self._words: dict[str, list[int]] = defaultdict(list)
        self._enough: list[tuple[int, int]] = []
        for at, believed in enumerate(lessons):
            conditions = believed.lesson.conditions
            actions = frozenset(lexicon.stem(word) for word in conditions.actions)
            words = context_words(believed, lexicon)
            most = weights.enough_words
            self._enough.append((max(1, min(len(actions), most)), max(1, min(len(words), most))))
            for index, values in (
                (self._tools, conditions.tools),
                (self._files, conditions.files),
                (self._actions, actions),
                (self._words, words),
            ):
                for value in values:
                    index[value].append(at)
        self._factors = [believed.p_good * weights.priorities[believed.lesson.priority] for believed in lessons]

    def find(self, use: ToolUse, *, limit: int) -> list[LessonMatch]:
        """The best `limit` lessons for a tool use, best first, ties by id; none where none fits."""
        met = self._met(use)
        ranked = []
        for at, shares in met.items():
            amounts = self._amounts(shares)
            if (relevance := sum(amounts)) >= self._weights.least:
                ranked.append((-relevance * self._factors[at], self._lessons[at].lesson.id, at))
        return [self._match(at, met[at]) for _, _, at in heapq.nsmallest(limit, ranked)]

    def _met(self, use: ToolUse) -> dict[int, list[float]]:
        """By lesson, how far each condition is met: exact tool, tool by pattern, file, actions, words."""
        met: dict[int, list[float]] = defaultdict(lambda: [0.0] * 5)
        paths = [path.replace("\\", "/") for path in use.files]
        tools = [self._tools.get(use.tool, ())] if use.tool else []
        patterns = [
            places for tool, places in self._tools.items() if _WILD.search(tool) and fnmatchcase(use.tool, tool)
        ]
        files = [places for file, places in self._files.items() if any(map(file_pattern(file).search, paths))]
        for kind, places in [
            *((0, each) for each in tools),
            *((1, each) for each in patterns),
            *((2, each) for each in files),
        ]:
            for at in places:
                met[at][kind] = 1.0
        stems = {self._lexicon.stem(word) for word in words_of(use.text)}
        for kind, index in ((3, self._actions), (4, self._words)):
            for stem in stems.intersection(index):
                for at in index[stem]:
                    met[at][kind] += 1.0
        for at, shares in met.items():
            actions, words = self._enough[at]
            shares[3] = min(1.0, shares[3] / actions)
            shares[4] = min(1.0, shares[4] / words)
        return {at: shares for at, shares in met.items() if not self._ruled_out(at, shares, use)}

    def _ruled_out(self, at: int, shares: Sequence[float], use: ToolUse) -> bool:
        conditions = self._lessons[at].lesson.conditions
        other_files = bool(conditions.files and use.files and not shares[2])
        other_tool = bool(conditions.tools and use.tool and not (shares[0] or shares[1] or shares[2]))
        return other_files or other_tool

    def _amounts(self, shares: Sequence[float]) -> tuple[float, ...]:
        weights = self._weights
        tool = weights.tool if shares[0] else weights.tool_wildcard * shares[1]
        return (tool, weights.file * shares[2], weights.actions * shares[3], weights.words * shares[4])

    def _match(self, at: int, shares: Sequence[float]) -> LessonMatch:
        weights = self._weights
        tool = ("tool", weights.tool) if shares[0] else ("tool_wildcard", weights.tool_wildcard)
        of_conditions = [tool, ("file", weights.file), ("actions", weights.actions), ("words", weights.words)]
        values = [max(shares[0], shares[1]), *shares[2:]]
        amounts = self._amounts(shares)
        contributions = tuple(
            MetCondition(name=name, value=value, weight=weight, amount=amount)
            for (name, weight), value, amount in zip(of_conditions, values, amounts, strict=True)
            if value
        )
        believed = self._lessons[at]
        relevance = sum(amounts)
        priority = weights.priorities[believed.lesson.priority]
        return LessonMatch(believed, relevance, priority, relevance * self._factors[at], contributions)


def context_words(believed: BelievedLesson, lexicon: LessonWords) -> Collection[str]:
    """Stems of the words that the context is to name: the stated ones, or those of the lesson's own text."""
    stated = believed.lesson.conditions.words
    of_text: Iterable[str] = lexicon.subject(believed.lesson.content)
    return frozenset(lexicon.stem(word) for word in stated) if stated else frozenset(of_text)
