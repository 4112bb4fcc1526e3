"""What was used together (CON-3): a Hebbian strength of pairs of contents, from the evidence of their use alone.

Two contents were used together where one principal found both good for one question on one day. How much that is, is
the lesser of their masses, one use at most. Uses fade with the days that others are used on: while nothing is used,
nothing fades, so that the same evidence gives the same strengths whenever it is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import combinations

import numpy as np

from pipelines.domain.ids import ContentHash
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.observe.verdicts import is_good
from pipelines.learning.recency import recency
from pipelines.learning.uses import Uses, numbered

Pair = tuple[ContentHash, ContentHash]
"""Two contents in ascending order."""


def co_uses(
    evidence: Evidence,
    *,
    named: Callable[[ContentHash], ContentHash | None],
    half_life_days: float,
    together: int,
    today: int,
) -> dict[Pair, int]:
    """How much pairs of contents were used together, in micro-units, as it counts on the newest day of use.

    Args:
        named: What a content counts as: what it is an alias of; None leaves it out.
        half_life_days: After which a use counts half.
        together: Contents of one question of one principal on one day that pair, those found best first, ties by hash.
        today: The newest day that counts as one, days since the epoch: what claims to be later moves nothing else.

    Examples:
        >>> from pipelines.learning.uses import UsageKey
        >>> found = {UsageKey(8, name, "positive", "ada", "why"): MICRO for name in ("aa", "bb")}
        >>> co_uses(Evidence(usage=found), named=lambda name: name, half_life_days=30.0, together=9, today=9)
        {('aa', 'bb'): 1000000}
    """
    uses = Uses.of(evidence.usage).columns()
    good = np.array([is_good(word) is True for word in uses.bin.words], dtype=bool)[uses.bin.codes]
    some = np.flatnonzero(good & (uses.micro > 0) & ~uses.question.holds(""))
    if not len(some):
        return {}
    names = [named(ContentHash(word)) for word in uses.content.words]
    days = uses.day[some]
    newest = min(int(uses.day.max()), today)
    counts = {day: recency(newest - day, half_life_days) for day in np.unique(days).tolist()}
    _, group = numbered(
        (days, int(days.max()) + 1),
        (uses.principal.codes[some], len(uses.principal.words)),
        (uses.question.codes[some], len(uses.question.words)),
    )
    order = np.argsort(group, kind="stable")
    columns = (each[order].tolist() for each in (group, days, uses.content.codes[some], uses.micro[some]))
    masses: defaultdict[tuple[int, int], dict[ContentHash, int]] = defaultdict(dict)
    for number, day, content, micro in zip(*columns, strict=True):
        if (name := names[content]) is not None:
            own = masses[number, day]
            own[name] = own.get(name, 0) + micro
    pairs: defaultdict[Pair, int] = defaultdict(int)
    for (_, day), own in masses.items():
        best = sorted(own, key=lambda name: (-own[name], name))[:together]
        for one, other in combinations(sorted(best), 2):
            pairs[one, other] += round(min(own[one], own[other], MICRO) * counts[day])
    return {pair: micro for pair, micro in sorted(pairs.items()) if micro}


def strength(micro: int, *, half_uses: float) -> int:
    """How strong an edge is by so much use, in [0, `MICRO`]: n / (n + half), so that each further use adds less.

    Args:
        half_uses: Uses at which it is half.

    Examples:
        >>> [strength(uses * MICRO, half_uses=3.0) for uses in (0, 1, 3, 9, 10**9)]
        [0, 250000, 500000, 750000, 1000000]
    """
    half = round(half_uses * MICRO)
    return (2 * MICRO * micro + micro + half) // (2 * (micro + half)) if micro > 0 else 0
