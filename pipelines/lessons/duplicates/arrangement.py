"""Whether the same words in another order still say the same: "log errors as warnings", "log warnings as errors"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipelines.lessons.wording import LessonWords, words_of

_COMMA = re.compile(r"[,;:]\s")
_PASSIVE = frozenset({"be", "been", "is", "are", "have", "has"})


@dataclass(frozen=True, slots=True)
class WordOrder:
    """The order of a text's stems.

    Attributes:
        orders: As they stand, and with the parts around a comma turned around.
        passive: Whether what is done may stand behind what it is done to.
    """

    orders: tuple[tuple[str, ...], ...]
    passive: bool

    @classmethod
    def of(cls, text: str, words: LessonWords) -> WordOrder:
        """Of a text.

        Examples:
            >>> from pipelines.settings import load_settings
            >>> words = LessonWords(load_settings(environment={}).lessons.words)
            >>> WordOrder.of("Before merging, squash commits", words).orders
            (('merg', 'squash', 'commit'), ('squash', 'commit', 'merg'))
        """
        parts = [(text[: comma.start()], text[comma.end() :]) for comma in _COMMA.finditer(text)]
        turned = [(*words.subject(back), *words.subject(front)) for front, back in parts]
        orders = dict.fromkeys([tuple(words.subject(text)), *turned])
        return cls(tuple(orders), not _PASSIVE.isdisjoint(words_of(text)))

    def agrees(self, other: WordOrder) -> bool:
        """Whether both order their words alike, a part in front or behind, a deed first or in the passive."""
        return any(
            ours == theirs
            or (other.passive and theirs in _deed_behind(ours))
            or (self.passive and ours in _deed_behind(theirs))
            for ours in self.orders
            for theirs in other.orders
        )


def _deed_behind(order: tuple[str, ...]) -> list[tuple[str, ...]]:
    first, rest = order[:1], order[1:]
    return [(*rest[:at], *first, *rest[at:]) for at in range(1, len(rest) + 1)]
