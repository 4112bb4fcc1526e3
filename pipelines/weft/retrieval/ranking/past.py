"""What people called results before, counted by who said so, and where each would stand without that (RET-18)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from weft.domain.arrays import Flags, Ints
from weft.domain.ranking import Channel, NewcomerVerdicts, PastVerdicts
from weft.learning.observe.precedents import VerdictTable
from weft.retrieval.ranking.batch import CHANNEL_AT, RankingBatch
from weft.retrieval.ranking.context import PastOutcomes
from weft.retrieval.settings import FusionMode, ResultUnit, RetrievalSettings

_ROUNDED = 1e-9  # sums of shares are not exact
_HARDLY = 0.5  # of a person; who counts less than that, hardly counts


class RanksWithoutVerdicts(NamedTuple):
    """Where results of one query would stand, from 1, if nobody had called anything right or wrong."""

    rows: Mapping[int, int]  # by row of the content
    uris: Mapping[str, int]  # by document, of those that stand for it there

    def of(self, row: int, uris: Sequence[str]) -> int | None:
        """Of one result: by itself, or else by what stood for its documents; None where nothing finds it."""
        places = [self.uris[uri] for uri in uris if uri in self.uris]
        return self.rows.get(row, min(places, default=None))


def with_past_verdicts(
    shown: RankingBatch,  # the results
    scored: RankingBatch,  # what they were chosen from
    best_of: Callable[..., RankingBatch],
    page: Callable[[RankingBatch], RankingBatch],  # what is shown of these
    settings: RetrievalSettings,
) -> RankingBatch:
    """Results with what people called them before; where scores are not learned, that counts for nothing."""
    outcomes = [each.past for each in shown.contexts]
    spoken = np.array([each is not None and len(each.verdicts) > 0 for each in outcomes], dtype=bool)
    if settings.fusion is not FusionMode.LEARNED or not spoken.any():
        return shown
    unspoken = replace(scored, contexts=[replace(each, past=None) for each in scored.contexts])
    ranks = np.delete(scored.merged.ranks[scored.number], CHANNEL_AT[Channel.ANSWERED], axis=1)
    ranked = unspoken.take(spoken[scored.query] & (ranks > 0).any(axis=1))  # not by what people said alone
    every = best_of(ranked, every=True)
    first = page(every.head(every.ks + settings.diversity.depth))
    before = ranks_without_verdicts(first, every, by_document=settings.unit is ResultUnit.DOCUMENT)
    return replace(shown, past=past_verdicts(shown, before))


def ranks_without_verdicts(
    page: RankingBatch, every: RankingBatch, *, by_document: bool
) -> dict[int, RanksWithoutVerdicts]:
    """Places of each query by its place in the batch: what its page shows first, then all others in their order."""
    before, first = {}, dict(page.queries)
    for query, lines in every.queries:
        shown = page.number[first[query]].tolist() if query in first else []
        order = list(dict.fromkeys([*shown, *every.number[lines].tolist()]))
        rows = {row: place for place, row in enumerate(every.merged.row[order].tolist(), start=1)}
        uris: dict[str, int] = {}
        for place, number in enumerate(order, start=1):
            own = every.uris(number) if by_document else ()
            for uri in (*own, *page.duplicates.get(number, ())):
                uris.setdefault(uri, place)
        before[query] = RanksWithoutVerdicts(rows, uris)
    return before


def past_verdicts(candidates: RankingBatch, before: Mapping[int, RanksWithoutVerdicts]) -> dict[int, PastVerdicts]:
    """What people called candidates before, by the candidate's number; of those of whom anybody said anything."""
    past: dict[int, PastVerdicts] = {}
    for query, lines in candidates.queries:
        past_outcomes, places = candidates.contexts[query].past, before.get(query, RanksWithoutVerdicts({}, {}))
        if past_outcomes is None:
            continue
        for number, row in zip(candidates.number[lines].tolist(), candidates.rows[lines].tolist(), strict=True):
            some = np.flatnonzero(past_outcomes.verdicts.row == row)
            if len(some):
                past[number] = _counted(past_outcomes, some, places.of(row, candidates.uris(number)))
    return past


def _counted(past_outcomes: PastOutcomes, some: Ints, rank: int | None) -> PastVerdicts:
    """The verdicts on one content that were said outright, counted by who said them."""
    lines, precedents = past_outcomes.verdicts, past_outcomes.precedents
    some = some[lines.table.spoken[some]]
    verdicts, factor, own = lines.table.take(some), lines.factor[some], lines.own[some]
    good, same = verdicts.good > 0.5, factor == 1.0
    crowd, counts_as = _crowd(verdicts, own, precedents.prior.newcomers)

    def people(among: Flags) -> tuple[int, int, int, int]:
        """How many called it right and wrong, and right and wrong under near questions."""
        right, wrong, near_right, near_wrong = (
            len(set(verdicts.principal[among & asked & side].tolist()))
            for asked, side in ((same, good), (same, ~good), (~same, good), (~same, ~good))
        )
        return right, wrong, near_right, near_wrong

    right, wrong, near_right, near_wrong = people(~crowd)
    nearest = (
        precedents.questions[int(verdicts.question[int(np.argmax(np.where(same, 0.0, factor)))])] if len(some) else ""
    )
    return PastVerdicts(
        right=right,
        wrong=wrong,
        near_right=near_right,
        near_wrong=near_wrong,
        nearest="" if same.all() else precedents.texts.get(nearest, ""),
        own=bool(good[own][-1]) if own.any() else None,
        rank_before=rank,
        new=NewcomerVerdicts(*people(crowd), counts_as) if crowd.any() else None,
        edited=len(set(verdicts.principal[np.isin(verdicts.content, list(past_outcomes.revised))].tolist())),
    )


def _crowd(verdicts: VerdictTable, own: Flags, most: int) -> tuple[Flags, int]:
    """Which verdicts are of new principals that do not count one by one, and as how many people these count at most.

    Too many of a day spoke of this, or each of something else. The asker is none: its own word is told by itself.
    """
    new = np.isfinite(verdicts.together) & ~np.isin(verdicts.principal, verdicts.principal[own])
    days, day = np.unique(verdicts.day, return_inverse=True)
    names = np.unique(np.stack([day[new], verdicts.principal[new]]), axis=1)[0]
    voices = np.where(new, verdicts.weight * most / verdicts.together, 0.0)
    crowd = new & ((np.bincount(names, minlength=len(days))[day] > most) | (voices < 1.0 - _ROUNDED))
    people = np.minimum(np.bincount(day[crowd], weights=voices[crowd], minlength=len(days)), most).sum()
    return crowd, 0 if people < _HARDLY else math.ceil(people - _ROUNDED)
