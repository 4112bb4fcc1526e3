"""Whether two texts about the same thing say opposite things of it (CON-4).

Of two texts that lie near each other, sentences are paired as for near-duplicates (`statements`). A pair is opposed
where one denies what the other says, where a word stands in the place of its opposite, or a number in the place of
another. Two of these in one sentence undo each other ("is not enabled", "is disabled"). Where any other word is
exchanged, the two speak of different things, which may well differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from weft.quality.statements import Kind, Statement, Statements, WordLists, stem_of

_DENYING = "n't"


class Polarity(StrEnum):
    """In what two statements are opposed."""

    DENIAL = "denial"
    OPPOSITE = "opposite"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Opposition:
    """Two statements that are opposed."""

    polarity: Polarity
    one: str  # Their words
    other: str
    # whether nothing else differs in them, and neither text has sentences that the other lacks while the other
    # has some, too: a condition or another subject may be in what differs
    exact: bool


def opposition(one: Statements, other: Statements, lists: WordLists, *, least: float) -> Opposition | None:
    """The first pair of sentences in which two texts are opposed; None where they are not, or differ in more than that.

    Examples:
        >>> lists = WordLists.of(["not", "never"], ["always", "never"], ["two"], ["before"], [("enable", "disable")])
        >>> text = Statements("Close the file before the lock is released. The cache is enabled.", lists)
        >>> others = [
        ...     "Close the file before the lock is released. The cache is disabled.",
        ...     "Close the file before the lock is not released. The cache is enabled.",
        ...     "Close the file before the lock is released. The cache is not disabled.",
        ...     "Close the file before the lock is released. The queue is disabled.",
        ... ]
        >>> detected = [opposition(text, Statements(each, lists), lists, least=0.6) for each in others]
        >>> [each and each.polarity.value for each in detected]
        ['opposite', 'denial', None, None]
    """
    if one.overlap(other) < least:
        return None
    pairs, ours, theirs = one.paired(other)
    opposed: list[Opposition] = []
    exact = not (ours and theirs)
    for here, there in pairs:
        opposite = _opposed(here, there, lists)
        if opposite is not None:
            opposed.append(opposite)
        elif not here.agrees(there):
            return None
    if not opposed:
        return None
    first = opposed[0]
    return Opposition(first.polarity, first.one, first.other, exact and all(each.exact for each in opposed))


def _opposed(one: Statement, other: Statement, lists: WordLists) -> Opposition | None:
    if not one.keeps_order(other):
        return None
    denied = exchanged_opposites = numbers = 0
    exact = True
    for block in one.differences(other):
        ours, theirs = (_Side(words, lists) for words in block)
        denied += ours.negations + theirs.negations
        undone = ours.without_opposites(theirs, lists)
        exchanged_opposites += undone
        if ours.numbers and theirs.numbers:
            if not _are_other_numbers(ours.numbers, theirs.numbers):
                return None
            numbers += 1
        elif ours.numbers or theirs.numbers:
            exact = False
        if ours.others and theirs.others:
            return None
        stronger = ours.absolutes != theirs.absolutes and not ours.negations and not theirs.negations
        exact = exact and not ours.others and not theirs.others and not stronger
    turned = (denied + exchanged_opposites) % 2
    if bool(turned) == bool(numbers):  # neither, or a denial of another number, which may well be true with the first
        return None
    exact = exact and denied + exchanged_opposites + numbers == 1
    polarity = Polarity.NUMBER if numbers else Polarity.OPPOSITE if exchanged_opposites else Polarity.DENIAL
    return Opposition(polarity, " ".join(one.words), " ".join(other.words), exact)


class _Side:
    """What one sentence has where another has something else."""

    def __init__(self, words: Sequence[str], lists: WordLists) -> None:
        denying = [word for word in words if word in lists.negations or word.endswith(_DENYING)]
        kinds = {word: lists.kind(word) for word in words}
        self.negations = len(denying)
        self.absolutes = sum(word in lists.absolutes for word in words if word not in lists.negations)
        self.numbers = [word for word in words if kinds[word] is Kind.NUMBER]
        counted = {*denying, *lists.absolutes, *self.numbers}
        self.others = {
            stem_of(word)
            for word in words
            if word not in counted and (kinds[word] is not None or word not in lists.idle)
        }

    def without_opposites(self, other: _Side, lists: WordLists) -> int:
        """Leave out stems that both have, and those that exclude each other; how many pairs of these there were."""
        both = self.others & other.others
        self.others -= both
        other.others -= both
        pairs = 0
        for stem in sorted(self.others):
            against = [each for each in sorted(other.others) if lists.opposite(stem, each)]
            if against:
                self.others.discard(stem)
                other.others.discard(against[0])
                pairs += 1
        return pairs


def _are_other_numbers(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether as many numbers stand on both sides, and can be told apart: "three" may be 3."""
    return len(ours) == len(theirs) and all(
        one == other or one.isalpha() == other.isalpha() for one, other in zip(ours, theirs, strict=True)
    )
