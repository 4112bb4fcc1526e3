"""Which words of a query a far-down result that was picked shall be found by (RET-17)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from weft.feedback.settings import TriggerSettings

_WORD = re.compile(r"[^\W\d_]\w*")
BEYOND_RANK = 3
"""Results at this rank or better are found well enough."""
MOST_TERMS = 3
"""Of one selection."""
_SHORTEST, _LONGEST = 3, 40  # characters of a word


def trigger_terms(text: str, rules: TriggerSettings) -> tuple[str, ...]:
    """The words of a query that tell most, the longest first, at most as many as configured."""
    words = learnable((word.casefold() for word in _WORD.findall(text)), rules)
    return tuple(sorted(words, key=lambda word: -len(word))[:MOST_TERMS])


def learnable(terms: Iterable[str], rules: TriggerSettings) -> list[str]:
    """Those of some terms, each once, that may become triggers: neither too short nor too long nor in all queries."""
    return [
        term
        for term in dict.fromkeys(terms)
        if _SHORTEST <= len(term) <= _LONGEST and term not in rules.stop_words and _WORD.fullmatch(term)
    ]
