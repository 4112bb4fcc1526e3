"""Why a result stands where it does, in words (RET-18)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from weft.domain.links import Authority, LinkKind, Quadrant, RelatedDocument

CONTENT, QUESTION, OWN = "content", "question", "own_word"
"""Names of the contributions: what came of a content elsewhere, and under this question; and the asker's own word."""

SUPERSEDED = "superseded"
"""Name of the contribution by which a result falls to just below what supersedes it."""

STANDS_FIRST = "stands_first"
"""Name of the contribution that lifts what a query names, or what holds its phrase or +word, above the best other."""


class NewcomerVerdicts(msgspec.Struct, frozen=True):
    """What those called a result who are new, and too many on one day to count one by one (FBK-13)."""

    right: int  # How many names, as in `PastVerdicts`
    wrong: int
    near_right: int
    near_wrong: int
    counts_as: int  # as how many people they count at most, all together; 0 where they hardly count


class PastVerdicts(msgspec.Struct, frozen=True):
    """What people called a result before (LRN-18)."""

    right: int = 0  # How many, when this very question was asked
    wrong: int = 0
    near_right: int = 0  # How many, when a near question was asked (LRN-19)
    near_wrong: int = 0
    nearest: str = ""  # the nearest of these; "" where there is none, or its text is private
    own: bool | None = None  # the asker's own word; None without one
    rank_before: int | None = None  # where it would stand without all that; None where no channel finds it
    new: NewcomerVerdicts | None = None  # A crowd of new names beside those counted so far; None without one
    edited: int = 0  # how many of all of them said so before its text was edited (ARC-4)


class _Contribution(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def amount(self) -> float: ...


class _Result(Protocol):
    """What words are found for; `ranking.RankedResult` is one."""

    @property
    def rank(self) -> int: ...
    @property
    def channels(self) -> Collection[str]: ...
    @property
    def contributions(self) -> Sequence[_Contribution]: ...
    @property
    def past(self) -> PastVerdicts | None: ...
    @property
    def authority(self) -> Authority | None: ...
    @property
    def relations(self) -> Sequence[RelatedDocument]: ...


MOST = 3
"""Reasons that a result gives."""

SEEN = 0.00005  # of a difference: what is less is printed as nothing
_AUTHORITY = {
    Quadrant.BOTH: "much refers to it here and elsewhere",
    Quadrant.INTERNAL: "much refers to it here",
    Quadrant.EXTERNAL: "much refers to it elsewhere",
    Quadrant.NEITHER: "little is known to refer to it",
}
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ORDINALS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_FINDS = {
    "dense": "by meaning",
    "dense_2": "by the second encoder",
    "dense_3": "by the third encoder",
    "lexical": "by words",
    "sparse": "by learned words",
    "graph": "by what it is linked to",
    "triggers": "by a declared phrase",
    "names": "by its name",
}
_SIGNALS = {
    "vector": "its meaning is near the question",
    "vector_2": "its meaning is near the question by the second encoder",
    "vector_3": "its meaning is near the question by the third encoder",
    "lexical": "it holds the question's words",
    "sparse": "it holds words that a model learned to expect for the question",
    "late_interaction": "it matches the question word for word",
    "cross_encoder": "a model that reads both together thinks it answers the question",
    "cross_validation": "meaning and words both find it",
    "freshness": "it is up to date",
    "trust": "its source is trusted",
    "authority": "much refers to it",  # where no quadrant is told
    "graph": "it is linked to what the question names",
    "degree": "much is linked to it",
    "trigger": "the question holds one of its phrases",
    "named": "it is what the question names",
    "structure": "it is whole",
    "propagated": "its parts match",
    "novelty": "it is new",
    "tier": "it is declared important",
    "validation": "it is declared valid",
    "congruence": "it was written for this purpose",
    "session": "it belongs to what this session is about",
    "pseudo_relevance": "it is like the other first results",
    "isolation": "it stands alone",
    "momentum": "more is linked to it than was",
    "passage": "what stands beside it matches best",
    "mpab": "more of the same document matches",
    STANDS_FIRST: "it is what the query names, or holds what it puts in quotes or behind a plus",
    CONTENT: "it was right for other questions",
}
_CALLED = {
    CONTENT: ("it was wrong for other questions", _SIGNALS[CONTENT]),
    QUESTION: ("people called it wrong for this question", "people called it right for this question"),
    OWN: ("you called it wrong", "you called it right"),
}
"""What people said against a result, and for it."""


def reason(result: _Result) -> str:
    """One sentence: what people called it, where there is such, and what finds it."""
    by = ways(result)
    if result.past is None:
        return "; ".join(reasons(result)) or by
    called, before = "; ".join([*warnings(result), *_called(result.past)]), result.past.rank_before
    return (
        f"{called}; nothing else finds it"
        if before is None
        else f"{called}; before that it was {ordinal(before)}, {by}"
    )


def reasons(result: _Result) -> tuple[str, ...]:
    """What speaks against its document, and what adds most to its score, in words, at most three, the most first."""
    called = _called(result.past) if result.past is not None else []
    ordered = sorted(result.contributions, key=lambda each: each.amount, reverse=True)
    words = [_in_words(result, each.name) for each in ordered if each.amount > 0.0 and each.name in _SIGNALS]
    return tuple([*warnings(result), *called, *words][:MOST])


def _in_words(result: _Result, name: str) -> str:
    """What an addend says of a result; of authority, the quadrant with its confidence (CIT-3)."""
    if name != "authority" or result.authority is None:
        return _SIGNALS[name]
    return f"{_AUTHORITY[result.authority.quadrant]} (confidence {result.authority.confidence:.2f})"


def warnings(result: _Result) -> list[str]:
    """What supersedes or contradicts its document, in words, one of each at most; with that the cluster's others."""
    first = {each.kind: each for each in reversed(result.relations) if warns(each)}
    others = [each.uri for each in result.relations if not each.direct]
    more = {LinkKind.CONTRADICTS: f" (also in this contradiction: {', '.join(others)})"} if others else {}
    return [f"{each.says}{more.get(each.kind, '')}" for each in result.relations if first.get(each.kind) is each]


def warns(relation: RelatedDocument) -> bool:
    """Whether a relation speaks against the result that has it."""
    return relation.kind is LinkKind.CONTRADICTS or (relation.kind is LinkKind.SUPERSEDES and relation.inward)


def ways(result: _Result) -> str:
    """What found it, in words."""
    names = [_FINDS[channel] for channel in result.channels if channel in _FINDS]
    return " and ".join(names) or "by what people called it"


def _called(past: PastVerdicts) -> list[str]:
    """What people called it, and as how many new names count that speak beside them."""
    own = {True: "you called this right", False: "you called this wrong"}
    others = (past.right, past.wrong) if past.own is None else (past.right - past.own, past.wrong - (not past.own))
    sentences = [] if past.own is None else [own[past.own]]
    for count, word in zip(others, ("right", "wrong"), strict=True):
        if count:
            too = " too" if past.own is (word == "right") else ""
            sentences.append(f"{people(count)} called this {word}{too} for this question")
    about = f"“{past.nearest}”" if past.nearest else "a near question"
    for count, word in ((past.near_right, "right"), (past.near_wrong, "wrong")):
        if count:
            sentences.append(f"{people(count)} called this {word} for {about}")
    if past.new is not None:
        sentences.append(_crowd(past.new, about))
    if sentences and past.edited:
        sentences[-1] += f" ({_of_whom(past)}before its text was edited)"
    return sentences or ["clicks and answers speak of it"]


def _of_whom(past: PastVerdicts) -> str:
    """How many of those who spoke said so of the text as it was; nothing where all did."""
    new = past.new or NewcomerVerdicts(0, 0, 0, 0, 0)
    spoke = sum(each.right + each.wrong + each.near_right + each.near_wrong for each in (past, new))
    return "" if past.edited >= spoke else f"{_number(past.edited)} of them "


def _crowd(new: NewcomerVerdicts, near: str) -> str:
    """What new names called it that count together as a few people at most (FBK-13)."""
    sides = (
        (new.right, "right for this question"),
        (new.wrong, "wrong for this question"),
        (new.near_right, f"right for {near}"),
        (new.near_wrong, f"wrong for {near}"),
    )
    called = " and ".join(
        f"{_number(count)} new name{'s' * (count > 1)} called this {word}" for count, word in sides if count
    )
    return (
        f"{called}, counted as {people(new.counts_as)} at most" if new.counts_as else f"{called}, which hardly counts"
    )


def people(count: int) -> str:
    """So many people, in words."""
    return f"{_number(count)} {'person' if count == 1 else 'people'}"


def _number(count: int) -> str:
    return _COUNTS[count] if count < len(_COUNTS) else f"{count:,}"


def ordinal(place: int) -> str:
    """A place, in words."""
    return _ORDINALS[place] if place < len(_ORDINALS) else f"at place {place}"


def difference(one: _Result, other: _Result) -> list[tuple[str, float]]:
    """What sets one result above another: contributions by name, the greatest difference first."""
    amounts = [{each.name: each.amount for each in result.contributions} for result in (one, other)]
    names = dict.fromkeys([*amounts[0], *amounts[1]])
    apart = [(name, amounts[0].get(name, 0.0) - amounts[1].get(name, 0.0)) for name in names]
    return sorted((each for each in apart if abs(each[1]) >= SEEN), key=lambda each: -abs(each[1]))


def because(one: _Result, other: _Result, name: str) -> str:
    """Which of two results a contribution sets apart, by its rank, and why, in words."""
    first, second = (sum(each.amount for each in result.contributions if each.name == name) for result in (one, other))
    if (called := _CALLED.get(name)) is not None:
        spoken, amount = (one, first) if abs(first) >= abs(second) else (other, second)
        return f"{spoken.rank}: {called[amount > 0.0]}"
    return f"{(one if first > second else other).rank}: {sentence_of(name)}"


def sentence_of(name: str) -> str:
    """What a contribution means, in words; its name where it has none."""
    more = {
        QUESTION: "people called it so for this question",
        OWN: "you called it so",
        SUPERSEDED: "what supersedes it stands above it",
    }
    return more.get(name) or _SIGNALS.get(name, name.replace("_", " "))
