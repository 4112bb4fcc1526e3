"""What was used together (CON-3): a Hebbian strength of pairs of contents, from the evidence of their use alone.

Two contents were used together where one principal found both good for one question on one day. How much that is, is
the lesser of their masses, one use at most. Uses fade with the days that others are used on: while nothing is used,
nothing fades, so that the same evidence gives the same strengths whenever it is read.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from pipelines.domain.ids import ContentHash
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.observe.verdicts import is_good
from pipelines.learning.recency import recency
from pipelines.learning.uses import Uses

Pair = tuple[ContentHash, ContentHash]
"""Two contents in ascending order."""

_TOGETHER = ("day", "who", "why")  # a principal's question of one day


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
    if not len(uses.day):
        return {}
    good = np.array([is_good(word) is True for word in uses.bin.values], dtype=bool)[uses.bin.codes]
    names = pl.Series([named(ContentHash(word)) for word in uses.content.values], dtype=pl.String)
    newest, days = min(int(uses.day.max()), today), np.unique(uses.day).tolist()
    counts = {day: recency(newest - day, half_life_days) for day in days}
    columns = {"day": uses.day, "who": uses.principal.codes, "why": uses.question.codes, "micro": uses.micro}
    masses = (
        pl.LazyFrame({**columns, "content": names.gather(uses.content.codes)})
        .filter(pl.Series(good & (uses.micro > 0) & ~uses.question.holds("")), pl.col("content").is_not_null())
        .group_by(*_TOGETHER, "content")
        .agg(pl.sum("micro"))
        .filter(pl.len().over(_TOGETHER) > 1)
        .sort("micro", "content", descending=[True, False])
        .group_by(_TOGETHER, maintain_order=True)
        .head(together)
    )
    lesser = pl.min_horizontal("micro", "micro_right", pl.lit(MICRO))
    pairs = (
        masses.join(masses, on=_TOGETHER)
        .filter(pl.col("content") < pl.col("content_right"))
        .group_by("content", "content_right")
        .agg((lesser * pl.col("day").replace_strict(counts)).round(mode="half_to_even").cast(pl.Int64).sum())
        .filter(pl.col("micro") != 0)
        .sort("content", "content_right")
        .collect(engine="streaming")
    )
    return {(ContentHash(one), ContentHash(other)): micro for one, other, micro in pairs.iter_rows()}


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
