"""Which words of a query a far-down result that was picked shall be found by (RET-17)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipelines.feedback.settings import TriggerSettings

_WORD = re.compile(r"[^\W\d_]\w*")
_SHORTEST, _LONGEST = 3, 40  # characters of a word
_STOP = """
a about above after again all also an and any anyone are around as at be because been before being below best between
both but by call can cannot case check could create data default did different do does doing done down each else error
example examples explain file files find first for from function get give given go good had has have having help her
here his how if in instead into is it its just know last like list look looking make many may me might more most much
must my name need new no not now number of off on one only or other our out over own please possible problem question
same set several she should show since so some something still such take tell than that the their them then there
these they thing things this those through to too two type under until up us use used using value very want was way
ways we well were what when where whether which while who whose why will with within without work works would you your
"""
STOP_WORDS = frozenset(_STOP.split())
"""Words that say nothing about what is looked for."""


def trigger_terms(text: str, rules: TriggerSettings) -> tuple[str, ...]:
    """The words of a query that tell most, the longest first, at most as many as configured.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> trigger_terms("How is the WAL checkpoint flushed to disk?", load_settings(environment={}).feedback.triggers)
        ('checkpoint', 'flushed', 'disk')
    """
    words = learnable(word.casefold() for word in _WORD.findall(text))
    return tuple(sorted(words, key=lambda word: -len(word))[: rules.terms])


def learnable(terms: Iterable[str]) -> list[str]:
    """Those of some terms, each once, that may become triggers: neither too short nor too long nor in all queries."""
    return [
        term
        for term in dict.fromkeys(terms)
        if _SHORTEST <= len(term) <= _LONGEST and term not in STOP_WORDS and _WORD.fullmatch(term)
    ]
