"""What people called right or wrong under a question, one row of use per verdict (LRN-18).

A principal counts once per content and question, with the last word. Sums have no order, so each verdict carries its
time. A bin such as "verdict:good:00000735:63" holds milliseconds since midnight, and the result's score as a percentage
of its page's best, "-" if it was not shown. A question's own text is kept beside it, in a bin "question:TEXT" of no
content: near questions are told by it (LRN-19).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from weft.learning.parameters import BAD, GOOD, NEGATIVE, POSITIVE
from weft.learning.uses import UsageKey

VERDICT = "verdict:"
QUESTION = "question:"
"""What the bins begin with."""

_PERCENT = 100


class VerdictBin(NamedTuple):
    """What the bin of one verdict says."""

    good: bool
    ms: int  # milliseconds since midnight, UTC
    # of the best score on its page that the result was shown with; None where it was not shown, or not scored
    share: float | None

    @property
    def name(self) -> str:
        """The bin."""
        shown = "-" if self.share is None else str(round(self.share * _PERCENT))
        return f"{VERDICT}{GOOD if self.good else BAD}:{self.ms:08d}:{shown}"

    @classmethod
    def of(cls, name: str) -> VerdictBin:
        """What a bin that begins with `VERDICT` says."""
        _, word, ms, shown = name.split(":")
        return cls(word == GOOD, int(ms), None if shown == "-" else int(shown) / _PERCENT)


def question_bin(text: str) -> str:
    """The bin of a question's text."""
    return QUESTION + text


def question_texts(usage: Iterable[UsageKey]) -> dict[str, str]:
    """Texts of questions, by fingerprint, as far as they are kept."""
    return {key.question: key.bin.removeprefix(QUESTION) for key in usage if key.bin.startswith(QUESTION)}


def called_wrong(usage: Mapping[UsageKey, int]) -> set[tuple[str, str]]:
    """Contents that somebody called wrong, each with the fingerprint of the question."""
    return {
        (key.content_hash, key.question)
        for key, micro in usage.items()
        if micro > 0 and key.bin.startswith(VERDICT) and not VerdictBin.of(key.bin).good
    }


def is_good(name: str) -> bool | None:
    """Whether a bin of use speaks for its content; None where it is no outcome."""
    return VerdictBin.of(name).good if name.startswith(VERDICT) else {POSITIVE: True, NEGATIVE: False}.get(name)
