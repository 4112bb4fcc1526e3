"""What people called results before, counted by who said so, and where each would stand without that (RET-18)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pipelines.domain.ranking import Channel, NewNames, PastVerdicts
from pipelines.learning.observe.precedents import Words
from pipelines.retrieval.ranking.effects import CONTENT, OWN, QUESTION, PastOutcomes
from pipelines.retrieval.ranking.table import CHANNEL_AT, Candidates, Flags, Ints

_ROUNDED = 1e-9  # sums of shares are not exact
_HARDLY = 0.5  # of a person; who counts less than that, hardly counts


def past_verdicts(candidates: Candidates, outcomes: Sequence[PastOutcomes | None]) -> dict[int, PastVerdicts]:
    """What people called candidates before, by the candidate's number; of those of whom anybody said anything."""
    past: dict[int, PastVerdicts] = {}
    for query, lines in candidates.queries:
        past_outcomes = outcomes[query]
        if past_outcomes is None:
            continue
        before = _ranks_before(candidates.take(lines))
        for place, row in enumerate(candidates.rows[lines].tolist()):
            some = np.flatnonzero(past_outcomes.words.row == row)
            if len(some):
                rank = before[place]
                past[int(candidates.number[lines][place])] = _counted(past_outcomes, some, rank)
    return past


def _ranks_before(candidates: Candidates) -> list[int | None]:
    """Where each of one query would stand without effects; None of those that nothing else finds."""
    added = [at for at, part in enumerate(candidates.parts) if part.name in {CONTENT, QUESTION, OWN}]
    numbers = candidates.number
    amounts = np.nansum((candidates.values * candidates.weights)[numbers][:, added], axis=1)
    plain = candidates.total - amounts
    ranked = np.logical_or.reduce(
        np.delete(candidates.merged.ranks[numbers], CHANNEL_AT[Channel.ANSWERED], axis=1), axis=1
    )
    ranks = 1 + (plain[None, :] > plain[:, None]).sum(axis=1)
    return [int(rank) if is_ranked else None for rank, is_ranked in zip(ranks.tolist(), ranked.tolist(), strict=True)]


def _counted(past_outcomes: PastOutcomes, some: Ints, rank: int | None) -> PastVerdicts:
    """The words on one content that were said outright, counted by who said them."""
    words, precedents = past_outcomes.words, past_outcomes.precedents
    some = some[words.verdicts.spoken[some]]
    verdicts, factor, own = words.verdicts.take(some), words.factor[some], words.own[some]
    good, same = verdicts.good > 0.5, factor == 1.0
    crowd, counts_as = _crowd(verdicts, own, precedents.prior.newcomers)

    def people(among: Flags) -> list[int]:
        """How many called it right and wrong, and right and wrong under near questions."""
        sides = ((same, good), (same, ~good), (~same, good), (~same, ~good))
        return [len(set(verdicts.principal[among & asked & side].tolist())) for asked, side in sides]

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
        new=NewNames(*people(crowd), counts_as) if crowd.any() else None,
    )


def _crowd(verdicts: Words, own: Flags, most: int) -> tuple[Flags, int]:
    """Which words are of new principals that do not count one by one, and as how many people these count at most.

    Too many of a day spoke of this, or each of something else. The asker is none: its own word is told by itself.
    """
    new = np.isfinite(verdicts.together) & ~np.isin(verdicts.principal, verdicts.principal[own])
    days, day = np.unique(verdicts.day, return_inverse=True)
    names = np.unique(np.stack([day[new], verdicts.principal[new]]), axis=1)[0]
    voices = np.where(new, verdicts.weight * most / verdicts.together, 0.0)
    crowd = new & ((np.bincount(names, minlength=len(days))[day] > most) | (voices < 1.0 - _ROUNDED))
    people = np.minimum(np.bincount(day[crowd], weights=voices[crowd], minlength=len(days)), most).sum()
    return crowd, 0 if people < _HARDLY else math.ceil(people - _ROUNDED)
